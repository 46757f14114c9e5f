//! What stands between the brackets of a ref: `..`, an integer, a slice, or a tuple of these.

use std::ops::RangeFull;
use std::panic::Location;

use super::value::{Idx, Like};
use crate::diag::Diagnostic;
use crate::ir::{Elem as RefElem, Extent, Offset, OpKind, RefType, Size, Type, Value};
use crate::record::{At as Here, Recorder, show, with};

/// One position of an index.
#[derive(Clone, Copy, Debug)]
pub enum Part {
    /// The whole axis.
    #[doc(hidden)]
    All,
    /// One element; the axis goes away.
    #[doc(hidden)]
    At(Value),
    /// Some elements from a start.
    #[doc(hidden)]
    Slice(Value, Len),
}

/// The length of a slice.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Len {
    /// Known while recording.
    Known(usize),
    /// Known on the TPU: only copies take such slices.
    Traced(Value),
}

impl From<usize> for Len {
    fn from(n: usize) -> Self {
        Self::Known(n)
    }
}

impl From<Idx> for Len {
    fn from(n: Idx) -> Self {
        with(|r| r.known_int(n.v))
            .and_then(|n| usize::try_from(n).ok())
            .map_or(Self::Traced(n.v), Self::Known)
    }
}

/// Some elements of an axis; made by [`ds`].
#[derive(Clone, Copy, Debug)]
pub struct Slice(Part);

/// `len` elements from `start`. A traced `len` is for copies only.
#[track_caller]
pub fn ds(start: impl Like<i32>, len: impl Into<Len>) -> Slice {
    Slice(Part::Slice(start.value(Location::caller()), len.into()))
}

/// One position of an index.
pub trait AtPart: Clone {
    #[doc(hidden)]
    fn part(self, at: Here) -> Part;
}
impl AtPart for RangeFull {
    fn part(self, _: Here) -> Part {
        Part::All
    }
}
impl AtPart for Slice {
    fn part(self, _: Here) -> Part {
        self.0
    }
}
impl AtPart for Idx {
    fn part(self, _: Here) -> Part {
        Part::At(self.v)
    }
}
impl AtPart for usize {
    fn part(self, at: Here) -> Part {
        Part::At(Like::<i32>::value(self, at))
    }
}

/// What can stand between the brackets of a ref.
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot index a ref",
    note = "use `..`, an integer, a traced scalar, `ds(start, len)`, or a tuple of these"
)]
pub trait At: Clone {
    #[doc(hidden)]
    fn parts(self, at: Here) -> Vec<Part>;
}
impl<A: AtPart> At for A {
    fn parts(self, at: Here) -> Vec<Part> {
        vec![self.part(at)]
    }
}
macro_rules! tuples {
    ($($($n:ident $i:tt),*;)*) => { $(
        impl<$($n: AtPart),*> At for ($($n,)*) {
            fn parts(self, at: Here) -> Vec<Part> {
                vec![$(self.$i.part(at)),*]
            }
        }
    )* };
}
tuples! {
    A 0;
    A 0, B 1;
    A 0, B 1, C 2;
    A 0, B 1, C 2, D 3;
}

/// A window of a ref, resolved: where it starts, how long it is, and which axes an integer index took away.
pub(crate) struct Window {
    pub(crate) offsets: Vec<Offset>,
    pub(crate) sizes: Vec<Size>,
    pub(crate) taken: Vec<usize>,
}

impl Window {
    /// The full-rank shape, when it is static.
    pub(crate) fn static_shape(&self) -> Option<Vec<usize>> {
        self.sizes.iter().map(|s| if let Size::Const(n) = s { Some(*n) } else { None }).collect()
    }

    /// Lengths of the axes that are left.
    pub(crate) fn kept(&self) -> Vec<Size> {
        let left = self.sizes.iter().enumerate().filter(|(i, _)| !self.taken.contains(i));
        left.map(|(_, s)| *s).collect()
    }
}

