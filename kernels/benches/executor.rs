//! Times ragged_dot on the CPU executor. One JSON line a shape and element type.
#![allow(clippy::print_stdout, reason = "the figures are its output")]

use std::time::Instant;

use half::bf16;
use kernel_ir::exec::Array;
use kernel_ir::prelude::*;
use kernels::ragged_dot::{self, RhsLayout, Tile};

const RUNS: usize = 7;

fn main() -> Result<(), Report> {
    for [m, g, k, n] in [[512, 8, 512, 512], [512, 8, 2048, 1536]] {
        let wave = |n: usize| (0..n).map(|i| (i as f32 * 0.37).sin()).collect::<Vec<_>>();
        let (lhs, rhs) = (wave(m * k), wave(g * n * k));
        let narrow = |x: &[f32]| x.iter().map(|v| bf16::from_f32(*v)).collect::<Vec<_>>();
        let tile = Tile { bm: 512, bn: n.min(768), bk: k, slots: 3, rows: &[64, 128, 256, 384] };
        let f32s = [Array::new([m, k], lhs.clone())?, Array::new([g, n, k], rhs.clone())?];
        let bf16s = [Array::new([m, k], narrow(&lhs))?, Array::new([g, n, k], narrow(&rhs))?];
        let sizes = Array::new([g], vec![i32::try_from(m / g).unwrap_or(0); g])?;
        for (dtype, kernel, [lhs, rhs]) in [
            ("float32", ragged_dot::kernel::<f32>(tile, RhsLayout::Gnk, &[])?, &f32s),
            ("bfloat16", ragged_dot::kernel::<bf16>(tile, RhsLayout::Gnk, &[])?, &bf16s),
        ] {
            let mut times = vec![];
            for _ in 0..=RUNS {
                let start = Instant::now();
                kernel.run(&[("lhs", lhs), ("rhs", rhs), ("group_sizes", &sizes)])?;
                times.push(1e3 * start.elapsed().as_secs_f64());
            }
            times.remove(0);
            times.sort_by(f64::total_cmp);
            let ms = times[RUNS / 2];
            println!(
                "{{\"m\": {m}, \"g\": {g}, \"k\": {k}, \"n\": {n}, \"dtype\": \"{dtype}\", \"ms\": {ms:.3}}}"
            );
        }
    }
    Ok(())
}
