//! Rust types that name TPU element types, and what each of them can do.

use half::bf16;

use crate::ir::{DType, Literal};

/// A Rust type that names a TPU element type.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a TPU element type",
    note = "use `f32`, `bf16`, `i32`, `i16`, `i8` or `bool`"
)]
pub trait Elem: Copy + 'static {
    /// The element type.
    const DTYPE: DType;
    /// This host number as a constant.
    #[doc(hidden)]
    fn literal(self) -> Literal;
}

macro_rules! elem {
    ($($t:ty => $d:ident, |$x:ident| $lit:expr;)*) => { $(
        impl Elem for $t {
            const DTYPE: DType = DType::$d;
            fn literal(self) -> Literal { let $x = self; $lit }
        }
    )* };
}

elem! {
    f32 => F32, |x| Literal::Float(f64::from(x));
    bf16 => Bf16, |x| Literal::Float(x.to_f64());
    i32 => I32, |x| Literal::Int(i64::from(x));
    i16 => I16, |x| Literal::Int(i64::from(x));
    i8 => I8, |x| Literal::Int(i64::from(x));
    bool => Bool, |x| Literal::Bool(x);
}

/// An element type that has arithmetic.
#[diagnostic::on_unimplemented(message = "`{Self}` has no arithmetic on the TPU")]
pub trait Num: Elem {
    /// The host number `0`.
    const ZERO: Self;
}
impl Num for f32 {
    const ZERO: Self = 0.0;
}
impl Num for bf16 {
    const ZERO: Self = Self::ZERO;
}
impl Num for i32 {
    const ZERO: Self = 0;
}
impl Num for i16 {
    const ZERO: Self = 0;
}
impl Num for i8 {
    const ZERO: Self = 0;
}

/// A floating-point element type.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a floating-point type",
    note = "convert with `.to::<f32>()` first"
)]
pub trait Float: Num {}
impl Float for f32 {}
impl Float for bf16 {}

/// An integer element type.
#[diagnostic::on_unimplemented(message = "`{Self}` is not an integer type")]
pub trait Int: Num {}
impl Int for i32 {}
impl Int for i16 {}
impl Int for i8 {}

/// An element type that the matrix unit multiplies.
#[diagnostic::on_unimplemented(
    message = "the matrix unit does not multiply `{Self}`",
    note = "it multiplies `f32`, `bf16` and `i8`"
)]
pub trait Mxu: Num {
    /// What products are added up in.
    type Acc: Num;
}
impl Mxu for f32 {
    type Acc = f32;
}
impl Mxu for bf16 {
    type Acc = f32;
}
impl Mxu for i8 {
    type Acc = i32;
}
