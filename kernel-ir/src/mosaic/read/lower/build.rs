//! Operations of the IR on numbers, one call each: the result's type follows from the operands, which are checked.

use super::Fallible;
use super::scope::Lower;
use crate::ir::{Binary, Compare, DType, Literal, OpKind, TileType, Type, Unary, Value};

impl Lower<'_> {
    // --- what operands are ---

    /// The element type of a scalar or tile.
    pub(super) fn dtype(&self, x: Value) -> Fallible<DType> {
        match self.ty(x) {
            Type::Scalar(d) => Ok(*d),
            Type::Tile(t) => Ok(t.dtype),
            Type::Ref(_) => Err(self.malformed("takes a memref where a number belongs")),
        }
    }

    /// The type of a tile.
    pub(super) fn tile(&self, x: Value) -> Fallible<TileType> {
        match self.ty(x) {
            Type::Tile(t) => Ok(t.clone()),
            other => Err(self.malformed(format!("takes a {other} where a vector belongs"))),
        }
    }

    /// The length of an axis of a tile.
    pub(super) fn length(&self, x: Value, axis: usize) -> Fallible<usize> {
        let t = self.tile(x)?;
        t.shape.get(axis).copied().ok_or_else(|| self.malformed(format!("has no axis {axis} in a {t}")))
    }

    /// The type of `x` with other elements.
    pub(super) fn with_dtype(&self, x: Value, dtype: DType) -> Fallible<Type> {
        self.dtype(x)?;
        Ok(match self.ty(x) {
            Type::Tile(t) => Type::tile(dtype, t.shape.as_slice()),
            _ => Type::Scalar(dtype),
        })
    }

    fn alike(&self, x: Value, y: Value) -> Fallible<()> {
        self.dtype(x)?;
        let (a, b) = (self.ty(x), self.ty(y));
        if a == b { Ok(()) } else { Err(self.malformed(format!("takes a {a} and a {b}"))) }
    }

    /// The `x` of which `y` was made as `x op n`, if that was a moment ago.
    pub(super) fn before(&self, y: Value, op: Binary, n: i64) -> Option<Value> {
        match self.made_by(y)? {
            OpKind::Binary { op: made, x, y } if *made == op => {
                let by_n = matches!(self.made_by(*y), Some(OpKind::Constant(Literal::Int(m))) if *m == n);
                by_n.then_some(*x)
            }
            _ => None,
        }
    }

    // --- numbers ---

    /// An `i32`.
    pub(super) fn i32(&mut self, n: i64) -> Fallible<Value> {
        self.constant(Literal::Int(n), Type::Scalar(DType::I32))
    }

    /// A scalar or tile like `x`, with this number everywhere.
    pub(super) fn like(&mut self, x: Value, n: f64) -> Fallible<Value> {
        let literal = Literal::of(self.dtype(x)?, n);
        let ty = self.ty(x).clone();
        self.constant(literal, ty)
    }

    // --- element by element ---

    pub(super) fn unary(&mut self, op: Unary, x: Value) -> Fallible<Value> {
        self.dtype(x)?;
        let ty = self.ty(x).clone();
        self.push(OpKind::Unary { op, x }, ty)
    }

    pub(super) fn binary(&mut self, op: Binary, x: Value, y: Value) -> Fallible<Value> {
        self.alike(x, y)?;
        let ty = self.ty(x).clone();
        self.push(OpKind::Binary { op, x, y }, ty)
    }

    /// As [`Lower::binary`], with the same number everywhere on the right.
    pub(super) fn binary_with(&mut self, op: Binary, x: Value, n: i64) -> Fallible<Value> {
        self.dtype(x)?;
        let ty = self.ty(x).clone();
        let y = self.constant(Literal::Int(n), ty)?;
        self.binary(op, x, y)
    }

    pub(super) fn compare(&mut self, op: Compare, x: Value, y: Value) -> Fallible<Value> {
        self.alike(x, y)?;
        let ty = self.with_dtype(x, DType::Bool)?;
        self.push(OpKind::Compare { op, x, y }, ty)
    }

    pub(super) fn select(&mut self, mask: Value, x: Value, y: Value) -> Fallible<Value> {
        self.alike(x, y)?;
        let (masks, ty) = (self.with_dtype(x, DType::Bool)?, self.ty(x).clone());
        let mask = match (self.ty(mask), &ty) {
            (Type::Scalar(DType::Bool), Type::Tile(t)) => self.broadcast(mask, t.shape.clone())?,
            _ => mask,
        };
        if *self.ty(mask) != masks {
            return Err(self.malformed(format!("chooses between {ty} by a {}", self.ty(mask))));
        }
        self.push(OpKind::Select { mask, x, y }, ty)
    }

    pub(super) fn cast(&mut self, x: Value, dtype: DType) -> Fallible<Value> {
        if self.dtype(x)? == dtype {
            return Ok(x);
        }
        let ty = self.with_dtype(x, dtype)?;
        self.push(OpKind::Cast { x }, ty)
    }

    pub(super) fn cast_unsigned(&mut self, x: Value, dtype: DType) -> Fallible<Value> {
        if self.dtype(x)? == dtype {
            return Ok(x);
        }
        let ty = self.with_dtype(x, dtype)?;
        self.push(OpKind::CastUnsigned { x }, ty)
    }

    /// The same bits as elements of the same width.
    pub(super) fn bits_as(&mut self, x: Value, dtype: DType) -> Fallible<Value> {
        let from = self.dtype(x)?;
        if from == dtype {
            return Ok(x);
        }
        if from.bits() != dtype.bits() || from == DType::Bool || dtype == DType::Bool {
            return Err(self.malformed(format!("takes the bits of {from} for {dtype}")));
        }
        let ty = self.with_dtype(x, dtype)?;
        self.push(OpKind::Bitcast { x }, ty)
    }
}
