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
    /// Converts element types; floats round to nearest even, float to int truncates toward zero.
    Cast { x: Value },
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
    /// Combines along `axis`, which stays with length 1.
    Reduce { op: Reduction, x: Value, axis: usize },
    /// The one element of a tile of length 1, as a scalar.
    ToScalar { x: Value },
    /// A product that contracts one axis of each side; result axes are those left of `lhs`, then of `rhs`.
    /// Accumulated in the result's element type. Both sides have rank 2.
    Dot { lhs: Value, rhs: Value, dims: DotDims, precision: Precision },

    /// A tile of the result's shape (of the ref's rank) from VMEM.
    Load { base: Value, offsets: Vec<Offset> },
    /// A tile (of the ref's rank) into VMEM.
    Store { base: Value, offsets: Vec<Offset>, value: Value },
    /// One element of SMEM.
    LoadScalar { base: Value, offsets: Vec<Offset> },
    /// One element into SMEM.
    StoreScalar { base: Value, offsets: Vec<Offset>, value: Value },
    /// A window of a ref, of the same rank and space.
    Slice { base: Value, offsets: Vec<Offset>, sizes: Vec<Size> },
    /// The ref without these axes, each of length 1.
    Squeeze { base: Value, axes: Vec<usize> },

    /// Starts a copy from `src` to `dst`, which have equal shapes; `sem` (rank 0) counts it when it has landed.
    CopyStart { src: Value, dst: Value, sem: Value },
    /// Waits on `sem` until a copy of `dst`'s size has landed.
    CopyWait { src: Value, dst: Value, sem: Value },

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
            Self::NumPrograms { .. } | Self::Dim { .. } => vec![],
            Self::Unary { x, .. } | Self::Cast { x } | Self::AssumeMultiple { x, .. } => vec![*x],
            Self::Broadcast { x } | Self::Reshape { x } | Self::Transpose { x, .. } => vec![*x],
            Self::ExtractSlice { x, .. } | Self::Reduce { x, .. } | Self::ToScalar { x } => {
                vec![*x]
            }
            Self::Binary { x, y, .. } | Self::Compare { x, y, .. } => vec![*x, *y],
            Self::Select { mask, x, y } => vec![*mask, *x, *y],
            Self::Concatenate { xs, .. } => xs.clone(),
            Self::Roll { x, amount, .. } => vec![*x, *amount],
            Self::Dot { lhs, rhs, .. } => vec![*lhs, *rhs],
            Self::Load { base, offsets } | Self::LoadScalar { base, offsets } => with(&[*base], offsets),
            Self::Store { base, offsets, value } | Self::StoreScalar { base, offsets, value } => {
                with(&[*base, *value], offsets)
            }
            Self::Slice { base, offsets, sizes } => {
                let mut v = with(&[*base], offsets);
                v.extend(sizes.iter().filter_map(|s| if let Size::Value(x) = s { Some(*x) } else { None }));
                v
            }
            Self::Squeeze { base, .. } => vec![*base],
            Self::CopyStart { src, dst, sem } | Self::CopyWait { src, dst, sem } => {
                vec![*src, *dst, *sem]
            }
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
            DType::F32 | DType::Bf16 => Self::Float(x),
            #[allow(clippy::cast_possible_truncation, reason = "integers here are small and whole")]
            DType::I32 | DType::I16 | DType::I8 => Self::Int(x as i64),
            DType::Bool => Self::Bool(x != 0.0),
        }
    }
}
