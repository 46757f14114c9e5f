//! The walk over groups that [`ragged_dot`](crate::ragged_dot) makes on the scalar core, and the weights that it fetches ahead.

use kernel_ir::prelude::*;

use crate::edge_copy::{EdgeCopy, LANES, PACKED, SUBLANES, keep, round_down, round_up};
use crate::ragged_dot::{RhsLayout, Tile};

/// The symbolic dims.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Sizes {
    pub(crate) m: Dim,
    pub(crate) k: Dim,
    pub(crate) n: Dim,
    pub(crate) g: Dim,
}

/// The fields of `state`, which outlive a grid step.
pub(crate) mod field {
    /// The group that the walk is at; the number of groups when it is done.
    pub(crate) const GROUP: usize = 0;
    /// The first row that the walk has not stored.
    pub(crate) const ROW: usize = 1;
    /// The row after the walk's group.
    pub(crate) const END: usize = 2;
    /// The slot of the walk's group.
    pub(crate) const SLOT: usize = 3;
    /// 1 once the weights in that slot have been waited for.
    pub(crate) const ARRIVED: usize = 4;
    /// The next group to fetch.
    pub(crate) const FETCH_GROUP: usize = 5;
    /// Its first row.
    pub(crate) const FETCH_ROW: usize = 6;
    /// The column tile to fetch of it.
    pub(crate) const FETCH_TILE: usize = 7;
    /// The first group that has rows.
    pub(crate) const FIRST: usize = 8;
    /// How many fields there are.
    pub(crate) const COUNT: usize = 9;
}

/// Where the walk stands.
pub(crate) struct Walk<'a> {
    pub(crate) group_sizes: Prefetch<i32>,
    pub(crate) state: &'a Scalars<i32>,
    pub(crate) sizes: Sizes,
    pub(crate) slots: usize,
}

impl Walk<'_> {
    /// Number of groups.
    pub(crate) fn groups(&self) -> Idx {
        self.sizes.g.get()
    }

    /// The group that the walk is at.
    pub(crate) fn group(&self) -> Idx {
        self.state.get(field::GROUP)
    }

    /// Rows of `group`, cut off at the end of `lhs`: sizes that add up to more than there are rows must not hang the TPU.
    fn end(&self, group: Idx, start: Idx) -> Idx {
        (start + self.group_sizes.get(group.min(self.groups() - 1))).min(self.sizes.m.get())
    }

    /// The first group from `from` on that has rows when its first row is `start`; the number of groups if there is none.
    #[tpu_fn]
    fn next(&self, from: Idx, start: Idx) -> Idx {
        let groups = self.groups();
        let found = while_loop(
            |g: Idx| (g < groups) & (self.group_sizes.get(g.min(groups - 1)) <= 0),
            |g| g + 1,
            from,
        );
        select(start < self.sizes.m.get(), found, groups)
    }

    /// Before the first grid step.
    #[tpu_fn]
    pub(crate) fn begin(&self) {
        let first = self.next(Idx::from(0), Idx::from(0));
        let state = self.state;
        state[field::FIRST] = first;
        state[field::SLOT] = 0;
        state[field::FETCH_GROUP] = first;
        state[field::FETCH_ROW] = 0;
        state[field::FETCH_TILE] = 0;
    }

    /// Before the first row tile of a column tile: back to the first group.
    #[tpu_fn]
    pub(crate) fn begin_column_tile(&self) {
        let state = self.state;
        let first = state.get(field::FIRST);
        state[field::GROUP] = first;
        state[field::ROW] = 0;
        state[field::END] = self.end(first, Idx::from(0));
        state[field::ARRIVED] = 0;
    }

    /// Starts the copy of the next weights of the fetch order to `slot`, if any are left.
    #[tpu_fn]
    pub(crate) fn fetch<T: Elem>(&self, weights: &Weights<'_, T>, slot: Idx) {
        let state = self.state;
        let (group, tile) = (state.get(field::FETCH_GROUP), state.get(field::FETCH_TILE));
        when((group < self.groups()) & (tile < num_programs(0)), || {
            weights.fetch(group, tile, slot);
            let end = self.end(group, state.get(field::FETCH_ROW));
            let next = self.next(group + 1, end);
            let wrap = next >= self.groups();
            state[field::FETCH_GROUP] = select(wrap, state.get(field::FIRST), next);
            state[field::FETCH_ROW] = select(wrap, Idx::from(0), end);
            state[field::FETCH_TILE] = select(wrap, tile + 1, tile);
        });
    }

    /// On to the next group that has rows, and to its slot.
    #[tpu_fn]
    pub(crate) fn advance(&self) {
        let state = self.state;
        let end = state.get(field::END);
        let next = self.next(self.group() + 1, end);
        state[field::GROUP] = next;
        state[field::END] = self.end(next, end);
        let slot = state.get(field::SLOT) + 1;
        state[field::SLOT] = select(slot == self.slots, Idx::from(0), slot);
        state[field::ARRIVED] = 0;
    }
}

