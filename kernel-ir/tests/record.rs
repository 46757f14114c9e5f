//! Kernels as they should look, recorded: matmul, flash attention, a hand-made copy pipeline, host code inside kernels.

use kernel_ir::prelude::*;

#[tpu_kernel]
fn matmul<T: Mxu<Acc = f32>>(x: In<T>, y: In<T>, o: Out<T>, acc: Scratch<f32>) {
    let k = program_id(2);
    when(k == 0, || acc[..] = 0.0);
    acc[..] += dot(x[..], y[..]);
    when(k == num_programs(2) - 1, || o[..] = acc[..].to());
}

#[test]
fn a_matmul_of_symbolic_dims_records() {
    let [m, k, n] = dims(["m", "k", "n"]);
    let (bm, bk, bn) = (256, 512, 256);
    let kernel = matmul::<bf16, _> {
        grid: grid([par(m.div_ceil(bm)), par(n.div_ceil(bn)), seq(k.div_ceil(bk))]).demand(k.multiple_of(bk)),
        x: array([m, k]).block([bm, bk], |[i, _, k]| (i, k)),
        y: array([k, n]).block([bk, bn], |[_, j, k]| (k, j)),
        o: array([m, n]).block([bm, bn], |[i, j, _]| (i, j)),
        acc: vmem([bm, bn]),
    }
    .build()
    .unwrap();
    println!("{kernel}");
    assert_eq!(kernel.dims().iter().map(|d| &**d).collect::<Vec<_>>(), ["m", "k", "n"]);
    assert!(kernel.dims_read().is_empty());
}

#[tpu_kernel]
fn flash<T: Mxu<Acc = f32>>(
    q: In<T>,
    k: In<T>,
    v: In<T>,
    o: Out<T>,
    m: Scratch<f32>,
    l: Scratch<f32>,
    acc: Scratch<f32>,
    scale: f32,
    causal: bool,
) {
    let (iq, ik) = (program_id(1), program_id(2));
    when(ik == 0, || {
        m[..] = f32::MIN;
        l[..] = 0.0;
        acc[..] = 0.0;
    });
    let step = || {
        let mut s = dot_t(q[0], k[0]) * scale;
        let [bq, bk] = s.shape();
        if causal {
            s = select(iq * bq + iota([bq, bk], 0) >= ik * bk + iota([bq, bk], 1), s, f32::MIN);
        }
        let top = maximum(m[..], s.max(1));
        let (p, fade) = ((s - top).exp(), (m[..] - top).exp());
        l[..] = fade * l[..] + p.sum(1);
        acc[..] = fade * acc[..] + dot(p.to::<T>(), v[0]);
        m[..] = top;
    };
    let (bq, bk) = (q.dims()[1], k.dims()[1]);
    if causal {
        when(ik * bk < (iq + 1) * bq, step)
    } else {
        step()
    }
    when(ik == num_programs(2) - 1, || o[0] = (acc[..] / l[..]).to());
}

#[test]
fn flash_attention_records() {
    let [h, s] = dims(["h", "s"]);
    let (d, bq, bk) = (128, 128, 128);
    let kernel = flash::<bf16, _> {
        grid: grid([par(h), par(s.div_ceil(bq)), seq(s.div_ceil(bk))]),
        q: array((h, s, d)).block([1, bq, d], |[h, i, _]| (h, i, 0)),
        k: array((h, s, d)).block([1, bk, d], |[h, _, j]| (h, j, 0)),
        v: array((h, s, d)).block([1, bk, d], |[h, _, j]| (h, j, 0)),
        o: array((h, s, d)).block([1, bq, d], |[h, i, _]| (h, i, 0)),
        m: vmem([bq, 1]),
        l: vmem([bq, 1]),
        acc: vmem([bq, d]),
        scale: 0.5,
        causal: true,
    }
    .build()
    .unwrap();
    println!("{kernel}");
}

/// Column sums of an HBM array, fetching the next rows while the current ones are added.
#[tpu_kernel]
fn column_sums(x: Hbm<f32>, o: Out<f32>, buf: Scratch<f32>, sem: DmaSem) {
    let [rows, cols] = x.shape();
    let tile = buf.dims()[1];
    let steps = rows / tile;
    let fetch = |i: Idx, slot: Idx| copy(x.at((ds(i * tile, tile), ..)), buf.at(slot), sem.slot(slot));
    fetch(0.into(), 0.into()).start();
    let mut total = full([1, cols], 0.0);
    for i in range(0, steps) {
        let slot = i % 2;
        when(i + 1 < steps, || fetch(i + 1, 1 - slot).start());
        fetch(i, slot).wait();
        total += buf[slot].sum(0);
    }
    o[..] = total;
}

#[test]
fn a_copy_pipeline_records() {
    let kernel = column_sums {
        grid: grid([seq(1)]),
        x: hbm([64, 128]),
        o: array([1, 128]).block([1, 128], |[_]| (0, 0)),
        buf: vmem([2, 16, 128]),
        sem: dma_sem(2),
    }
    .build()
    .unwrap();
    println!("{kernel}");
}

/// Host code inside a kernel stays host code: unrolled `for`, `if`, containers, `break`, closures.
#[tpu_kernel]
fn host_inside(x: In<f32>, o: Out<f32>, taps: usize, scale: f32) {
    let mut weights = vec![0.0; taps];
    for i in 0..taps {
        if i == 2 && taps > 3 {
            break;
        }
        weights[i] = scale * (i as f32 + 1.0);
        weights[i] += 0.5;
    }
    let mut sum = full([8, 128], 0.0);
    for (i, w) in weights.iter().enumerate() {
        if *w == 0.0 {
            continue;
        }
        sum += x[..] * *w + i as f32;
    }
    o[..] = sum;
}

/// Traced loops nest, host loops unroll inside them, and both may assign the same variable.
#[tpu_kernel]
fn nested(x: In<f32>, o: Out<f32>, twice: bool) {
    let mut total = full([8, 128], 0.0);
    for _ in range(0, 3) {
        let mut row = full([8, 128], 0.0);
        for j in range(0, 2) {
            row += x[..];
            for step in [1.0, 2.0] {
                total += step;
            }
            if twice {
                total += 1.0
            }
            when(j == 1, || o[..] = row);
        }
        total += row;
    }
    o[..] = total + o[..];
}

#[tpu_fn]
fn first_nonzero(sizes: Prefetch<i32>, n: Dim) -> Idx {
    while_loop(|g: Idx| (g < n.get()) & (sizes.get(g.min(n.get() - 1)) == 0), |g| g + 1, Idx::from(0))
}

#[tpu_kernel]
fn scan(sizes: Prefetch<i32>, o: Out<i32>, state: Scalars<i32>, n: Dim) {
    let g = first_nonzero(sizes, n);
    state[0] = g;
    o[..] = full([8, 128], 0) + state.get(0);
}

#[test]
fn host_code_nested_loops_and_while_record() {
    let b = || array([8, 128]).block([8, 128], |[_]| (0, 0));
    host_inside { grid: grid([seq(1)]), x: b(), o: b(), taps: 4, scale: 2.0 }.build().unwrap();
    nested { grid: grid([seq(1)]), x: b(), o: b(), twice: true }.build().unwrap();
    let [n] = dims(["n"]);
    let o = array([8, 128]).block([8, 128], |[_]| (0, 0));
    let k = scan { grid: grid([seq(1)]), sizes: prefetch(n), o, state: smem([4]), n }.build().unwrap();
    println!("{k}");
    assert_eq!(k.dims_read().len(), 1);
}
