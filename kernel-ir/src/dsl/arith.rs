//! `+ - * / %`, `& | ^ << >>`, `-` and `!` on tiles and scalars.

use std::ops;
use std::panic::Location;

use half::bf16;

use super::elem::{Elem, Int, Num};
use super::value::{Like, Scalar, Tile, broadcast_to, common_shape, elementwise_ty};
use crate::ir::{Binary, DType, OpKind, Type, Unary, Value};
use crate::record::{At, with};

/// Records `op`, broadcasting as needed; folds integer constants.
pub(crate) fn binary(op: Binary, dtype: DType, a: Value, b: Value, at: At) -> Value {
    if let Some(v) = fold(op, a, b, at) {
        return v;
    }
    let Some(shape) = common_shape(&[a, b], &format!("`{}`", symbol(op)), at) else {
        return with(|r| {
            let shape = r.shape(a);
            r.poison(elementwise_ty(dtype, &shape), at)
        });
    };
    let (x, y) = (broadcast_to(a, &shape, at), broadcast_to(b, &shape, at));
    with(|r| r.push(OpKind::Binary { op, x, y }, elementwise_ty(dtype, &shape), at))
}

fn fold(op: Binary, a: Value, b: Value, at: At) -> Option<Value> {
    with(|r| {
        if [a, b].iter().any(|v| r.ty(*v) != Type::Scalar(DType::I32)) {
            return None;
        }
        let [x, y] = [a, b].map(|v| r.known_int(v).and_then(|n| i32::try_from(n).ok()));
        let n = match (op, x, y) {
            (Binary::Add, Some(x), Some(y)) => x.checked_add(y)?,
            (Binary::Sub, Some(x), Some(y)) => x.checked_sub(y)?,
            (Binary::Mul, Some(x), Some(y)) => x.checked_mul(y)?,
            (Binary::Div, Some(x), Some(y)) => x.checked_div(y)?,
            (Binary::Rem, Some(x), Some(y)) => x.checked_rem(y)?,
            (Binary::Add, Some(0), None) => return Some(b),
            (Binary::Add | Binary::Sub, None, Some(0)) | (Binary::Mul | Binary::Div, None, Some(1)) => {
                return Some(a);
            }
            (Binary::Mul, Some(1), None) => return Some(b),
            _ => return None,
        };
        Some(r.constant(DType::I32, crate::ir::Literal::Int(i64::from(n)), at))
    })
}

fn symbol(op: Binary) -> &'static str {
    match op {
        Binary::Add => "+",
        Binary::Sub => "-",
        Binary::Mul => "*",
        Binary::Div => "/",
        Binary::Rem => "%",
        Binary::And => "&",
        Binary::Or => "|",
        Binary::Xor => "^",
        Binary::Shl => "<<",
        Binary::Shr => ">>",
        Binary::Min => "minimum",
        Binary::Max => "maximum",
        Binary::ShrUnsigned => ">>>",
        Binary::DivUnsigned | Binary::RemUnsigned => "unsigned division",
        Binary::MinUnsigned | Binary::MaxUnsigned => "unsigned order",
        Binary::MulHigh | Binary::MulHighUnsigned => "mul_high",
        Binary::Pow => "pow",
        Binary::Atan2 => "atan2",
    }
}

/// Records a unary operation.
pub(crate) fn unary(op: Unary, x: Value, at: At) -> Value {
    with(|r| {
        let ty = r.ty(x);
        r.push(OpKind::Unary { op, x }, ty, at)
    })
}

macro_rules! operator {
    ($bound:ident: $($tr:ident $f:ident $assign:ident $g:ident;)*) => { $(
        impl<T: $bound, R: Like<T>> ops::$tr<R> for Tile<T> {
            type Output = Tile<T>;
            #[track_caller]
            fn $f(self, r: R) -> Tile<T> {
                let at = Location::caller();
                let r = r.value(at);
                Tile::new(binary(Binary::$tr, T::DTYPE, self.v, r, at))
            }
        }
        impl<T: $bound> ops::$tr<Tile<T>> for Scalar<T> {
            type Output = Tile<T>;
            #[track_caller]
            fn $f(self, r: Tile<T>) -> Tile<T> {
                Tile::new(binary(Binary::$tr, T::DTYPE, self.v, r.v, Location::caller()))
            }
        }
        impl<T: $bound> ops::$tr<Scalar<T>> for Scalar<T> {
            type Output = Scalar<T>;
            #[track_caller]
            fn $f(self, r: Scalar<T>) -> Scalar<T> {
                Scalar::new(binary(Binary::$tr, T::DTYPE, self.v, r.v, Location::caller()))
            }
        }
        impl ops::$tr<usize> for Scalar<i32> {
            type Output = Scalar<i32>;
            #[track_caller]
            fn $f(self, r: usize) -> Scalar<i32> {
                let at = Location::caller();
                let r = Like::<i32>::value(r, at);
                Scalar::new(binary(Binary::$tr, DType::I32, self.v, r, at))
            }
        }
        impl ops::$tr<Scalar<i32>> for usize {
            type Output = Scalar<i32>;
            #[track_caller]
            fn $f(self, r: Scalar<i32>) -> Scalar<i32> {
                let at = Location::caller();
                let l = Like::<i32>::value(self, at);
                Scalar::new(binary(Binary::$tr, DType::I32, l, r.v, at))
            }
        }
        impl<T: $bound, R: Like<T>> ops::$assign<R> for Tile<T> {
            #[track_caller]
            fn $g(&mut self, r: R) {
                *self = ops::$tr::$f(*self, r);
            }
        }
        impl<T: $bound, R> ops::$assign<R> for Scalar<T>
        where
            Scalar<T>: ops::$tr<R, Output = Scalar<T>>,
        {
            #[track_caller]
            fn $g(&mut self, r: R) {
                *self = ops::$tr::$f(*self, r);
            }
        }
    )* };
}

