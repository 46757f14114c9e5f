//! A kernel in twenty lines: recorded, run on the CPU, and written as a Mosaic module that serves every shape.
#![allow(clippy::print_stdout, reason = "an example talks to its reader")]

use kernel_ir::exec::Array;
use kernel_ir::prelude::*;

#[tpu_kernel]
fn matmul<T: Mxu<Acc = f32>>(x: In<T>, y: In<T>, o: Out<T>, acc: Scratch<f32>) {
    let k = program_id(2);
    when(k == 0, || acc[..] = 0.0);
    acc[..] += dot(x[..], y[..]);
    when(k == num_programs(2) - 1, || o[..] = acc[..].to());
}

fn main() -> anyhow::Result<()> {
    let [m, k, n] = dims(["m", "k", "n"]);
    let (bm, bk, bn) = (128, 256, 128);
    let kernel = matmul::<f32, _> {
        grid: grid([par(m.div_ceil(bm)), par(n.div_ceil(bn)), seq(k.div_ceil(bk))]).demand(k.multiple_of(bk)),
        x: array([m, k]).block([bm, bk], |[i, _, k]| (i, k)),
        y: array([k, n]).block([bk, bn], |[_, j, k]| (k, j)),
        o: array([m, n]).block([bm, bn], |[i, j, _]| (i, j)),
        acc: vmem([bm, bn]),
    }
    .build()?;

    // Any m and n, and any k that 256 divides, from one recording: here 300 x 512 x 200 and 1000 x 256 x 8.
    for [m, k, n] in [[300, 512, 200], [1000, 256, 8]] {
        let x = Array::new([m, k], vec![1.0; m * k])?;
        let y = Array::new([k, n], vec![0.5; k * n])?;
        let out = kernel.run(&[("x", &x), ("y", &y)])?;
        let largest = out["o"].to_f64().into_iter().fold(f64::MIN, f64::max);
        println!("[{m}, {k}] x [{k}, {n}]: largest element {largest}, expected {}", k as f64 / 2.0);
    }
    println!("Mosaic module: {} bytes", kernel.mosaic()?.bytecode.len());
    Ok(())
}
