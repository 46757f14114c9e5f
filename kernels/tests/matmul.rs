//! matmul on the CPU against float64: shapes that no tile divides, one kernel for all of them.
#![allow(clippy::unwrap_used, reason = "a test fails where it unwraps")]

mod common;

use common::{Number, array, error, tolerance};
use half::bf16;
use kernel_ir::prelude::Mxu;
use kernels::matmul::{self, Tile};
use kernels::reference;

fn check<T: Mxu<Acc = f32> + Number>() {
    let kernel = |cores| matmul::kernel::<T>(Tile { bm: 32, bk: 128, bn: 128, cores }, false).unwrap();
    let (alone, shared) = (kernel(1), kernel(2));
    for [m, k, n] in [[1, 1, 1], [32, 128, 128], [33, 129, 127], [7, 300, 260], [64, 130, 20], [192, 512, 64]]
    {
        let kernel = if m % 64 == 0 { &shared } else { &alone };
        let (x, y) = (array::<T>(1, &[m, k]), array::<T>(2, &[k, n]));
        let out = kernel.run(&[("x", &x), ("y", &y)]).unwrap();
        let e = error(&out["o"], &reference::matmul(&x.to_f64(), &y.to_f64(), [m, k, n]));
        assert!(e < tolerance::<T>(), "{} [{m}, {k}, {n}]: {e}", T::NAME);
    }
}

#[test]
fn a_matmul_of_any_shape_equals_float64() {
    check::<f32>();
    check::<bf16>();
}

#[test]
fn an_exact_matmul_refuses_a_k_that_its_block_does_not_divide() {
    let kernel = matmul::kernel::<f32>(Tile { bm: 32, bk: 128, bn: 128, cores: 1 }, true).unwrap();
    let (x, y) = (array::<f32>(1, &[8, 100]), array::<f32>(2, &[100, 8]));
    let report = kernel.run(&[("x", &x), ("y", &y)]).unwrap_err().to_string();
    assert!(report.contains("K0405") && report.contains('k'), "{report}");
}

#[test]
fn two_cores_refuse_rows_that_they_cannot_share() {
    let kernel = matmul::kernel::<f32>(Tile { bm: 32, bk: 128, bn: 128, cores: 2 }, false).unwrap();
    let (x, y) = (array::<f32>(1, &[96, 128]), array::<f32>(2, &[128, 8]));
    let report = kernel.run(&[("x", &x), ("y", &y)]).unwrap_err().to_string();
    assert!(report.contains("K0405") && report.contains("mod(m, 64) == 0"), "{report}");
}
