//! Elementwise operations: constants, functions of one and two operands, comparisons, selection.

use melior::ir::{Attribute, Value};

use super::Fallible;
use super::function::{Function, Shaped};
use super::legalize::{self, wide};
use super::types::{self, Number};
use crate::ir::{self, Binary, Compare, DType, Literal, Unary};

impl<'c, 'a> Function<'c, 'a, '_> {
    /// A scalar or a tile of one element repeated.
    pub(super) fn literal(&mut self, t: Shaped<'_>, literal: Literal) -> Fallible<Value<'c, 'a>> {
        let number = match (literal, t.dtype) {
            (Literal::Float(x), d) if d.is_float() => Number::Float(x),
            (Literal::Int(n), d) if d.is_int() => Number::Int(n),
            (Literal::Bool(b), DType::Bool) => Number::Int(i64::from(b)),
            (l, d) => return Err(self.malformed(format!("{l:?} is not a constant of type {d}"))),
        };
        self.fill(t, number)
    }

    /// A function of one operand.
    pub(super) fn unary(&mut self, op: Unary, x: Value<'c, 'a>, t: Shaped<'_>) -> Fallible<Value<'c, 'a>> {
        let compute = Shaped { dtype: legalize::unary(op, t), shape: t.shape };
        let x = self.cast(x, t, compute.dtype)?;
        let y = self.unary_native(op, x, compute)?;
        self.narrowed(y, compute, t.dtype)
    }

    fn unary_native(&mut self, op: Unary, x: Value<'c, 'a>, t: Shaped<'_>) -> Fallible<Value<'c, 'a>> {
        let ty = self.mlir(t);
        let name = match (op, t.dtype) {
            (Unary::Neg, DType::F32 | DType::Bf16) => "arith.negf",
            (Unary::Neg, DType::I32) => {
                let zero = self.fill(t, Number::Int(0))?;
                return self.value("arith.subi", &[zero, x], ty, &[]);
            }
            (Unary::Abs, DType::F32 | DType::Bf16) => "math.absf",
            (Unary::Abs, DType::I32) => {
                // Not `math.absi`, which scalars lack.
                let minus = self.unary_native(Unary::Neg, x, t)?;
                return self.value("arith.maxsi", &[x, minus], ty, &[]);
            }
            (Unary::LeadingZeros, DType::I32) => "math.ctlz",
            (Unary::PopCount, DType::I32) => "math.ctpop",
            (Unary::Not, DType::I32 | DType::Bool) => {
                let ones = match t.dtype {
                    DType::Bool => Number::Int(1),
                    _ => Number::Int(-1),
                };
                let ones = self.fill(t, ones)?;
                return self.value("arith.xori", &[x, ones], ty, &[]);
            }
            (_, DType::F32) => return self.unary_f32(op, x, t),
            (op, d) => return Err(self.malformed(format!("{op:?} of {d} has no meaning"))),
        };
        self.value(name, &[x], ty, &[])
    }

    fn unary_f32(&mut self, op: Unary, x: Value<'c, 'a>, t: Shaped<'_>) -> Fallible<Value<'c, 'a>> {
        let ty = self.mlir(t);
        let name = match op {
            Unary::Exp => "math.exp",
            Unary::Exp2 => "math.exp2",
            Unary::Log => "math.log",
            Unary::Log2 => "math.log2",
            Unary::Sqrt => "math.sqrt",
            Unary::Rsqrt => "math.rsqrt",
            Unary::Tanh => "math.tanh",
            Unary::Erf => "math.erf",
            Unary::Sin => "math.sin",
            Unary::Cos => "math.cos",
            Unary::Floor => "math.floor",
            Unary::Ceil => "math.ceil",
            Unary::Reciprocal => {
                let one = self.fill(t, Number::Float(1.0))?;
                return self.value("arith.divf", &[one, x], ty, &[]);
            }
            Unary::Logistic => {
                // As JAX writes it for this version of the format.
                let one = self.fill(t, Number::Float(1.0))?;
                let minus = self.value("arith.negf", &[x], ty, &[])?;
                let power = self.value("math.exp", &[minus], ty, &[])?;
                let sum = self.value("arith.addf", &[one, power], ty, &[])?;
                return self.value("arith.divf", &[one, sum], ty, &[]);
            }
            Unary::Log1p => "math.log1p",
            Unary::Tan => "math.tan",
            Unary::Round => "math.round",
            Unary::RoundEven => "math.roundeven",
            Unary::Neg | Unary::Abs | Unary::Not | Unary::LeadingZeros | Unary::PopCount => {
                return Err(self.malformed(format!("{op:?} of f32 has no meaning")));
            }
        };
        self.value(name, &[x], ty, &[])
    }

    /// A function of two operands of one type.
    pub(super) fn binary(
        &mut self,
        op: Binary,
        x: Value<'c, 'a>,
        y: Value<'c, 'a>,
        t: Shaped<'_>,
    ) -> Fallible<Value<'c, 'a>> {
        let compute = Shaped { dtype: legalize::binary(op, t), shape: t.shape };
        let name = match (op, compute.dtype) {
            (Binary::Add, DType::F32 | DType::Bf16) => "arith.addf",
            (Binary::Sub, DType::F32 | DType::Bf16) => "arith.subf",
            (Binary::Mul, DType::F32 | DType::Bf16) => "arith.mulf",
            (Binary::Div, DType::F32 | DType::Bf16) => "arith.divf",
            (Binary::Rem, DType::F32) => "arith.remf",
            (Binary::Min, DType::F32 | DType::Bf16) => "arith.minimumf",
            (Binary::Max, DType::F32 | DType::Bf16) => "arith.maximumf",
            (Binary::Add, DType::I32) => "arith.addi",
            (Binary::Sub, DType::I32) => "arith.subi",
            (Binary::Mul, DType::I32) => "arith.muli",
            (Binary::Div, DType::I32) => "arith.divsi",
            (Binary::Rem, DType::I32) => "arith.remsi",
            (Binary::Min, DType::I32) => "arith.minsi",
            (Binary::Max, DType::I32) => "arith.maxsi",
            (Binary::Shl, DType::I32) => "arith.shli",
            (Binary::Shr, DType::I32) => "arith.shrsi",
            (Binary::ShrUnsigned, DType::I32) => "arith.shrui",
            (Binary::DivUnsigned, DType::I32) => "arith.divui",
            (Binary::RemUnsigned, DType::I32) => "arith.remui",
            (Binary::MinUnsigned, DType::I32) => "arith.minui",
            (Binary::MaxUnsigned, DType::I32) => "arith.maxui",
            (Binary::Pow, DType::F32) => "math.powf",
            (Binary::Atan2, DType::F32) => "math.atan2",
            (Binary::And, d) if !d.is_float() => "arith.andi",
            (Binary::Or, d) if !d.is_float() => "arith.ori",
            (Binary::Xor, d) if !d.is_float() => "arith.xori",
            (Binary::MulHigh | Binary::MulHighUnsigned, DType::I32) => {
                return self.mul_high(op, x, y, compute);
            }
            (op, _) => {
                return Err(self.malformed(format!("{op:?} of {} has no meaning", t.dtype)));
            }
        };
        let (x, y) = match unsigned(op) {
            true => (self.zero_extended(x, t)?, self.zero_extended(y, t)?),
            false => (self.cast(x, t, compute.dtype)?, self.cast(y, t, compute.dtype)?),
        };
        let ty = self.mlir(compute);
        let z = self.value(name, &[x, y], ty, &[])?;
        self.narrowed(z, compute, t.dtype)
    }

    /// A comparison of two operands of type `t`.
    pub(super) fn compare(
        &mut self,
        op: Compare,
        x: Value<'c, 'a>,
        y: Value<'c, 'a>,
        t: Shaped<'_>,
    ) -> Fallible<Value<'c, 'a>> {
        let truth = Shaped { dtype: DType::Bool, shape: t.shape };
        if t.dtype == DType::Bool {
            let differs = self.binary(Binary::Xor, x, y, truth)?;
            return match op {
                Compare::Ne => Ok(differs),
                Compare::Eq => self.unary(Unary::Not, differs, truth),
                other => Err(self.malformed(format!("{other:?} of bool has no meaning"))),
            };
        }
        // Narrow masks and narrow minima have no form: compare what was widened.
        let compute = Shaped { dtype: wide(t.dtype), shape: t.shape };
        let x = self.cast(x, t, compute.dtype)?;
        let y = self.cast(y, t, compute.dtype)?;
        let ty = self.mlir(truth);
        if compute.dtype == DType::I32 {
            let predicate = types::i64(self.context, integer_predicate(op));
            return self.value("arith.cmpi", &[x, y], ty, &[("predicate", predicate)]);
        }
        let Some((predicate, negated)) = float_predicate(op) else {
            return Err(self.malformed(format!("{op:?} of {} has no meaning", t.dtype)));
        };
        let predicate: Attribute<'c> = types::i64(self.context, predicate);
        let z = self.value("arith.cmpf", &[x, y], ty, &[("predicate", predicate)])?;
        match negated {
            true => self.unary(Unary::Not, z, truth),
            false => Ok(z),
        }
    }

    /// `x` where `mask` holds, else `y`.
    pub(super) fn select(&mut self, mask: ir::Value, x: ir::Value, y: ir::Value) -> Fallible<Value<'c, 'a>> {
        let (t, m) = (self.shaped(x)?, self.shaped(mask)?);
        if m.dtype != DType::Bool || self.shaped(y)?.dtype != t.dtype {
            return Err(self.malformed("select takes a bool and two operands of one type"));
        }
        let (mask, x, y) = (self.get(mask)?, self.get(x)?, self.get(y)?);
        // Masks of packed elements exist in some layouts only: not in that of an operand with one or two rows.
        let compute = Shaped { dtype: wide(t.dtype), shape: t.shape };
        let x = self.cast(x, t, compute.dtype)?;
        let y = self.cast(y, t, compute.dtype)?;
        let ty = self.mlir(compute);
        let z = self.value("arith.select", &[mask, x, y], ty, &[])?;
        self.narrowed(z, compute, t.dtype)
    }
}

