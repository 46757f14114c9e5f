//! The plan: a kernel's body compiled once into steps with resolved slots, fused elementwise groups, and buffers
//! that are given back as soon as nothing reads them.

mod fuse;
mod lifetime;
mod lower;
mod needed;
mod ops;
mod tiles;
mod written;

use crate::ir::{ArgReduction, Binary, Compare, DType, OpKind, Reduction, Span, Unary};

use super::scalar::Scalar;

pub(super) use lower::compile;
pub(super) use written::written;

/// Where a value lives while the kernel runs: its index in the kernel's table of values.
pub(super) type Slot = usize;

/// A compiled kernel.
#[derive(Debug)]
pub(super) struct Plan {
    /// The body of one grid step.
    pub(super) body: Code,
    /// The block map of each parameter that has a window, by parameter.
    pub(super) windows: Vec<Option<IndexMap>>,
    /// Scalars that never change.
    pub(super) constants: Vec<(Slot, Scalar)>,
    /// Slots that hold this step's index on an axis.
    pub(super) program_ids: Vec<(Slot, usize)>,
    /// By parameter: whether the body writes to it.
    pub(super) written: Vec<bool>,
}

/// A block map: its arguments, the scalar steps, and the block index.
#[derive(Debug)]
pub(super) struct IndexMap {
    pub(super) args: Vec<Slot>,
    pub(super) code: Code,
}

/// A straight line of steps, and the slots that hold what the block yields.
#[derive(Debug, Default)]
pub(super) struct Code {
    pub(super) steps: Vec<Step>,
    pub(super) results: Vec<Passed>,
}

/// A value handed over at the border of a block.
#[derive(Clone, Copy, Debug)]
pub(super) struct Passed {
    pub(super) slot: Slot,
    pub(super) is_tile: bool,
    /// True when nothing reads the slot afterwards: its buffer may be moved instead of copied.
    pub(super) last: bool,
}

/// One step.
#[derive(Debug)]
pub(super) struct Step {
    pub(super) action: Action,
    pub(super) span: Span,
    /// Tiles that nothing reads after this step.
    pub(super) release: Vec<Slot>,
}

/// What a step does.
#[derive(Debug)]
pub(super) enum Action {
    /// An op on scalars or refs, run from the IR as it stands.
    Plain { kind: OpKind, to: Option<Slot> },
    /// A group of elementwise ops, run over the tile a piece at a time.
    Fused(Box<Fused>),
    /// Writes out a view as a dense tile.
    Materialize { from: Operand, to: Slot },
    /// Matrix product.
    Dot(Box<Dot>),
    /// Reduction along the middle of `outer x len x inner`.
    Reduce(Box<Reduce>),
    /// Tiles one after the other along an axis of the result.
    Concatenate { xs: Vec<Operand>, axis: usize, to: Slot, shape: Vec<usize> },
    /// A rotated copy.
    Roll { from: Operand, amount: Slot, axis: usize, to: Slot },
    /// The first element, as a scalar.
    ToScalar { from: Operand, to: Slot },
    /// Writes a tile into memory.
    Store(Box<Store>),
    /// Loads a tile through a ref that sees memory under another element type.
    LoadBits { from: Source, dtype: DType, to: Slot },
    /// The same bits under an element type of another width.
    Bitcast { from: Operand, dtype: DType, to: Slot },
    /// Elements picked along an axis.
    Gather { from: Operand, index: Operand, axis: usize, to: Slot },
    /// The position of the largest or smallest element along an axis.
    ArgReduce { op: ArgReduction, from: Operand, axis: usize, to: Slot },
    /// Random bits.
    Random { len: usize, to: Slot },
    /// Runs one of two blocks.
    If { cond: Slot, then: Code, otherwise: Code, results: Vec<Slot> },
    /// Runs a block for each index.
    For {
        lo: Slot,
        hi: Slot,
        index: Slot,
        init: Vec<Passed>,
        args: Vec<Slot>,
        body: Code,
        results: Vec<Slot>,
    },
    /// Runs a block while another says so.
    While {
        init: Vec<Passed>,
        cond: Code,
        cond_args: Vec<Slot>,
        body: Code,
        body_args: Vec<Slot>,
        results: Vec<Slot>,
    },
}

/// An offset into a ref, with its slot resolved.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Offset {
    Const(usize),
    Slot(Slot),
}

/// A tile-shaped reading of something that may lie elsewhere: layout changes cost nothing until elements are needed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Operand {
    pub(super) source: Source,
    /// By axis of the source: where the reading starts, on top of the source's own offsets.
    pub(super) starts: Vec<usize>,
    /// By axis of the reading: the axis of the source it walks, or `None` to stay.
    pub(super) axes: Vec<Option<usize>>,
    /// Length of each axis of the reading.
    pub(super) shape: Vec<usize>,
    /// Element type, as the tile's type says.
    pub(super) dtype: DType,
}