/// Resolves an index against a ref; reports indices that are too many, and known bounds that are broken.
pub(crate) fn resolve(r: &mut Recorder, base: Value, mut parts: Vec<Part>, at: Here) -> Window {
    let ty = r.ref_ty(base);
    let rank = ty.shape.len();
    if parts.len() > rank {
        let message = format!("{} indices into `{}`, which has rank {rank}", parts.len(), r.param_name(base));
        r.report(Diagnostic::error("K0108", message).at(at.into(), "too many indices"));
        parts.truncate(rank);
    }
    parts.resize(rank, Part::All);
    let mut w = Window { offsets: vec![], sizes: vec![], taken: vec![] };
    for (axis, (part, extent)) in parts.iter().zip(&ty.shape).enumerate() {
        let (start, size) = match part {
            Part::All => (Offset::Const(0), whole(r, base, axis, *extent, at)),
            Part::At(v) => {
                w.taken.push(axis);
                (r.offset(*v), Size::Const(1))
            }
            Part::Slice(v, Len::Known(n)) => (r.offset(*v), Size::Const(*n)),
            Part::Slice(v, Len::Traced(n)) => (r.offset(*v), Size::Value(*n)),
        };
        check_bounds(r, base, axis, *extent, (start, size), at);
        w.offsets.push(start);
        w.sizes.push(size);
    }
    w
}

fn whole(r: &mut Recorder, base: Value, axis: usize, extent: Extent, at: Here) -> Size {
    match extent {
        Extent::Static(n) => Size::Const(n),
        Extent::Dynamic => {
            let name = r.param_name(base);
            r.report(
                Diagnostic::error(
                    "K0112",
                    format!("`..` on axis {axis} of `{name}`, whose length only the TPU knows"),
                )
                .at(at.into(), "a whole axis of unknown length")
                .help("say how much to take: `ds(start, len)`"),
            );
            Size::Const(1)
        }
    }
}

fn check_bounds(
    r: &mut Recorder,
    base: Value,
    axis: usize,
    extent: Extent,
    window: (Offset, Size),
    at: Here,
) {
    let (Extent::Static(d), (start, Size::Const(n))) = (extent, window) else { return };
    let end = n + if let Offset::Const(s) = start { s } else { 0 };
    if end > d {
        let name = r.param_name(base);
        let what = if n == 1 { format!("index {}", end - 1) } else { format!("a slice that ends at {end}") };
        let message = format!("{what} on axis {axis} of `{name}`, which has length {d}");
        r.report(Diagnostic::error("K0109", message).at(at.into(), "out of bounds"));
    }
}

/// A window of a ref, for a copy.
#[derive(Clone, Debug)]
pub struct Place {
    pub(crate) base: Value,
    pub(crate) parts: Vec<Part>,
}

impl Place {
    /// Records the ref of this window, and yields it with the lengths of its axes.
    pub(crate) fn view(&self, r: &mut Recorder, at: Here) -> (Value, Vec<Size>) {
        let w = resolve(r, self.base, self.parts.clone(), at);
        let ty = r.ref_ty(self.base);
        let extent = |s: &Size| if let Size::Const(n) = s { Extent::Static(*n) } else { Extent::Dynamic };
        let whole = w.sizes.iter().map(extent).eq(ty.shape.iter().copied())
            && w.offsets.iter().all(|o| *o == Offset::Const(0))
            && !w.sizes.iter().any(|s| matches!(s, Size::Value(_)));
        let kept = w.kept();
        let mut v = self.base;
        if !whole {
            let shape: Vec<Extent> = w.sizes.iter().map(extent).collect();
            let ty = Type::Ref(RefType { elem: ty.elem, shape, space: ty.space });
            v = r.push(OpKind::Slice { base: v, offsets: w.offsets, sizes: w.sizes }, ty, at);
        }
        if !w.taken.is_empty() {
            let ty = Type::Ref(RefType {
                elem: ty.elem,
                shape: kept.iter().map(extent).collect(),
                space: ty.space,
            });
            v = r.push(OpKind::Squeeze { base: v, axes: w.taken }, ty, at);
        }
        (v, kept)
    }
}

