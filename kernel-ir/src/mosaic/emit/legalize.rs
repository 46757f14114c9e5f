//! Element types that an operation computes in, where the TPU lacks a form for the one asked for, and conversions.
//!
//! A module serves every generation, so the rules are those of the weakest. They were measured by compiling each
//! operation in each type for v4, v5e, v5p, v6e and v7x; the tests compile them all again.

use melior::ir::Value;

use super::Fallible;
use super::function::{Function, Shaped};
use super::types::{self, Number};
use crate::ir::{Binary, Compare, DType, Unary};

/// The element type to compute in, for operands of `t`.
pub(super) fn binary(op: Binary, t: Shaped<'_>) -> DType {
    use Binary::{Add, And, Div, Max, Min, Mul, Or, Sub, Xor};
    match (t.dtype, op) {
        (DType::Bool, _) => DType::Bool,
        (dtype, _) if t.shape.is_none() => wide(dtype),
        // Older chips have no bfloat16 arithmetic, but their compiler widens these by itself.
        (DType::Bf16, Add | Sub | Mul | Div | Min | Max) => DType::Bf16,
        (DType::I16 | DType::I8, And | Or | Xor) => t.dtype,
        (dtype, _) => wide(dtype),
    }
}

/// The element type to compute in, for an operand of `t`.
pub(super) fn unary(op: Unary, t: Shaped<'_>) -> DType {
    match (t.dtype, op) {
        (DType::Bool, _) => DType::Bool,
        (DType::Bf16, Unary::Neg | Unary::Abs) if t.shape.is_some() => DType::Bf16,
        (dtype, _) => wide(dtype),
    }
}

/// The 32-bit type that stands in for `dtype` where only 32-bit elements have a form.
pub(super) const fn wide(dtype: DType) -> DType {
    match dtype {
        DType::F32 | DType::Bf16 => DType::F32,
        DType::I32 | DType::I16 | DType::I8 | DType::Bool => DType::I32,
        other => other,
    }
}

impl<'c, 'a> Function<'c, 'a, '_> {
    /// `x`, of type `t`, with elements of type `to`.
    pub(super) fn cast(&mut self, x: Value<'c, 'a>, t: Shaped<'_>, to: DType) -> Fallible<Value<'c, 'a>> {
        use DType::{Bf16, Bool, F32, I8, I16, I32};
        let via = |f: &mut Self, middle| {
            let x = f.cast(x, t, middle)?;
            f.cast(x, Shaped { dtype: middle, ..t }, to)
        };
        let name = match (t.dtype, to) {
            (from, to) if from == to => return Ok(x),
            (F32 | I32, Bool) => return self.is_not_zero(x, t),
            (Bool, I32) => "arith.extui",
            (F32, I32) => "arith.fptosi",
            (I32, F32) => "arith.sitofp",
            // A narrow scalar is a wide one whose value is narrow.
            (Bf16, F32) | (I16 | I8, I32) if t.shape.is_none() => return Ok(x),
            (F32, Bf16) if t.shape.is_none() => {
                let narrow = types::register(self.context, Bf16);
                let x = self.value("arith.truncf", &[x], narrow, &[])?;
                return self.value("arith.extf", &[x], self.mlir(t), &[]);
            }
            (I32, I16 | I8) if t.shape.is_none() => return self.wrapped(x, t, to),
            (Bf16, F32) => "arith.extf",
            (F32, Bf16) => "arith.truncf",
            (I16 | I8, I32) => "arith.extsi",
            (I32, I16 | I8) => "arith.trunci",
            (Bf16, _) => return via(self, F32),
            (I16 | I8 | Bool, _) | (F32, I16 | I8) => return via(self, I32),
            (I32, Bf16) => return via(self, F32),
            (F32, F32) | (I32, I32) => return Ok(x),
            (from, to) => return Err(self.malformed(format!("a cast from {from} to {to}"))),
        };
        let ty = self.mlir(Shaped { dtype: to, ..t });
        self.value(name, &[x], ty, &[])
    }

    /// As [`Function::cast`], for the result of an operation on what was widened from `to`.
    ///
    /// The compiler rewrites `trunc(op(ext x, ext y))` to an operation on narrow operands even where it has none. What
    /// [`Function::wrapped`] adds stops that.
    pub(super) fn narrowed(&mut self, x: Value<'c, 'a>, t: Shaped<'_>, to: DType) -> Fallible<Value<'c, 'a>> {
        let x = match (to, t.shape) {
            (DType::I16 | DType::I8, Some(_)) if t.dtype == DType::I32 => self.wrapped(x, t, to)?,
            _ => x,
        };
        self.cast(x, t, to)
    }

    /// The low bits of an `i32`, as many as `to` has, with their sign.
    fn wrapped(&mut self, x: Value<'c, 'a>, t: Shaped<'_>, to: DType) -> Fallible<Value<'c, 'a>> {
        let unused = self.fill(t, Number::Int(32 - to.bits() as i64))?;
        let ty = self.mlir(t);
        let x = self.value("arith.shli", &[x, unused], ty, &[])?;
        self.value("arith.shrsi", &[x, unused], ty, &[])
    }

    /// The truth of numbers: whether each differs from zero; NaN does.
    fn is_not_zero(&mut self, x: Value<'c, 'a>, t: Shaped<'_>) -> Fallible<Value<'c, 'a>> {
        let zero = match t.dtype.is_float() {
            true => Number::Float(0.0),
            false => Number::Int(0),
        };
        let zero = self.fill(t, zero)?;
        self.compare(Compare::Ne, x, zero, t)
    }
}
