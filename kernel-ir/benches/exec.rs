//! Times the CPU executor on the parts that kernels are made of. One JSON line a case: wall time, and the CPU time of
//! all threads together, which other load on the machine disturbs less. `cargo bench --bench exec NAME` runs some.
#![allow(clippy::print_stdout, reason = "the figures are its output")]

use std::time::Instant;

use kernel_ir::exec::Array;
use kernel_ir::ir::DType;
use kernel_ir::prelude::*;

const RUNS: usize = 9;

#[tpu_kernel]
fn matmul<T: Mxu<Acc = f32>>(x: In<T>, y: In<T>, o: Out<T>, acc: Scratch<f32>) {
    let k = program_id(2);
    when(k == 0, || acc[..] = 0.0);
    acc[..] += dot(x[..], y[..]);
    when(k == num_programs(2) - 1, || o[..] = acc[..].to());
}

fn matmul_kernel<T: Mxu<Acc = f32>>() -> Result<Kernel, Report> {
    let [m, k, n] = dims(["m", "k", "n"]);
    let (bm, bk, bn) = (128, 256, 256);
    matmul::<T, _> {
        grid: grid([par(m.div_ceil(bm)), par(n.div_ceil(bn)), seq(k.div_ceil(bk))]).demand(k.multiple_of(bk)),
        x: array([m, k]).block([bm, bk], |[i, _, k]| (i, k)),
        y: array([k, n]).block([bk, bn], |[_, j, k]| (k, j)),
        o: array([m, n]).block([bm, bn], |[i, j, _]| (i, j)),
        acc: vmem([bm, bn]),
    }
    .build()
}

#[tpu_kernel]
fn flash(
    q: In<f32>,
    k: In<f32>,
    v: In<f32>,
    o: Out<f32>,
    m: Scratch<f32>,
    l: Scratch<f32>,
    acc: Scratch<f32>,
) {
    let (iq, ik) = (program_id(1), program_id(2));
    let (bq, bk) = (q.dims()[1], k.dims()[1]);
    when(ik == 0, || {
        m[..] = f32::MIN;
        l[..] = 0.0;
        acc[..] = 0.0;
    });
    when(ik * bk < (iq + 1) * bq, || {
        let s = dot_t(q[0], k[0]) * 0.125;
        let s = select(iq * bq + iota([bq, bk], 0) >= ik * bk + iota([bq, bk], 1), s, f32::MIN);
        let top = maximum(m[..], s.max(1));
        let (p, fade) = ((s - top).exp(), (m[..] - top).exp());
        l[..] = fade * l[..] + p.sum(1);
        acc[..] = fade * acc[..] + dot(p, v[0]);
        m[..] = top;
    });
    when(ik == num_programs(2) - 1, || o[0] = acc[..] / l[..]);
}

fn flash_kernel() -> Result<Kernel, Report> {
    let [h, s] = dims(["h", "s"]);
    let (d, b) = (128, 128);
    flash {
        grid: grid([par(h), par(s.div_ceil(b)), seq(s.div_ceil(b))]).demand(s.multiple_of(b)),
        q: array((h, s, d)).block([1, b, d], |[h, i, _]| (h, i, 0)),
        k: array((h, s, d)).block([1, b, d], |[h, _, j]| (h, j, 0)),
        v: array((h, s, d)).block([1, b, d], |[h, _, j]| (h, j, 0)),
        o: array((h, s, d)).block([1, b, d], |[h, i, _]| (h, i, 0)),
        m: vmem([b, 1]),
        l: vmem([b, 1]),
        acc: vmem([b, d]),
    }
    .build()
}

/// `x * sigmoid(1.7 x) + y`: a chain over every element.
#[tpu_kernel]
fn swish<T: Num>(x: In<T>, y: In<T>, o: Out<T>) {
    let v = x[..].to::<f32>();
    o[..] = (v / ((v * -1.7).exp() + 1.0) + y[..].to::<f32>()).to();
}

