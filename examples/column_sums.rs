//! A copy pipeline made by hand: the next rows are fetched from HBM while the current ones are added.
#![allow(clippy::print_stdout, reason = "an example talks to its reader")]

use kernel_ir::exec::Array;
use kernel_ir::prelude::*;

#[tpu_kernel]
fn column_sums(x: Hbm<f32>, o: Out<f32>, buf: Scratch<f32>, sem: DmaSem) {
    let [rows, _] = x.shape();
    let tile = buf.dims()[1];
    let steps = rows / tile;
    let fetch = |i: Idx, slot: Idx| copy(x.at((ds(i * tile, tile), ..)), buf.at(slot), sem.slot(slot));
    fetch(0.into(), 0.into()).start();
    let mut total = full([1, 128], 0.0);
    for i in range(0, steps) {
        let slot = i % 2;
        when(i + 1 < steps, || fetch(i + 1, 1 - slot).start());
        fetch(i, slot).wait();
        total += buf[slot].sum(0);
    }
    o[..] = total;
}

fn main() -> anyhow::Result<()> {
    let (rows, cols, tile) = (512, 128, 64);
    let kernel = column_sums {
        grid: grid([seq(1)]),
        x: hbm([rows, cols]),
        o: array([1, cols]).block([1, cols], |[_]| (0, 0)),
        buf: vmem([2, tile, cols]),
        sem: dma_sem(2),
    }
    .build()?;
    println!("{kernel}");
    let x = Array::new([rows, cols], (0..rows * cols).map(|i| (i % cols) as f32).collect::<Vec<_>>())?;
    let sums = kernel.run(&[("x", &x)])?["o"].to_f64();
    println!("column 7 sums to {}, expected {}", sums[7], 7 * rows);
    Ok(())
}
