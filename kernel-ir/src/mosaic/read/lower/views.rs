//! Views of memory: windows of a ref, and the same memory under another shape or element type.

use super::Fallible;
use super::scope::{Known, Lower};
use crate::ir::{Elem, Extent, Literal, OpKind, RefType, Size, Type};
use crate::mosaic::read::module::Operation;

impl Lower<'_> {
    /// The type of the result, a memref.
    fn memref_result(&self, op: &Operation) -> Fallible<RefType> {
        let v = self.result(op)?;
        self.ref_type(self.module.values[v.0 as usize])
    }

    /// Says which ref the result has become. Its lengths must be those that the module declares, where both are known.
    fn view(&mut self, op: &Operation, kind: OpKind, r: RefType) -> Fallible<()> {
        let declared = self.memref_result(op)?;
        let agree = |(a, b): (&Extent, &Extent)| match (a.known(), b.known()) {
            (Some(a), Some(b)) => a == b,
            _ => true,
        };
        let same = r.elem == declared.elem && r.shape.len() == declared.shape.len();
        if !same || !r.shape.iter().zip(&declared.shape).all(agree) {
            return Err(self.malformed(format!("declares a {declared}, but makes a {r}")));
        }
        let v = self.result(op)?;
        let x = self.push(kind, Type::Ref(r))?;
        self.set(v, Known::Value(x));
        Ok(())
    }

    /// Operations that say something about a memref, which stays what it is.
    pub(super) fn same_memory(&mut self, op: &Operation) -> Fallible<()> {
        let [v] = self.operands(op)?;
        let (x, _) = self.memref(v)?;
        let result = self.result(op)?;
        self.set(result, Known::Value(x));
        Ok(())
    }

    /// `tpu.memref_slice`: a window of equal rank; lengths that are not known come as operands.
    pub(super) fn memref_slice(&mut self, op: &Operation) -> Fallible<()> {
        let (base, rest) = op.operands.split_first().ok_or_else(|| self.malformed("has no operands"))?;
        let (base, r) = self.memref(*base)?;
        let declared = self.memref_result(op)?;
        let rank = r.shape.len();
        if rest.len() < rank || declared.shape.len() != rank {
            return Err(self.malformed(format!("takes a {declared} of a {r} by {} indices", rest.len())));
        }
        let (indices, lengths) = rest.split_at(rank);
        let offsets = self.offsets(indices)?;
        let mut lengths = lengths.iter();
        let mut sizes = vec![];
        for extent in &declared.shape {
            sizes.push(match extent.known() {
                Some(0) => return Err(self.unsupported("takes a window of length 0")),
                Some(n) => Size::Const(n),
                None => {
                    let v = lengths.next().ok_or_else(|| self.malformed("lacks a length"))?;
                    match self.constant_of(*v) {
                        Some(Literal::Int(n)) if n > 0 => Size::Const(usize::try_from(n).unwrap_or(1)),
                        _ => {
                            let x = self.get(*v)?;
                            if *self.ty(x) != Type::Scalar(crate::ir::DType::I32) {
                                return Err(self.malformed("takes a length that is no i32"));
                            }
                            Size::Value(x)
                        }
                    }
                }
            });
        }
        if lengths.next().is_some() {
            return Err(self.malformed("has more lengths than its result leaves open"));
        }
        let shape = sizes.iter().map(|s| match s {
            Size::Const(n) => Extent::Static(*n),
            Size::Value(_) => Extent::Dynamic,
        });
        let to = RefType { elem: r.elem, shape: shape.collect(), space: r.space };
        self.view(op, OpKind::Slice { base, offsets, sizes }, to)
    }

    /// `tpu.memref_squeeze`: without some axes of length 1.
    pub(super) fn memref_squeeze(&mut self, op: &Operation) -> Fallible<()> {
        let [v] = self.operands(op)?;
        let (base, r) = self.memref(v)?;
        let declared = self.memref_result(op)?;
        let mut kept = declared.shape.iter().peekable();
        let mut axes = vec![];
        for (axis, extent) in r.shape.iter().enumerate() {
            match kept.peek() {
                Some(k) if *k == extent || k.known().is_none() && *extent != Extent::Static(1) => {
                    kept.next();
                }
                _ if *extent == Extent::Static(1) => axes.push(axis),
                _ => return Err(self.malformed(format!("makes a {declared} of a {r}"))),
            }
        }
        if kept.next().is_some() {
            return Err(self.malformed(format!("makes a {declared} of a {r}")));
        }
        if axes.is_empty() {
            return self.same_memory(op);
        }
        let left = r.shape.iter().enumerate().filter(|(i, _)| !axes.contains(i));
        let to = RefType { elem: r.elem, shape: left.map(|(_, e)| *e).collect(), space: r.space };
        self.view(op, OpKind::Squeeze { base, axes }, to)
    }

    /// `tpu.memref_reshape`
    pub(super) fn memref_reshape(&mut self, op: &Operation) -> Fallible<()> {
        let [v] = self.operands(op)?;
        let (base, r) = self.memref(v)?;
        let to = RefType { space: r.space, ..self.memref_result(op)? };
        let len =
            |r: &RefType| r.static_shape().and_then(|s| s.iter().try_fold(1_usize, |n, d| n.checked_mul(*d)));
        if to == r {
            return self.same_memory(op);
        }
        let (Some(a), Some(b)) = (len(&r), len(&to)) else {
            return Err(self.unsupported(format!("makes a {to} of a {r}")));
        };
        if a != b {
            return Err(self.malformed(format!("makes a {to} of a {r}")));
        }
        self.view(op, OpKind::ReshapeRef { base }, to)
    }

    /// `tpu.memref_bitcast`: the same memory as elements of another type, in rows of another number.
    pub(super) fn memref_bitcast(&mut self, op: &Operation) -> Fallible<()> {
        let [v] = self.operands(op)?;
        let (base, r) = self.memref(v)?;
        let to = RefType { space: r.space, ..self.memref_result(op)? };
        if to == r {
            return self.same_memory(op);
        }
        if !matches!((r.elem, to.elem), (Elem::Data(_), Elem::Data(_))) {
            return Err(self.malformed(format!("makes a {to} of a {r}")));
        }
        self.view(op, OpKind::BitcastRef { base }, to)
    }

    /// `tpu.reinterpret_cast` to a known place: a reshape or a bitcast.
    pub(super) fn reinterpret_cast(&mut self, op: &Operation) -> Fallible<()> {
        let [v] = self.operands(op).map_err(|_| self.unsupported("has dynamic sizes"))?;
        let (_, r) = self.memref(v)?;
        if self.memref_result(op)?.elem == r.elem { self.memref_reshape(op) } else { self.memref_bitcast(op) }
    }

    /// `tpu.memref_memory_space_is`: known here.
    pub(super) fn memory_space_is(&mut self, op: &Operation) -> Fallible<()> {
        let [v] = self.operands(op)?;
        let (_, r) = self.memref(v)?;
        let asked =
            self.module.attribute(op, "memory_space").ok_or_else(|| self.malformed("names no memory"))?;
        let (asked, result) = (self.space(asked)?, self.result(op)?);
        let ty = self.result_type(op)?;
        if ty.dtype() != Some(crate::ir::DType::Bool) {
            return Err(self.malformed(format!("makes a {ty}")));
        }
        self.set(result, Known::Constant(Literal::Bool(asked == r.space), ty));
        Ok(())
    }
}
