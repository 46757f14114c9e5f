//! `ragged_dot(lhs[m, k], rhs[g, n, k], group_sizes[g]) -> [m, n]`: the grouped matmul of Mixture-of-Experts layers.
//!
//! Rows of `lhs` are sorted by group; row `r` of group `e` is multiplied by `rhs[e]`, transposed, or as it is when `rhs`
//! is `[g, k, n]`. Rows after the last group are zero. Groups may be empty, and may straddle row tiles.
//!
//! # How it runs
//! The product is bound by reading weights: each must come from HBM once, and early. So the grid walks over column tiles
//! and row tiles only; `lhs` and `out` are ordinary windows, and weights are fetched by hand. One group's weights (a
//! column tile of them, all of K) fill a slot of VMEM. The copies run ahead of the walk by the number of slots: when a
//! group is done, its slot is given to the next group that has rows, in this column tile or the next one. A group that
//! straddles row tiles keeps its slot. Where the walk stands is kept in SMEM between grid steps, so groups are found
//! by scanning `group_sizes` on the scalar core, and nothing about them is computed before the kernel.
//!
//! A visit of a group multiplies the rows of the row tile that belong to it, rounded out to 16 rows and up to the nearest
//! of [`Tile::rows`]; rows of neighbours are multiplied too, and not stored.

use kernel_ir::ir::Demand;
use kernel_ir::prelude::*;

use crate::edge_copy::{PACKED, keep, round_down, round_up};
use crate::walk::{Sizes, Walk, Weights, field};

/// How one group of `rhs` lies.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum RhsLayout {
    /// `[g, n, k]`: as Transformers stores expert weights.
    Gnk,
    /// `[g, k, n]`: as JAX and megablox take them.
    Gkn,
}

/// Tile sizes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Tile {
    /// Rows of a row tile: a multiple of 16, and at least the largest of `rows`.
    pub bm: usize,
    /// Columns of a column tile: a multiple of 128.
    pub bn: usize,
    /// The largest K that is served: a multiple of 128.
    pub bk: usize,
    /// Groups whose weights are in VMEM or on their way there.
    pub slots: usize,
    /// Row counts of a single product, ascending multiples of 16.
    pub rows: &'static [usize],
}

#[tpu_kernel]
fn ragged_dot<T: Mxu<Acc = f32>>(
    group_sizes: Prefetch<i32>,
    lhs: In<T>,
    rhs: Hbm<T>,
    out: Out<T>,
    weights: Scratch<T>,
    state: Scalars<i32>,
    landed: DmaSem,
    sizes: Host<Sizes>,
    tile: Host<Tile>,
    layout: Host<RhsLayout>,
) {
    let Tile { bm, slots, .. } = tile.0;
    let (j, i) = (program_id(0), program_id(1));
    let w = Weights {
        rhs: &rhs,
        slots: &weights,
        landed: &landed,
        sizes: sizes.0,
        tile: tile.0,
        layout: layout.0,
    };
    let walk = Walk { group_sizes, state: &state, sizes: sizes.0, slots };

    when((j == 0) & (i == 0), || {
        walk.begin();
        for slot in range(0, slots) {
            walk.fetch(&w, slot);
        }
        w.clear_unfetched();
    });
    when(i == 0, || walk.begin_column_tile());

    let (top, bottom) = (i * bm, i * bm + bm);
    let row = while_loop(
        |row: Idx| (walk.group() < walk.groups()) & (row < bottom),
        |row| {
            let (slot, end) = (state.get(field::SLOT), state.get(field::END));
            when(state.get(field::ARRIVED) == 0, || {
                w.wait(walk.group(), j, slot);
                state[field::ARRIVED] = 1;
            });
            visit(&lhs, &out, &w, slot, (row - top, (end - top).min(bm)));
            when(end <= bottom, || {
                walk.fetch(&w, slot);
                walk.advance();
            });
            end.min(bottom)
        },
        state.get(field::ROW).max(top),
    );
    state[field::ROW] = row;
    when(row < bottom, || clear_rows(&out, row - top, bm));
}

