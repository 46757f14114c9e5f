//! Packing narrow elements into wide ones, and roundings that the IR has no word for: shifts and masks.

use super::Fallible;
use super::scope::Lower;
use crate::ir::{Binary, DType, Literal, Type, Value};
use crate::mosaic::read::module::{Attribute, Operation};

impl Lower<'_> {
    /// The element type that a type attribute names.
    fn element_attribute(&self, op: &Operation, name: &str) -> Fallible<DType> {
        match self.module.attribute(op, name) {
            Some(Attribute::Type(id)) => self.element(*id),
            _ => Err(self.malformed(format!("has no type `{name}`"))),
        }
    }

    /// A number, bit for bit, as a constant like `x`.
    fn mask(&mut self, x: Value, bits: u32) -> Fallible<Value> {
        let ty = self.ty(x).clone();
        let n = match self.dtype(x)? {
            DType::I16 => i64::from((bits as u16).cast_signed()),
            DType::I8 => i64::from((bits as u8).cast_signed()),
            _ => i64::from(bits.cast_signed()),
        };
        self.constant(Literal::Int(n), ty)
    }

    /// `tpu.pack_elementwise`: the first source takes the lowest bits of each result.
    pub(super) fn pack(&mut self, op: &Operation) -> Fallible<()> {
        let (target, out) = (self.element_attribute(op, "target_type")?, self.result_type(op)?);
        let wide = out.dtype().filter(|d| d.is_int() && d.bits() > target.bits());
        let wide = wide.ok_or_else(|| self.malformed(format!("packs {target} into a {out}")))?;
        if op.operands.len() != wide.bits() / target.bits() {
            return Err(self.malformed(format!("packs {} vectors into a {out}", op.operands.len())));
        }
        let mut packed: Option<Value> = None;
        for (i, v) in op.operands.iter().enumerate() {
            let x = self.get(*v)?;
            let x = self.cast(x, target)?;
            let x = match target {
                DType::Bf16 => self.bits_as(x, DType::I16)?,
                d if d.is_float() && d.bits() == 8 => self.bits_as(x, DType::I8)?,
                _ => x,
            };
            let x = self.cast_unsigned(x, wide)?;
            let x = match i {
                0 => x,
                _ => self.binary_with(Binary::Shl, x, (i * target.bits()) as i64)?,
            };
            packed = Some(match packed {
                None => x,
                Some(below) => self.binary(Binary::Or, below, x)?,
            });
        }
        let packed = packed.ok_or_else(|| self.malformed("packs nothing"))?;
        self.done(op, packed)
    }

    /// `tpu.unpack_elementwise`: one of the narrow elements of each wide one, made wide itself.
    pub(super) fn unpack(&mut self, op: &Operation) -> Fallible<()> {
        let [x] = self.operands(op)?;
        let x = self.get(x)?;
        let (source, index) = (self.element_attribute(op, "source_type")?, self.axis(op, "index")?);
        let wide = self.dtype(x)?;
        if !wide.is_int() || source.bits() >= wide.bits() || index >= wide.bits() / source.bits() {
            return Err(self.malformed(format!("unpacks {source} at {index} of {wide}")));
        }
        let above = wide.bits() - source.bits() * (index + 1);
        let x = match above {
            0 => x,
            _ => self.binary_with(Binary::Shl, x, above as i64)?,
        };
        let unused = (wide.bits() - source.bits()) as i64;
        let y = match source {
            // The upper half of an f32 is a bf16.
            DType::Bf16 if wide == DType::I32 => {
                let mask = self.mask(x, 0xffff_0000)?;
                let x = self.binary(Binary::And, x, mask)?;
                self.bits_as(x, DType::F32)?
            }
            d if d.is_float() && d.bits() == 8 => {
                let x = self.binary_with(Binary::ShrUnsigned, x, unused)?;
                let x = self.cast(x, DType::I8)?;
                self.bits_as(x, d)?
            }
            DType::Bf16 | DType::F32 | DType::Bool => {
                return Err(self.unsupported(format!("unpacks {source} of {wide}")));
            }
            _ => self.binary_with(Binary::Shr, x, unused)?,
        };
        let to = self.result_type(op)?.dtype().unwrap_or(DType::I32);
        let y = self.cast(y, to)?;
        self.done(op, y)
    }

    /// `tpu.stochastic_convert`: adds random bits below those that a bf16 keeps, and cuts them off.
    pub(super) fn stochastic_convert(&mut self, op: &Operation) -> Fallible<()> {
        let [x, random] = self.operands(op)?;
        let (x, random, out) = (self.get(x)?, self.get(random)?, self.result_type(op)?);
        if out.dtype() != Some(DType::Bf16) || self.dtype(x)? != DType::F32 {
            return Err(self.unsupported(format!("makes a {out} of a {}", self.ty(x))));
        }
        let bits = self.bits_as(x, DType::I32)?;
        let low = self.binary_with(Binary::And, random, 0xffff)?;
        let sum = self.binary(Binary::Add, bits, low)?;
        let mask = self.mask(sum, 0xffff_0000)?;
        let kept = self.binary(Binary::And, sum, mask)?;
        let rounded = self.bits_as(kept, DType::F32)?;
        // Infinity and NaN stay what they are.
        let weird = self.is_weird(x)?;
        let y = self.select(weird, x, rounded)?;
        let y = self.cast(y, DType::Bf16)?;
        self.done(op, y)
    }

    /// `tpu.reduce_precision`: rounds an f32 to fewer bits of mantissa, halves to even.
    pub(super) fn reduce_precision(&mut self, op: &Operation) -> Fallible<()> {
        let [x] = self.operands(op)?;
        let x = self.get(x)?;
        let (exponent, mantissa) = (self.axis(op, "exponent_bits")?, self.axis(op, "mantissa_bits")?);
        let dtype = self.dtype(x)?;
        let full = match dtype {
            DType::F32 => 23,
            DType::Bf16 => 7,
            _ => return Err(self.malformed(format!("reduces the precision of {dtype}"))),
        };
        if exponent < 8 {
            return Err(self.unsupported(format!("has an `exponent_bits` of {exponent}")));
        }
        if mantissa >= full {
            return self.done(op, x);
        }
        let wide = self.cast(x, DType::F32)?;
        let y = match mantissa {
            7 => self.cast(wide, DType::Bf16)?,
            _ => self.rounded_mantissa(wide, mantissa)?,
        };
        let y = self.cast(y, DType::F32)?;
        let y = self.cast(y, dtype)?;
        self.done(op, y)
    }

    /// An f32 with `kept` bits of mantissa, fewer than 23.
    fn rounded_mantissa(&mut self, x: Value, kept: usize) -> Fallible<Value> {
        let cut = 23 - kept;
        let bits = self.bits_as(x, DType::I32)?;
        let last = self.binary_with(Binary::Shr, bits, cut as i64)?;
        let odd = self.binary_with(Binary::And, last, 1)?;
        let half = self.mask(bits, (1 << (cut - 1)) - 1)?;
        let up = self.binary(Binary::Add, half, odd)?;
        let sum = self.binary(Binary::Add, bits, up)?;
        let mask = self.mask(sum, !((1_u32 << cut) - 1))?;
        let whole = self.binary(Binary::And, sum, mask)?;
        let rounded = self.bits_as(whole, DType::F32)?;
        let weird = self.is_weird(x)?;
        self.select(weird, x, rounded)
    }

    /// `tpu.prng_set_seed_32`
    pub(super) fn prng_seed(&mut self, op: &Operation) -> Fallible<()> {
        let mut seeds = vec![];
        for v in &op.operands {
            let x = self.get(*v)?;
            if *self.ty(x) != Type::Scalar(DType::I32) {
                return Err(self.malformed("takes seeds that are no i32 scalars"));
            }
            seeds.push(x);
        }
        self.append(crate::ir::OpKind::PrngSeed { seeds }, vec![]);
        Ok(())
    }

    /// `tpu.prng_random_bits`
    pub(super) fn prng_bits(&mut self, op: &Operation) -> Fallible<()> {
        let [] = self.operands(op)?;
        let ty = self.result_type(op)?;
        if !matches!(&ty, Type::Tile(t) if t.dtype == DType::I32) {
            return Err(self.unsupported(format!("makes a {ty}")));
        }
        let x = self.push(crate::ir::OpKind::PrngBits, ty)?;
        self.done(op, x)
    }
}
