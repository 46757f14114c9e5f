//! Products: batches, and any order of axes, come down to products of matrices.

use super::Fallible;
use super::attributes::bracketed;
use super::scope::Lower;
use crate::ir::{Binary, DType, DotDims, Literal, Precision, Type, Value};
use crate::mosaic::read::module::Operation;

/// The axes of one side.
#[derive(Clone, Debug)]
struct Side {
    contracting: Vec<usize>,
    free: Vec<usize>,
    batch: Vec<usize>,
}

/// The axes of both sides, and the order of those of the result: pairs of a side and its axis.
struct Dimensions {
    left: Side,
    right: Side,
    order: Vec<(usize, usize)>,
}

/// One side as matrices: `[batch, rows, columns]`, or one matrix.
struct Matrices {
    x: Value,
    /// Which of the two axes is contracted: 0 or 1.
    contracted: usize,
}

impl Lower<'_> {
    /// `tpu.matmul`: the product of two sides, and what it is added to.
    pub(super) fn matmul(&mut self, op: &Operation) -> Fallible<()> {
        let [lhs, rhs, start] = self.operands(op)?;
        let (mut x, mut y) = (self.get(lhs)?, self.get(rhs)?);
        let out = self.result_type(op)?;
        let (a, b) = (self.tile(x)?, self.tile(y)?);
        let Dimensions { left, right, order } = self.dimensions(op, a.shape.len(), b.shape.len())?;
        let dtype = out.dtype().ok_or_else(|| self.malformed("makes a memref"))?;
        // A float times an integer is a product of floats.
        if dtype.is_float() {
            let common = if a.dtype.is_float() { a.dtype } else { b.dtype };
            let common = if common.is_float() { common } else { DType::F32 };
            if a.dtype.is_int() {
                x = self.cast(x, common)?;
            }
            if b.dtype.is_int() {
                y = self.cast(y, common)?;
            }
        }
        let kinds = [self.dtype(x)?, self.dtype(y)?, dtype];
        if !kinds.iter().all(|d| d.is_float()) && !kinds.iter().all(|d| d.is_int()) {
            return Err(self.malformed(format!("multiplies {} and {} to {dtype}", kinds[0], kinds[1])));
        }
        let precision = match self.word(op, "precision")? {
            Some("fp32" | "bf16x3") => Precision::Highest,
            None | Some("bf16") if kinds.contains(&DType::F32) && kinds[..2].contains(&DType::F32) => {
                Precision::Bf16
            }
            None | Some("bf16") => Precision::Highest,
            Some(other) => return Err(self.unsupported(format!("has the `precision` {other}"))),
        };
        let mut z = self.product([x, y], &left, &right, precision, dtype)?;
        z = self.in_order(z, &left, &right, &order)?;
        let start_is_zero = matches!(self.constant_of(start), Some(Literal::Float(0.0) | Literal::Int(0)));
        if !start_is_zero {
            let start = self.get(start)?;
            z = self.binary(Binary::Add, z, start)?;
        }
        self.done(op, z)
    }

    fn dimensions(&self, op: &Operation, lhs: usize, rhs: usize) -> Fallible<Dimensions> {
        let Some(text) = self.word(op, "dimension_numbers")? else {
            let (left, right) = (self.flag(op, "transpose_lhs")?, self.flag(op, "transpose_rhs")?);
            if lhs != 2 || rhs != 2 {
                return Err(self.malformed("has no `dimension_numbers` for more axes than 2"));
            }
            let side = |contracted: usize| Side {
                contracting: vec![contracted],
                free: vec![1 - contracted],
                batch: vec![],
            };
            let (l, r) = (side(usize::from(!left)), side(usize::from(right)));
            let order = vec![(0, l.free[0]), (1, r.free[0])];
            return Ok(Dimensions { left: l, right: r, order });
        };
        let bad = || self.malformed(format!("has `dimension_numbers` of <{text}>"));
        let lists = bracketed(text).ok_or_else(bad)?;
        let [lc, rc, lf, rf, order, lb, rb] = lists.as_slice() else { return Err(bad()) };
        let left = Side { contracting: lc.clone(), free: lf.clone(), batch: lb.clone() };
        let right = Side { contracting: rc.clone(), free: rf.clone(), batch: rb.clone() };
        let order: Vec<_> =
            order.chunks(2).map(|p| (p[0], p.get(1).copied().unwrap_or(usize::MAX))).collect();
        let fits = left.has_each_once(lhs)
            && right.has_each_once(rhs)
            && lc.len() == rc.len()
            && !lc.is_empty()
            && lb.len() == rb.len()
            && order.len() == lb.len() + lf.len() + rf.len();
        if fits { Ok(Dimensions { left, right, order }) } else { Err(bad()) }
    }

    /// The product, with the axes of the batch, then those left of each side.
    fn product(
        &mut self,
        [x, y]: [Value; 2],
        left: &Side,
        right: &Side,
        precision: Precision,
        dtype: DType,
    ) -> Fallible<Value> {
        let (a, b) = (self.tile(x)?.shape, self.tile(y)?.shape);
        let lengths = |axes: &[usize], shape: &[usize]| axes.iter().map(|i| shape[*i]).collect::<Vec<_>>();
        let contracted = lengths(&left.contracting, &a) == lengths(&right.contracting, &b);
        let batch = lengths(&left.batch, &a);
        if !contracted || batch != lengths(&right.batch, &b) {
            return Err(self.malformed(format!("multiplies {a:?} and {b:?} along other axes")));
        }
        let shape = [batch.clone(), lengths(&left.free, &a), lengths(&right.free, &b)].concat();
        let count: usize = batch.iter().product();
        let (lhs, rhs) = (self.matrices(x, left, 1)?, self.matrices(y, right, 0)?);
        let dims = DotDims { lhs: lhs.contracted, rhs: rhs.contracted };
        if count > super::moves::MOST_PARTS {
            return Err(self.unsupported(format!("multiplies a batch of {count}")));
        }
        let mut parts = vec![];
        for i in 0..count {
            let sides = [self.matrix(lhs.x, i)?, self.matrix(rhs.x, i)?];
            let z = self.dot(sides, dims, precision, dtype)?;
            parts.push(match count {
                1 => z,
                _ => {
                    let t = self.tile(z)?.shape;
                    self.reshape(z, vec![1, t[0], t[1]])?
                }
            });
        }
        let z = self.concatenate(parts, 0)?;
        self.reshape(z, shape)
    }

    /// One side as matrices, its axes moved only if they are not in such an order. `usual` is the axis
    /// that is contracted when they are moved.
    fn matrices(&mut self, x: Value, side: &Side, usual: usize) -> Fallible<Matrices> {
        let shape = self.tile(x)?.shape;
        let (inner, outer) = ([&side.batch[..], &side.free, &side.contracting].concat(), side.flipped());
        let (permutation, contracted) = match (inner.is_sorted(), outer.is_sorted(), usual) {
            (true, _, _) => (inner, 1),
            (_, true, _) => (outer, 0),
            (_, _, 1) => (inner, 1),
            _ => (outer, 0),
        };
        let len = |axes: &[usize]| axes.iter().map(|i| shape[*i]).product::<usize>();
        let (free, deep) = (len(&side.free), len(&side.contracting));
        let x = self.transpose(x, permutation)?;
        let rows = if contracted == 1 { [free, deep] } else { [deep, free] };
        let x = match len(&side.batch) {
            1 => self.reshape(x, rows.to_vec())?,
            n => self.reshape(x, vec![n, rows[0], rows[1]])?,
        };
        Ok(Matrices { x, contracted })
    }

    /// One matrix of a batch.
    fn matrix(&mut self, x: Value, i: usize) -> Fallible<Value> {
        match self.tile(x)?.shape[..] {
            [_, rows, columns] => {
                let x = self.part(x, vec![i, 0, 0], vec![1, rows, columns])?;
                self.reshape(x, vec![rows, columns])
            }
            _ => Ok(x),
        }
    }

    /// The result with its axes in the order that is asked for.
    fn in_order(&mut self, z: Value, left: &Side, right: &Side, order: &[(usize, usize)]) -> Fallible<Value> {
        // The batch may be named by either side.
        let place = |(side, axis): &(usize, usize)| {
            let (one, first) = match side {
                0 => (left, left.batch.len()),
                1 => (right, left.batch.len() + left.free.len()),
                _ => return None,
            };
            let batch = one.batch.iter().position(|a| a == axis);
            batch.or_else(|| one.free.iter().position(|a| a == axis).map(|i| first + i))
        };
        let permutation: Option<Vec<_>> = order.iter().map(place).collect();
        let permutation = permutation.ok_or_else(|| self.malformed("orders axes that it does not have"))?;
        match self.ty(z) {
            Type::Tile(_) => self.transpose(z, permutation),
            _ => Ok(z),
        }
    }
}

impl Side {
    /// Whether every axis of a side of this rank has one part in the product.
    fn has_each_once(&self, rank: usize) -> bool {
        let mut all = [&self.batch[..], &self.free, &self.contracting].concat();
        all.sort_unstable();
        all.into_iter().eq(0..rank)
    }

    fn flipped(&self) -> Vec<usize> {
        [&self.batch[..], &self.contracting, &self.free].concat()
    }
}
