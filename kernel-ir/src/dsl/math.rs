//! Elementwise functions, reductions, choices, and what a kernel knows of its grid.

use std::panic::Location;

use super::arith::{binary, unary};
use super::elem::{Elem, Float, Num};
use super::value::{Idx, Like, Scalar, Tile, broadcast_to, common_shape, elementwise_ty};
use crate::diag::Diagnostic;
use crate::ir::{Binary, DType, OpKind, Reduction, Type, Unary, Value};
use crate::record::{At, show, with};

macro_rules! functions {
    ($($(#[$doc:meta])* $f:ident $op:ident;)*) => {
        impl<T: Float> Tile<T> { $(
            $(#[$doc])*
            #[track_caller]
            pub fn $f(self) -> Self {
                Self::new(unary(Unary::$op, self.v, Location::caller()))
            }
        )* }
        impl<T: Float> Scalar<T> { $(
            $(#[$doc])*
            #[track_caller]
            pub fn $f(self) -> Self {
                Self::new(unary(Unary::$op, self.v, Location::caller()))
            }
        )* }
    };
}

functions! {
    /// `e^x`
    exp Exp;
    /// `2^x`
    exp2 Exp2;
    /// Natural logarithm.
    log Log;
    /// Base-2 logarithm.
    log2 Log2;
    /// Square root.
    sqrt Sqrt;
    /// `1 / sqrt(x)`
    rsqrt Rsqrt;
    /// `1 / x`
    reciprocal Reciprocal;
    /// Hyperbolic tangent.
    tanh Tanh;
    /// `1 / (1 + e^-x)`
    logistic Logistic;
    /// Error function.
    erf Erf;
    /// Sine of radians.
    sin Sin;
    /// Cosine of radians.
    cos Cos;
    /// Largest integer not above `x`.
    floor Floor;
    /// Smallest integer not below `x`.
    ceil Ceil;
}

impl<T: Num> Tile<T> {
    /// Absolute value.
    #[track_caller]
    pub fn abs(self) -> Self {
        Self::new(unary(Unary::Abs, self.v, Location::caller()))
    }

    /// Sum along `axis`, which stays with length 1.
    #[track_caller]
    pub fn sum(self, axis: usize) -> Self {
        self.reduce(Reduction::Sum, axis)
    }

    /// Maximum along `axis`, which stays with length 1.
    #[track_caller]
    pub fn max(self, axis: usize) -> Self {
        self.reduce(Reduction::Max, axis)
    }

    /// Minimum along `axis`, which stays with length 1.
    #[track_caller]
    pub fn min(self, axis: usize) -> Self {
        self.reduce(Reduction::Min, axis)
    }

    #[track_caller]
    fn reduce(self, op: Reduction, axis: usize) -> Self {
        let at = Location::caller();
        Self::new(with(|r| {
            let mut shape = r.shape(self.v);
            let Some(d) = shape.get_mut(axis) else {
                let d = Diagnostic::error(
                    "K0104",
                    format!("a tile of shape {} has no axis {axis}", show(&shape)),
                )
                .at(at.into(), format!("axes are 0 to {}", shape.len() - 1));
                return r.wrong(d, Type::tile(T::DTYPE, shape), at);
            };
            *d = 1;
            r.push(OpKind::Reduce { op, x: self.v, axis }, Type::tile(T::DTYPE, shape), at)
        }))
    }
}

impl<T: Num> Scalar<T> {
    /// The larger one.
    #[track_caller]
    pub fn max(self, other: impl Like<T>) -> Self {
        let at = Location::caller();
        let y = other.value(at);
        Self::new(binary(Binary::Max, T::DTYPE, self.v, y, at))
    }

    /// The smaller one.
    #[track_caller]
    pub fn min(self, other: impl Like<T>) -> Self {
        let at = Location::caller();
        let y = other.value(at);
        Self::new(binary(Binary::Min, T::DTYPE, self.v, y, at))
    }
}

impl Scalar<i32> {
    /// The smallest integer not below `self / by`, for `self >= 0` and `by > 0`.
    #[track_caller]
    pub fn div_ceil(self, by: usize) -> Self {
        let at = Location::caller();
        let constant = |n: usize| Like::<i32>::value(n, at);
        let up = binary(Binary::Add, DType::I32, self.v, constant(by.saturating_sub(1)), at);
        // The scalar core has no divider: shift where that is the same.
        let (op, by) =
            if by.is_power_of_two() { (Binary::Shr, by.ilog2() as usize) } else { (Binary::Div, by) };
        Self::new(binary(op, DType::I32, up, constant(by), at))
    }
}

/// The larger one, element by element; NaN if either is.
#[track_caller]
pub fn maximum<T: Num>(a: Tile<T>, b: impl Like<T>) -> Tile<T> {
    let at = Location::caller();
    let b = b.value(at);
    Tile::new(binary(Binary::Max, T::DTYPE, a.v, b, at))
}

/// The smaller one, element by element; NaN if either is.
#[track_caller]
pub fn minimum<T: Num>(a: Tile<T>, b: impl Like<T>) -> Tile<T> {
    let at = Location::caller();
    let b = b.value(at);
    Tile::new(binary(Binary::Min, T::DTYPE, a.v, b, at))
}

/// What [`select`] chooses by: a mask, which yields a tile, or a traced flag, which yields a scalar.
pub trait Mask {
    /// What choosing among `T` yields.
    type Out<T>;
    #[doc(hidden)]
    fn choose<T: Elem>(self, a: Value, b: Value, at: At) -> Self::Out<T>;
}

impl Mask for Tile<bool> {
    type Out<T> = Tile<T>;
    fn choose<T: Elem>(self, a: Value, b: Value, at: At) -> Tile<T> {
        Tile::new(choose(self.v, a, b, T::DTYPE, at))
    }
}

impl Mask for Scalar<bool> {
    type Out<T> = Scalar<T>;
    fn choose<T: Elem>(self, a: Value, b: Value, at: At) -> Scalar<T> {
        Scalar::new(choose(self.v, a, b, T::DTYPE, at))
    }
}

fn choose(mask: Value, a: Value, b: Value, dtype: DType, at: At) -> Value {
    let flag = with(|r| r.shape(mask).is_empty());
    let shape = common_shape(&[mask, a, b], "`select`", at);
    let Some(shape) = shape else {
        return with(|r| {
            let shape = r.shape(mask);
            r.poison(elementwise_ty(dtype, &shape), at)
        });
    };
    if flag && !shape.is_empty() {
        return with(|r| {
            let d = Diagnostic::error("K0115", "a traced flag chooses between scalars, not between tiles")
                .at(at.into(), format!("chooses between tiles of shape {}", show(&shape)))
                .help("compare tiles to get a mask, or use `when(flag, || ..)` and store through a ref");
            r.wrong(d, Type::Scalar(dtype), at)
        });
    }
    let [mask, x, y] = [mask, a, b].map(|v| broadcast_to(v, &shape, at));
    with(|r| r.push(OpKind::Select { mask, x, y }, elementwise_ty(dtype, &shape), at))
}

/// `a` where `mask` holds, `b` elsewhere.
#[track_caller]
pub fn select<T: Elem, M: Mask>(mask: M, a: impl Like<T>, b: impl Like<T>) -> M::Out<T> {
    let at = Location::caller();
    let (a, b) = (a.value(at), b.value(at));
    mask.choose(a, b, at)
}

/// `x`, with the promise that it is a multiple of `n`: what the TPU needs to know of offsets into tiled axes.
///
/// The CPU executor checks the promise.
#[track_caller]
pub fn multiple_of(x: Idx, n: usize) -> Idx {
    let at = Location::caller();
    Idx::new(with(|r| {
        if r.known_int(x.v).is_some() {
            return x.v;
        }
        r.push(OpKind::AssumeMultiple { x: x.v, multiple: n }, Type::Scalar(DType::I32), at)
    }))
}

/// This step's index on grid axis `axis`.
#[track_caller]
pub fn program_id(axis: usize) -> Idx {
    let at = Location::caller();
    Idx::new(with(|r| r.push(OpKind::ProgramId { axis }, Type::Scalar(DType::I32), at)))
}

/// The extent of grid axis `axis`.
#[track_caller]
pub fn num_programs(axis: usize) -> Idx {
    let at = Location::caller();
    Idx::new(with(|r| r.push(OpKind::NumPrograms { axis }, Type::Scalar(DType::I32), at)))
}
