//! Constants, choices, and arithmetic that makes two results.

use super::Fallible;
use super::scope::{Known, Lower};
use crate::ir::narrow::{F8E4M3B11Fnuz, F8E4M3Fn, F8E5M2};
use crate::ir::{Binary, Compare, DType, Literal, OpKind, Type, Unary, Value};
use crate::mosaic::read::module::{Attribute, Operation, Type as Mlir};

impl Lower<'_> {
    /// `arith.constant`: kept until it is used.
    pub(super) fn constant_op(&mut self, op: &Operation) -> Fallible<()> {
        let v = self.result(op)?;
        let attribute = self.module.attribute(op, "value").ok_or_else(|| self.malformed("has no `value`"))?;
        // Indices and sizes of 64 bits are numbers of 32 that nobody computes with.
        let ty = match self.module.type_of(v) {
            Mlir::Integer { bits: 64, .. } => Type::Scalar(DType::I32),
            _ => self.value_type(self.module.values[v.0 as usize])?,
        };
        let dtype = match &ty {
            Type::Scalar(d) => *d,
            Type::Tile(t) => t.dtype,
            Type::Ref(_) => return Err(self.malformed("makes a memref")),
        };
        let literal = match attribute {
            Attribute::Integer { value, .. } if !dtype.is_float() => self.integer(dtype, *value)?,
            Attribute::Float { value, .. } if dtype.is_float() => Literal::Float(*value),
            Attribute::Dense { splat, data, .. } => self.splat(&ty, dtype, *splat, data)?,
            _ => return Err(self.malformed(format!("has a `value` that is no {ty}"))),
        };
        self.set(v, Known::Constant(literal, ty));
        Ok(())
    }

    fn integer(&self, dtype: DType, n: i64) -> Fallible<Literal> {
        if dtype == DType::Bool {
            return Ok(Literal::Bool(n != 0));
        }
        let unused = 64 - dtype.bits();
        let (signed, unsigned) = (n << unused >> unused, n.cast_unsigned() << unused >> unused);
        if signed == n || unsigned == n.cast_unsigned() {
            return Ok(Literal::Int(signed));
        }
        Err(self.unsupported(format!("makes the number {n} of more than {} bits", dtype.bits())))
    }

    /// The element of a dense constant, if it has only one.
    fn splat(&self, ty: &Type, dtype: DType, splat: bool, data: &[u8]) -> Fallible<Literal> {
        let width = if dtype == DType::Bool { 1 } else { dtype.bytes() };
        let len = match ty {
            Type::Tile(t) if !splat => t.len(),
            _ => 1,
        };
        if len.checked_mul(width) != Some(data.len()) {
            return Err(self.malformed(format!("has a `value` of {} bytes for a {ty}", data.len())));
        }
        let (element, rest) = data.split_at(width);
        if rest.chunks_exact(width).any(|other| other != element) {
            return Err(self.unsupported("has a `value` with different elements"));
        }
        let mut bytes = [0; 4];
        bytes[..width].copy_from_slice(element);
        let bits = u32::from_le_bytes(bytes);
        Ok(match dtype {
            DType::F32 => Literal::Float(f32::from_bits(bits).into()),
            DType::Bf16 => Literal::Float(f32::from_bits(bits << 16).into()),
            DType::F8E4M3Fn => Literal::Float(F8E4M3Fn(bytes[0]).to_f32().into()),
            DType::F8E5M2 => Literal::Float(F8E5M2(bytes[0]).to_f32().into()),
            DType::F8E4M3B11Fnuz => Literal::Float(F8E4M3B11Fnuz(bytes[0]).to_f32().into()),
            _ => self.integer(dtype, bits.into())?,
        })
    }

    /// `arith.select`: a scalar condition chooses between whole vectors.
    pub(super) fn select_op(&mut self, op: &Operation) -> Fallible<()> {
        let [mask, x, y] = self.operands(op)?;
        let (mask, x, y) = (self.get(mask)?, self.get(x)?, self.get(y)?);
        if matches!(self.ty(x), Type::Ref(_)) {
            return Err(self.unsupported("chooses between memrefs"));
        }
        let z = self.select(mask, x, y)?;
        self.done(op, z)
    }

    fn two_results(&self, op: &Operation) -> Fallible<[crate::mosaic::read::module::ValueId; 2]> {
        op.results.as_slice().try_into().map_err(|_| self.malformed("has not 2 results"))
    }

    /// The lower and the upper half of a product.
    pub(super) fn mul_extended(&mut self, op: &Operation, high: Binary) -> Fallible<()> {
        let ([x, y], [low, up]) = (self.operands(op)?, self.two_results(op)?);
        let (x, y) = (self.get(x)?, self.get(y)?);
        if self.dtype(x)? != DType::I32 {
            return Err(self.unsupported("multiplies elements of other types than i32"));
        }
        let product = self.binary(Binary::Mul, x, y)?;
        self.bind(low, product)?;
        let product = self.binary(high, x, y)?;
        self.bind(up, product)
    }

    /// A sum, and whether it wrapped around.
    pub(super) fn add_extended(&mut self, op: &Operation) -> Fallible<()> {
        let ([x, y], [sum, carry]) = (self.operands(op)?, self.two_results(op)?);
        let (x, y) = (self.get(x)?, self.get(y)?);
        self.takes(x, false)?;
        let total = self.binary(Binary::Add, x, y)?;
        self.bind(sum, total)?;
        let wrapped = self.compare(Compare::LtUnsigned, total, x)?;
        self.bind(carry, wrapped)
    }

    /// `math.trunc`: the integer towards zero.
    pub(super) fn trunc(&mut self, op: &Operation) -> Fallible<()> {
        let [x] = self.operands(op)?;
        let x = self.get(x)?;
        self.takes(x, true)?;
        let zero = self.like(x, 0.0)?;
        let negative = self.compare(Compare::Lt, x, zero)?;
        let (down, up) = (self.unary(Unary::Floor, x)?, self.unary(Unary::Ceil, x)?);
        let y = self.select(negative, up, down)?;
        self.done(op, y)
    }

    /// `tpu.weird`: whether a float is infinite or NaN.
    pub(super) fn weird(&mut self, op: &Operation) -> Fallible<()> {
        let [x] = self.operands(op)?;
        let x = self.get(x)?;
        let y = self.is_weird(x)?;
        self.done(op, y)
    }

    /// Whether all bits of the exponent are set.
    pub(super) fn is_weird(&mut self, x: Value) -> Fallible<Value> {
        self.takes(x, true)?;
        let x = self.cast(x, DType::F32)?;
        let bits = self.bits_as(x, DType::I32)?;
        let exponent = self.binary_with(Binary::And, bits, 0x7f80_0000)?;
        let ty = self.ty(bits).clone();
        let all = self.constant(Literal::Int(0x7f80_0000), ty)?;
        self.compare(Compare::Eq, exponent, all)
    }

    /// `cf.assert`
    pub(super) fn assert(&mut self, op: &Operation) -> Fallible<()> {
        let [cond] = self.operands(op)?;
        let cond = self.get(cond)?;
        if *self.ty(cond) != Type::Scalar(DType::Bool) {
            return Err(self.malformed("asserts something other than an i1"));
        }
        let message = self.text(op, "msg").unwrap_or("assertion").into();
        self.append(OpKind::Assert { cond, message }, vec![]);
        Ok(())
    }
}
