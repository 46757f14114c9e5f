//! `matmul(x[m, k], y[k, n]) -> [m, n]`: a grid over output blocks and a K loop into an `f32` accumulator.

use kernel_ir::prelude::*;

use crate::edge_copy::keep;

/// How the work is cut: block sizes, and who shares the rows.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Tile {
    /// Rows of an output block.
    pub bm: usize,
    /// Contraction per grid step.
    pub bk: usize,
    /// Columns of an output block.
    pub bn: usize,
    /// Cores that share the rows: 2 demands that twice `bm` divides M, and is twice as fast on v4 and v5p, where libtpu
    /// shares parallel axes of static extent between the two cores of a chip; elsewhere it costs nothing.
    pub cores: usize,
}

/// `acc` is kept while the grid's last axis walks over K; the last step of a `k` that `bk` does not divide reads beyond
/// both arrays, so both operands are masked there.
#[tpu_kernel]
fn matmul<T: Mxu<Acc = f32>>(x: In<T>, y: In<T>, o: Out<T>, acc: Scratch<f32>, k: Dim, exact: bool) {
    let (step, last) = (program_id(3), num_programs(3) - 1);
    when(step == 0, || acc[..] = 0.0);
    if exact {
        acc[..] += dot(x[..], y[..]);
    } else {
        let [bm, bk] = x.shape();
        let [_, bn] = y.shape();
        when(step < last, || acc[..] += dot(x[..], y[..]));
        when(step == last, || {
            let left = k.get() - step * bk;
            let x = keep(iota([bm, bk], 1) < left, x[..]);
            let y = keep(iota([bk, bn], 0) < left, y[..]);
            acc[..] += dot(x, y);
        });
    }
    when(step == last, || o[..] = acc[..].to());
}

/// Records `matmul` for element type `T`; M, N and K are symbolic.
///
/// With `exact`, the module demands that `bk` divides K and carries no masks.
///
/// # Errors
/// If the tile breaks a rule of the TPU, e.g. its VMEM budget.
pub fn kernel<T: Mxu<Acc = f32>>(tile: Tile, exact: bool) -> Result<Kernel, Report> {
    let Tile { bm, bk, bn, cores } = tile;
    let [m, k, n] = dims(["m", "k", "n"]);
    let mut axes = grid([par(cores), par(m.div_ceil(cores * bm)), par(n.div_ceil(bn)), seq(k.div_ceil(bk))]);
    if cores > 1 {
        axes = axes.demand(m.multiple_of(cores * bm));
    }
    if exact {
        axes = axes.demand(k.multiple_of(bk));
    }
    let row = |core: Idx, i: Idx| core * num_programs(1) + i;
    matmul::<T, _> {
        grid: axes,
        x: array([m, k]).block([bm, bk], move |[core, i, _, k]| (row(core, i), k)),
        y: array([k, n]).block([bk, bn], |[_, _, j, k]| (k, j)),
        o: array([m, n]).block([bm, bn], move |[core, i, j, _]| (row(core, i), j)),
        acc: vmem([bm, bn]),
        k,
        exact,
    }
    .build()
}
