//! Operations on the bits of elements, and those that look elements up.

use melior::ir::Value;

use super::Fallible;
use super::function::{Function, Shaped};
use super::legalize::wide;
use super::types;
use crate::ir::{self, ArgReduction, Binary, DType};

impl<'c, 'a> Function<'c, 'a, '_> {
    /// The same bits under another element type.
    pub(super) fn bitcast(&mut self, x: ir::Value, out: Shaped<'_>) -> Fallible<Value<'c, 'a>> {
        let t = self.shaped(x)?;
        let x = self.get(x)?;
        if t.dtype == out.dtype {
            return Ok(x);
        }
        // Narrow scalars live in 32 bits, where their bits are others.
        if t.shape.is_none() && t.dtype.bits() != 32 {
            return Err(self.malformed(format!("a scalar {} has no bits of its own", t.dtype)));
        }
        let name = if t.shape.is_some() { "tpu.bitcast" } else { "arith.bitcast" };
        let ty = self.mlir(out);
        self.value(name, &[x], ty, &[])
    }

    /// Conversion with integers read as unsigned.
    pub(super) fn cast_unsigned(&mut self, x: ir::Value, out: Shaped<'_>) -> Fallible<Value<'c, 'a>> {
        let t = self.shaped(x)?;
        let x = self.get(x)?;
        let widened = wide(t.dtype);
        let value = self.zero_extended(x, t)?;
        let ty = self.mlir(Shaped { dtype: wide(out.dtype), shape: out.shape });
        let value = match (widened, wide(out.dtype)) {
            (DType::I32, DType::F32) => self.value("arith.uitofp", &[value], ty, &[])?,
            (DType::F32, DType::I32) => self.value("arith.fptoui", &[value], ty, &[])?,
            _ => value,
        };
        self.cast(value, Shaped { dtype: wide(out.dtype), ..t }, out.dtype)
    }

    /// A number in its 32-bit type, with the bits of a narrow integer below zeros.
    pub(super) fn zero_extended(&mut self, x: Value<'c, 'a>, t: Shaped<'_>) -> Fallible<Value<'c, 'a>> {
        match (t.dtype, t.shape) {
            // Narrow scalars live sign-extended: keep their own bits.
            (DType::I16 | DType::I8, None) => {
                let mask = (1_i64 << t.dtype.bits()) - 1;
                let mask = self.fill(Shaped { dtype: DType::I32, shape: None }, types::Number::Int(mask))?;
                self.value("arith.andi", &[x, mask], types::integer(self.context, 32), &[])
            }
            (DType::I16 | DType::I8, Some(_)) => {
                let ty = self.mlir(Shaped { dtype: DType::I32, ..t });
                self.value("arith.extui", &[x], ty, &[])
            }
            _ => self.cast(x, t, wide(t.dtype)),
        }
    }

    /// Elements by their index along an axis.
    pub(super) fn gather(
        &mut self,
        x: ir::Value,
        index: ir::Value,
        axis: usize,
        out: Shaped<'_>,
    ) -> Fallible<Value<'c, 'a>> {
        let index = self.get(index)?;
        let axis = types::i32s(self.context, &[i32::try_from(axis).unwrap_or(i32::MAX)]);
        self.widened(x, wide, out, |f, x, dtype| {
            let ty = f.mlir(Shaped { dtype, ..out });
            f.value("tpu.dynamic_gather", &[x, index], ty, &[("dimensions", axis)])
        })
    }

    /// The position of the largest or smallest element along an axis, which stays with length 1.
    pub(super) fn arg_reduce(
        &mut self,
        op: ArgReduction,
        x: ir::Value,
        axis: usize,
        out: Shaped<'_>,
    ) -> Fallible<Value<'c, 'a>> {
        let shape = self.tile(x)?.shape.clone();
        if axis >= shape.len() {
            return Err(self.malformed("arg_reduce searches along an axis of its operand"));
        }
        let kind = match op {
            ArgReduction::Max => "#tpu.reduction_kind<arg_max>",
            ArgReduction::Min => "#tpu.reduction_kind<arg_min>",
        };
        let kind = types::parse(self.context, kind).ok_or_else(|| self.malformed("there is no such kind"))?;
        let t = self.shaped(x)?;
        let x = self.get(x)?;
        let x = self.cast(x, t, DType::F32)?;
        let (x, axis, rest) = self.with_two_axes(x, DType::F32, &shape, axis)?;
        let ty = self.mlir(Shaped { dtype: DType::I32, shape: Some(&rest) });
        let axis = types::i32(self.context, axis as i64);
        let found = self.value("tpu.reduce_index", &[x], ty, &[("axis", axis), ("kind", kind)])?;
        let ty = self.mlir(out);
        self.value("vector.shape_cast", &[found], ty, &[])
    }

    /// The upper half of a 64-bit product.
    pub(super) fn mul_high(
        &mut self,
        op: Binary,
        x: Value<'c, 'a>,
        y: Value<'c, 'a>,
        t: Shaped<'_>,
    ) -> Fallible<Value<'c, 'a>> {
        let name = match op {
            Binary::MulHigh => "arith.mulsi_extended",
            _ => "arith.mului_extended",
        };
        let ty = self.mlir(t);
        let op = self.op(name, &[x, y], &[ty, ty], &[])?;
        self.result(op, 1)
    }
}
