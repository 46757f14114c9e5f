//! Conversions between element types. Most are left for later: a chain of them often comes to nothing.

use super::Fallible;
use super::scope::{How, Known, Later, Lower};
use crate::ir::{Binary, Compare, DType, Literal, OpKind, Type, Unary, Value};
use crate::mosaic::read::module::{Operation, ValueId};

/// What a conversion reads its operand as, and what it makes of it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Conversion {
    WidenFloat,
    NarrowFloat,
    WidenSigned,
    WidenUnsigned,
    NarrowInt,
    SignedToFloat,
    UnsignedToFloat,
    FloatToSigned,
    FloatToUnsigned,
    Index,
    Bits,
}

impl Lower<'_> {
    /// Translates a conversion.
    pub(super) fn convert(&mut self, op: &Operation, conversion: Conversion) -> Fallible<()> {
        let [v] = self.operands(op)?;
        let (to, result) = (self.result_type(op)?, self.result(op)?);
        let (from, dtype) = (self.type_of(v)?, to.dtype().unwrap_or(DType::I32));
        if from.shape() != to.shape() || from.shape().is_none() {
            return Err(self.malformed(format!("makes a {to} of a {from}")));
        }
        let elements = from.dtype().unwrap_or(DType::I32);
        if !conversion.takes(elements, dtype) {
            return Err(self.malformed(format!("makes {dtype} of {elements}")));
        }
        self.rounds(op, conversion, dtype)?;
        if let Some(literal) = folded(conversion, self.constant_of(v), dtype) {
            self.set(result, Known::Constant(literal, to));
            return Ok(());
        }
        // What was widened and is narrowed again is as it was.
        if let Known::Later(Later { how: How::Cast | How::CastUnsigned, x, .. }) = self.known(v)?
            && matches!(conversion, Conversion::NarrowFloat | Conversion::NarrowInt)
            && *self.ty(*x) == to
        {
            let x = *x;
            self.set(result, Known::Value(x));
            return Ok(());
        }
        let mut x = self.get(v)?;
        if elements == dtype {
            self.set(result, Known::Value(x));
            return Ok(());
        }
        let how = match conversion {
            Conversion::WidenUnsigned | Conversion::UnsignedToFloat if elements != DType::Bool => {
                How::CastUnsigned
            }
            Conversion::FloatToUnsigned => How::CastUnsigned,
            // A set bit is -1 to a signed operation.
            Conversion::WidenSigned | Conversion::SignedToFloat if elements == DType::Bool => {
                let one = self.cast(x, dtype)?;
                let y = self.unary(Unary::Neg, one)?;
                return self.done(op, y);
            }
            // The lowest bit.
            Conversion::NarrowInt if dtype == DType::Bool => {
                let bit = self.binary_with(Binary::And, x, 1)?;
                let zero = self.like(bit, 0.0)?;
                let y = self.compare(Compare::Ne, bit, zero)?;
                return self.done(op, y);
            }
            // The scalar unit's numbers are wide: ours have been given a narrow one's value before they are cut.
            Conversion::NarrowInt if matches!(self.ty(x), Type::Scalar(_)) => {
                let unused = (elements.bits() - dtype.bits()) as i64;
                let up = self.before(x, Binary::Shr, unused);
                x = up.and_then(|up| self.before(up, Binary::Shl, unused)).unwrap_or(x);
                How::Cast
            }
            Conversion::Bits => {
                let y = self.bits_as(x, dtype)?;
                return self.done(op, y);
            }
            _ => How::Cast,
        };
        if self.word(op, "rounding_mode")? == Some("to_nearest_even")
            && matches!(conversion, Conversion::FloatToSigned | Conversion::FloatToUnsigned)
        {
            x = self.unary(Unary::RoundEven, x)?;
        }
        let later = Later { how, x, ty: to, span: self.span };
        self.set(result, Known::Later(later));
        Ok(())
    }

    /// Whether the rounding is one that is known.
    fn rounds(&self, op: &Operation, conversion: Conversion, to: DType) -> Fallible<()> {
        match self.word(op, "rounding_mode")?.or(self.word(op, "roundingmode")?) {
            None | Some("to_nearest_even") => Ok(()),
            Some("towards_zero") if to.is_int() || conversion == Conversion::WidenFloat => Ok(()),
            Some(mode) => Err(self.unsupported(format!("has the rounding mode `{mode}`"))),
        }
    }

    /// The type of what a value has become.
    pub(super) fn type_of(&self, v: ValueId) -> Fallible<Type> {
        Ok(match self.known(v)? {
            Known::Value(x) => self.ty(*x).clone(),
            Known::Constant(_, ty) => ty.clone(),
            Known::GridIndex(_) => Type::Scalar(DType::I32),
            Known::Later(later) => later.ty.clone(),
        })
    }

    /// The truth values that a value is, if it is their conversion to numbers.
    pub(super) fn truth(&self, v: ValueId) -> Option<Value> {
        let x = match self.known(v) {
            Ok(Known::Later(Later { how: How::Cast, x, .. })) => *x,
            Ok(Known::Value(y)) => match self.made_by(*y)? {
                OpKind::Cast { x } => *x,
                _ => return None,
            },
            _ => return None,
        };
        (self.ty(x).dtype() == Some(DType::Bool)).then_some(x)
    }

    /// `tpu.bitcast`: the same bits, in rows of another number if the width differs.
    pub(super) fn bitcast(&mut self, op: &Operation) -> Fallible<()> {
        let [x] = self.operands(op)?;
        let (x, to) = (self.get(x)?, self.result_type(op)?);
        let (from, dtype) = (self.dtype(x)?, to.dtype().unwrap_or(DType::I32));
        if from.bits() == dtype.bits() {
            let y = self.bits_as(x, dtype)?;
            return self.done(op, y);
        }
        let Type::Tile(t) = &to else { return Err(self.malformed(format!("makes a {to}"))) };
        let source = self.tile(x)?;
        let (wide, narrow) = if from.bits() > dtype.bits() { (&source, t) } else { (t, &source) };
        let (rank, ratio) = (wide.shape.len(), wide.dtype.bits() / narrow.dtype.bits());
        let scaled = |i: usize| wide.shape[i].checked_mul(if i + 2 == rank { ratio } else { 1 });
        let packs = rank >= 2 && narrow.shape.len() == rank;
        if !packs || !(0..rank).all(|i| scaled(i) == Some(narrow.shape[i])) {
            return Err(self.malformed(format!("takes the bits of a {source} for a {to}")));
        }
        let y = self.push(OpKind::Bitcast { x }, to)?;
        self.done(op, y)
    }
}