/// Multiplies rows `lo..hi` of the row tile with the weights in `slot`, and stores them.
#[tpu_fn]
fn visit<T: Mxu<Acc = f32>>(lhs: &In<T>, out: &Out<T>, w: &Weights<T>, slot: Idx, (lo, hi): (Idx, Idx)) {
    let Tile { bm, bn, bk, rows, .. } = w.tile;
    let largest = rows[rows.len() - 1];
    let product = |at: Idx, count: usize| {
        let at = multiple_of(at.min(bm - count), PACKED);
        let x = lhs[(ds(at, count), ..)];
        let x = keep(iota([count, bk], 1) < w.sizes.k.get(), x);
        let y = dot_at(x, DotSide::Plain, w.slots[slot], w.side(), Precision::Highest);
        let row = at + iota([count, bn], 0);
        let old = out[(ds(at, count), ..)].to::<f32>();
        out[(ds(at, count), ..)] = select((row >= lo) & (row < hi), y, old).to::<T>();
    };
    while_loop(
        |at: Idx| at < hi,
        |at| {
            let left = hi - at;
            for (q, count) in rows.iter().enumerate() {
                let least = if q == 0 { left > 0 } else { left > rows[q - 1] };
                let fits = if q + 1 == rows.len() { least } else { least & (left <= *count) };
                when(fits, || product(at, *count));
            }
            at + round_up(left.min(largest), PACKED)
        },
        round_down(lo, PACKED),
    );
}

/// Stores zeros from row `lo` of the row tile to its end: there is no group left.
#[tpu_fn]
fn clear_rows<T: Num>(out: &Out<T>, lo: Idx, bm: usize) {
    let [_, bn] = out.shape();
    let at = round_down(lo, PACKED);
    let row = at + iota([PACKED, bn], 0);
    let old = out[(ds(at, PACKED), ..)].to::<f32>();
    out[(ds(at, PACKED), ..)] = select(row < lo, old, 0.0).to::<T>();
    for c in range(at.div_ceil(PACKED) + 1, bm / PACKED) {
        out[(ds(multiple_of(c * PACKED, PACKED), PACKED), ..)] = T::ZERO;
    }
}

/// Records `ragged_dot` for element type `T`; M, K, N and G are symbolic, and K is at most `tile.bk`. Further `demands` say
/// which calls the tile is meant for.
///
/// # Errors
/// If the tile breaks a rule of the TPU, e.g. its VMEM budget.
pub fn kernel<T: Mxu<Acc = f32>>(
    tile: Tile,
    layout: RhsLayout,
    demands: &[Demand],
) -> Result<Kernel, Report> {
    let Tile { bm, bn, bk, slots, .. } = tile;
    let [m, k, n, g] = dims(["m", "k", "n", "g"]);
    let (rhs, slot) = match layout {
        RhsLayout::Gnk => (hbm([g, n, k]), [slots, bn, bk]),
        RhsLayout::Gkn => (hbm([g, k, n]), [slots, bk, bn]),
    };
    // Both axes carry the walk.
    let axes = grid([seq(n.div_ceil(bn)), seq(m.div_ceil(bm))]).demand(k.at_most(bk));
    ragged_dot::<T, _> {
        grid: demands.iter().cloned().fold(axes, Grid::demand),
        group_sizes: prefetch(g),
        lhs: array([m, k]).block([bm, bk], |[_, i]| (i, 0)),
        rhs,
        out: array([m, n]).block([bm, bn], |[j, i]| (i, j)),
        weights: vmem(slot),
        state: smem([field::COUNT]),
        landed: dma_sem(slots),
        sizes: Sizes { m, k, n, g },
        tile,
        layout,
    }
    .build()
}
