//! Symbolic dims: sizes that the launch leaves open, so that one recorded kernel serves every shape.

use std::ops;
use std::panic::Location;

use super::value::Idx;
use crate::ir::{DType, DimExpr, DimOp, OpKind, Type};
use crate::record::with;

/// A size that is known only when the kernel is called. Dims of one kernel with the same name are the same dim.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Dim(&'static str);

/// Several dims at once: `let [m, k, n] = dims(["m", "k", "n"]);`
pub fn dims<const N: usize>(names: [&'static str; N]) -> [Dim; N] {
    names.map(Dim)
}

impl Dim {
    /// The dim's name.
    pub const fn name(self) -> &'static str {
        self.0
    }

    /// The smallest integer not below `self / by`: how many blocks of `by` cover the dim.
    pub fn div_ceil(self, by: usize) -> Size {
        Size::from(self).div_ceil(by)
    }

    /// The largest integer not above `self / by`, such as how many query heads share a key head.
    pub fn div_floor(self, by: impl Into<Size>) -> Size {
        Size::from(self).div_floor(by)
    }

    /// The dim as a traced integer, for the kernel's body or a block map.
    #[track_caller]
    pub fn get(self) -> Idx {
        let at = Location::caller();
        Idx::new(with(|r| r.push(OpKind::Dim { name: self.0.into() }, Type::Scalar(DType::I32), at)))
    }
}

/// A number, a dim, or arithmetic on them: what array shapes and grid extents are made of.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Size(pub(crate) DimExpr);

impl Size {
    /// The smallest integer not below `self / by`.
    #[must_use]
    pub fn div_ceil(self, by: usize) -> Self {
        Self(DimExpr::op(DimOp::CeilDiv, self.0, by.into()))
    }

    /// The largest integer not above `self / by`.
    #[must_use]
    pub fn div_floor(self, by: impl Into<Self>) -> Self {
        Self(DimExpr::op(DimOp::FloorDiv, self.0, by.into().0))
    }

    /// The larger one.
    #[must_use]
    pub fn max(self, other: impl Into<Self>) -> Self {
        Self(DimExpr::op(DimOp::Max, self.0, other.into().0))
    }
}

impl From<usize> for Size {
    fn from(n: usize) -> Self {
        Self(n.into())
    }
}

impl From<Dim> for Size {
    fn from(d: Dim) -> Self {
        Self(DimExpr::dim(d.0))
    }
}

macro_rules! arithmetic {
    ($($tr:ident $f:ident),*) => { $(
        impl<R: Into<Size>> ops::$tr<R> for Size {
            type Output = Size;
            fn $f(self, r: R) -> Size {
                Size(DimExpr::op(DimOp::$tr, self.0, r.into().0))
            }
        }
        impl<R: Into<Size>> ops::$tr<R> for Dim {
            type Output = Size;
            fn $f(self, r: R) -> Size {
                Size(DimExpr::op(DimOp::$tr, Size::from(self).0, r.into().0))
            }
        }
    )* };
}
arithmetic!(Add add, Sub sub, Mul mul);
