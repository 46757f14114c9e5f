//! K0308: traced indices of loads and stores are known to start at a tile.
//!
//! VMEM is addressed a register at a time: 8 rows of 128 lanes of 32 bits, with 2 or 4 narrower rows packed in one.
//! libtpu calls an index that it cannot prove aligned E2003; its proof, like ours, follows multiplications by constants
//! and promises. Numbers are free: the compiler shifts. So are rows of 32-bit elements when a tile of rows is one
//! contiguous piece: the whole ref has at most 128 lanes, or one row is taken whole.

use super::Found;
use super::ints::IntFact;
use super::views::{Length, View};
use crate::diag::Diagnostic;
use crate::ir::{DType, Kernel, Offset, OpKind, Span, Value};
use crate::target::{LANES, tile_rows};

pub(super) fn check(kernel: &Kernel, views: &[Option<View>], ints: &[IntFact], found: &mut Found) {
    kernel.each_op(&mut |op| {
        let (base, offsets, tile) = match &op.kind {
            OpKind::Load { base, offsets } => (*base, offsets, op.results[0]),
            OpKind::Store { base, offsets, value } => (*base, offsets, *value),
            _ => return,
        };
        if let Some(view) = &views[base.0 as usize] {
            access(&Access { kernel, view, ints, offsets, span: op.span }, base, tile, found);
        }
    });
}

struct Access<'k> {
    kernel: &'k Kernel,
    view: &'k View,
    ints: &'k [IntFact],
    offsets: &'k [Offset],
    span: Span,
}

fn access(a: &Access<'_>, base: Value, tile: Value, found: &mut Found) {
    let (Some(dtype), Some(shape)) = (a.kernel.ty(base).dtype(), a.kernel.ty(tile).shape()) else { return };
    let touched = a.view.access(a.offsets, &Length::of_tile(shape), a.ints);
    let rank = touched.axes.len();
    let needs = [(rank.checked_sub(1), LANES as u64), (rank.checked_sub(2), row_multiple(dtype, &touched))];
    for (axis, multiple) in needs {
        let Some(axis) = axis else { continue };
        let start = touched.axes[axis].start;
        if start.value().is_none() && !start.is_multiple_of(multiple) {
            found.push(unproven(a.kernel, &touched, axis, multiple, a.span));
        }
    }
}

/// What a row index must be a multiple of.
fn row_multiple(dtype: DType, touched: &View) -> u64 {
    let [.., rows, lanes] = &touched.axes[..] else { return 1 };
    let one_column = lanes.extent.is_some_and(|n| n <= LANES);
    let one_row = rows.size == Length::Known(1) && lanes.is_whole();
    match dtype.bits() {
        32 if one_column || one_row => 1,
        _ => tile_rows(dtype) as u64,
    }
}

/// The finding that the traced start of an axis is not known to be a multiple of what it must be.
pub(super) fn unproven(kernel: &Kernel, view: &View, axis: usize, multiple: u64, span: Span) -> Diagnostic {
    let name = &kernel.params[view.param].name;
    let message =
        format!("a traced index into axis {axis} of `{name}` is not known to be a multiple of {multiple}");
    let label = match view.axes[axis].start.multiple {
        1 => "nothing is known of this index".to_owned(),
        n => format!("known to be a multiple of {n}"),
    };
    let help = format!(
        "if it is one, say so with `multiple_of(index, {multiple})`, or compute it as `.. * {multiple}`"
    );
    Diagnostic::error("K0308", message).at(kernel.loc(span).clone(), label).help(help)
}
