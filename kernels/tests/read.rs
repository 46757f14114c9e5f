//! Every kernel of the crate comes back from its module: what is read of the bytes that are published runs to the same
//! results, bit for bit.
#![cfg(feature = "emit")]
#![allow(clippy::unwrap_used, reason = "a test fails where it unwraps")]

mod common;
#[path = "../../kernel-ir/tests/read/trip.rs"]
mod trip;

use common::{Number, Routing, array};
use half::bf16;
use kernel_ir::exec::Array;
use kernel_ir::ir::dims::Dims;
use kernel_ir::prelude::{Kernel, Mxu};
use kernels::{flash_attention, grouped_matmul, matmul, ragged_dot};

/// Runs the kernel and what its module is read as on these arguments.
fn comes_back(kernel: &Kernel, arguments: &[(&str, Array)]) {
    let arguments: Vec<_> = arguments.iter().map(|(n, a)| ((*n).to_owned(), a.clone())).collect();
    assert!(trip::same(kernel, &arguments, Dims::new()).is_some(), "{kernel}");
}

fn matmuls<T: Mxu<Acc = f32> + Number>() {
    let tile = matmul::Tile { bm: 32, bk: 128, bn: 128, cores: 1 };
    let kernel = matmul::kernel::<T>(tile, false).unwrap();
    comes_back(&kernel, &[("x", array::<T>(1, &[33, 129])), ("y", array::<T>(2, &[129, 127]))]);
    let exact = matmul::kernel::<T>(tile, true).unwrap();
    comes_back(&exact, &[("x", array::<T>(1, &[64, 256])), ("y", array::<T>(2, &[256, 128]))]);
}

fn ragged_dots<T: Mxu<Acc = f32> + Number>() {
    let tile = ragged_dot::Tile { bm: 64, bn: 128, bk: 384, slots: 2, rows: &[16, 48] };
    let sizes = Array::new([5], Routing::Random.sizes(150, 5)).unwrap();
    for (layout, shape) in
        [(ragged_dot::RhsLayout::Gnk, [5, 300, 130]), (ragged_dot::RhsLayout::Gkn, [5, 130, 300])]
    {
        let kernel = ragged_dot::kernel::<T>(tile, layout, &[]).unwrap();
        let (lhs, rhs) = (array::<T>(1, &[150, 130]), array::<T>(2, &shape));
        comes_back(&kernel, &[("lhs", lhs), ("rhs", rhs), ("group_sizes", sizes.clone())]);
    }
}

#[test]
fn a_matmul_comes_back() {
    matmuls::<f32>();
    matmuls::<bf16>();
}

#[test]
fn ragged_dot_comes_back() {
    ragged_dots::<f32>();
    ragged_dots::<bf16>();
}

fn tgmms<T: Mxu<Acc = f32> + Number>() {
    let tile = grouped_matmul::Tile { bm: 64, bk: 128, bn: 128, chunk: 32 };
    let kernel = grouped_matmul::tgmm_kernel::<T>(tile).unwrap();
    let sizes = Array::new([5], Routing::Empty.sizes(150, 5)).unwrap();
    let (lhs, grad) = (array::<T>(3, &[150, 130]), array::<T>(4, &[150, 300]));
    comes_back(&kernel, &[("lhs", lhs), ("grad", grad), ("group_sizes", sizes)]);
}

#[test]
fn tgmm_comes_back() {
    tgmms::<f32>();
    tgmms::<bf16>();
}

fn attentions<T: Mxu<Acc = f32> + Number>() {
    for causal in [false, true] {
        let what = flash_attention::Attention::new(64, causal);
        let kernel =
            flash_attention::kernel::<T>(flash_attention::Tile { bq: 64, bk: 128, cores: 1 }, what).unwrap();
        let q = array::<T>(1, &[8, 130, 64]);
        let (k, v) = (array::<T>(2, &[2, 257, 64]), array::<T>(3, &[2, 257, 64]));
        comes_back(&kernel, &[("q", q), ("k", k), ("v", v)]);
    }
}

#[test]
fn attention_comes_back() {
    attentions::<f32>();
    attentions::<bf16>();
}
