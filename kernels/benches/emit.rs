//! Times a kernel's way from Rust to Mosaic bytecode: recording, verifying, emitting. One JSON line a kernel.
#![allow(clippy::print_stdout, reason = "the figures are its output")]

use std::time::Instant;

use half::bf16;
use kernel_ir::prelude::*;
use kernels::flash_attention::{self, Attention};
use kernels::matmul;
use kernels::ragged_dot::{self, RhsLayout};

const RUNS: usize = 9;

fn main() -> Result<(), Report> {
    let tile = ragged_dot::Tile { bm: 1024, bn: 768, bk: 2048, slots: 3, rows: &[128, 256, 384] };
    let square = matmul::Tile { bm: 512, bk: 512, bn: 512, cores: 2 };
    let blocks = flash_attention::Tile { bq: 512, bk: 512, cores: 2 };
    time("matmul", || matmul::kernel::<bf16>(square, true))?;
    time("ragged_dot", || ragged_dot::kernel::<bf16>(tile, RhsLayout::Gnk, &[]))?;
    time("flash_attention", || flash_attention::kernel::<bf16>(blocks, Attention::new(128, true)))
}

/// The median of some runs, the first of which is not counted.
fn time(name: &str, kernel: impl Fn() -> Result<Kernel, Report>) -> Result<(), Report> {
    let mut times = vec![];
    let mut bytes = 0;
    for _ in 0..=RUNS {
        let start = Instant::now();
        bytes = kernel()?.mosaic()?.bytecode.len();
        times.push(1e3 * start.elapsed().as_secs_f64());
    }
    times.remove(0);
    times.sort_by(f64::total_cmp);
    println!("{{\"kernel\": \"{name}\", \"ms\": {:.3}, \"bytes\": {bytes}}}", times[RUNS / 2]);
    Ok(())
}
