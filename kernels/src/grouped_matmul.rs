//! The grouped matmuls under megablox's names: `gmm(lhs[m, k], rhs[g, k, n], group_sizes[g]) -> [m, n]`, which is
//! [`ragged_dot`](crate::ragged_dot), and `tgmm(lhs[m, k], grad[m, n], group_sizes[g]) -> [g, k, n]`, its weight gradient.
//!
//! `tgmm` sums, for each group, the outer products of its rows; an empty group gives zeros. The grid walks over blocks of the
//! result, and for each over row tiles; the walk over groups is made on the scalar core, as in `ragged_dot`. A group's block
//! is summed in VMEM, and when its last row is in, copied to HBM while the next group is summed.

use kernel_ir::prelude::*;

use crate::edge_copy::{EdgeCopy, LANES, PACKED, SUBLANES, keep, round_down, round_up};
use crate::ragged_dot::{self, RhsLayout};

/// Tile sizes of `tgmm`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Tile {
    /// Rows of a row tile: a multiple of `chunk`.
    pub bm: usize,
    /// Rows of a block of the result: a multiple of 128.
    pub bk: usize,
    /// Columns of a block of the result: a multiple of 128.
    pub bn: usize,
    /// Rows of a single product: a multiple of 16.
    pub chunk: usize,
}

/// Records `gmm` for element type `T`: `rhs` is `[g, k, n]`, or `[g, n, k]` with `transpose_rhs`.
///
/// # Errors
/// If the tile breaks a rule of the TPU, e.g. its VMEM budget.
pub fn gmm<T: Mxu<Acc = f32>>(tile: ragged_dot::Tile, transpose_rhs: bool) -> Result<Kernel, Report> {
    ragged_dot::kernel::<T>(tile, if transpose_rhs { RhsLayout::Gnk } else { RhsLayout::Gkn }, &[])
}

/// The fields of `state`, which outlive a grid step.
mod field {
    /// The group that is being summed.
    pub(super) const GROUP: usize = 0;
    /// The first row that has not been summed.
    pub(super) const ROW: usize = 1;
    /// The row after the group.
    pub(super) const END: usize = 2;
    /// 1 while a block is on its way to HBM.
    pub(super) const PENDING: usize = 3;
    /// The group that it belongs to.
    pub(super) const SENT: usize = 4;
    /// How many fields there are.
    pub(super) const COUNT: usize = 5;
}

#[derive(Clone, Copy)]
struct Sizes {
    m: Dim,
    k: Dim,
    n: Dim,
    g: Dim,
}

#[tpu_kernel]
fn tgmm<T: Mxu<Acc = f32>>(
    group_sizes: Prefetch<i32>,
    lhs: In<T>,
    grad: In<T>,
    out: HbmOut<T>,
    acc: Scratch<f32>,
    staged: Scratch<T>,
    state: Scalars<i32>,
    landed: DmaSem,
    sizes: Host<Sizes>,
    tile: Host<Tile>,
) {
    let (Sizes { m, k, n, g }, Tile { bm, bk, bn, chunk }) = (sizes.0, tile.0);
    let (kt, nt, i) = (program_id(0), program_id(1), program_id(2));
    let last_tile = i == num_programs(2) - 1;
    let groups = g.get();
    let end_of = |group: Idx, start: Idx| (start + group_sizes.get(group.min(groups - 1))).min(m.get());
    let send = |group: Idx| EdgeCopy {
        rows: (k.get() - kt * bk).min(bk),
        full: bk,
        piece: {
            let (out, staged, landed) = (&out, &staged, &landed);
            move |offset: Idx, rows: usize| {
                let lanes = round_up((n.get() - nt * bn).min(bn), LANES);
                let row = multiple_of(kt * bk + offset, SUBLANES);
                let block = out.at((group, ds(row, rows), ds(nt * bn, lanes)));
                copy(staged.at((ds(offset, rows), ds(0, lanes))), block, landed.slot(0))
            }
        },
    };
    let settle = || {
        when(state.get(field::PENDING) == 1, || send(state.get(field::SENT)).wait());
        state[field::PENDING] = 0;
    };

    when(i == 0, || {
        state[field::GROUP] = 0;
        state[field::ROW] = 0;
        state[field::END] = end_of(0.into(), 0.into());
        state[field::PENDING] = 0;
        acc[..] = 0.0;
    });
    let (top, bottom) = (i * bm, i * bm + bm);
    let row = while_loop(
        |row: Idx| (state.get(field::GROUP) < groups) & ((row < bottom) | last_tile),
        |row| {
            let end = state.get(field::END);
            add_rows(&lhs, &grad, &acc, chunk, (row - top, (end - top).min(bm)));
            when(end <= bottom, || {
                settle();
                staged[..] = acc[..].to();
                acc[..] = 0.0;
                let group = state.get(field::GROUP);
                send(group).start();
                state[field::PENDING] = 1;
                state[field::SENT] = group;
                state[field::GROUP] = group + 1;
                state[field::END] = end_of(group + 1, end);
            });
            end.min(bottom)
        },
        state.get(field::ROW),
    );
    state[field::ROW] = row;
    // The copies of the next block have other sizes, so none may be under way then.
    when(last_tile, settle);
}

/// `acc += lhs^T grad` over rows `lo..hi` of the row tile.
#[tpu_fn]
fn add_rows<T: Mxu<Acc = f32>>(
    lhs: &In<T>,
    grad: &In<T>,
    acc: &Scratch<f32>,
    chunk: usize,
    (lo, hi): (Idx, Idx),
) {
    let ([bm, bk], [_, bn]) = (lhs.shape(), grad.shape());
    while_loop(
        |at: Idx| at < hi,
        |at| {
            let start = multiple_of(at.min(bm - chunk), PACKED);
            // The last chunk may be moved up to fit: rows before `at` are in already.
            let mine = |lanes: usize| {
                let row = start + iota([chunk, lanes], 0);
                (row >= at.max(lo)) & (row < hi)
            };
            let x = keep(mine(bk), lhs[(ds(start, chunk), ..)]);
            let y = keep(mine(bn), grad[(ds(start, chunk), ..)]);
            acc[..] += t_dot(x, y);
            at + chunk
        },
        round_down(lo, PACKED),
    );
}

/// Records `tgmm` for element type `T`; M, K, N and G are symbolic.
///
/// # Errors
/// If the tile breaks a rule of the TPU, e.g. its VMEM budget.
pub fn tgmm_kernel<T: Mxu<Acc = f32>>(tile: Tile) -> Result<Kernel, Report> {
    let Tile { bm, bk, bn, .. } = tile;
    let [m, k, n, g] = dims(["m", "k", "n", "g"]);
    tgmm::<T, _> {
        // The walk over groups is carried along the rows, and one block is sent at a time.
        grid: grid([seq(k.div_ceil(bk)), seq(n.div_ceil(bn)), seq(m.div_ceil(bm))]).demand(m.at_least(1)),
        group_sizes: prefetch(g),
        lhs: array([m, k]).block([bm, bk], |[kt, _, i]| (i, kt)),
        grad: array([m, n]).block([bm, bn], |[_, nt, i]| (i, nt)),
        out: hbm([g, k, n]),
        acc: vmem([bk, bn]),
        staged: vmem([bk, bn]),
        state: smem([field::COUNT]),
        landed: dma_sem(1),
        sizes: Sizes { m, k, n, g },
        tile,
    }
    .build()
}
