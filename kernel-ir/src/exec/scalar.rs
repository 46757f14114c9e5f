//! Scalars: values of the scalar core, each with the knowledge whether it was ever written.

use crate::ir::{Binary, Compare, DType, Literal, Unary};

use super::data::{POISON_I32, Stored, each_data};
use super::elementwise as ew;
use super::elementwise::DivisionByZero;
use super::plan::LaneKind;
use super::recast;
use super::tile::Tile;

/// A number in a scalar register.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(super) enum Number {
    Float(f32),
    Int(i32),
    Bool(bool),
}

/// A scalar.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(super) struct Scalar {
    pub(super) number: Number,
    /// True when it comes from memory that was never written.
    pub(super) poison: bool,
}

impl Scalar {
    /// An integer.
    pub(super) const fn int(x: i32) -> Self {
        Self { number: Number::Int(x), poison: false }
    }

    /// A truth value.
    pub(super) const fn bool(x: bool) -> Self {
        Self { number: Number::Bool(x), poison: false }
    }

    /// A float.
    pub(super) const fn float(x: f32) -> Self {
        Self { number: Number::Float(x), poison: false }
    }

    /// What a scalar register holds before anything is put in it.
    pub(super) const UNSET: Self = Self { number: Number::Int(POISON_I32), poison: true };

    /// A literal of an element type, rounded or wrapped to it.
    pub(super) fn literal(l: Literal, dtype: DType) -> Self {
        let number = match l {
            Literal::Float(x) => Number::Float(x as f32),
            Literal::Int(x) => Number::Int(x as i32),
            Literal::Bool(x) => Number::Bool(x),
        };
        Self::of(number, false).cast(dtype)
    }

    const fn of(number: Number, poison: bool) -> Self {
        Self { number, poison }
    }

    fn narrow(mut self, dtype: DType) -> Self {
        match &mut self.number {
            Number::Float(x) => ew::narrow_f32(dtype, std::slice::from_mut(x)),
            Number::Int(x) => ew::narrow_i32(dtype, std::slice::from_mut(x)),
            Number::Bool(_) => {}
        }
        self
    }

    /// Converts to another element type.
    pub(super) fn cast(self, to: DType) -> Self {
        let int = |x: f32| {
            let mut out = [0];
            ew::float_to_int(to, &[x], &mut out);
            out[0]
        };
        let number = match (self.number, LaneKind::of(to)) {
            (Number::Float(x), LaneKind::Float) => Number::Float(x),
            (Number::Float(x), LaneKind::Bool) => Number::Bool(x != 0.0),
            (Number::Float(x), LaneKind::Int) => Number::Int(int(x)),
            (Number::Int(x), LaneKind::Float) => Number::Float(x as f32),
            (Number::Int(x), LaneKind::Bool) => Number::Bool(x != 0),
            (Number::Int(x), LaneKind::Int) => Number::Int(x),
            (Number::Bool(x), LaneKind::Float) => Number::Float(f32::from(u8::from(x))),
            (Number::Bool(x), LaneKind::Bool) => Number::Bool(x),
            (Number::Bool(x), LaneKind::Int) => Number::Int(i32::from(x)),
        };
        Self::of(number, self.poison).narrow(to)
    }

    /// As [`Scalar::cast`], with the bits of integers read as unsigned numbers.
    pub(super) fn cast_unsigned(self, from: DType, to: DType) -> Self {
        let number = match (self.number, LaneKind::of(to)) {
            (Number::Int(x), LaneKind::Float) => {
                let mut out = [0.0];
                ew::unsigned_to_float(from, &[x], &mut out);
                Number::Float(out[0])
            }
            (Number::Int(x), LaneKind::Int) => {
                let mut out = [0];
                ew::zero_extend(from, &[x], &mut out);
                Number::Int(out[0])
            }
            (Number::Float(x), LaneKind::Int) => {
                let mut out = [0];
                ew::float_to_unsigned(to, &[x], &mut out);
                Number::Int(out[0])
            }
            _ => return self.cast(to),
        };
        Self::of(number, self.poison).narrow(to)
    }

    /// The bits of a register that holds a `dtype`.
    pub(super) fn bits(self, dtype: DType) -> u32 {
        let tile = match self.number {
            Number::Float(x) => Tile::Float(vec![x]),
            Number::Int(x) => Tile::Int(vec![x]),
            Number::Bool(x) => Tile::Bool(vec![x]),
        };
        tile.bits(dtype)[0]
    }

    /// The same bits as another element type of the same width.
    pub(super) fn bitcast(self, from: DType, to: DType) -> Self {
        let bits = recast::from_bits(to, &[self.bits(from)]);
        Self::of(each_data!(&bits, v => first(v)), self.poison)
    }

    /// Applies a function of one operand.
    pub(super) fn unary(self, op: Unary, dtype: DType) -> Self {
        let number = match self.number {
            Number::Float(x) => {
                let mut out = [0.0];
                ew::unary_f32(op, &[x], &mut out);
                Number::Float(out[0])
            }
            Number::Int(x) => {
                let mut out = [0];
                ew::unary_i32(op, dtype, &[x], &mut out);
                Number::Int(out[0])
            }
            Number::Bool(x) => Number::Bool(!x),
        };
        Self::of(number, self.poison).narrow(dtype)
    }

    /// Applies a function of two operands; `None` when their types differ.
    pub(super) fn binary(self, op: Binary, y: Self, dtype: DType) -> Option<Result<Self, DivisionByZero>> {
        let poison = self.poison | y.poison;
        let number = match (self.number, y.number) {
            (Number::Float(x), Number::Float(y)) => {
                let mut out = [0.0];
                ew::binary_f32(op, &[x], &[y], &mut out);
                Number::Float(out[0])
            }
            (Number::Int(x), Number::Int(y)) => {
                let mut out = [0];
                if let Err(e) = ew::binary_i32(op, dtype, &[x], &[y], &mut out) {
                    return Some(Err(e));
                }
                Number::Int(out[0])
            }
            (Number::Bool(x), Number::Bool(y)) => {
                let mut out = [false];
                ew::binary_bool(op, &[x], &[y], &mut out);
                Number::Bool(out[0])
            }
            _ => return None,
        };
        Some(Ok(Self::of(number, poison).narrow(dtype)))
    }

    /// Compares; `None` when the types differ.
    pub(super) fn compare(self, op: Compare, y: Self) -> Option<Self> {
        let mut out = [false];
        match (self.number, y.number) {
            (Number::Float(x), Number::Float(y)) => ew::compare(op, &[x], &[y], &mut out),
            (Number::Int(x), Number::Int(y)) => ew::compare_i32(op, &[x], &[y], &mut out),
            (Number::Bool(x), Number::Bool(y)) => ew::compare(op, &[x], &[y], &mut out),
            _ => return None,
        }
        Some(Self::of(Number::Bool(out[0]), self.poison | y.poison))
    }
}

fn first<T: Stored>(v: &[T]) -> Number
where
    Number: From<T::Lane>,
{
    v[0].lane().into()
}

impl From<f32> for Number {
    fn from(x: f32) -> Self {
        Self::Float(x)
    }
}

impl From<i32> for Number {
    fn from(x: i32) -> Self {
        Self::Int(x)
    }
}

impl From<bool> for Number {
    fn from(x: bool) -> Self {
        Self::Bool(x)
    }
}
