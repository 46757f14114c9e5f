//! Operations: single assignment, structured control flow, one source span each.

use super::types::DType;

/// A value: an index into [`super::Kernel::values`].
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, PartialOrd, Ord)]
pub struct Value(pub u32);

/// A place in the user's source: an index into [`super::Kernel::spans`].
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub struct Span(pub u32);

/// A straight line of operations with arguments at the top and results at the bottom.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Block {
    /// Values that the owner of the block gives it (a loop's index and what it carries).
    pub args: Vec<Value>,
    /// In the order they run.
    pub ops: Vec<Op>,
    /// Values that the block gives its owner.
    pub results: Vec<Value>,
}

/// One operation.
#[derive(Clone, PartialEq, Debug)]
pub struct Op {
    /// What it does, with its operands.
    pub kind: OpKind,
    /// What it yields; types are in [`super::Kernel::values`].
    pub results: Vec<Value>,
    /// The line that asked for it.
    pub span: Span,
}

/// A constant. Its element type is that of the result.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Literal {
    /// For float results; exact in `f64`, rounded to the result's type.
    Float(f64),
    /// For integer results.
    Int(i64),
    /// For `bool` results.
    Bool(bool),
}

/// An offset or an index into a ref, in elements.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Offset {
    /// Known while recording.
    Const(usize),
    /// An `i32` scalar.
    Value(Value),
}

/// The length of one axis of a [`OpKind::Slice`].
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Size {
    /// Known while recording.
    Const(usize),
    /// An `i32` scalar; the result's extent is dynamic.
    Value(Value),
}

/// What an operation does. Elementwise operands have the shape of the result: broadcasts are explicit.
#[derive(Clone, PartialEq, Debug)]
#[allow(missing_docs, reason = "the doc of a variant says what its fields are")]
pub enum OpKind {
    /// A scalar, or a tile with the same value everywhere.
    Constant(Literal),
    /// `i32` tile: the index along `axis`.
    Iota { axis: usize },
    /// `i32` scalar: this step's index on a grid axis.
    ProgramId { axis: usize },
    /// `i32` scalar: the extent of a grid axis.
    NumPrograms { axis: usize },
    /// `i32` scalar: the size that a symbolic dim has in this call.
    Dim { name: std::sync::Arc<str> },

    /// Elementwise, on scalars or tiles.
    Unary { op: Unary, x: Value },
    /// Elementwise, on two scalars or two tiles of one type.
    Binary { op: Binary, x: Value, y: Value },
    /// Elementwise comparison; yields `bool`.
    Compare { op: Compare, x: Value, y: Value },
    /// `x` where `mask` holds, `y` elsewhere.
    Select { mask: Value, x: Value, y: Value },
    /// Converts element types; floats round to nearest even, float to int truncates toward zero. `bool` becomes 0 or 1.
    Cast { x: Value },
    /// As [`OpKind::Cast`], with the bits of the integer side read as an unsigned number.
    CastUnsigned { x: Value },
    /// The same bits under another element type. Of another width: tiles of rank 2 and more, whose last axis but one
    /// is longer by the ratio of the widths; each wide element holds the narrow ones of that axis, lowest bits first.
    Bitcast { x: Value },
    /// Promises that an `i32` scalar is a multiple of a number; yields it.
    AssumeMultiple { x: Value, multiple: usize },

    /// Repeats a scalar, or a tile's axes of length 1, up to the result's shape (equal ranks for tiles).
    Broadcast { x: Value },
    /// The same elements in row-major order, under the result's shape.
    Reshape { x: Value },
    /// Result axis `i` is operand axis `permutation[i]`.
    Transpose { x: Value, permutation: Vec<usize> },
    /// Tiles one after the other along `axis`.
    Concatenate { xs: Vec<Value>, axis: usize },
    /// The part of a tile that starts at `offsets` and has the result's shape.
    ExtractSlice { x: Value, offsets: Vec<usize> },
    /// `result[(i + amount) mod n] = x[i]` along `axis`.
    Roll { x: Value, amount: Value, axis: usize },
    /// `result[.., i, ..] = x[.., index[.., i, ..] mod n, ..]` along `axis`, of length `n`; `i32` indices of the result's shape.
    Gather { x: Value, index: Value, axis: usize },
    /// Combines along `axis`, which stays with length 1.
    Reduce { op: Reduction, x: Value, axis: usize },
    /// Position (`i32`) of the first largest or smallest element along `axis`, which stays with length 1; a NaN wins.
    ArgReduce { op: ArgReduction, x: Value, axis: usize },
    /// The one element of a tile of length 1, as a scalar.
    ToScalar { x: Value },
    /// A product that contracts one axis of each side; result axes are those left of `lhs`, then of `rhs`.
    /// Accumulated in the result's element type. Both sides have rank 2.
    Dot { lhs: Value, rhs: Value, dims: DotDims, precision: Precision },

