//! Operations that move elements about or combine them along an axis: iota to dot.

use melior::ir::Value;

use super::Fallible;
use super::function::{Function, Shaped};
use super::legalize::wide;
use super::types::{self, Number};
use crate::ir::{self, Binary, DType, DotDims, Precision, Reduction};

impl<'c, 'a, 'k> Function<'c, 'a, 'k> {
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
    fn widened(
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

    /// Combines along `axis`, which stays with length 1.
    pub(super) fn reduce(
        &mut self,
        op: Reduction,
        x: ir::Value,
        axis: usize,
        out: Shaped<'_>,
    ) -> Fallible<Value<'c, 'a>> {
        let shape = self.tile(x)?.shape.clone();
        if axis >= shape.len() {
            return Err(self.malformed("reduce combines along an axis of its operand"));
        }
        self.widened(x, wide, out, |f, x, dtype| {
            // A tile of rank 1 would become a scalar, for which there is no form: give it another axis.
            let (x, mut rest, axis) = match shape.as_slice() {
                [n] => {
                    let ty = f.mlir(Shaped { dtype, shape: Some(&[1, *n]) });
                    (f.value("vector.shape_cast", &[x], ty, &[])?, vec![1, *n], 1)
                }
                _ => (x, shape.clone(), axis),
            };
            rest.remove(axis);
            let reduced = Shaped { dtype, shape: Some(&rest) };
            let (kind, neutral) = neutral(op, dtype);
            let start = f.fill(reduced, neutral)?;
            let kind =
                types::parse(f.context, kind).ok_or_else(|| f.malformed("MLIR has no such reduction"))?;
            let axes = types::i64s(f.context, &[axis as i64]);
            let ty = f.mlir(reduced);
            let y = f.value(
                "vector.multi_reduction",
                &[x, start],
                ty,
                &[("kind", kind), ("reduction_dims", axes)],
            )?;
            let ty = f.mlir(Shaped { dtype, ..out });
            match rest.as_slice() == out.shape.unwrap_or_default() {
                true => Ok(y),
                false => f.value("vector.shape_cast", &[y], ty, &[]),
            }
        })
    }

    /// The one element of a tile.
    pub(super) fn element(&mut self, x: ir::Value, out: Shaped<'_>) -> Fallible<Value<'c, 'a>> {
        let rank = self.tile(x)?.shape.len();
        self.widened(x, wide, out, |f, x, dtype| {
            let ty = f.mlir(Shaped { dtype, shape: None });
            let at = types::i64s(f.context, &vec![0; rank]);
            f.value("vector.extract", &[x], ty, &[("static_position", at)])
        })
    }

    /// A product of two matrices.
    pub(super) fn dot(
        &mut self,
        lhs: ir::Value,
        rhs: ir::Value,
        dims: DotDims,
        precision: Precision,
        out: Shaped<'_>,
    ) -> Fallible<Value<'c, 'a>> {
        let (l, r) = (self.tile(lhs)?, self.tile(rhs)?);
        let fits = |lc: usize, rc: usize| {
            l.shape.len() == 2
                && r.shape.len() == 2
                && lc < 2
                && rc < 2
                && l.shape[lc] == r.shape[rc]
                && out.shape == Some(&[l.shape[1 - lc], r.shape[1 - rc]])
        };
        if !fits(dims.lhs, dims.rhs) {
            return Err(self.malformed("dot contracts axes of equal length of two matrices"));
        }
        let accumulator = Shaped { dtype: wide(out.dtype), ..out };
        let numbers = format!(
            "#tpu.dot_dimension_numbers<[{lc}], [{rc}], [{lf}], [{rf}], [0, {lf}, 1, {rf}], [], []>",
            lc = dims.lhs,
            rc = dims.rhs,
            lf = 1 - dims.lhs,
            rf = 1 - dims.rhs
        );
        let parse = |f: &Self, text: &str| {
            types::parse(f.context, text).ok_or_else(|| f.malformed("a dot has no dimensions"))
        };
        let mut attributes = vec![
            ("dimension_numbers", parse(self, &numbers)?),
            ("transpose_lhs", types::boolean(self.context, false)),
            ("transpose_lhs_hint", types::boolean(self.context, false)),
            ("transpose_rhs", types::boolean(self.context, false)),
        ];
        let (mut lhs, mut rhs) = (self.operand(lhs)?, self.operand(rhs)?);
        let exact = precision == Precision::Highest;
        if exact && (l.dtype == DType::F32 || r.dtype == DType::F32) {
            attributes.push(("precision", parse(self, "#tpu.contract_precision<fp32>")?));
            // Several passes are made of two f32 sides only.
            lhs.0 = self.cast(lhs.0, lhs.1, DType::F32)?;
            rhs.0 = self.cast(rhs.0, rhs.1, DType::F32)?;
        }
        let zero = match accumulator.dtype.is_float() {
            true => Number::Float(0.0),
            false => Number::Int(0),
        };
        let zero = self.fill(accumulator, zero)?;
        let ty = self.mlir(accumulator);
        let product = self.value("tpu.matmul", &[lhs.0, rhs.0, zero], ty, &attributes)?;
        self.cast(product, accumulator, out.dtype)
    }

    fn operand(&self, x: ir::Value) -> Fallible<(Value<'c, 'a>, Shaped<'k>)> {
        Ok((self.get(x)?, self.shaped(x)?))
    }
}

/// The type in which elements are moved about: truth values have no form of their own there.
const fn moved(dtype: DType) -> DType {
    match dtype {
        DType::Bool => DType::I32,
        other => other,
    }
}

/// The MLIR name of a reduction, and what it starts from.
const fn neutral(op: Reduction, dtype: DType) -> (&'static str, Number) {
    match (op, dtype.is_float()) {
        (Reduction::Sum, true) => ("#vector.kind<add>", Number::Float(0.0)),
        (Reduction::Sum, false) => ("#vector.kind<add>", Number::Int(0)),
        (Reduction::Max, true) => ("#vector.kind<maximumf>", Number::Float(f64::NEG_INFINITY)),
        (Reduction::Max, false) => ("#vector.kind<maxsi>", Number::Int(i32::MIN as i64)),
        (Reduction::Min, true) => ("#vector.kind<minimumf>", Number::Float(f64::INFINITY)),
        (Reduction::Min, false) => ("#vector.kind<minsi>", Number::Int(i32::MAX as i64)),
    }
}
