//! Operations of the IR that move and combine the elements of tiles, one call each: the result's type follows from the
//! operands, which are checked.

use super::Fallible;
use super::scope::Lower;
use crate::ir::{ArgReduction, DType, DotDims, OpKind, Precision, Reduction, Type, Value};

/// Parts of the longest concatenation: bounds what a batch or a repetition is unrolled to.
pub(super) const MOST_PARTS: usize = 1 << 12;

impl Lower<'_> {
    /// The same elements under another shape; a scalar for no shape.
    pub(super) fn reshape(&mut self, x: Value, shape: Vec<usize>) -> Fallible<Value> {
        let dtype = self.dtype(x)?;
        let (from, len) = match self.ty(x) {
            Type::Tile(t) => (t.shape.clone(), t.len()),
            _ => (vec![], 1),
        };
        if from == shape {
            return Ok(x);
        }
        if shape.is_empty() && len == 1 {
            return self.push(OpKind::ToScalar { x }, Type::Scalar(dtype));
        }
        let ty = self.tile_type(dtype, shape)?;
        let fits = matches!(&ty, Type::Tile(t) if t.len() == len);
        if !fits {
            return Err(self.malformed(format!("makes a {ty} of a {}", self.ty(x))));
        }
        match from.is_empty() {
            true => self.push(OpKind::Broadcast { x }, ty),
            false => self.push(OpKind::Reshape { x }, ty),
        }
    }

    /// Repeats a scalar, or a tile along axes of length 1 and along new ones before its own.
    pub(super) fn broadcast(&mut self, x: Value, shape: Vec<usize>) -> Fallible<Value> {
        let dtype = self.dtype(x)?;
        let mut x = x;
        if let Type::Tile(t) = self.ty(x) {
            let from = t.shape.clone();
            let new = shape.len().checked_sub(from.len());
            let new = new.ok_or_else(|| self.malformed("repeats a vector to fewer axes"))?;
            let grows = from.iter().zip(&shape[new..]).all(|(a, b)| a == b || *a == 1);
            if !grows {
                return Err(self.malformed(format!("repeats {from:?} to {shape:?}")));
            }
            x = self.reshape(x, [vec![1; new], from].concat())?;
            if self.ty(x).shape() == Some(&shape) {
                return Ok(x);
            }
        }
        let ty = self.tile_type(dtype, shape)?;
        self.push(OpKind::Broadcast { x }, ty)
    }

    pub(super) fn transpose(&mut self, x: Value, permutation: Vec<usize>) -> Fallible<Value> {
        let t = self.tile(x)?;
        let mut sorted = permutation.clone();
        sorted.sort_unstable();
        if !sorted.into_iter().eq(0..t.shape.len()) {
            return Err(self.malformed(format!("permutes the axes of a {t} by {permutation:?}")));
        }
        if permutation.is_sorted() {
            return Ok(x);
        }
        let shape: Vec<_> = permutation.iter().map(|p| t.shape[*p]).collect();
        self.push(OpKind::Transpose { x, permutation }, Type::tile(t.dtype, shape))
    }

    pub(super) fn concatenate(&mut self, xs: Vec<Value>, axis: usize) -> Fallible<Value> {
        let [first, rest @ ..] = xs.as_slice() else { return Err(self.malformed("joins nothing")) };
        if rest.is_empty() {
            return Ok(*first);
        }
        if xs.len() > MOST_PARTS {
            return Err(self.unsupported(format!("joins {} vectors", xs.len())));
        }
        let mut whole = self.tile(*first)?;
        let mut length = self.length(*first, axis)?;
        for x in rest {
            let mut t = self.tile(*x)?;
            length = length.saturating_add(self.length(*x, axis)?);
            t.shape[axis] = whole.shape[axis];
            if t != whole {
                return Err(
                    self.malformed(format!("joins a {whole} and a {} along axis {axis}", self.ty(*x)))
                );
            }
        }
        whole.shape[axis] = length;
        let ty = self.tile_type(whole.dtype, whole.shape)?;
        self.push(OpKind::Concatenate { xs, axis }, ty)
    }

    /// The part of a tile that starts at `offsets`.
    pub(super) fn part(&mut self, x: Value, offsets: Vec<usize>, shape: Vec<usize>) -> Fallible<Value> {
        let t = self.tile(x)?;
        if t.shape == shape {
            return Ok(x);
        }
        let end = |i: usize| offsets[i].checked_add(shape[i]);
        let ranks = offsets.len() == t.shape.len() && shape.len() == t.shape.len();
        if !ranks || !(0..shape.len()).all(|i| shape[i] > 0 && end(i).is_some_and(|e| e <= t.shape[i])) {
            return Err(self.malformed(format!("takes {shape:?} at {offsets:?} of a {t}")));
        }
        self.push(OpKind::ExtractSlice { x, offsets }, Type::tile(t.dtype, shape))
    }

    pub(super) fn roll(&mut self, x: Value, amount: Value, axis: usize) -> Fallible<Value> {
        self.length(x, axis)?;
        if *self.ty(amount) != Type::Scalar(DType::I32) {
            return Err(self.malformed("rotates by something other than an i32"));
        }
        let ty = self.ty(x).clone();
        self.push(OpKind::Roll { x, amount, axis }, ty)
    }

    pub(super) fn gather(&mut self, x: Value, index: Value, axis: usize) -> Fallible<Value> {
        self.length(x, axis)?;
        let (from, mut at) = (self.tile(x)?, self.tile(index)?);
        let ty = Type::tile(from.dtype, at.shape.as_slice());
        if let Some(n) = at.shape.get_mut(axis) {
            *n = from.shape[axis];
        }
        if at.shape != from.shape {
            return Err(self.malformed(format!("takes elements of a {from} by indices of another shape")));
        }
        let index = self.cast(index, DType::I32)?;
        self.push(OpKind::Gather { x, index, axis }, ty)
    }

    /// The position along an axis.
    pub(super) fn positions(&mut self, shape: &[usize], axis: usize) -> Fallible<Value> {
        let ty = self.tile_type(DType::I32, shape.to_vec())?;
        if axis >= shape.len() {
            return Err(self.malformed(format!("counts along axis {axis} of {shape:?}")));
        }
        self.push(OpKind::Iota { axis }, ty)
    }

    // --- combining elements ---

    /// Combines along `axis`, which stays with length 1.
    pub(super) fn reduction(&mut self, op: Reduction, x: Value, axis: usize) -> Fallible<Value> {
        self.length(x, axis)?;
        let mut t = self.tile(x)?;
        t.shape[axis] = 1;
        self.push(OpKind::Reduce { op, x, axis }, Type::Tile(t))
    }

    /// The position of the largest or smallest element along `axis`, which stays with length 1.
    pub(super) fn search(&mut self, op: ArgReduction, x: Value, axis: usize) -> Fallible<Value> {
        self.length(x, axis)?;
        let mut t = self.tile(x)?;
        (t.shape[axis], t.dtype) = (1, DType::I32);
        self.push(OpKind::ArgReduce { op, x, axis }, Type::Tile(t))
    }

    /// A product of two matrices.
    pub(super) fn dot(
        &mut self,
        [lhs, rhs]: [Value; 2],
        dims: DotDims,
        precision: Precision,
        dtype: DType,
    ) -> Fallible<Value> {
        let (a, b) = (self.tile(lhs)?, self.tile(rhs)?);
        let matrices = a.shape.len() == 2 && b.shape.len() == 2 && dims.lhs < 2 && dims.rhs < 2;
        if !matrices || a.shape[dims.lhs] != b.shape[dims.rhs] {
            return Err(self.malformed(format!("multiplies a {a} and a {b}")));
        }
        let ty = self.tile_type(dtype, vec![a.shape[1 - dims.lhs], b.shape[1 - dims.rhs]])?;
        self.push(OpKind::Dot { lhs, rhs, dims, precision }, ty)
    }
}