    /// A tile of the result's shape (of the ref's rank) from VMEM.
    Load { base: Value, offsets: Vec<Offset> },
    /// A tile (of the ref's rank) into VMEM.
    Store { base: Value, offsets: Vec<Offset>, value: Value },
    /// As [`OpKind::Load`], of elements `strides` apart along each axis (32-bit elements on the TPU, last stride 1).
    LoadStrided { base: Value, offsets: Vec<Offset>, strides: Vec<usize> },
    /// As [`OpKind::Store`], of elements `strides` apart along each axis.
    StoreStrided { base: Value, offsets: Vec<Offset>, strides: Vec<usize>, value: Value },
    /// As [`OpKind::Store`], only where `mask` (`bool`, of the tile's shape) holds. What is not stored may lie outside.
    StoreMasked { base: Value, offsets: Vec<Offset>, value: Value, mask: Value },
    /// One element of SMEM.
    LoadScalar { base: Value, offsets: Vec<Offset> },
    /// One element into SMEM.
    StoreScalar { base: Value, offsets: Vec<Offset>, value: Value },
    /// A window of a ref, of the same rank and space.
    Slice { base: Value, offsets: Vec<Offset>, sizes: Vec<Size> },
    /// The ref without these axes, each of length 1.
    Squeeze { base: Value, axes: Vec<usize> },
    /// The same elements of a contiguous ref in row-major order, under the result's shape.
    ReshapeRef { base: Value },
    /// The same memory under another element type, as [`OpKind::Bitcast`] sees a tile of it.
    BitcastRef { base: Value },

    /// Starts a copy from `src` to `dst`, which have equal shapes; `sem` (rank 0) counts it when it has landed.
    CopyStart { src: Value, dst: Value, sem: Value },
    /// Waits on `sem` until a copy of `dst`'s size has landed.
    CopyWait { src: Value, dst: Value, sem: Value },
    /// Starts a copy from this device's `src` to `dst` of `device` (an `i32` scalar, the logical id). `sent` here counts it
    /// when `src` has been read, `received` on `device` when it has landed; [`OpKind::CopyWait`] waits on either.
    CopyStartRemote { src: Value, sent: Value, dst: Value, received: Value, device: Value },
    /// Adds `amount` (`i32`) to a counting semaphore of this core, or of `core` on this device or on `device`. Where a kernel
    /// names cores, each step of its grid is one: the core of the step's number in the grid.
    SemSignal { sem: Value, amount: Value, device: Option<Value>, core: Option<Value> },
    /// Blocks until a counting semaphore has reached `amount` (`i32`), and takes that much off it.
    SemWait { sem: Value, amount: Value },
    /// `i32` scalar: what a semaphore counts now.
    SemRead { sem: Value },
    /// The counting semaphore (rank 0) that all kernels of one collective share.
    BarrierSemaphore,
    /// `i32` scalar: the logical id of this device in its mesh.
    DeviceId,

    /// Seeds this core's random generator with `i32` scalars.
    PrngSeed { seeds: Vec<Value> },
    /// An `i32` tile of random bits from this core's generator. Which bits is the machine's own affair.
    PrngBits,
    /// Stops the kernel with `message` where `cond` (a `bool` scalar) does not hold.
    Assert { cond: Value, message: std::sync::Arc<str> },

    /// Runs one block or the other; both yield the op's results.
    If { cond: Value, then: Block, otherwise: Block },
    /// Runs `body` for `lo <= i < hi`. `body.args` is the `i32` index, then one value per `init`.
    For { lo: Value, hi: Value, init: Vec<Value>, body: Block },
    /// Runs `cond` (args as `init`; results a `bool`), and while it holds `body` (args as `init`, results the next ones).
    While { init: Vec<Value>, cond: Block, body: Block },
}

