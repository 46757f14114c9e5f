//! Every kernel of the crate records without findings, for every element type it serves.
#![allow(
    clippy::unwrap_used,
    clippy::print_stdout,
    reason = "a test fails where it unwraps, and says what it did"
)]

use kernel_ir::prelude::*;
use kernels::{flash_attention, grouped_matmul, matmul, ragged_dot};

const RAGGED: ragged_dot::Tile = ragged_dot::Tile { bm: 256, bn: 512, bk: 2816, slots: 2, rows: &[128, 256] };

#[test]
fn the_kernels_record() {
    let t = matmul::Tile { bm: 256, bk: 512, bn: 256, cores: 1 };
    println!("{}", matmul::kernel::<bf16>(t, false).unwrap());
    matmul::kernel::<f32>(t, true).unwrap();
    println!("{}", ragged_dot::kernel::<bf16>(RAGGED, ragged_dot::RhsLayout::Gnk, &[]).unwrap());
    ragged_dot::kernel::<f32>(RAGGED, ragged_dot::RhsLayout::Gkn, &[]).unwrap();
    let t = grouped_matmul::Tile { bm: 256, bk: 512, bn: 512, chunk: 128 };
    println!("{}", grouped_matmul::tgmm_kernel::<bf16>(t).unwrap());
    let t = flash_attention::Tile { bq: 128, bk: 128, cores: 2 };
    flash_attention::kernel::<bf16>(t, flash_attention::Attention::new(64, true)).unwrap();
}