/// Loads a tile; axes that an integer index took are gone from its shape.
pub(crate) fn load(base: Value, parts: Vec<Part>, at: Here) -> Value {
    with(|r| {
        let before = r.found();
        let w = resolve(r, base, parts, at);
        let dtype = data_type(&r.ref_ty(base));
        let Some(full) = static_shape(r, &w, at) else { return r.poison(Type::tile(dtype, [1, 1]), at) };
        let v =
            r.push(OpKind::Load { base, offsets: w.offsets.clone() }, Type::tile(dtype, full.as_slice()), at);
        if r.found() > before {
            r.taint(v);
        }
        let kept = kept_shape(&w, &full);
        if kept == full { v } else { r.push(OpKind::Reshape { x: v }, Type::tile(dtype, kept), at) }
    })
}

/// Stores a tile or a scalar; reports a shape that does not fit.
pub(crate) fn store(base: Value, parts: Vec<Part>, value: Value, at: Here) {
    with(|r| {
        let before = r.found();
        let w = resolve(r, base, parts, at);
        if r.found() > before {
            return;
        }
        let dtype = data_type(&r.ref_ty(base));
        let Some(full) = static_shape(r, &w, at) else { return };
        let (kept, got) = (kept_shape(&w, &full), r.shape(value));
        let value = if got.is_empty() {
            r.push(OpKind::Broadcast { x: value }, Type::tile(dtype, full.as_slice()), at)
        } else if got == full {
            value
        } else if got == kept {
            r.push(OpKind::Reshape { x: value }, Type::tile(dtype, full.as_slice()), at)
        } else {
            if !r.any_poisoned(&[value]) {
                let name = r.param_name(base);
                let message = format!(
                    "a tile of shape {} is stored to a window of `{name}` of shape {}",
                    show(&got),
                    show(&kept)
                );
                r.report(Diagnostic::error("K0110", message).at(at.into(), "shapes differ"));
            }
            return;
        };
        r.effect(OpKind::Store { base, offsets: w.offsets, value }, at);
    });
}

/// The index of one element of a ref in SMEM; reports an index that takes more than one.
pub(crate) fn element(r: &mut Recorder, base: Value, parts: Vec<Part>, at: Here) -> Vec<Offset> {
    let w = resolve(r, base, parts, at);
    if w.taken.len() != w.sizes.len() {
        let name = r.param_name(base);
        r.report(
            Diagnostic::error(
                "K0108",
                format!("scalar memory `{name}` is read and written one element at a time"),
            )
            .at(at.into(), "not the index of one element"),
        );
    }
    w.offsets
}

pub(crate) fn data_type(ty: &RefType) -> crate::ir::DType {
    match ty.elem {
        RefElem::Data(d) => d,
        RefElem::DmaSemaphore | RefElem::Semaphore => unreachable!("semaphores are not indexed as data"),
    }
}

fn kept_shape(w: &Window, full: &[usize]) -> Vec<usize> {
    let kept: Vec<usize> =
        full.iter().enumerate().filter(|(i, _)| !w.taken.contains(i)).map(|(_, n)| *n).collect();
    if kept.is_empty() { vec![1] } else { kept }
}

fn static_shape(r: &mut Recorder, w: &Window, at: Here) -> Option<Vec<usize>> {
    let shape = w.static_shape();
    if shape.is_none() {
        r.report(
            Diagnostic::error("K0112", "a slice whose length only the TPU knows")
                .at(at.into(), "tiles have lengths known while recording")
                .help("take a slice of the largest length and mask what is beyond; only copies take such slices"),
        );
    }
    shape
}
