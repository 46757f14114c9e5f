//! Loads and stores, and the memory that a kernel allocates.

use super::Fallible;
use super::scope::{Known, Lower};
use crate::ir::{Binary, DType, Literal, MemorySpace, Offset, OpKind, RefType, Type, Value};
use crate::mosaic::read::module::{Operation, ValueId};

impl Lower<'_> {
    /// A value that is a memref.
    pub(super) fn memref(&mut self, v: ValueId) -> Fallible<(Value, RefType)> {
        let x = self.get(v)?;
        match self.ty(x) {
            Type::Ref(r) => Ok((x, r.clone())),
            other => Err(self.malformed(format!("takes a {other} where a memref belongs"))),
        }
    }

    fn is_memref(&self, v: ValueId) -> bool {
        matches!(self.known(v), Ok(Known::Value(x)) if matches!(self.ty(*x), Type::Ref(_)))
    }

    /// Indices into a ref.
    pub(super) fn offsets(&mut self, indices: &[ValueId]) -> Fallible<Vec<Offset>> {
        let mut offsets = vec![];
        for v in indices {
            if let Some(Literal::Int(n)) = self.constant_of(*v)
                && let Ok(n) = u32::try_from(n)
            {
                offsets.push(Offset::Const(n as usize));
                continue;
            }
            let x = self.get(*v)?;
            if *self.ty(x) != Type::Scalar(DType::I32) {
                return Err(self.malformed(format!("takes a {} as an index", self.ty(x))));
            }
            offsets.push(Offset::Value(x));
        }
        Ok(offsets)
    }

    /// A ref with an index an axis, in a memory that the operation reaches.
    fn place(
        &mut self,
        base: ValueId,
        indices: &[ValueId],
        space: MemorySpace,
    ) -> Fallible<(Value, RefType, Vec<Offset>)> {
        let (x, r) = self.memref(base)?;
        if r.shape.len() != indices.len() {
            return Err(self.malformed(format!("reaches a {r} with {} indices", indices.len())));
        }
        if r.space != space {
            let (wants, has) = (space.mosaic(), r.space.mosaic());
            return Err(self.unsupported(format!("reaches {has} instead of {wants}")));
        }
        let offsets = self.offsets(indices)?;
        Ok((x, r, offsets))
    }

    /// The base and the indices of an operation that has no other operands.
    fn base<'o>(&self, operands: &'o [ValueId]) -> Fallible<(ValueId, &'o [ValueId])> {
        let split = operands.split_first().ok_or_else(|| self.malformed("has no operands"))?;
        Ok((*split.0, split.1))
    }

    /// What is stored, where, and at which indices: old versions name the memref first.
    fn stored<'o>(&self, operands: &'o [ValueId]) -> Fallible<(ValueId, ValueId, &'o [ValueId])> {
        match operands {
            [a, b, indices @ ..] if self.is_memref(*b) => Ok((*a, *b, indices)),
            [a, b, indices @ ..] if self.is_memref(*a) => Ok((*b, *a, indices)),
            _ => Err(self.malformed("stores nothing")),
        }
    }

    /// A vector with as many axes as a ref has: those before its own have length 1.
    fn ranked(&mut self, x: Value, r: &RefType) -> Fallible<Value> {
        let shape = match self.ty(x) {
            Type::Tile(t) => t.shape.clone(),
            _ => vec![],
        };
        let new = r.shape.len().checked_sub(shape.len());
        let new = new.ok_or_else(|| self.malformed(format!("moves a {} to or from a {r}", self.ty(x))))?;
        self.reshape(x, [vec![1; new], shape].concat())
    }

    /// The type of a tile loaded from a ref into the result: of the ref's rank.
    fn loaded_type(&self, op: &Operation, r: &RefType) -> Fallible<Type> {
        let out = self.result_type(op)?;
        let shape = out.shape().unwrap_or_default();
        let new = r.shape.len().checked_sub(shape.len()).filter(|_| out.dtype() == r.dtype());
        let new = new.ok_or_else(|| self.malformed(format!("moves a {out} from a {r}")))?;
        let dtype = out.dtype().unwrap_or(DType::I32);
        self.tile_type(dtype, [vec![1; new], shape.to_vec()].concat())
    }

    fn load_done(&mut self, op: &Operation, x: Value) -> Fallible<()> {
        let shape = self.result_type(op)?.shape().unwrap_or_default().to_vec();
        let x = self.reshape(x, shape)?;
        self.done(op, x)
    }

    /// Strides other than 1.
    fn strides(&self, op: &Operation, rank: usize) -> Fallible<Option<Vec<usize>>> {
        let strides = self.axes(op, "strides")?.unwrap_or_default();
        if strides.iter().all(|s| *s == 1) {
            return Ok(None);
        }
        let fits = strides.len() == rank && strides.iter().all(|s| (1..=i32::MAX as usize).contains(s));
        if fits { Ok(Some(strides)) } else { Err(self.malformed(format!("has `strides` of {strides:?}"))) }
    }

    /// `vector.load`, and `tpu.vector_load` without a mask.
    pub(super) fn load(&mut self, op: &Operation) -> Fallible<()> {
        if let Some(segments) = self.segments(op, 3)?
            && segments[2] != 0
        {
            return Err(self.unsupported("has a mask"));
        }
        self.strided_load(op)
    }

    /// `tpu.strided_load`
    pub(super) fn strided_load(&mut self, op: &Operation) -> Fallible<()> {
        let (base, indices) = self.base(&op.operands)?;
        let (base, r, offsets) = self.place(base, indices, MemorySpace::Vmem)?;
        let ty = self.loaded_type(op, &r)?;
        let kind = match self.strides(op, offsets.len())? {
            None => OpKind::Load { base, offsets },
            Some(strides) => OpKind::LoadStrided { base, offsets, strides },
        };
        let x = self.push(kind, ty)?;
        self.load_done(op, x)
    }

    /// `tpu.vector_store`
    pub(super) fn store(&mut self, op: &Operation) -> Fallible<()> {
        let (operands, mask) = match self.segments(op, 4)? {
            Some(segments) if segments[3] == 1 => {
                let (mask, operands) =
                    op.operands.split_last().ok_or_else(|| self.malformed("stores nothing"))?;
                (operands, Some(*mask))
            }
            _ => (op.operands.as_slice(), None),
        };
        let (value, base, indices) = self.stored(operands)?;
        let (base, r, offsets) = self.place(base, indices, MemorySpace::Vmem)?;
        let value = self.get(value)?;
        let mut value = self.ranked(value, &r)?;
        if r.dtype() != Some(self.dtype(value)?) {
            return Err(self.malformed(format!("stores a {} in a {r}", self.ty(value))));
        }
        let strides = self.strides(op, offsets.len())?;
        if self.flag(op, "add")? {
            if strides.is_some() {
                return Err(self.unsupported("has `add` and `strides`"));
            }
            let ty = self.ty(value).clone();
            let old = self.push(OpKind::Load { base, offsets: offsets.clone() }, ty)?;
            value = self.binary(Binary::Add, old, value)?;
        }
        let kind = match (mask, strides) {
            (None, None) => OpKind::Store { base, offsets, value },
            (None, Some(strides)) => OpKind::StoreStrided { base, offsets, strides, value },
            (Some(mask), None) => {
                let mask = self.get(mask)?;
                let mask = self.ranked(mask, &r)?;
                if *self.ty(mask) != self.with_dtype(value, DType::Bool)? {
                    return Err(self.malformed(format!("has a mask of type {}", self.ty(mask))));
                }
                OpKind::StoreMasked { base, offsets, value, mask }
            }
            (Some(_), Some(_)) => return Err(self.unsupported("has a mask and `strides`")),
        };
        self.append(kind, vec![]);
        Ok(())
    }

    /// `tpu.strided_store`
    pub(super) fn strided_store(&mut self, op: &Operation) -> Fallible<()> {
        self.store(op)
    }

    /// `memref.load`: one element of SMEM.
    pub(super) fn load_scalar(&mut self, op: &Operation) -> Fallible<()> {
        let (base, indices) = self.base(&op.operands)?;
        let (base, r, offsets) = self.place(base, indices, MemorySpace::Smem)?;
        let dtype = r.dtype().ok_or_else(|| self.malformed(format!("loads from a {r}")))?;
        let x = self.push(OpKind::LoadScalar { base, offsets }, Type::Scalar(dtype))?;
        self.done(op, x)
    }

    /// `memref.store`
    pub(super) fn store_scalar(&mut self, op: &Operation) -> Fallible<()> {
        let (value, base, indices) = self.stored(&op.operands)?;
        let (base, r, offsets) = self.place(base, indices, MemorySpace::Smem)?;
        let value = self.get(value)?;
        if r.dtype().map(Type::Scalar).as_ref() != Some(self.ty(value)) {
            return Err(self.malformed(format!("stores a {} in a {r}", self.ty(value))));
        }
        self.append(OpKind::StoreScalar { base, offsets, value }, vec![]);
        Ok(())
    }

    /// `memref.alloca` and `tpu.sem_alloc`: scratch of the kernel.
    pub(super) fn allocate(&mut self, op: &Operation) -> Fallible<()> {
        let [] = self.operands(op)?;
        let v = self.result(op)?;
        let r = self.ref_type(self.module.values[v.0 as usize])?;
        let data = r.dtype().is_some();
        let placed = match r.space {
            MemorySpace::Vmem | MemorySpace::Smem => data,
            MemorySpace::Semaphore => !data,
            MemorySpace::Any => false,
        };
        if !placed || r.static_shape().is_none() {
            return Err(self.unsupported(format!("allocates a {r}")));
        }
        let x = self.new_value(Type::Ref(r), self.span)?;
        self.allocated.push(x);
        self.set(v, Known::Value(x));
        Ok(())
    }
}
