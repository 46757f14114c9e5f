//! The launch: how a kernel's parameters are described, and how they are bound while it is recorded.

use std::marker::PhantomData;
use std::panic::Location;

use super::dims::{Dim, Size};
use super::dma::{DmaSem, DmaSemSpec, Hbm, HbmOut, HbmSpec};
use super::dot::DotSide;
use super::elem::Elem;
use super::refs::{In, Out, Prefetch, Scalars, Scratch};
use super::value::Idx;
use crate::ir::{
    ArrayType, DType, Demand, DimCompare, DimExpr, Elem as RefElem, Extent, GridAxis, MemorySpace,
    Param as IrParam, Precision, RefType, Role, Semantics, Type, Value, Window, WindowUnit,
};
use crate::record::{At, with};

/// One axis of the grid.
#[derive(Clone, Debug)]
pub struct Axis(GridAxis);

/// An axis whose steps are independent: they may run in any order, on several cores.
pub fn par(extent: impl Into<Size>) -> Axis {
    Axis(GridAxis { extent: extent.into().0, semantics: Semantics::Parallel })
}

/// An axis whose steps run in order and may carry state.
pub fn seq(extent: impl Into<Size>) -> Axis {
    Axis(GridAxis { extent: extent.into().0, semantics: Semantics::Arbitrary })
}

/// The grid: its axes, outermost first, and what the launch demands of its dims.
#[derive(Clone, Debug)]
pub struct Grid<const G: usize> {
    pub(crate) axes: [Axis; G],
    pub(crate) demands: Vec<Demand>,
}

/// A grid of these axes, outermost first; the last one runs fastest.
pub fn grid<const G: usize>(axes: [Axis; G]) -> Grid<G> {
    Grid { axes, demands: vec![] }
}

impl<const G: usize> Grid<G> {
    /// Adds something that must be true of the dims of a call, e.g. `k.at_most(2048)`.
    #[must_use]
    pub fn demand(mut self, d: Demand) -> Self {
        self.demands.push(d);
        self
    }

    pub(crate) fn into_axes(self) -> (Vec<GridAxis>, Vec<Demand>) {
        (self.axes.into_iter().map(|a| a.0).collect(), self.demands)
    }
}

impl Dim {
    fn compare(self, compare: DimCompare, n: usize) -> Demand {
        Demand { compare, left: DimExpr::dim(self.name()), right: n.into() }
    }

    /// Demands `self <= n`.
    pub fn at_most(self, n: usize) -> Demand {
        self.compare(DimCompare::Le, n)
    }

    /// Demands `self >= n`.
    pub fn at_least(self, n: usize) -> Demand {
        self.compare(DimCompare::Ge, n)
    }

    /// Demands `self == n`.
    pub fn exactly(self, n: usize) -> Demand {
        self.compare(DimCompare::Eq, n)
    }

    /// Demands that `self` is a multiple of `n`.
    pub fn multiple_of(self, n: impl Into<Size>) -> Demand {
        let left = DimExpr::op(crate::ir::DimOp::Mod, DimExpr::dim(self.name()), n.into().0);
        Demand { compare: DimCompare::Eq, left, right: DimExpr::Const(0) }
    }
}

/// The shape of an array of rank `R`: numbers, dims, or a tuple that mixes them.
pub trait Shape<const R: usize> {
    #[doc(hidden)]
    fn sizes(self) -> Vec<DimExpr>;
}
impl<S: Into<Size>, const R: usize> Shape<R> for [S; R] {
    fn sizes(self) -> Vec<DimExpr> {
        self.map(|s| s.into().0).into()
    }
}
macro_rules! tuple_shapes {
    ($($r:literal: $($n:ident $i:tt),*;)*) => { $(
        impl<$($n: Into<Size>),*> Shape<$r> for ($($n,)*) {
            fn sizes(self) -> Vec<DimExpr> {
                vec![$(self.$i.into().0),*]
            }
        }
        impl<$($n: Into<Idx>),*> BlockIndex<$r> for ($($n,)*) {
            fn indices(self) -> Vec<Idx> {
                vec![$(self.$i.into()),*]
            }
        }
    )* };
}

/// The block to take along each of `R` axes, in units of blocks: a tuple of traced or host integers.
#[diagnostic::on_unimplemented(
    message = "a block map of this array yields {R} block indices",
    label = "yields `{Self}`"
)]
pub trait BlockIndex<const R: usize> {
    #[doc(hidden)]
    fn indices(self) -> Vec<Idx>;
}
tuple_shapes! {
    1: A 0;
    2: A 0, B 1;
    3: A 0, B 1, C 2;
    4: A 0, B 1, C 2, D 3;
}