/// Whether a function reads integers as unsigned, so that narrow ones must not be extended by their sign.
const fn unsigned(op: Binary) -> bool {
    matches!(
        op,
        Binary::ShrUnsigned
            | Binary::DivUnsigned
            | Binary::RemUnsigned
            | Binary::MinUnsigned
            | Binary::MaxUnsigned
    )
}

/// The number of an `arith.cmpi` predicate.
const fn integer_predicate(op: Compare) -> i64 {
    match op {
        Compare::Eq => 0,
        Compare::Ne => 1,
        Compare::Lt => 2,
        Compare::Le => 3,
        Compare::Gt => 4,
        Compare::Ge => 5,
        Compare::LtUnsigned => 6,
        Compare::LeUnsigned => 7,
        Compare::GtUnsigned => 8,
        Compare::GeUnsigned => 9,
    }
}

/// The number of an ordered `arith.cmpf` predicate, and whether its answer must be negated: Mosaic has no unordered
/// ones, and `x != y` must hold for NaN.
const fn float_predicate(op: Compare) -> Option<(i64, bool)> {
    Some(match op {
        Compare::Eq => (1, false),
        Compare::Gt => (2, false),
        Compare::Ge => (3, false),
        Compare::Lt => (4, false),
        Compare::Le => (5, false),
        Compare::Ne => (1, true),
        Compare::LtUnsigned | Compare::LeUnsigned | Compare::GtUnsigned | Compare::GeUnsigned => return None,
    })
}
