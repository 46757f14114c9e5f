//! K0308, K0310, K0313: windows for copies that the DMA engine can take.
//!
//! Arrays of rank 2 and more lie in tiles: 128 lanes by 8 rows of 32-bit elements; 16-bit elements have 8 rows in HBM and
//! up to 16 in VMEM, 8-bit ones 32. A window of fewer rows is taken in tiles of as many, a power of two, of whole 32-bit
//! words. From what libtpu 0.0.52 accepts on v5e, v6e and v7x.

use super::Found;
use super::views::{Axis, Length, Origin, View};
use crate::diag::Diagnostic;
use crate::ir::{DType, Kernel, MemorySpace, OpKind, Span, Type, Value};
use crate::target::{LANES, SUBLANES, packing, tile_rows};

pub(super) fn check(kernel: &Kernel, views: &[Option<View>], found: &mut Found) {
    let mut w = Windows { kernel, views, found };
    kernel.each_op(&mut |op| {
        if let OpKind::CopyStart { src, dst, .. } = &op.kind {
            w.window(*src, op.span);
            w.window(*dst, op.span);
        }
    });
}

struct Windows<'k, 'f> {
    kernel: &'k Kernel,
    views: &'k [Option<View>],
    found: &'f mut Found,
}

/// One of the two tiled axes of a window.
struct Tiled<'a> {
    view: &'a View,
    axis: usize,
    /// E.g. "rows".
    unit: &'static str,
    /// Length of a tile along the axis.
    tile: usize,
}

impl Windows<'_, '_> {
    fn window(&mut self, v: Value, span: Span) {
        let (Some(view), Type::Ref(r)) = (&self.views[v.0 as usize], self.kernel.ty(v)) else { return };
        let (rank, Some(dtype)) = (view.axes.len(), r.dtype()) else { return };
        // A rank-1 array lies in no rows, and is laid out in longer tiles; SMEM is not tiled.
        if rank < 2 || !matches!(r.space, MemorySpace::Any | MemorySpace::Vmem) {
            return;
        }
        self.tiled(&Tiled { view, axis: rank - 1, unit: "lanes", tile: LANES }, span);
        let (rows, lanes) = (&view.axes[rank - 2], &view.axes[rank - 1]);
        let one_column = dtype.bits() == 32 && lanes.extent.is_some_and(|n| n <= LANES);
        if one_column {
            return;
        }
        match rows.size {
            Length::Traced(_) if view.axes.iter().any(|a| a.extent.is_none()) => self.symbolic(view, span),
            Length::Known(n) => {
                let tile = row_tile(dtype, r.space, n);
                if !(dtype.bits() == 32 && in_one_tile(rows, n, tile)) {
                    self.tiled(&Tiled { view, axis: rank - 2, unit: "rows", tile }, span);
                }
            }
            Length::Traced(_) | Length::Symbolic => {}
        }
    }

    fn tiled(&mut self, t: &Tiled<'_>, span: Span) {
        let axis = &t.view.axes[t.axis];
        if axis.is_whole() {
            return;
        }
        let whole = |n: u64| n.is_multiple_of(t.tile as u64);
        let name = &self.kernel.params[t.view.param].name;
        let cut = match axis.size {
            Length::Known(n) if whole(n as u64) => None,
            Length::Traced(n) if whole(n.multiple) => None,
            Length::Known(n) => Some(format!("a copy takes {n} {} of `{name}`", t.unit)),
            Length::Traced(_) => Some(format!("a copy takes a traced number of {} of `{name}`", t.unit)),
            Length::Symbolic => Some(format!("a copy takes all {} of `{name}` from a traced one", t.unit)),
        };
        let at = self.kernel.loc(span).clone();
        let label = format!("not whole tiles of {} {}", t.tile, t.unit);
        if let Some(message) = cut {
            let d = Diagnostic::error("K0310", message).at(at, label);
            self.found.push(d.help("copy whole tiles and mask what is not wanted, or take the whole axis"));
        } else if let Some(n) = axis.start.value() {
            if !whole(n.unsigned_abs()) {
                let message = format!("a copy starts at {n} of the {} of `{name}`", t.unit);
                let d = Diagnostic::error("K0310", message).at(at, label);
                self.found.push(d.help(format!("start at a multiple of {}", t.tile)));
            }
        } else if !whole(axis.start.multiple) {
            self.found.push(super::alignment::unproven(self.kernel, t.view, t.axis, t.tile as u64, span));
        }
    }

    /// K0313
    fn symbolic(&mut self, view: &View, span: Span) {
        let name = &self.kernel.params[view.param].name;
        let message = format!("a copy takes a traced number of rows of `{name}`, whose shape is symbolic");
        let d = Diagnostic::error("K0313", message)
            .at(self.kernel.loc(span).clone(), "a traced number of rows")
            .help("copy in pieces of known row counts, e.g. the powers of two that the number is made of");
        self.found.push(d);
    }
}

/// Rows of the tiles in which a window of `rows` rows is taken.
fn row_tile(dtype: DType, space: MemorySpace, rows: usize) -> usize {
    let full = match (dtype.bits(), space) {
        (16, MemorySpace::Any) => SUBLANES,
        _ => tile_rows(dtype),
    };
    rows.next_power_of_two().clamp(packing(dtype), full)
}

/// Whether a window at a known row stays inside one tile, which a DMA can then take a part of.
fn in_one_tile(rows: &Axis, n: usize, tile: usize) -> bool {
    matches!(rows.origin, Origin::Number(at) if n > 0 && at / tile == (at + n - 1) / tile)
}