/// An array of a given shape; say with [`block`](Array::block) what a grid step sees of it.
pub struct Array<T, const R: usize> {
    shape: Vec<DimExpr>,
    t: PhantomData<fn() -> T>,
}

/// An array as the caller passes it: row-major.
pub fn array<T: Elem, const R: usize>(shape: impl Shape<R>) -> Array<T, R> {
    Array { shape: shape.sizes(), t: PhantomData }
}

type BlockMap<const G: usize> = Box<dyn FnOnce([Idx; G]) -> Vec<Idx>>;

/// An array, the block of it that one grid step sees, and which block that is.
pub struct BlockSpec<T, const G: usize> {
    array: Vec<DimExpr>,
    block: Vec<usize>,
    map: BlockMap<G>,
    at: At,
    t: PhantomData<fn() -> T>,
}

impl<T: Elem, const R: usize> Array<T, R> {
    /// Blocks of shape `block`; `map` takes the grid indices to the block's index on each axis, in units of blocks.
    ///
    /// A block at the array's edge may stick out: what lies outside is undefined when read and dropped when written.
    #[track_caller]
    pub fn block<const G: usize, O: BlockIndex<R>>(
        self,
        block: [usize; R],
        map: impl Fn([Idx; G]) -> O + 'static,
    ) -> BlockSpec<T, G> {
        BlockSpec {
            array: self.shape,
            block: block.to_vec(),
            map: Box::new(move |g| map(g).indices()),
            at: Location::caller(),
            t: PhantomData,
        }
    }
}

/// Scratch in VMEM.
pub struct Vmem<T>(Vec<usize>, PhantomData<fn() -> T>);

/// Scratch of this shape in VMEM.
pub fn vmem<T: Elem, const R: usize>(shape: [usize; R]) -> Vmem<T> {
    Vmem(shape.to_vec(), PhantomData)
}

/// Scratch in SMEM.
pub struct Smem<T>(Vec<usize>, PhantomData<fn() -> T>);

/// Scratch of this shape in SMEM.
pub fn smem<T: Elem, const R: usize>(shape: [usize; R]) -> Smem<T> {
    Smem(shape.to_vec(), PhantomData)
}