operator! { Num:
    Add add AddAssign add_assign;
    Sub sub SubAssign sub_assign;
    Mul mul MulAssign mul_assign;
    Div div DivAssign div_assign;
    Rem rem RemAssign rem_assign;
}
operator! { Int:
    Shl shl ShlAssign shl_assign;
    Shr shr ShrAssign shr_assign;
}

// A host number on the left, or a float scalar with a host float on the right.
macro_rules! host_float {
    ($($t:ty),*; $($tr:ident $f:ident),*) => { host_float!(@each [$($t),*] $($tr $f)*); };
    (@each $ts:tt $($tr:ident $f:ident)*) => { $( host_float!(@one $ts $tr $f); )* };
    (@one [$($t:ty),*] $tr:ident $f:ident) => { $(
        impl ops::$tr<Tile<$t>> for $t {
            type Output = Tile<$t>;
            #[track_caller]
            fn $f(self, r: Tile<$t>) -> Tile<$t> {
                let at = Location::caller();
                let l = Like::<$t>::value(self, at);
                Tile::new(binary(Binary::$tr, <$t>::DTYPE, l, r.v, at))
            }
        }
        impl ops::$tr<$t> for Scalar<$t> {
            type Output = Scalar<$t>;
            #[track_caller]
            fn $f(self, r: $t) -> Scalar<$t> {
                let at = Location::caller();
                let r = Like::<$t>::value(r, at);
                Scalar::new(binary(Binary::$tr, <$t>::DTYPE, self.v, r, at))
            }
        }
        impl ops::$tr<Scalar<$t>> for $t {
            type Output = Scalar<$t>;
            #[track_caller]
            fn $f(self, r: Scalar<$t>) -> Scalar<$t> {
                let at = Location::caller();
                let l = Like::<$t>::value(self, at);
                Scalar::new(binary(Binary::$tr, <$t>::DTYPE, l, r.v, at))
            }
        }
    )* };
}
host_float!(f32, bf16; Add add, Sub sub, Mul mul, Div div);

// Flags and integers combine bit by bit.
macro_rules! bits {
    ($($tr:ident $f:ident $op:ident;)*) => { $(
        bits!(@same Tile $tr $f $op bool i32 i16 i8);
        bits!(@same Scalar $tr $f $op bool i32 i16 i8);
        impl ops::$tr<usize> for Scalar<i32> {
            type Output = Scalar<i32>;
            #[track_caller]
            fn $f(self, r: usize) -> Scalar<i32> {
                let at = Location::caller();
                let r = Like::<i32>::value(r, at);
                Scalar::new(binary(Binary::$op, DType::I32, self.v, r, at))
            }
        }
    )* };
    (@same $ty:ident $tr:ident $f:ident $op:ident $($t:ty)*) => { $(
        impl ops::$tr for $ty<$t> {
            type Output = Self;
            #[track_caller]
            fn $f(self, r: Self) -> Self {
                Self::new(binary(Binary::$op, <$t>::DTYPE, self.v, r.v, Location::caller()))
            }
        }
    )* };
}
bits! {
    BitAnd bitand And;
    BitOr bitor Or;
    BitXor bitxor Xor;
}

macro_rules! prefix {
    ($($ty:ident),*) => { $(
        impl<T: Num> ops::Neg for $ty<T> {
            type Output = Self;
            #[track_caller]
            fn neg(self) -> Self {
                Self::new(unary(Unary::Neg, self.v, Location::caller()))
            }
        }
        impl ops::Not for $ty<bool> {
            type Output = Self;
            #[track_caller]
            fn not(self) -> Self {
                Self::new(unary(Unary::Not, self.v, Location::caller()))
            }
        }
        impl ops::Not for $ty<i32> {
            type Output = Self;
            #[track_caller]
            fn not(self) -> Self {
                Self::new(unary(Unary::Not, self.v, Location::caller()))
            }
        }
    )* };
}
prefix!(Tile, Scalar);
