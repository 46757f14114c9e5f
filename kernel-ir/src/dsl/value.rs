//! Traced values: [`Tile`] and [`Scalar`], and what may stand in for one.

use std::marker::PhantomData;
use std::panic::Location;

use super::elem::Elem;
use crate::diag::Diagnostic;
use crate::ir::{DType, Literal, OpKind, Type, Value};
use crate::record::{At, show, with};

/// A tile in vector registers: element type `T`, a shape known while recording.
pub struct Tile<T> {
    pub(crate) v: Value,
    t: PhantomData<fn() -> T>,
}

/// One element in a scalar register.
pub struct Scalar<T> {
    pub(crate) v: Value,
    t: PhantomData<fn() -> T>,
}

/// A traced integer: a grid index, a loop counter, a size.
pub type Idx = Scalar<i32>;

impl<T> Clone for Tile<T> {
    fn clone(&self) -> Self {
        *self
    }
}
impl<T> Copy for Tile<T> {}
impl<T> Clone for Scalar<T> {
    fn clone(&self) -> Self {
        *self
    }
}
impl<T> Copy for Scalar<T> {}

impl<T: Elem> Tile<T> {
    pub(crate) fn new(v: Value) -> Self {
        Self { v, t: PhantomData }
    }

    /// Length of each axis.
    pub fn dims(self) -> Vec<usize> {
        with(|r| r.shape(self.v))
    }

    /// The shape as an array; its length is checked while recording.
    #[track_caller]
    pub fn shape<const R: usize>(self) -> [usize; R] {
        let at = Location::caller();
        let shape = self.dims();
        shape.as_slice().try_into().unwrap_or_else(|_| {
            with(|r| {
                if !r.any_poisoned(&[self.v]) {
                    let message = format!("a tile of shape {} is taken as one of rank {R}", show(&shape));
                    r.report(
                        Diagnostic::error("K0102", message)
                            .at(at.into(), format!("this tile has rank {}", shape.len())),
                    );
                }
            });
            [1; R]
        })
    }

    /// Converts to another element type: floats round to nearest even, float to integer truncates toward zero.
    #[track_caller]
    pub fn to<U: Elem>(self) -> Tile<U> {
        let at = Location::caller();
        Tile::new(with(|r| {
            let shape = r.shape(self.v);
            if T::DTYPE == U::DTYPE {
                self.v
            } else {
                r.push(OpKind::Cast { x: self.v }, Type::tile(U::DTYPE, shape), at)
            }
        }))
    }
}

impl<T: Elem> Scalar<T> {
    pub(crate) fn new(v: Value) -> Self {
        Self { v, t: PhantomData }
    }

    /// Converts to another element type: floats round to nearest even, float to integer truncates toward zero.
    #[track_caller]
    pub fn to<U: Elem>(self) -> Scalar<U> {
        let at = Location::caller();
        Scalar::new(with(|r| {
            if T::DTYPE == U::DTYPE {
                self.v
            } else {
                r.push(OpKind::Cast { x: self.v }, Type::Scalar(U::DTYPE), at)
            }
        }))
    }
}

/// Anything that can stand for a tile or a scalar of `T`: one of them, or a host number.
#[diagnostic::on_unimplemented(
    message = "expected elements of type `{T}`, found `{Self}`",
    label = "not a `{T}` value",
    note = "convert with `.to::<{T}>()`; the DSL never converts element types on its own"
)]
pub trait Like<T> {
    /// The value, recorded at `at` if it is a host number.
    #[doc(hidden)]
    fn value(self, at: At) -> Value;
}

impl<T: Elem> Like<T> for Tile<T> {
    fn value(self, _: At) -> Value {
        self.v
    }
}

impl<T: Elem> Like<T> for Scalar<T> {
    fn value(self, _: At) -> Value {
        self.v
    }
}

impl<T: Elem> Like<T> for T {
    fn value(self, at: At) -> Value {
        with(|r| r.constant(T::DTYPE, self.literal(), at))
    }
}

impl Like<i32> for usize {
    fn value(self, at: At) -> Value {
        let n = i64::try_from(self).unwrap_or(i64::MAX);
        with(|r| r.constant(DType::I32, Literal::Int(n), at))
    }
}

impl From<i32> for Idx {
    #[track_caller]
    fn from(x: i32) -> Self {
        Self::new(Like::<i32>::value(x, Location::caller()))
    }
}

impl From<usize> for Idx {
    #[track_caller]
    fn from(x: usize) -> Self {
        Self::new(Like::<i32>::value(x, Location::caller()))
    }
}

/// `v` with the shape of the elementwise result `shape`: scalars and axes of length 1 are repeated.
pub(crate) fn broadcast_to(v: Value, shape: &[usize], at: At) -> Value {
    with(|r| {
        let ty = r.ty(v);
        if ty.shape() == Some(shape) {
            return v;
        }
        let dtype = ty.dtype().expect("tiles and scalars have an element type");
        r.push(OpKind::Broadcast { x: v }, Type::tile(dtype, shape), at)
    })
}

/// The shape that elementwise operands have together, or `None` after reporting that they have none.
pub(crate) fn common_shape(operands: &[Value], what: &str, at: At) -> Option<Vec<usize>> {
    with(|r| {
        if r.any_poisoned(operands) {
            return None;
        }
        let mut shape: Vec<usize> = vec![];
        for v in operands {
            let next = r.shape(*v);
            let Some(joined) = join(&shape, &next) else {
                let all: Vec<_> = operands.iter().map(|v| show(&r.shape(*v))).collect();
                let help = if shape.len() == next.len() {
                    "axes must be equal, or one of them of length 1"
                } else {
                    "tiles never gain axes on their own: use `.reshape([..])`"
                };
                let d = Diagnostic::error("K0103", format!("shapes {} do not broadcast", all.join(" and ")));
                r.report(d.at(at.into(), format!("in this {what}")).help(help));
                return None;
            };
            shape = joined;
        }
        Some(shape)
    })
}

/// The broadcast of two shapes: a scalar fits all, else ranks are equal and axes equal or 1.
fn join(x: &[usize], y: &[usize]) -> Option<Vec<usize>> {
    if x.is_empty() || y.is_empty() {
        return Some(if x.is_empty() { y } else { x }.to_vec());
    }
    let fits = x.len() == y.len() && x.iter().zip(y).all(|(p, q)| p == q || *p == 1 || *q == 1);
    fits.then(|| x.iter().zip(y).map(|(p, q)| if *p == 1 { *q } else { *p }).collect())
}

/// The type of an elementwise result.
pub(crate) fn elementwise_ty(dtype: DType, shape: &[usize]) -> Type {
    if shape.is_empty() { Type::Scalar(dtype) } else { Type::tile(dtype, shape) }
}
