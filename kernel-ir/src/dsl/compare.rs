//! `==`, `!=`, `<`, `<=`, `>`, `>=`: `bool` between host values, a mask or a traced flag where the TPU decides.
//!
//! `#[tpu_kernel]` sends every comparison here, since `PartialOrd` may yield nothing but `bool`.

use std::panic::Location;

use half::bf16;

use super::elem::Num;
use super::value::{Like, Scalar, Tile, broadcast_to, common_shape, elementwise_ty};
use crate::ir::{self, DType, OpKind, Value};
use crate::record::{At, with};

/// What comparing a value yields.
///
/// It hangs on the left operand alone, so that `k == 0` has a known type before the literal does.
pub trait Compare {
    /// `bool` for host values, else a mask or a traced flag.
    type Out;
}

/// `==` and `!=`.
pub trait Eq<R: ?Sized>: Compare {
    /// `self == r`
    fn eq(&self, r: &R) -> Self::Out;
    /// `self != r`
    fn ne(&self, r: &R) -> Self::Out;
}

/// `<`, `<=`, `>` and `>=`.
pub trait Ord<R: ?Sized>: Compare {
    /// `self < r`
    fn lt(&self, r: &R) -> Self::Out;
    /// `self <= r`
    fn le(&self, r: &R) -> Self::Out;
    /// `self > r`
    fn gt(&self, r: &R) -> Self::Out;
    /// `self >= r`
    fn ge(&self, r: &R) -> Self::Out;
}

// Host values compare now. `Tile` and `Scalar` have no `PartialEq`, so these do not cover them.
impl<A: PartialEq + ?Sized> Compare for A {
    type Out = bool;
}
impl<A: PartialEq + PartialEq<B> + ?Sized, B: ?Sized> Eq<B> for A {
    fn eq(&self, r: &B) -> bool {
        PartialEq::eq(self, r)
    }
    fn ne(&self, r: &B) -> bool {
        PartialEq::ne(self, r)
    }
}
impl<A: PartialEq + PartialOrd<B> + ?Sized, B: ?Sized> Ord<B> for A {
    fn lt(&self, r: &B) -> bool {
        PartialOrd::lt(self, r)
    }
    fn le(&self, r: &B) -> bool {
        PartialOrd::le(self, r)
    }
    fn gt(&self, r: &B) -> bool {
        PartialOrd::gt(self, r)
    }
    fn ge(&self, r: &B) -> bool {
        PartialOrd::ge(self, r)
    }
}

impl<T: Num> Compare for Tile<T> {
    type Out = Tile<bool>;
}
impl<T: Num> Compare for Scalar<T> {
    type Out = Scalar<bool>;
}

fn compare(op: ir::Compare, a: Value, b: Value, at: At) -> Value {
    let Some(shape) = common_shape(&[a, b], "comparison", at) else {
        return with(|r| {
            let shape = r.shape(a);
            r.poison(elementwise_ty(DType::Bool, &shape), at)
        });
    };
    let (x, y) = (broadcast_to(a, &shape, at), broadcast_to(b, &shape, at));
    with(|r| r.push(OpKind::Compare { op, x, y }, elementwise_ty(DType::Bool, &shape), at))
}

// The right operand is spelled out: a generic one would overlap with the host impls above.
macro_rules! traced {
    ($($l:ty, $r:ty => $out:ident $(, $g:ident)?;)*) => { $(
        impl $(<$g: Num>)? Eq<$r> for $l {
            traced!(@methods $r, $out; eq Eq, ne Ne);
        }
        impl $(<$g: Num>)? Ord<$r> for $l {
            traced!(@methods $r, $out; lt Lt, le Le, gt Gt, ge Ge);
        }
    )* };
    (@methods $r:ty, $out:ident; $($f:ident $op:ident),*) => { $(
        #[track_caller]
        fn $f(&self, r: &$r) -> $out<bool> {
            let at = Location::caller();
            $out::new(compare(ir::Compare::$op, self.v, (*r).value(at), at))
        }
    )* };
}
traced! {
    Tile<T>, Tile<T> => Tile, T;
    Tile<T>, Scalar<T> => Tile, T;
    Scalar<T>, Scalar<T> => Scalar, T;
    Tile<i32>, i32 => Tile;
    Tile<i32>, usize => Tile;
    Tile<f32>, f32 => Tile;
    Tile<bf16>, bf16 => Tile;
    Scalar<i32>, i32 => Scalar;
    Scalar<i32>, usize => Scalar;
    Scalar<f32>, f32 => Scalar;
}
