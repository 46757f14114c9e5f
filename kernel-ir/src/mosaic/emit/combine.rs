//! Operations that combine elements along an axis: reductions, and products of matrices.

use melior::ir::Value;

use super::Fallible;
use super::function::{Function, Shaped};
use super::legalize::wide;
use super::types::{self, Number};
use crate::ir::{self, DType, DotDims, Precision, Reduction};

impl<'c, 'a, 'k> Function<'c, 'a, 'k> {
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
            let (x, axis, rest) = f.with_two_axes(x, dtype, &shape, axis)?;
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

    /// An operand of an operation that takes an axis away: its axis, and the lengths that are left. A tile of one axis
    /// would become a scalar, for which there is no form: it gets another axis first.
    pub(super) fn with_two_axes(
        &mut self,
        x: Value<'c, 'a>,
        dtype: DType,
        shape: &[usize],
        axis: usize,
    ) -> Fallible<(Value<'c, 'a>, usize, Vec<usize>)> {
        if let [n] = *shape {
            let ty = self.mlir(Shaped { dtype, shape: Some(&[1, n]) });
            return Ok((self.value("vector.shape_cast", &[x], ty, &[])?, 1, vec![1]));
        }
        let mut rest = shape.to_vec();
        rest.remove(axis);
        Ok((x, axis, rest))
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
