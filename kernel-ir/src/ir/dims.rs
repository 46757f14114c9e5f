//! Symbolic dims: the sizes that a kernel leaves open, arithmetic on them, and what a kernel demands of them.
//!
//! The JSON form is an S-expression, the one `index.json` publishes: `768`, `"n"`, `["ceildiv", "n", 768]`,
//! and for a demand `["<=", "k", 2048]`.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

/// Values of the dims of one call, by name.
pub type Dims = BTreeMap<String, i64>;

/// An integer that is known once the dims are.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub enum DimExpr {
    /// A number.
    Const(i64),
    /// A dim, by name.
    Dim(Arc<str>),
    /// Arithmetic on two of them.
    Op(DimOp, Arc<(DimExpr, DimExpr)>),
}

/// Arithmetic on dims. Division rounds as its name says; operands are never negative in practice.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum DimOp {
    /// `a + b`
    Add,
    /// `a - b`
    Sub,
    /// `a * b`
    Mul,
    /// The smallest integer not below `a / b`.
    CeilDiv,
    /// The largest integer not above `a / b`.
    FloorDiv,
    /// `a - b * floordiv(a, b)`
    Mod,
    /// The smaller one.
    Min,
    /// The larger one.
    Max,
}

impl DimOp {
    /// Every operation, for tables.
    pub const ALL: [Self; 8] =
        [Self::Add, Self::Sub, Self::Mul, Self::CeilDiv, Self::FloorDiv, Self::Mod, Self::Min, Self::Max];

    /// The word for it in `index.json`.
    pub const fn word(self) -> &'static str {
        match self {
            Self::Add => "+",
            Self::Sub => "-",
            Self::Mul => "*",
            Self::CeilDiv => "ceildiv",
            Self::FloorDiv => "floordiv",
            Self::Mod => "mod",
            Self::Min => "min",
            Self::Max => "max",
        }
    }

    /// The result, or `None` on overflow and on division by zero or by a negative number.
    pub fn apply(self, a: i64, b: i64) -> Option<i64> {
        match self {
            Self::Add => a.checked_add(b),
            Self::Sub => a.checked_sub(b),
            Self::Mul => a.checked_mul(b),
            Self::Min => Some(a.min(b)),
            Self::Max => Some(a.max(b)),
            _ if b <= 0 => None,
            Self::CeilDiv => Some(a.div_euclid(b) + i64::from(a.rem_euclid(b) != 0)),
            Self::FloorDiv => Some(a.div_euclid(b)),
            Self::Mod => Some(a.rem_euclid(b)),
        }
    }
}

impl DimExpr {
    /// A dim, by name.
    pub fn dim(name: &str) -> Self {
        Self::Dim(name.into())
    }

    /// `op(a, b)`, folded when both are numbers.
    pub fn op(op: DimOp, a: Self, b: Self) -> Self {
        if let (Self::Const(x), Self::Const(y)) = (&a, &b)
            && let Some(v) = op.apply(*x, *y)
        {
            return Self::Const(v);
        }
        Self::Op(op, Arc::new((a, b)))
    }

    /// The number, when no dim is in it.
    pub const fn known(&self) -> Option<i64> {
        match self {
            Self::Const(n) => Some(*n),
            _ => None,
        }
    }

    /// The value for these dims, or `None` if a dim is missing or the arithmetic is undefined.
    pub fn eval(&self, dims: &Dims) -> Option<i64> {
        match self {
            Self::Const(n) => Some(*n),
            Self::Dim(d) => dims.get(&**d).copied(),
            Self::Op(op, ab) => op.apply(ab.0.eval(dims)?, ab.1.eval(dims)?),
        }
    }

    /// Calls `f` for every dim in it, in order of writing.
    pub fn each_dim(&self, f: &mut impl FnMut(&Arc<str>)) {
        match self {
            Self::Const(_) => {}
            Self::Dim(d) => f(d),
            Self::Op(_, ab) => {
                ab.0.each_dim(f);
                ab.1.each_dim(f);
            }
        }
    }
}

impl From<usize> for DimExpr {
    fn from(n: usize) -> Self {
        Self::Const(i64::try_from(n).unwrap_or(i64::MAX))
    }
}

impl fmt::Display for DimExpr {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Const(n) => n.fmt(f),
            Self::Dim(d) => f.write_str(d),
            Self::Op(op @ (DimOp::Add | DimOp::Sub | DimOp::Mul), ab) => {
                write!(f, "({} {} {})", ab.0, op.word(), ab.1)
            }
            Self::Op(op, ab) => write!(f, "{}({}, {})", op.word(), ab.0, ab.1),
        }
    }
}

/// How a demand compares its sides.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum DimCompare {
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

impl DimCompare {
    /// Every comparison, for tables.
    pub const ALL: [Self; 6] = [Self::Eq, Self::Ne, Self::Lt, Self::Le, Self::Gt, Self::Ge];

    /// The word for it in `index.json`.
    pub const fn word(self) -> &'static str {
        match self {
            Self::Eq => "==",
            Self::Ne => "!=",
            Self::Lt => "<",
            Self::Le => "<=",
            Self::Gt => ">",
            Self::Ge => ">=",
        }
    }

    /// Whether it holds.
    pub const fn holds(self, a: i64, b: i64) -> bool {
        match self {
            Self::Eq => a == b,
            Self::Ne => a != b,
            Self::Lt => a < b,
            Self::Le => a <= b,
            Self::Gt => a > b,
            Self::Ge => a >= b,
        }
    }
}

/// Something that must be true of the dims of a call.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Demand {
    /// The comparison.
    pub compare: DimCompare,
    /// Its left side.
    pub left: DimExpr,
    /// Its right side.
    pub right: DimExpr,
}

impl Demand {
    /// Whether it holds, or `None` if a side cannot be evaluated.
    pub fn holds(&self, dims: &Dims) -> Option<bool> {
        Some(self.compare.holds(self.left.eval(dims)?, self.right.eval(dims)?))
    }
}

impl fmt::Display for Demand {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {} {}", self.left, self.compare.word(), self.right)
    }
}