/// How a parameter type is described at launch, and bound while recording.
#[diagnostic::on_unimplemented(
    message = "a kernel has no parameter of type `{Self}`",
    label = "not a parameter type",
    note = "arrays and memory are `In`, `Out`, `Scratch`, `Hbm`, ...; wrap a host value as `Host<{Self}>`"
)]
pub trait Param<const G: usize>: Sized {
    /// What the launch says of it.
    type Spec;
    /// Runs for every parameter before any is bound: prefetched arrays must be there for block maps to read.
    #[doc(hidden)]
    fn prepare(_spec: &Self::Spec, _name: &'static str, _at: At) {}
    #[doc(hidden)]
    fn bind(spec: Self::Spec, name: &'static str, at: At) -> Self;
}

macro_rules! host {
    ($($t:ty),*) => { $(
        impl<const G: usize> Param<G> for $t {
            type Spec = Self;
            fn bind(spec: Self, _: &'static str, _: At) -> Self {
                spec
            }
        }
    )* };
}
host!(f32, i32, usize, bool, Dim, DotSide, Precision, DType);
/// A host value of any type, known while recording: `tile: Host<Tile>` is launched as `tile: Tile { .. }`.
#[derive(Clone, Copy, Debug)]
pub struct Host<H>(pub H);

impl<H, const G: usize> Param<G> for Host<H> {
    type Spec = H;
    fn bind(spec: H, _: &'static str, _: At) -> Self {
        Self(spec)
    }
}

struct Declare {
    name: &'static str,
    role: Role,
    elem: RefElem,
    shape: Vec<Extent>,
    space: MemorySpace,
    array: Option<ArrayType>,
    window: Option<Window>,
}

fn declare(d: Declare, at: At) -> Value {
    with(|r| {
        let value = r.value(Type::Ref(RefType { elem: d.elem, shape: d.shape, space: d.space }), at);
        let span = r.span(at);
        r.param(IrParam { name: d.name.into(), role: d.role, value, array: d.array, window: d.window, span });
        value
    })
}

fn fixed(shape: &[usize]) -> Vec<Extent> {
    shape.iter().map(|n| Extent::Static(*n)).collect()
}

fn extents(shape: &[DimExpr]) -> Vec<Extent> {
    let known = |e: &DimExpr| e.known().and_then(|n| usize::try_from(n).ok());
    shape.iter().map(|e| known(e).map_or(Extent::Dynamic, Extent::Static)).collect()
}

fn bind_block<T: Elem, const G: usize>(
    spec: BlockSpec<T, G>,
    role: Role,
    name: &'static str,
    at: At,
) -> Value {
    let args: [Value; G] = with(|r| {
        r.enter();
        std::array::from_fn(|_| r.value(Type::Scalar(DType::I32), spec.at))
    });
    let results = (spec.map)(args.map(Idx::new));
    let window = with(|r| {
        let mut index = r.leave();
        index.args = args.to_vec();
        index.results = results.iter().map(|i| i.v).collect();
        Window { block: spec.block.clone(), index, unit: WindowUnit::Blocks, span: r.span(spec.at) }
    });
    let array = ArrayType { dtype: T::DTYPE, shape: spec.array };
    let (elem, shape) = (RefElem::Data(T::DTYPE), fixed(&spec.block));
    declare(
        Declare {
            name,
            role,
            elem,
            shape,
            space: MemorySpace::Vmem,
            array: Some(array),
            window: Some(window),
        },
        at,
    )
}

fn bind_array<T: Elem>(
    shape: Vec<DimExpr>,
    role: Role,
    space: MemorySpace,
    name: &'static str,
    at: At,
) -> Value {
    let ty = extents(&shape);
    let array = Some(ArrayType { dtype: T::DTYPE, shape });
    declare(Declare { name, role, elem: RefElem::Data(T::DTYPE), shape: ty, space, array, window: None }, at)
}

fn bind_scratch(elem: RefElem, shape: &[usize], space: MemorySpace, name: &'static str, at: At) -> Value {
    let shape = fixed(shape);
    declare(Declare { name, role: Role::Scratch, elem, shape, space, array: None, window: None }, at)
}

impl<T: Elem, const G: usize> Param<G> for In<T> {
    type Spec = BlockSpec<T, G>;
    fn bind(spec: Self::Spec, name: &'static str, at: At) -> Self {
        Self::new(bind_block(spec, Role::Input, name, at))
    }
}
impl<T: Elem, const G: usize> Param<G> for Out<T> {
    type Spec = BlockSpec<T, G>;
    fn bind(spec: Self::Spec, name: &'static str, at: At) -> Self {
        Self::new(bind_block(spec, Role::Output, name, at))
    }
}
impl<T: Elem, const G: usize> Param<G> for Scratch<T> {
    type Spec = Vmem<T>;
    fn bind(spec: Self::Spec, name: &'static str, at: At) -> Self {
        Self::new(bind_scratch(RefElem::Data(T::DTYPE), &spec.0, MemorySpace::Vmem, name, at))
    }
}
impl<T: Elem, const G: usize> Param<G> for Scalars<T> {
    type Spec = Smem<T>;
    fn bind(spec: Self::Spec, name: &'static str, at: At) -> Self {
        let v = bind_scratch(RefElem::Data(T::DTYPE), &spec.0, MemorySpace::Smem, name, at);
        Self { v, t: PhantomData }
    }
}
impl<T: Elem, const G: usize> Param<G> for Hbm<T> {
    type Spec = HbmSpec;
    fn bind(spec: Self::Spec, name: &'static str, at: At) -> Self {
        Self { v: bind_array::<T>(spec.0, Role::Input, MemorySpace::Any, name, at), t: PhantomData }
    }
}
impl<T: Elem, const G: usize> Param<G> for HbmOut<T> {
    type Spec = HbmSpec;
    fn bind(spec: Self::Spec, name: &'static str, at: At) -> Self {
        Self { v: bind_array::<T>(spec.0, Role::Output, MemorySpace::Any, name, at), t: PhantomData }
    }
}
impl<const G: usize> Param<G> for DmaSem {
    type Spec = DmaSemSpec;
    fn bind(spec: Self::Spec, name: &'static str, at: At) -> Self {
        Self { v: bind_scratch(RefElem::DmaSemaphore, &[spec.0], MemorySpace::Semaphore, name, at) }
    }
}
impl<T: Elem, const G: usize> Param<G> for Prefetch<T> {
    type Spec = Self;
    fn prepare(spec: &Self, name: &'static str, at: At) {
        let v = bind_array::<T>(vec![spec.len.into()], Role::Prefetch, MemorySpace::Smem, name, at);
        with(|r| r.bind_token(spec.token, v));
    }
    fn bind(spec: Self, _: &'static str, _: At) -> Self {
        spec
    }
}