/// The weights in VMEM: one group's column tile a slot, fetched by hand.
pub(crate) struct Weights<'a, T> {
    pub(crate) rhs: &'a Hbm<T>,
    pub(crate) slots: &'a Scratch<T>,
    pub(crate) landed: &'a DmaSem,
    pub(crate) sizes: Sizes,
    pub(crate) tile: Tile,
    pub(crate) layout: RhsLayout,
}

impl<T: Elem> Weights<'_, T> {
    /// How the weights lie in a slot, for the product.
    pub(crate) fn side(&self) -> DotSide {
        match self.layout {
            RhsLayout::Gnk => DotSide::Transposed,
            RhsLayout::Gkn => DotSide::Plain,
        }
    }

    /// The copy of column tile `tile` of `group` to `slot`: what there is of it.
    fn copy(&self, group: Idx, tile: Idx, slot: Idx) -> EdgeCopy<impl Fn(Idx, usize) -> Copy + '_> {
        let Tile { bn, bk, .. } = self.tile;
        let (start, k) = (tile * bn, self.sizes.k.get());
        let columns = (self.sizes.n.get() - start).min(bn);
        let (rows, full) = match self.layout {
            RhsLayout::Gnk => (columns, bn),
            RhsLayout::Gkn => (k, bk),
        };
        let piece = move |offset: Idx, rows: usize| {
            let (from, lanes) = match self.layout {
                RhsLayout::Gnk => {
                    let (first, lanes) = (multiple_of(start + offset, SUBLANES), round_up(k, LANES));
                    (self.rhs.at((group, ds(first, rows), ds(0, lanes))), lanes)
                }
                RhsLayout::Gkn => {
                    let lanes = round_up(columns, LANES);
                    (self.rhs.at((group, ds(offset, rows), ds(start, lanes))), lanes)
                }
            };
            copy(from, self.slots.at((slot, ds(offset, rows), ds(0, lanes))), self.landed.slot(slot))
        };
        EdgeCopy { rows, full, piece }
    }

    /// Starts the copy.
    pub(crate) fn fetch(&self, group: Idx, tile: Idx, slot: Idx) {
        self.copy(group, tile, slot).start();
    }
}

impl<T: Num> Weights<'_, T> {
    /// Waits for the copy, and zeroes what it brought from beyond K.
    #[tpu_fn]
    pub(crate) fn wait(&self, group: Idx, tile: Idx, slot: Idx) {
        self.copy(group, tile, slot).wait();
        let k = self.sizes.k.get();
        let (w, Tile { bn, .. }) = (self.slots, self.tile);
        match self.layout {
            RhsLayout::Gnk => when((k & (LANES - 1)) != 0, || {
                let at = round_down(k, LANES);
                let inside = at + iota([bn, LANES], 1) < k;
                w[(slot, .., ds(at, LANES))] = keep(inside, w[(slot, .., ds(at, LANES))]);
            }),
            RhsLayout::Gkn => when((k & (PACKED - 1)) != 0, || {
                let at = round_down(k, PACKED);
                let inside = at + iota([PACKED, bn], 0) < k;
                w[(slot, ds(at, PACKED), ..)] = keep(inside, w[(slot, ds(at, PACKED), ..)]);
            }),
        }
    }

    /// Zeroes what no copy ever writes: beyond K, in every slot. A product with what lies there would not be finite.
    #[tpu_fn]
    pub(crate) fn clear_unfetched(&self) {
        let k = self.sizes.k.get();
        let (w, Tile { bn, bk, slots, .. }) = (self.slots, self.tile);
        match self.layout {
            RhsLayout::Gnk => {
                for c in range(k.div_ceil(LANES), bk / LANES) {
                    for slot in 0..slots {
                        w[(slot, .., ds(multiple_of(c * LANES, LANES), LANES))] = full([bn, LANES], T::ZERO);
                    }
                }
            }
            RhsLayout::Gkn => {
                for c in range(k.div_ceil(PACKED), bk / PACKED) {
                    for slot in 0..slots {
                        w[(slot, ds(multiple_of(c * PACKED, PACKED), PACKED), ..)] =
                            full([PACKED, bn], T::ZERO);
                    }
                }
            }
        }
    }
}