fn swish_kernel<T: Num>() -> Result<Kernel, Report> {
    let [m, n] = dims(["m", "n"]);
    let block = [256, 512];
    swish::<T, _> {
        grid: grid([par(m.div_ceil(block[0])), par(n.div_ceil(block[1]))]),
        x: array([m, n]).block(block, |[i, j]| (i, j)),
        y: array([m, n]).block(block, |[i, j]| (i, j)),
        o: array([m, n]).block(block, |[i, j]| (i, j)),
    }
    .build()
}

/// Sums numbers in SMEM one by one: what a step of the scalar core costs.
#[tpu_kernel]
fn scan(x: Prefetch<i32>, o: Out<i32>, n: usize) {
    let mut sum = Idx::from(0);
    for i in range(0, n) {
        sum += x.get(i);
    }
    o[..] = full([8, 128], 1) * sum;
}

fn wave(dtype: DType, shape: &[usize]) -> Result<Array, Report> {
    let numbers: Vec<f64> = (0..shape.iter().product()).map(|i: usize| (i as f64 * 0.37).sin()).collect();
    Array::from_f64(dtype, shape, &numbers)
}

/// CPU time of this process so far, all threads, in milliseconds.
fn cpu_ms() -> f64 {
    let stat = std::fs::read_to_string("/proc/self/stat").unwrap_or_default();
    // After the name in parentheses: user and system time are fields 12 and 13, in hundredths of a second.
    let fields: Vec<f64> =
        stat.rsplit(')').next().unwrap_or("").split_whitespace().map(|f| f.parse().unwrap_or(0.0)).collect();
    10.0 * fields.get(11..13).unwrap_or(&[]).iter().sum::<f64>()
}

fn time(name: &str, kernel: &Kernel, inputs: &[(&str, &Array)]) -> Result<(), Report> {
    let wanted: Vec<String> = std::env::args().skip(1).filter(|a| !a.starts_with('-')).collect();
    if !wanted.is_empty() && !wanted.iter().any(|w| name.contains(w.as_str())) {
        return Ok(());
    }
    kernel.run(inputs)?;
    let mut walls = vec![];
    let (cpu, start) = (cpu_ms(), Instant::now());
    while walls.len() < RUNS || start.elapsed().as_millis() < 500 {
        let start = Instant::now();
        kernel.run(inputs)?;
        walls.push(1e3 * start.elapsed().as_secs_f64());
    }
    let cpu = (cpu_ms() - cpu) / walls.len() as f64;
    walls.sort_by(f64::total_cmp);
    let (least, median) = (walls[0], walls[walls.len() / 2]);
    println!("{{\"case\": \"{name}\", \"ms\": {median:.3}, \"least_ms\": {least:.3}, \"cpu_ms\": {cpu:.3}}}");
    Ok(())
}

fn main() -> Result<(), Report> {
    for (name, dtype, kernel) in [
        ("matmul 512^3 f32", DType::F32, matmul_kernel::<f32>()?),
        ("matmul 512^3 bf16", DType::Bf16, matmul_kernel::<bf16>()?),
    ] {
        let x = wave(dtype, &[512, 512])?;
        time(name, &kernel, &[("x", &x), ("y", &x)])?;
    }
    let x = wave(DType::F32, &[4, 512, 128])?;
    time(
        "causal attention, 4 heads of 512 x 128, f32",
        &flash_kernel()?,
        &[("q", &x), ("k", &x), ("v", &x)],
    )?;
    for (name, dtype, kernel) in [
        ("swish of 2^20 f32", DType::F32, swish_kernel::<f32>()?),
        ("swish of 2^20 bf16", DType::Bf16, swish_kernel::<bf16>()?),
    ] {
        let x = wave(dtype, &[1024, 1024])?;
        time(name, &kernel, &[("x", &x), ("y", &x)])?;
    }
    let n = 100_000;
    let kernel =
        scan { grid: grid([seq(1)]), x: prefetch(n), o: array([8, 128]).block([8, 128], |[_]| (0, 0)), n }
            .build()?;
    time("10^5 scalar loads and adds", &kernel, &[("x", &Array::from_fn([n], |i| i as i32))])
}
