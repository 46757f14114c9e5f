//! The expert layer of Qwen3-30B-A3B on the CPU: 64 tokens, 8 of 128 experts each, against float64.
#![allow(clippy::print_stdout, reason = "an example talks to its reader")]

use std::time::Instant;

use half::bf16;
use kernel_ir::exec::Array;
use kernels::ragged_dot::{self, RhsLayout, Tile};
use kernels::reference;

const TOKENS: usize = 64;
const EXPERTS: usize = 128;
const TOP: usize = 8;

/// Numbers in [-1, 1) that look random and are the same everywhere (Steele et al., SplitMix64).
fn noise(seed: u64, n: usize) -> Vec<bf16> {
    let mut state = seed;
    let mut next = || {
        state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let z = (state ^ (state >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((z ^ (z >> 31)) >> 40) as f32 / (1u64 << 23) as f32 - 1.0
    };
    (0..n).map(|_| bf16::from_f32(next())).collect()
}

/// How many rows each expert gets: every token goes to the 8 experts with the largest scores.
fn routing() -> Vec<i32> {
    let mut sizes = vec![0; EXPERTS];
    for scores in noise(1, TOKENS * EXPERTS).chunks(EXPERTS) {
        let mut order: Vec<usize> = (0..EXPERTS).collect();
        order.sort_by(|a, b| scores[*b].total_cmp(&scores[*a]));
        order[..TOP].iter().for_each(|e| sizes[*e] += 1);
    }
    sizes
}

fn main() -> anyhow::Result<()> {
    let (m, sizes) = (TOKENS * TOP, routing());
    for (name, k, n) in [("up", 2048, 768), ("down", 768, 2048)] {
        let tile = Tile { bm: 512, bn: n, bk: k, slots: 3, rows: &[128, 256, 384] };
        let kernel = ragged_dot::kernel::<bf16>(tile, RhsLayout::Gnk, &[])?;
        let lhs = Array::new([m, k], noise(2, m * k))?;
        let rhs = Array::new([EXPERTS, n, k], noise(3, EXPERTS * n * k))?;
        let group_sizes = Array::new([EXPERTS], sizes.clone())?;
        let start = Instant::now();
        let out = kernel.run(&[("lhs", &lhs), ("rhs", &rhs), ("group_sizes", &group_sizes)])?;
        let seconds = start.elapsed().as_secs_f64();
        let want = reference::ragged_dot(&lhs.to_f64(), &rhs.to_f64(), &sizes, [m, k, n], false);
        let scale = want.iter().fold(0.0, |a: f64, b| a.max(b.abs()));
        let worst =
            out["out"].to_f64().iter().zip(&want).map(|(a, b)| (a - b).abs()).fold(0.0, f64::max) / scale;
        println!(
            "{{\"projection\": \"{name}\", \"rows\": {m}, \"seconds\": {seconds:.3}, \"error\": {worst:.2e}}}"
        );
        anyhow::ensure!(worst < 4e-3, "one bfloat16 rounding is 2^-8 at most");
    }
    Ok(())
}
