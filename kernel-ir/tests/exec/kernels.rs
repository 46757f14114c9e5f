//! Kernels as authors write them, against `f64`: matmul with a K loop, causal flash attention, a copy pipeline.

use kernel_ir::exec::{Array, Options, run};
use kernel_ir::ir::DType;
use kernel_ir::prelude::*;

use crate::build::numbers;

fn close(got: &Array, want: &[f64], tolerance: f64) {
    assert_eq!(got.len(), want.len());
    for (i, (g, w)) in got.to_f64().iter().zip(want).enumerate() {
        assert!((g - w).abs() <= tolerance * w.abs().max(1.0), "element {i}: got {g}, want {w}");
    }
}

#[tpu_kernel]
fn matmul<T: Mxu<Acc = f32>>(x: In<T>, y: In<T>, o: Out<T>, acc: Scratch<f32>) {
    let k = program_id(2);
    when(k == 0, || acc[..] = 0.0);
    acc[..] += dot(x[..], y[..]);
    when(k == num_programs(2) - 1, || o[..] = acc[..].to());
}

fn matmul_kernel<T: Mxu<Acc = f32>>() -> Kernel {
    let [m, k, n] = dims(["m", "k", "n"]);
    let (bm, bk, bn) = (16, 128, 128);
    matmul::<T, _> {
        grid: grid([par(m.div_ceil(bm)), par(n.div_ceil(bn)), seq(k.div_ceil(bk))]).demand(k.multiple_of(bk)),
        x: array([m, k]).block([bm, bk], |[i, _, k]| (i, k)),
        y: array([k, n]).block([bk, bn], |[_, j, k]| (k, j)),
        o: array([m, n]).block([bm, bn], |[i, j, _]| (i, j)),
        acc: vmem([bm, bn]),
    }
    .build()
    .unwrap()
}

#[test]
fn a_matmul_of_any_size_with_partial_edge_blocks() {
    for (dtype, kernel, tolerance) in
        [(DType::F32, matmul_kernel::<f32>(), 1e-6), (DType::Bf16, matmul_kernel::<bf16>(), 4e-3)]
    {
        for [m, k, n] in [[1, 128, 1], [16, 256, 128], [50, 384, 300], [7, 128, 129]] {
            let (x, y) = (numbers(dtype, &[m, k], 1), numbers(dtype, &[k, n], 2));
            let (a, b) = (x.to_f64(), y.to_f64());
            let want: Vec<f64> =
                (0..m * n).map(|e| (0..k).map(|p| a[e / n * k + p] * b[p * n + e % n]).sum()).collect();
            for shuffle in [None, Some(7)] {
                let options = Options { shuffle, ..Options::default() };
                let out = run(&kernel, &[("x", &x), ("y", &y)], &options).unwrap();
                assert_eq!(out["o"].shape(), [m, n]);
                close(&out["o"], &want, tolerance);
            }
        }
    }
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

#[test]
fn causal_flash_attention_equals_a_softmax() {
    let [h, s] = dims(["h", "s"]);
    let (d, b) = (64, 128);
    let kernel = flash {
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
    .unwrap();
    let (heads, len) = (2, 384);
    let [q, k, v] = [1, 2, 3].map(|seed| numbers(DType::F32, &[heads, len, d], seed));
    let got = kernel.run(&[("q", &q), ("k", &k), ("v", &v)]).unwrap();
    let (q, k, v) = (q.to_f64(), k.to_f64(), v.to_f64());
    let mut want = vec![];
    for row in 0..heads * len {
        let first = row / len * len;
        let query = &q[row * d..][..d];
        let scores: Vec<f64> = (first..=row)
            .map(|j| query.iter().zip(&k[j * d..]).map(|(a, b)| a * b).sum::<f64>() * 0.125)
            .collect();
        let top = scores.iter().copied().fold(f64::MIN, f64::max);
        let weights: Vec<f64> = scores.iter().map(|s| (s - top).exp()).collect();
        let sum: f64 = weights.iter().sum();
        want.extend(
            (0..d).map(|c| {
                weights.iter().enumerate().map(|(j, w)| w * v[(first + j) * d + c]).sum::<f64>() / sum
            }),
        );
    }
    close(&got["o"], &want, 1e-5);
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
fn a_copy_pipeline_with_two_slots_and_a_carried_sum() {
    let kernel = column_sums {
        grid: grid([seq(1)]),
        x: hbm([64, 128]),
        o: array([1, 128]).block([1, 128], |[_]| (0, 0)),
        buf: vmem([2, 16, 128]),
        sem: dma_sem(2),
    }
    .build()
    .unwrap();
    let x = numbers(DType::F32, &[64, 128], 5);
    let want: Vec<f64> = (0..128).map(|c| x.to_f64().iter().skip(c).step_by(128).sum()).collect();
    assert_eq!(kernel.run(&[("x", &x)]).unwrap()["o"].to_f64(), want);
}