/// Elementwise functions of one operand. Floats only, unless said.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Unary {
    /// `-x`, floats and integers.
    Neg,
    /// `|x|`, floats and integers.
    Abs,
    /// `e^x`
    Exp,
    /// `2^x`
    Exp2,
    /// Natural logarithm.
    Log,
    /// Base-2 logarithm.
    Log2,
    /// Square root.
    Sqrt,
    /// `1 / sqrt(x)`
    Rsqrt,
    /// `1 / x`
    Reciprocal,
    /// Hyperbolic tangent.
    Tanh,
    /// `1 / (1 + e^-x)`
    Logistic,
    /// Error function.
    Erf,
    /// Sine, radians.
    Sin,
    /// Cosine, radians.
    Cos,
    /// Largest integer not above.
    Floor,
    /// Smallest integer not below.
    Ceil,
    /// Logical negation of `bool`, bitwise of integers.
    Not,
    /// `ln(1 + x)`, exact near zero.
    Log1p,
    /// Tangent, radians.
    Tan,
    /// Nearest integer, halves away from zero.
    Round,
    /// Nearest integer, halves to the even one.
    RoundEven,
    /// Integers: number of zero bits above the highest one.
    LeadingZeros,
    /// Integers: number of one bits.
    PopCount,
}

/// Elementwise functions of two operands of one type.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Binary {
    /// `x + y`
    Add,
    /// `x - y`
    Sub,
    /// `x * y`
    Mul,
    /// `x / y`; integers truncate toward zero.
    Div,
    /// Remainder with the sign of `x`.
    Rem,
    /// The smaller one; NaN if either is.
    Min,
    /// The larger one; NaN if either is.
    Max,
    /// `bool` and integers.
    And,
    /// `bool` and integers.
    Or,
    /// `bool` and integers.
    Xor,
    /// Integers: shift left.
    Shl,
    /// Integers: arithmetic shift right.
    Shr,
    /// Integers: logical shift right.
    ShrUnsigned,
    /// Integers read as unsigned: the quotient.
    DivUnsigned,
    /// Integers read as unsigned: the remainder.
    RemUnsigned,
    /// Integers read as unsigned: the smaller one.
    MinUnsigned,
    /// Integers read as unsigned: the larger one.
    MaxUnsigned,
    /// `i32`: the upper half of the 64-bit product.
    MulHigh,
    /// `i32` read as unsigned: the upper half of the 64-bit product.
    MulHighUnsigned,
    /// Floats: `x` to the power `y`.
    Pow,
    /// Floats: the angle of the point `(y, x)`, where `x` is the first operand (the ordinate).
    Atan2,
}

/// Comparisons; floats are ordered (false when either side is NaN), except `Ne`, which is its negation of `Eq`.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Compare {
    /// `==`
    Eq,
    /// `!=`
    Ne,
    /// `<`
    Lt,
    /// `<=`
    Le,
    /// `>`
    Gt,
    /// `>=`
    Ge,
    /// `<` of integers read as unsigned.
    LtUnsigned,
    /// `<=` of integers read as unsigned.
    LeUnsigned,
    /// `>` of integers read as unsigned.
    GtUnsigned,
    /// `>=` of integers read as unsigned.
    GeUnsigned,
}

/// How a reduction combines.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Reduction {
    /// Sum, in the operand's element type.
    Sum,
    /// Largest.
    Max,
    /// Smallest.
    Min,
}

/// Whose position an [`OpKind::ArgReduce`] finds.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum ArgReduction {
    /// That of the largest.
    Max,
    /// That of the smallest.
    Min,
}

/// Which axis of each rank-2 operand a [`OpKind::Dot`] contracts.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct DotDims {
    /// Contracted axis of `lhs`: 1 for `[m, k]`, 0 for `[k, m]`.
    pub lhs: usize,
    /// Contracted axis of `rhs`: 0 for `[k, n]`, 1 for `[n, k]`.
    pub rhs: usize,
}

/// How exactly `f32` operands are multiplied. Narrower operands are always exact.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub enum Precision {
    /// As `f32`: several bfloat16 passes of the matrix unit.
    #[default]
    Highest,
    /// One bfloat16 pass.
    Bf16,
}

impl OpKind {
    /// The word for the kind of op, as the IR's text has it: `load_scalar`, `copy_start`, `exp`, `add`.
    pub fn name(&self) -> String {
        let debug = match self {
            Self::Unary { op, .. } => format!("{op:?}"),
            Self::Binary { op, .. } => format!("{op:?}"),
            Self::Compare { op, .. } => format!("Compare{op:?}"),
            Self::Reduce { op, .. } => format!("Reduce{op:?}"),
            Self::ArgReduce { op, .. } => format!("Arg{op:?}"),
            other => format!("{other:?}"),
        };
        let mut name = String::new();
        for c in debug.chars().take_while(|c| c.is_alphanumeric()) {
            if c.is_uppercase() && !name.is_empty() {
                name.push('_');
            }
            name.extend(c.to_lowercase());
        }
        name
    }