/// Where an [`Operand`] finds its elements.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Source {
    /// A tile, seen as dense and of this shape.
    Tile { slot: Slot, shape: Vec<usize> },
    /// A place in memory, and how much of it was loaded: elements `strides` apart, or side by side when there are none.
    Memory { base: Slot, offsets: Vec<Offset>, extent: Vec<usize>, strides: Vec<usize>, span: Span },
    /// A scalar, everywhere.
    Splat(Slot),
    /// The index along the one axis of the source.
    Iota,
}

/// What the elements of a register are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum LaneKind {
    Float,
    Int,
    Bool,
}

impl LaneKind {
    pub(super) const fn of(dtype: DType) -> Self {
        match dtype {
            DType::Bool => Self::Bool,
            _ if dtype.is_float() => Self::Float,
            _ => Self::Int,
        }
    }
}

/// Elementwise ops over one shape.
#[derive(Debug)]
pub(super) struct Fused {
    /// Number of elements.
    pub(super) len: usize,
    /// What is read from outside.
    pub(super) leaves: Vec<Operand>,
    pub(super) code: Vec<Instr>,
    /// What each temporary register holds.
    pub(super) temps: Vec<LaneKind>,
    /// The tiles it makes.
    pub(super) outs: Vec<(Slot, LaneKind)>,
}

/// Where an op of a fused group finds an operand or puts its result.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Reg {
    Leaf(usize),
    Temp(usize),
    Out(usize),
}

/// One op of a fused group.
#[derive(Clone, Debug)]
pub(super) struct Instr {
    pub(super) op: ElementOp,
    pub(super) to: Reg,
    /// Element type of the operands: tells a comparison what it compares.
    pub(super) from: LaneKind,
    /// Element type of the result: decides rounding and wrapping.
    pub(super) dtype: DType,
    pub(super) span: Span,
}

/// What an [`Instr`] computes, from which registers.
#[derive(Clone, Copy, Debug)]
pub(super) enum ElementOp {
    Unary(Unary, Reg),
    Binary(Binary, Reg, Reg),
    Compare(Compare, Reg, Reg),
    Select(Reg, Reg, Reg),
    Cast(Reg),
    /// With the element type that is cast.
    CastUnsigned(Reg, DType),
    /// With the element type that is cast.
    Bitcast(Reg, DType),
}

impl ElementOp {
    /// The same op with every register mapped.
    pub(super) fn map(self, f: impl Fn(Reg) -> Reg) -> Self {
        match self {
            Self::Unary(op, x) => Self::Unary(op, f(x)),
            Self::Binary(op, x, y) => Self::Binary(op, f(x), f(y)),
            Self::Compare(op, x, y) => Self::Compare(op, f(x), f(y)),
            Self::Select(m, x, y) => Self::Select(f(m), f(x), f(y)),
            Self::Cast(x) => Self::Cast(f(x)),
            Self::CastUnsigned(x, from) => Self::CastUnsigned(f(x), from),
            Self::Bitcast(x, from) => Self::Bitcast(f(x), from),
        }
    }

    /// The registers it reads.
    pub(super) fn reads(self) -> impl Iterator<Item = Reg> {
        let regs = match self {
            Self::Unary(_, x) | Self::Cast(x) => [Some(x), None, None],
            Self::CastUnsigned(x, _) | Self::Bitcast(x, _) => [Some(x), None, None],
            Self::Binary(_, x, y) | Self::Compare(_, x, y) => [Some(x), Some(y), None],
            Self::Select(m, x, y) => [Some(m), Some(x), Some(y)],
        };
        regs.into_iter().flatten()
    }
}

/// A matrix product.
#[derive(Clone, Debug)]
pub(super) struct Dot {
    /// Seen as `[m, k]`.
    pub(super) lhs: Operand,
    /// Seen as `[k, n]`.
    pub(super) rhs: Operand,
    /// What the product is added to.
    pub(super) acc: Option<Operand>,
    pub(super) to: Slot,
    /// Element type of the result.
    pub(super) dtype: DType,
    /// Round `f32` operands to bfloat16 first.
    pub(super) round: bool,
}

/// A store of a tile.
#[derive(Debug)]
pub(super) struct Store {
    pub(super) base: Slot,
    pub(super) offsets: Vec<Offset>,
    /// Distance between neighbours along each axis; all 1 when there are none.
    pub(super) strides: Vec<usize>,
    pub(super) value: Operand,
    /// Where it stores, if not everywhere.
    pub(super) mask: Option<Operand>,
}

/// A reduction.
#[derive(Debug)]
pub(super) struct Reduce {
    pub(super) op: Reduction,
    pub(super) from: Operand,
    pub(super) to: Slot,
    pub(super) outer: usize,
    pub(super) len: usize,
    pub(super) inner: usize,
    pub(super) dtype: DType,
}
