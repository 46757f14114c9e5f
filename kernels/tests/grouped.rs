//! ragged_dot and tgmm on the CPU against float64: every routing, both layouts, sizes that no tile divides.
#![allow(clippy::unwrap_used, reason = "a test fails where it unwraps")]

mod common;

use common::{Number, Routing, array, error, tolerance};
use half::bf16;
use kernel_ir::exec::Array;
use kernel_ir::prelude::{Kernel, Mxu};
use kernels::grouped_matmul::{self, gmm};
use kernels::ragged_dot::{self, RhsLayout};
use kernels::reference;

const TILE: ragged_dot::Tile = ragged_dot::Tile { bm: 64, bn: 128, bk: 384, slots: 2, rows: &[16, 48] };

fn ragged<T: Number>(
    kernel: &Kernel,
    layout: RhsLayout,
    [m, k, n, g]: [usize; 4],
    sizes: &[i32],
) -> (Array, Vec<f64>) {
    let shape = if layout == RhsLayout::Gnk { [g, n, k] } else { [g, k, n] };
    let (lhs, rhs) = (array::<T>(1, &[m, k]), array::<T>(2, &shape));
    let group_sizes = Array::new([g], sizes).unwrap();
    let out = kernel.run(&[("lhs", &lhs), ("rhs", &rhs), ("group_sizes", &group_sizes)]);
    let out = out.unwrap_or_else(|report| panic!("[{m}, {k}, {n}] {sizes:?}\n{report}"));
    let want =
        reference::ragged_dot(&lhs.to_f64(), &rhs.to_f64(), sizes, [m, k, n], layout == RhsLayout::Gkn);
    (out.into_first().unwrap(), want)
}

fn check_ragged<T: Mxu<Acc = f32> + Number>() {
    for layout in [RhsLayout::Gnk, RhsLayout::Gkn] {
        let kernel = ragged_dot::kernel::<T>(TILE, layout, &[]).unwrap();
        for [m, k, n, g] in
            [[1, 64, 8, 1], [7, 200, 100, 3], [64, 384, 128, 8], [150, 130, 300, 5], [200, 383, 129, 17]]
        {
            for routing in Routing::ALL {
                let sizes = routing.sizes(m, g);
                let (out, want) = ragged::<T>(&kernel, layout, [m, k, n, g], &sizes);
                let e = error(&out, &want);
                assert!(e < tolerance::<T>(), "{} {layout:?} [{m}, {k}, {n}] {sizes:?}: {e}", T::NAME);
            }
        }
    }
}

#[test]
fn ragged_dot_of_f32_equals_float64() {
    check_ragged::<f32>();
}

#[test]
fn ragged_dot_of_bf16_equals_float64() {
    check_ragged::<bf16>();
}

#[test]
fn rows_after_the_last_group_are_zero() {
    let kernel = ragged_dot::kernel::<f32>(TILE, RhsLayout::Gnk, &[]).unwrap();
    let (out, _) = ragged::<f32>(&kernel, RhsLayout::Gnk, [100, 64, 128, 2], &[5, 20]);
    assert!(out.to_f64()[25 * 128..].iter().all(|x| *x == 0.0));
}

#[test]
fn sizes_that_add_up_to_more_than_there_are_rows_are_cut_off() {
    let kernel = ragged_dot::kernel::<f32>(TILE, RhsLayout::Gnk, &[]).unwrap();
    let sizes = [30, 100, 7];
    let (out, want) = ragged::<f32>(&kernel, RhsLayout::Gnk, [70, 64, 200, 3], &sizes);
    assert!(error(&out, &want) < tolerance::<f32>());
}

#[test]
fn gmm_is_ragged_dot_in_megablox_layout() {
    let kernel = gmm::<f32>(TILE, false).unwrap();
    let (out, want) = ragged::<f32>(&kernel, RhsLayout::Gkn, [50, 100, 60, 4], &[10, 0, 25, 15]);
    assert!(error(&out, &want) < tolerance::<f32>());
}

fn check_tgmm<T: Mxu<Acc = f32> + Number>() {
    let tile = grouped_matmul::Tile { bm: 64, bk: 128, bn: 128, chunk: 32 };
    let kernel = grouped_matmul::tgmm_kernel::<T>(tile).unwrap();
    for [m, k, n, g] in
        [[1, 64, 8, 1], [7, 200, 100, 3], [64, 128, 128, 8], [150, 130, 300, 5], [200, 383, 129, 17]]
    {
        for routing in Routing::ALL {
            let sizes = routing.sizes(m, g);
            let (lhs, grad) = (array::<T>(3, &[m, k]), array::<T>(4, &[m, n]));
            let group_sizes = Array::new([g], sizes.as_slice()).unwrap();
            let out = kernel.run(&[("lhs", &lhs), ("grad", &grad), ("group_sizes", &group_sizes)]);
            let out = out.unwrap_or_else(|report| panic!("[{m}, {k}, {n}] {sizes:?}\n{report}"));
            let e = error(&out["out"], &reference::tgmm(&lhs.to_f64(), &grad.to_f64(), &sizes, [m, k, n]));
            assert!(e < tolerance::<T>(), "{} [{m}, {k}, {n}] {sizes:?}: {e}", T::NAME);
        }
    }
}

#[test]
fn tgmm_equals_float64_and_is_zero_for_empty_groups() {
    check_tgmm::<f32>();
    check_tgmm::<bf16>();
}
