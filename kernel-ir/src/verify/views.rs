//! Which part of which parameter a ref means: slices and squeezes, resolved to offsets into the whole ref.

use super::ints::IntFact;
use crate::ir::{Extent, Kernel, Offset, OpKind, Size, Type, Value};

/// A window of a parameter's ref.
#[derive(Clone, Debug)]
pub(super) struct View {
    /// Index into [`Kernel::params`].
    pub(super) param: usize,
    /// One a axis of the parameter's ref.
    pub(super) axes: Vec<Axis>,
    /// Axes that the ref still has; squeezed ones are gone.
    pub(super) kept: Vec<usize>,
}

/// The part of one axis that a view takes.
#[derive(Clone, Copy, Debug)]
pub(super) struct Axis {
    /// Where it starts.
    pub(super) start: IntFact,
    /// Which value that is, if it is one value: two views with the same one start at the same place.
    pub(super) origin: Origin,
    /// How long it is.
    pub(super) size: Length,
    /// How long the whole axis is, when known.
    pub(super) extent: Option<usize>,
}

/// The length of an axis.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Length {
    /// A number.
    Known(usize),
    /// Known on the TPU, and what of it is known here.
    Traced(IntFact),
    /// Known when the kernel is called.
    Symbolic,
}

impl Length {
    /// The number, if it is one.
    pub(super) const fn known(self) -> Option<usize> {
        match self {
            Self::Known(n) => Some(n),
            Self::Traced(_) | Self::Symbolic => None,
        }
    }

    /// Lengths of the axes of a tile.
    pub(super) fn of_tile(shape: &[usize]) -> Vec<Self> {
        shape.iter().map(|n| Self::Known(*n)).collect()
    }

    /// Lengths of the axes of a slice.
    pub(super) fn of_sizes(sizes: &[Size], facts: &[IntFact]) -> Vec<Self> {
        let length = |s: &Size| match s {
            Size::Const(n) => Self::Known(*n),
            Size::Value(v) => Self::Traced(facts[v.0 as usize]),
        };
        sizes.iter().map(length).collect()
    }
}

/// What the start of an axis is made of.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Origin {
    /// A number.
    Number(usize),
    /// A scalar.
    Scalar(Value),
    /// A sum.
    Mixed,
}

impl Axis {
    /// Whether the view takes the axis from its first to its last element.
    pub(super) fn is_whole(&self) -> bool {
        self.origin == Origin::Number(0)
            && (self.size == Length::Symbolic || (self.extent.is_some() && self.size.known() == self.extent))
    }

    fn within(self, offset: Offset, size: Length, facts: &[IntFact]) -> Self {
        let (fact, origin) = match (self.origin, offset) {
            (Origin::Number(a), Offset::Const(b)) => {
                let n = a.saturating_add(b);
                (IntFact::known(i64::try_from(n).unwrap_or(i64::MAX)), Origin::Number(n))
            }
            (Origin::Number(0), Offset::Value(v)) => (facts[v.0 as usize], Origin::Scalar(v)),
            (o, Offset::Const(0)) => (self.start, o),
            (_, Offset::Const(b)) => (self.start.plus(IntFact::known(b as i64)), Origin::Mixed),
            (_, Offset::Value(v)) => (self.start.plus(facts[v.0 as usize]), Origin::Mixed),
        };
        Self { start: fact, origin, size, extent: self.extent }
    }
}

impl View {
    /// The part that an access of `sizes` at `offsets`, one an axis that the ref still has, touches.
    pub(super) fn access(&self, offsets: &[Offset], sizes: &[Length], facts: &[IntFact]) -> Self {
        let mut v = self.clone();
        for ((axis, offset), size) in self.kept.iter().zip(offsets).zip(sizes) {
            v.axes[*axis] = self.axes[*axis].within(*offset, *size, facts);
        }
        v
    }

    /// Whether two views are known to share an element.
    pub(super) fn surely_meets(&self, other: &Self) -> bool {
        self.param == other.param
            && self.axes.iter().zip(&other.axes).all(|(a, b)| match (a.origin, b.origin) {
                (Origin::Scalar(x), Origin::Scalar(y)) if x == y => true,
                (Origin::Number(x), Origin::Number(y)) => {
                    let before = |p: usize, n: Length, q: usize| q < p.saturating_add(n.known().unwrap_or(1));
                    if x <= y { before(x, a.size, y) } else { before(y, b.size, x) }
                }
                _ => a.is_whole() || b.is_whole(),
            })
    }
}

/// The views of all ref values, by [`Value`].
pub(super) fn resolve(kernel: &Kernel, facts: &[IntFact]) -> Vec<Option<View>> {
    let mut views: Vec<Option<View>> = vec![None; kernel.values.len()];
    for (i, p) in kernel.params.iter().enumerate() {
        let Type::Ref(r) = kernel.ty(p.value) else { continue };
        let whole = |e: &Extent| Axis {
            start: IntFact::known(0),
            origin: Origin::Number(0),
            size: e.known().map_or(Length::Symbolic, Length::Known),
            extent: e.known(),
        };
        let axes: Vec<_> = r.shape.iter().map(whole).collect();
        views[p.value.0 as usize] = Some(View { param: i, kept: (0..axes.len()).collect(), axes });
    }
    kernel.each_op(&mut |op| {
        let view = match &op.kind {
            OpKind::Slice { base, offsets, sizes } => {
                let sizes = Length::of_sizes(sizes, facts);
                views[base.0 as usize].as_ref().map(|v| v.access(offsets, &sizes, facts))
            }
            OpKind::Squeeze { base, axes } => views[base.0 as usize].clone().map(|mut v| {
                let mut i = 0;
                v.kept.retain(|_| {
                    i += 1;
                    !axes.contains(&(i - 1))
                });
                v
            }),
            _ => None,
        };
        if let (Some(view), [v]) = (view, &op.results[..]) {
            views[v.0 as usize] = Some(view);
        }
    });
    views
}