impl Conversion {
    /// Whether it goes from one element type to another.
    fn takes(self, from: DType, to: DType) -> bool {
        let int = |d: DType| !d.is_float();
        match self {
            Self::WidenFloat => from.is_float() && to.is_float() && from.bits() <= to.bits(),
            Self::NarrowFloat => from.is_float() && to.is_float() && from.bits() >= to.bits(),
            Self::WidenSigned | Self::WidenUnsigned => int(from) && to.is_int() && width(from) <= width(to),
            Self::NarrowInt => from.is_int() && int(to) && width(from) >= width(to),
            Self::SignedToFloat | Self::UnsignedToFloat => int(from) && to.is_float(),
            Self::FloatToSigned | Self::FloatToUnsigned => from.is_float() && to.is_int(),
            Self::Index => from.is_int() && to.is_int(),
            Self::Bits => from.bits() == to.bits() && from != DType::Bool && to != DType::Bool,
        }
    }
}

/// Bits of a number in a register.
const fn width(dtype: DType) -> usize {
    match dtype {
        DType::Bool => 1,
        other => other.bits(),
    }
}

/// A converted constant, where that is plain.
fn folded(conversion: Conversion, x: Option<Literal>, to: DType) -> Option<Literal> {
    match (conversion, x?) {
        (Conversion::Index, Literal::Int(n)) if to == DType::I32 => Some(Literal::Int(n)),
        (Conversion::SignedToFloat, Literal::Int(n)) if to == DType::F32 =>
        {
            #[allow(clippy::cast_precision_loss, reason = "an i32 is exact in f64, and rounded once to f32")]
            Some(Literal::Float(f64::from(n as f64 as f32)))
        }
        (Conversion::WidenFloat, Literal::Float(x)) => Some(Literal::Float(x)),
        _ => None,
    }
}
