//! K0109: accesses that are known to leave their ref.

use super::Found;
use super::ints::IntFact;
use super::views::View;
use crate::diag::Diagnostic;
use crate::ir::{Block, Kernel, Offset, Op, OpKind, Size, Span, Type, Value};

pub(super) fn check(kernel: &Kernel, views: &[Option<View>], ints: &[IntFact], found: &mut Found) {
    let mut b = Bounds { kernel, views, ints, found };
    b.block(&kernel.body, true);
}

struct Bounds<'k> {
    kernel: &'k Kernel,
    views: &'k [Option<View>],
    ints: &'k [IntFact],
    found: &'k mut Found,
}

impl Bounds<'_> {
    /// `always` if the block runs for every step of the grid and of the loops around it.
    fn block(&mut self, b: &Block, always: bool) {
        for op in &b.ops {
            self.op(op, always);
            let inner = always && runs(&op.kind, self.ints);
            for b in op.kind.blocks() {
                self.block(b, inner);
            }
        }
    }

    fn op(&mut self, op: &Op, always: bool) {
        match &op.kind {
            OpKind::Load { base, offsets } => {
                self.access(*base, offsets, &self.tile(op.results[0]), op.span, always)
            }
            OpKind::Store { base, offsets, value } => {
                self.access(*base, offsets, &self.tile(*value), op.span, always);
            }
            OpKind::LoadScalar { base, offsets } | OpKind::StoreScalar { base, offsets, .. } => {
                self.access(*base, offsets, &vec![Some(1); offsets.len()], op.span, always);
            }
            OpKind::Slice { base, offsets, sizes } => {
                let least: Vec<_> = sizes.iter().map(|s| self.size(s)).collect();
                self.access(*base, offsets, &least, op.span, always);
            }
            _ => {}
        }
    }

    fn tile(&self, v: Value) -> Vec<Option<usize>> {
        self.kernel.ty(v).shape().unwrap_or_default().iter().map(|n| Some(*n)).collect()
    }

    /// The least that a slice is long.
    fn size(&self, s: &Size) -> Option<usize> {
        match s {
            Size::Const(n) => Some(*n),
            Size::Value(v) => usize::try_from(self.ints[v.0 as usize].lo).ok(),
        }
    }

    fn access(&mut self, base: Value, offsets: &[Offset], sizes: &[Option<usize>], span: Span, always: bool) {
        let Some(view) = &self.views[base.0 as usize] else { return };
        let Type::Ref(r) = self.kernel.ty(base) else { return };
        for (i, (offset, size)) in offsets.iter().zip(sizes).enumerate() {
            let (Some(length), Some(size)) = (r.shape[i].known(), *size) else { continue };
            let start = match offset {
                Offset::Const(n) => IntFact::known(i64::try_from(*n).unwrap_or(i64::MAX)),
                Offset::Value(v) => self.ints[v.0 as usize],
            };
            if let Some(at) = leaves(&start, size, length, always) {
                let name = &self.kernel.params[view.param].name;
                let what =
                    if size == 1 { format!("index {at}") } else { format!("{size} elements from {at}") };
                let message = format!("{what} on axis {i} of `{name}`, which has length {length}");
                let d =
                    Diagnostic::error("K0109", message).at(self.kernel.loc(span).clone(), "out of bounds");
                let traced = start.value().is_none();
                let note = format!("the traced index goes from {} to {}", start.lo, start.hi);
                self.found.push(if traced && start.exact { d.note(note) } else { d });
                return;
            }
        }
    }
}

/// Whether the body of a loop surely runs, once for every value of its index.
pub(super) fn runs(kind: &OpKind, ints: &[IntFact]) -> bool {
    let OpKind::For { lo, hi, .. } = kind else { return false };
    let bound = |v: &Value| ints[v.0 as usize].value();
    matches!((bound(lo), bound(hi)), (Some(lo), Some(hi)) if lo < hi)
}

/// Where an access of some length that starts at `start` leaves an axis, if it is known to.
fn leaves(start: &IntFact, size: usize, length: usize, always: bool) -> Option<i64> {
    let (size, length) = (i64::try_from(size).ok()?, i64::try_from(length).ok()?);
    if start.hi < 0 {
        return Some(start.hi);
    }
    if start.lo + size > length {
        return Some(start.lo);
    }
    let reached = always && start.exact;
    if reached && start.hi + size > length {
        return Some(start.hi);
    }
    (reached && start.lo < 0).then_some(start.lo)
}
