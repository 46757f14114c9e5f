//! Operations that move the elements of tiles about.

use melior::ir::Value;

use super::Fallible;
use super::function::{Function, Shaped};
use super::legalize::wide;
use super::types;
use crate::ir::{self, Binary, DType};

impl<'c, 'a> Function<'c, 'a, '_> {
    /// The index along `axis`.
    pub(super) fn iota(&mut self, t: Shaped<'_>, axis: usize) -> Fallible<Value<'c, 'a>> {
        let shape = match t.shape {
            Some(shape) if axis < shape.len() && t.dtype == DType::I32 => shape,
            _ => return Err(self.malformed("iota is an i32 tile along one of its axes")),
        };
        let make = |f: &Self, shape: &[usize], axis: usize| {
            let ty = f.mlir(Shaped { dtype: DType::I32, shape: Some(shape) });
            let axis = i32::try_from(axis).unwrap_or(i32::MAX);
            let dimensions = types::i32s(f.context, &[axis]);
            f.value("tpu.iota", &[], ty, &[("dimensions", dimensions)])
        };
        match *shape {
            [n] => {
                let row = make(self, &[1, n], 1)?;
                let ty = self.mlir(t);
                self.value("vector.shape_cast", &[row], ty, &[])
            }
            _ => make(self, shape, axis),
        }
    }

    /// Applies `f` to `x` in a type that has the form, and goes back.
    pub(super) fn widened(
        &mut self,
        x: ir::Value,
        narrow: fn(DType) -> DType,
        out: Shaped<'_>,
        f: impl FnOnce(&mut Self, Value<'c, 'a>, DType) -> Fallible<Value<'c, 'a>>,
    ) -> Fallible<Value<'c, 'a>> {
        let t = self.shaped(x)?;
        let dtype = narrow(t.dtype);
        let x = self.get(x)?;
        let x = self.cast(x, t, dtype)?;
        let y = f(self, x, dtype)?;
        self.cast(y, Shaped { dtype, shape: out.shape }, out.dtype)
    }

    /// Repeats a scalar, or axes of length 1.
    pub(super) fn broadcast(&mut self, x: ir::Value, out: Shaped<'_>) -> Fallible<Value<'c, 'a>> {
        let narrow = match self.shaped(x)?.shape {
            None => wide,
            Some(_) => moved,
        };
        self.widened(x, narrow, out, |f, x, dtype| {
            let ty = f.mlir(Shaped { dtype, ..out });
            f.value("vector.broadcast", &[x], ty, &[])
        })
    }

    /// The same elements under another shape.
    pub(super) fn reshape(&mut self, x: ir::Value, out: Shaped<'_>) -> Fallible<Value<'c, 'a>> {
        if self.shaped(x)?.shape.is_none() {
            return self.broadcast(x, out);
        }
        self.widened(x, moved, out, |f, x, dtype| {
            let ty = f.mlir(Shaped { dtype, ..out });
            f.value("vector.shape_cast", &[x], ty, &[])
        })
    }

    /// Result axis `i` is operand axis `permutation[i]`.
    pub(super) fn transpose(
        &mut self,
        x: ir::Value,
        permutation: &[usize],
        out: Shaped<'_>,
    ) -> Fallible<Value<'c, 'a>> {
        let shape = &self.tile(x)?.shape;
        let fits = permutation.len() == shape.len()
            && permutation.iter().map(|p| shape.get(*p)).eq(out.shape.unwrap_or_default().iter().map(Some));
        if !fits {
            return Err(self.malformed("a transpose does not permute its operand's axes"));
        }
        let permutation: Vec<i64> = permutation.iter().map(|p| *p as i64).collect();
        let permutation = types::i64s(self.context, &permutation);
        self.widened(x, moved, out, |f, x, dtype| {
            let ty = f.mlir(Shaped { dtype, ..out });
            f.value("tpu.transpose", &[x], ty, &[("permutation", permutation)])
        })
    }

    /// Tiles one after the other along `axis`.
    pub(super) fn concatenate(
        &mut self,
        xs: &[ir::Value],
        axis: usize,
        out: Shaped<'_>,
    ) -> Fallible<Value<'c, 'a>> {
        let (Some(rank), Ok(dimension)) = (out.shape.map(<[_]>::len), i64::try_from(axis)) else {
            return Err(self.malformed("concatenate makes a tile"));
        };
        let dtype = moved(out.dtype);
        let mut parts = vec![];
        for x in xs {
            let t = self.shaped(*x)?;
            if t.shape.map(<[_]>::len) != Some(rank) || t.dtype != out.dtype || axis >= rank {
                return Err(self.malformed("concatenate takes tiles of one type and rank"));
            }
            let part = self.get(*x)?;
            parts.push(self.cast(part, t, dtype)?);
        }
        let wide = Shaped { dtype, ..out };
        let whole = match parts.as_slice() {
            [one] => *one,
            _ => {
                let dimension = types::i32(self.context, dimension);
                let ty = self.mlir(wide);
                self.value("tpu.concatenate", &parts, ty, &[("dimension", dimension)])?
            }
        };
        self.cast(whole, wide, out.dtype)
    }

    /// The part of a tile that starts at `offsets`.
    pub(super) fn extract_slice(
        &mut self,
        x: ir::Value,
        offsets: &[usize],
        out: Shaped<'_>,
    ) -> Fallible<Value<'c, 'a>> {
        let sizes = out.shape.unwrap_or_default();
        let attributes = [
            ("offsets", types::list(self.context, offsets.iter().copied())),
            ("sizes", types::list(self.context, sizes.iter().copied())),
            ("strides", types::list(self.context, sizes.iter().map(|_| 1))),
        ];
        self.widened(x, moved, out, |f, x, dtype| {
            let ty = f.mlir(Shaped { dtype, ..out });
            f.value("vector.extract_strided_slice", &[x], ty, &attributes)
        })
    }

    /// `result[(i + amount) mod n] = x[i]` along `axis`.
    pub(super) fn roll(
        &mut self,
        x: ir::Value,
        amount: ir::Value,
        axis: usize,
        out: Shaped<'_>,
    ) -> Fallible<Value<'c, 'a>> {
        let Some(n) = out.shape.and_then(|s| s.get(axis)).copied() else {
            return Err(self.malformed("roll moves along an axis of its operand"));
        };
        let amount = self.remainder(amount, n)?;
        let si32 = melior::ir::r#type::IntegerType::signed(self.context, 32).into();
        let dimension = types::int(si32, axis as i64);
        self.widened(x, moved, out, |f, x, dtype| {
            let ty = f.mlir(Shaped { dtype, ..out });
            f.value("tpu.dynamic_rotate", &[x, amount], ty, &[("dimension", dimension)])
        })
    }

    /// `amount mod n`, never negative: the rotate unit takes no other.
    fn remainder(&mut self, amount: ir::Value, n: usize) -> Fallible<Value<'c, 'a>> {
        let t = self.shaped(amount)?;
        let amount = self.get(amount)?;
        let n = i64::try_from(n).unwrap_or(i64::MAX);
        let m = self.i32(n)?;
        let rest = self.binary(Binary::Rem, amount, m, t)?;
        let up = self.binary(Binary::Add, rest, m, t)?;
        self.binary(Binary::Rem, up, m, t)
    }
}

/// The type in which elements are moved about: truth values have no form of their own there.
const fn moved(dtype: DType) -> DType {
    match dtype {
        DType::Bool => DType::I32,
        other => other,
    }
}
