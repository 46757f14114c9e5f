//! Operations that move the elements of vectors about.

use super::Fallible;
use super::scope::{How, Known, Later, Lower};
use crate::ir::{Binary, DType, Type};
use crate::mosaic::read::module::Operation;

/// MLIR's `kDynamic`: the position comes as an operand.
const DYNAMIC: i64 = i64::MIN;

impl Lower<'_> {
    /// The shape of the result; empty for a scalar.
    fn result_shape(&self, op: &Operation) -> Fallible<Vec<usize>> {
        Ok(self.result_type(op)?.shape().unwrap_or_default().to_vec())
    }

    /// `tpu.iota`: the position along one axis, or in row-major order along several.
    pub(super) fn iota(&mut self, op: &Operation) -> Fallible<()> {
        let [] = self.operands(op)?;
        let out = self.result_type(op)?;
        let shape = self.result_shape(op)?;
        let dtype = out.dtype().filter(|d| d.is_int());
        let dtype = dtype.ok_or_else(|| self.malformed(format!("makes a {out}")))?;
        let axes = match (self.axes(op, "dimensions")?, self.int(op, "dimension")?) {
            (Some(axes), _) => axes,
            (None, Some(_)) => vec![self.axis(op, "dimension")?],
            (None, None) => (0..shape.len()).collect(),
        };
        if axes.is_empty() || axes.len() > shape.len() || axes.iter().any(|a| *a >= shape.len()) {
            return Err(self.malformed(format!("counts along axes {axes:?} of a {out}")));
        }
        let mut total = None;
        let mut stride = 1_i64;
        for axis in axes.iter().rev() {
            let mut x = self.positions(&shape, *axis)?;
            if stride != 1 {
                x = self.binary_with(Binary::Mul, x, stride)?;
            }
            total = Some(match total {
                None => x,
                Some(inner) => self.binary(Binary::Add, x, inner)?,
            });
            let n = i64::try_from(shape[*axis]).unwrap_or(i64::MAX);
            stride = stride.checked_mul(n).filter(|s| i32::try_from(*s).is_ok()).unwrap_or(0);
        }
        let total = total.ok_or_else(|| self.malformed("counts along no axis"))?;
        let total = self.cast(total, dtype)?;
        self.done(op, total)
    }

    /// `vector.broadcast`; of a constant, it is one.
    pub(super) fn broadcast_op(&mut self, op: &Operation) -> Fallible<()> {
        let [v] = self.operands(op)?;
        let (result, out) = (self.result(op)?, self.result_type(op)?);
        if let Known::Constant(literal, ty) = self.known(v)? {
            if ty.dtype() != out.dtype() {
                return Err(self.malformed(format!("repeats a {ty} to a {out}")));
            }
            let literal = *literal;
            self.set(result, Known::Constant(literal, out));
            return Ok(());
        }
        let x = self.get(v)?;
        let y = match &out {
            Type::Tile(t) => self.broadcast(x, t.shape.clone())?,
            _ => self.reshape(x, vec![])?,
        };
        self.done(op, y)
    }

    /// `vector.shape_cast`: left for later, as the way back often follows.
    pub(super) fn shape_cast(&mut self, op: &Operation) -> Fallible<()> {
        let [v] = self.operands(op)?;
        let (result, to) = (self.result(op)?, self.result_type(op)?);
        let from = self.type_of(v)?;
        let len = |t: &Type| t.shape().map(|s| s.iter().product::<usize>());
        if len(&from).is_none() || len(&from) != len(&to) || from.dtype() != to.dtype() {
            return Err(self.malformed(format!("makes a {to} of a {from}")));
        }
        if let Known::Constant(literal, _) = self.known(v)? {
            let literal = *literal;
            self.set(result, Known::Constant(literal, to));
            return Ok(());
        }
        let x = match self.known(v)? {
            Known::Later(Later { how: How::Reshape, x, .. }) => *x,
            _ => self.get(v)?,
        };
        let known = match (self.ty(x), &to) {
            (ty, to) if ty == to => Known::Value(x),
            (Type::Tile(_), Type::Tile(_)) => {
                Known::Later(Later { how: How::Reshape, x, ty: to.clone(), span: self.span })
            }
            _ => {
                let shape = to.shape().unwrap_or_default().to_vec();
                Known::Value(self.reshape(x, shape)?)
            }
        };
        self.set(result, known);
        Ok(())
    }

    /// `vector.extract`: what stands at a position of the outer axes.
    pub(super) fn extract(&mut self, op: &Operation) -> Fallible<()> {
        let Some((v, dynamic)) = op.operands.split_first() else {
            return Err(self.malformed("has no operand"));
        };
        let mut x = self.get(*v)?;
        let t = self.tile(x)?;
        let at = match (self.ints(op, "static_position")?, self.ints(op, "position")?) {
            (Some(at), _) | (None, Some(at)) => at,
            (None, None) => vec![],
        };
        if at.len() > t.shape.len() || at.iter().filter(|p| **p == DYNAMIC).count() != dynamic.len() {
            return Err(self.malformed(format!("takes position {at:?} of a {t}")));
        }
        let (mut offsets, mut sizes) = (vec![0; t.shape.len()], t.shape.clone());
        let mut dynamic = dynamic.iter();
        for (axis, p) in at.iter().enumerate() {
            sizes[axis] = 1;
            if *p == DYNAMIC {
                // Brings the position to the front.
                let amount = match dynamic.next() {
                    Some(v) => self.get(*v)?,
                    None => return Err(self.malformed("lacks a position")),
                };
                let n = self.i32(i64::try_from(t.shape[axis]).unwrap_or(i64::MAX))?;
                let amount = self.binary(Binary::Sub, n, amount)?;
                x = self.roll(x, amount, axis)?;
            } else {
                offsets[axis] = usize::try_from(*p)
                    .map_err(|_| self.malformed(format!("takes position {at:?} of a {t}")))?;
            }
        }
        let x = self.part(x, offsets, sizes)?;
        let shape = self.result_shape(op)?;
        let y = self.reshape(x, shape)?;
        self.done(op, y)
    }

    /// `vector.extract_strided_slice`: a part of a vector, in whole along the axes that are not named.
    pub(super) fn extract_slice(&mut self, op: &Operation) -> Fallible<()> {
        let [v] = self.operands(op)?;
        let x = self.get(v)?;
        let mut sizes = self.tile(x)?.shape;
        let mut offsets = vec![0; sizes.len()];
        let required =
            |list: Option<Vec<usize>>, name| list.ok_or_else(|| self.malformed(format!("has no `{name}`")));
        let at = required(self.axes(op, "offsets")?, "offsets")?;
        let lengths = required(self.axes(op, "sizes")?, "sizes")?;
        let strides = self.axes(op, "strides")?.unwrap_or_default();
        if strides.iter().any(|s| *s != 1) {
            return Err(self.unsupported(format!("has `strides` of {strides:?}")));
        }
        if at.len() != lengths.len() || at.len() > sizes.len() {
            return Err(self.malformed(format!("takes {lengths:?} at {at:?} of a {}", self.ty(x))));
        }
        offsets[..at.len()].copy_from_slice(&at);
        sizes[..at.len()].copy_from_slice(&lengths);
        let y = self.part(x, offsets, sizes)?;
        self.done(op, y)
    }

    /// `tpu.transpose`
    pub(super) fn transpose_op(&mut self, op: &Operation) -> Fallible<()> {
        let [v] = self.operands(op)?;
        let x = self.get(v)?;
        let permutation = match (self.axes(op, "permutation")?, self.axes(op, "transp")?) {
            (Some(p), _) | (None, Some(p)) => p,
            (None, None) => return Err(self.malformed("has no `permutation`")),
        };
        let y = self.transpose(x, permutation)?;
        self.done(op, y)
    }

    /// `tpu.concatenate`
    pub(super) fn concatenate_op(&mut self, op: &Operation) -> Fallible<()> {
        let axis = self.axis(op, "dimension")?;
        let xs: Fallible<Vec<_>> = op.operands.iter().map(|v| self.get(*v)).collect();
        let y = self.concatenate(xs?, axis)?;
        self.done(op, y)
    }

    /// `tpu.repeat`: a vector several times along an axis.
    pub(super) fn repeat(&mut self, op: &Operation) -> Fallible<()> {
        let [v] = self.operands(op)?;
        let x = self.get(v)?;
        let (axis, times) = (self.axis(op, "dimension")?, self.axis(op, "times")?);
        if times == 0 || times > super::moves::MOST_PARTS {
            return Err(self.unsupported(format!("has a `times` of {times}")));
        }
        let y = self.concatenate(vec![x; times], axis)?;
        self.done(op, y)
    }

    /// `tpu.dynamic_gather`: elements along one axis, or along several of which the index counts in row-major order.
    pub(super) fn dynamic_gather(&mut self, op: &Operation) -> Fallible<()> {
        let [x, index] = self.operands(op)?;
        let (x, index) = (self.get(x)?, self.get(index)?);
        let axes = match self.axes(op, "dimensions")? {
            Some(axes) => axes,
            None => vec![self.axis(op, "dimension")?],
        };
        let index = match self.dtype(index)? {
            DType::I32 => index,
            _ => self.cast_unsigned(index, DType::I32)?,
        };
        let [axis] = axes[..] else {
            return Err(self.unsupported(format!("has `dimensions` of {axes:?}")));
        };
        let y = self.gather(x, index, axis)?;
        self.done(op, y)
    }
}