    /// Whether the op yields one value, for those without blocks; the others yield none.
    pub const fn makes_value(&self) -> bool {
        !matches!(
            self,
            Self::Store { .. }
                | Self::StoreStrided { .. }
                | Self::StoreMasked { .. }
                | Self::StoreScalar { .. }
                | Self::CopyStart { .. }
                | Self::CopyStartRemote { .. }
                | Self::CopyWait { .. }
                | Self::SemSignal { .. }
                | Self::SemWait { .. }
                | Self::PrngSeed { .. }
                | Self::Assert { .. }
        )
    }

    /// Blocks inside, in order.
    pub fn blocks(&self) -> Vec<&Block> {
        match self {
            Self::If { then, otherwise, .. } => vec![then, otherwise],
            Self::For { body, .. } => vec![body],
            Self::While { cond, body, .. } => vec![cond, body],
            _ => vec![],
        }
    }

    /// Values read by the op itself, in order; not those read inside its blocks.
    pub fn operands(&self) -> Vec<Value> {
        let with = |head: &[Value], offsets: &[Offset]| {
            let mut v = head.to_vec();
            v.extend(offsets.iter().filter_map(|o| if let Offset::Value(x) = o { Some(*x) } else { None }));
            v
        };
        match self {
            Self::Constant(_) | Self::Iota { .. } | Self::ProgramId { .. } => vec![],
            Self::NumPrograms { .. } | Self::Dim { .. } | Self::DeviceId => vec![],
            Self::BarrierSemaphore | Self::PrngBits => vec![],
            Self::Unary { x, .. } | Self::Cast { x } | Self::AssumeMultiple { x, .. } => vec![*x],
            Self::CastUnsigned { x } | Self::Bitcast { x } => vec![*x],
            Self::Broadcast { x } | Self::Reshape { x } | Self::Transpose { x, .. } => vec![*x],
            Self::ExtractSlice { x, .. } | Self::Reduce { x, .. } | Self::ArgReduce { x, .. } => vec![*x],
            Self::ToScalar { x } => vec![*x],
            Self::Gather { x, index, .. } => vec![*x, *index],
            Self::Binary { x, y, .. } | Self::Compare { x, y, .. } => vec![*x, *y],
            Self::Select { mask, x, y } => vec![*mask, *x, *y],
            Self::Concatenate { xs, .. } => xs.clone(),
            Self::Roll { x, amount, .. } => vec![*x, *amount],
            Self::Dot { lhs, rhs, .. } => vec![*lhs, *rhs],
            Self::Load { base, offsets }
            | Self::LoadStrided { base, offsets, .. }
            | Self::LoadScalar { base, offsets } => with(&[*base], offsets),
            Self::Store { base, offsets, value }
            | Self::StoreStrided { base, offsets, value, .. }
            | Self::StoreScalar { base, offsets, value } => with(&[*base, *value], offsets),
            Self::StoreMasked { base, offsets, value, mask } => with(&[*base, *value, *mask], offsets),
            Self::Slice { base, offsets, sizes } => {
                let mut v = with(&[*base], offsets);
                v.extend(sizes.iter().filter_map(|s| if let Size::Value(x) = s { Some(*x) } else { None }));
                v
            }
            Self::Squeeze { base, .. } | Self::ReshapeRef { base } | Self::BitcastRef { base } => vec![*base],
            Self::CopyStart { src, dst, sem } | Self::CopyWait { src, dst, sem } => {
                vec![*src, *dst, *sem]
            }
            Self::CopyStartRemote { src, sent, dst, received, device } => {
                vec![*src, *sent, *dst, *received, *device]
            }
            Self::SemSignal { sem, amount, device, core } => {
                [*sem, *amount].into_iter().chain(*device).chain(*core).collect()
            }
            Self::SemWait { sem, amount } => vec![*sem, *amount],
            Self::SemRead { sem } => vec![*sem],
            Self::PrngSeed { seeds } => seeds.clone(),
            Self::Assert { cond, .. } => vec![*cond],
            Self::If { cond, .. } => vec![*cond],
            Self::For { lo, hi, init, .. } => [&[*lo, *hi], init.as_slice()].concat(),
            Self::While { init, .. } => init.clone(),
        }
    }
}

impl Literal {
    /// The literal of `dtype` nearest to `x`.
    pub fn of(dtype: DType, x: f64) -> Self {
        match dtype {
            _ if dtype.is_float() => Self::Float(x),
            DType::Bool => Self::Bool(x != 0.0),
            #[allow(clippy::cast_possible_truncation, reason = "integers here are small and whole")]
            _ => Self::Int(x as i64),
        }
    }
}
