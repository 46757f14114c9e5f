//! Operations on memory: loads, stores, views of refs, copies.

use melior::ir::{Attribute, Value};

use super::function::{Function, Shaped};
use super::types;
use super::{Fallible, problem};
use crate::ir::{self, DType, MemorySpace, Offset, Size};

impl<'c, 'a> Function<'c, 'a, '_> {
    /// Offsets into a ref of this rank, as `index` values.
    fn indices(&mut self, base: ir::Value, offsets: &[Offset]) -> Fallible<Vec<Value<'c, 'a>>> {
        self.check_rank(base, offsets.len())?;
        let index = melior::ir::Type::index(self.context);
        let mut out = vec![];
        for offset in offsets {
            out.push(match offset {
                Offset::Const(n) => self.index(*n)?,
                Offset::Value(v) => {
                    let v = self.get(*v)?;
                    self.value("arith.index_cast", &[v], index, &[])?
                }
            });
        }
        Ok(out)
    }

    fn check_rank(&self, base: ir::Value, offsets: usize) -> Fallible<()> {
        let ty = self.reference(base)?;
        match ty.shape.len() == offsets {
            true => Ok(()),
            false => Err(self.malformed(format!("{ty} is reached with {offsets} offsets"))),
        }
    }

    /// The element type of a ref that holds data in this space.
    fn data(&self, base: ir::Value, space: MemorySpace) -> Fallible<DType> {
        let ty = self.reference(base)?;
        match ty.dtype() {
            Some(dtype) if ty.space == space => Ok(dtype),
            _ => Err(self.malformed(format!("{ty} is not data in {}", space.mosaic()))),
        }
    }

    /// A tile from VMEM.
    pub(super) fn load(
        &mut self,
        base: ir::Value,
        offsets: &[Offset],
        out: Shaped<'_>,
    ) -> Fallible<Value<'c, 'a>> {
        self.load_as("vector.load", base, offsets, &[], out)
    }

    fn load_as(
        &mut self,
        name: &str,
        base: ir::Value,
        offsets: &[Offset],
        attributes: &[(&str, Attribute<'c>)],
        out: Shaped<'_>,
    ) -> Fallible<Value<'c, 'a>> {
        let dtype = self.data(base, MemorySpace::Vmem)?;
        let mut operands = vec![self.get(base)?];
        operands.extend(self.indices(base, offsets)?);
        let ty = types::vector(out.shape, types::memory(self.context, dtype));
        let x = self.value(name, &operands, ty, attributes)?;
        self.loaded(x, dtype, out)
    }

    /// A tile of elements that are apart, from VMEM.
    pub(super) fn load_strided(
        &mut self,
        base: ir::Value,
        offsets: &[Offset],
        strides: &[usize],
        out: Shaped<'_>,
    ) -> Fallible<Value<'c, 'a>> {
        let strides = self.strides(strides);
        self.load_as("tpu.strided_load", base, offsets, &[("strides", strides)], out)
    }

    /// A tile into VMEM, to elements that are apart.
    pub(super) fn store_strided(
        &mut self,
        base: ir::Value,
        offsets: &[Offset],
        strides: &[usize],
        value: ir::Value,
    ) -> Fallible<()> {
        let dtype = self.data(base, MemorySpace::Vmem)?;
        let mut operands = vec![self.storable(value, dtype)?, self.get(base)?];
        operands.extend(self.indices(base, offsets)?);
        let strides = self.strides(strides);
        self.op("tpu.strided_store", &operands, &[], &[("strides", strides)])?;
        Ok(())
    }

    fn strides(&self, strides: &[usize]) -> Attribute<'c> {
        let strides: Vec<i32> = strides.iter().map(|n| i32::try_from(*n).unwrap_or(i32::MAX)).collect();
        types::i32s(self.context, &strides)
    }

    /// A tile into VMEM, everywhere or where a mask holds.
    pub(super) fn store(
        &mut self,
        base: ir::Value,
        offsets: &[Offset],
        value: ir::Value,
        mask: Option<ir::Value>,
    ) -> Fallible<()> {
        let dtype = self.data(base, MemorySpace::Vmem)?;
        let x = self.storable(value, dtype)?;
        let mut operands = vec![x, self.get(base)?];
        operands.extend(self.indices(base, offsets)?);
        if let Some(mask) = mask {
            operands.push(self.get(mask)?);
        }
        let rank = i32::try_from(offsets.len()).unwrap_or(i32::MAX);
        let masks = i32::from(mask.is_some());
        let attributes = [
            ("add", types::boolean(self.context, false)),
            ("operandSegmentSizes", types::i32s(self.context, &[1, 1, rank, masks])),
            ("strides", types::i32s(self.context, &[])),
        ];
        self.op("tpu.vector_store", &operands, &[], &attributes)?;
        Ok(())
    }

    /// One element of SMEM.
    pub(super) fn load_scalar(
        &mut self,
        base: ir::Value,
        offsets: &[Offset],
        out: Shaped<'_>,
    ) -> Fallible<Value<'c, 'a>> {
        let dtype = self.data(base, MemorySpace::Smem)?;
        let mut operands = vec![self.get(base)?];
        operands.extend(self.indices(base, offsets)?);
        let ty = types::memory(self.context, dtype);
        let x = self.value("memref.load", &operands, ty, &[])?;
        self.loaded(x, dtype, out)
    }

    /// One element into SMEM.
    pub(super) fn store_scalar(
        &mut self,
        base: ir::Value,
        offsets: &[Offset],
        value: ir::Value,
    ) -> Fallible<()> {
        let dtype = self.data(base, MemorySpace::Smem)?;
        if dtype == DType::Bf16 && self.is_constant(value)? {
            let text = "a bf16 constant is stored in SMEM";
            return Err(problem(self.kernel, self.span, "K0601", text)
                .help("keep the scalar in SMEM as f32: the scalar unit has no bf16 constants"));
        }
        let mut operands = vec![self.storable(value, dtype)?, self.get(base)?];
        operands.extend(self.indices(base, offsets)?);
        self.op("memref.store", &operands, &[], &[])?;
        Ok(())
    }

    /// What was loaded, as its register type.
    fn loaded(&mut self, x: Value<'c, 'a>, dtype: DType, out: Shaped<'_>) -> Fallible<Value<'c, 'a>> {
        if dtype != out.dtype {
            return Err(self.malformed(format!("{dtype} is loaded as {}", out.dtype)));
        }
        let name = match dtype {
            DType::Bool => {
                let stored = Shaped { dtype: DType::I32, ..out };
                return self.cast(x, stored, DType::Bool);
            }
            DType::Bf16 if out.shape.is_none() => "arith.extf",
            DType::I16 | DType::I8 if out.shape.is_none() => "arith.extsi",
            _ => return Ok(x),
        };
        self.value(name, &[x], self.mlir(out), &[])
    }

    /// A value to be stored in a ref of `dtype`, as its memory type.
    fn storable(&mut self, value: ir::Value, dtype: DType) -> Fallible<Value<'c, 'a>> {
        let t = self.shaped(value)?;
        if t.dtype != dtype {
            return Err(self.malformed(format!("a {} is stored where {dtype} lies", t.dtype)));
        }
        let x = self.get(value)?;
        let name = match dtype {
            DType::Bool => return self.cast(x, t, DType::I32),
            DType::Bf16 if t.shape.is_none() => "arith.truncf",
            DType::I16 | DType::I8 if t.shape.is_none() => "arith.trunci",
            _ => return Ok(x),
        };
        self.value(name, &[x], types::memory(self.context, dtype), &[])
    }

    /// A window of a ref.
    pub(super) fn slice(
        &mut self,
        base: ir::Value,
        offsets: &[Offset],
        sizes: &[Size],
        result: ir::Value,
    ) -> Fallible<Value<'c, 'a>> {
        self.check_rank(base, offsets.len())?;
        let mut operands = vec![self.get(base)?];
        for offset in offsets {
            operands.push(match offset {
                Offset::Const(n) => self.i32(i64::try_from(*n).unwrap_or(i64::MAX))?,
                Offset::Value(v) => self.get(*v)?,
            });
        }
        let mut dynamic = 0;
        for size in sizes {
            if let Size::Value(v) = size {
                operands.push(self.get(*v)?);
                dynamic += 1;
            }
        }
        let rank = i32::try_from(offsets.len()).unwrap_or(i32::MAX);
        let segments = types::i32s(self.context, &[1, rank, dynamic]);
        let ty = self.mlir_of(result)?;
        let attributes = [("operandSegmentSizes", segments)];
        self.value("tpu.memref_slice", &operands, ty, &attributes)
    }

    /// A ref without axes of length 1.
    pub(super) fn squeeze(
        &mut self,
        base: ir::Value,
        axes: &[usize],
        result: ir::Value,
    ) -> Fallible<Value<'c, 'a>> {
        let (from, to) = (self.reference(base)?, self.reference(result)?);
        if from.shape.len() != to.shape.len() + axes.len() {
            return Err(self.malformed(format!("{from} without axes {axes:?} is not {to}")));
        }
        let (x, ty) = (self.get(base)?, self.mlir_of(result)?);
        match axes {
            [] => Ok(x),
            _ => self.value("tpu.memref_squeeze", &[x], ty, &[]),
        }
    }

    /// The memory of a ref under another shape or element type.
    pub(super) fn recast(
        &mut self,
        name: &str,
        base: ir::Value,
        result: ir::Value,
    ) -> Fallible<Value<'c, 'a>> {
        let (x, ty) = (self.get(base)?, self.mlir_of(result)?);
        self.reference(result)?;
        self.value(name, &[x], ty, &[])
    }

    /// Starts a copy, or waits for one.
    pub(super) fn copy(
        &mut self,
        starts: bool,
        src: ir::Value,
        dst: ir::Value,
        sem: ir::Value,
    ) -> Fallible<()> {
        let semaphore = self.reference(sem)?;
        if semaphore.space != MemorySpace::Semaphore || !semaphore.shape.is_empty() {
            return Err(self.malformed(format!("a copy is counted by one semaphore, not {semaphore}")));
        }
        for v in [src, dst] {
            let ty = self.reference(v)?;
            if ty.dtype().is_none() {
                return Err(self.malformed(format!("{ty} holds nothing to copy")));
            }
        }
        let operands = [self.get(src)?, self.get(dst)?, self.get(sem)?];
        // source, its semaphore, target, its semaphore, device, core, subcore
        let segments = types::i32s(self.context, &[1, 0, 1, 1, 0, 0, 0]);
        let mut attributes: Vec<(&str, Attribute<'c>)> = vec![
            ("operandSegmentSizes", segments),
            ("priority", types::i32(self.context, 0)),
            ("strict_ordering", types::boolean(self.context, false)),
        ];
        let name = match starts {
            true => "tpu.enqueue_dma",
            false => {
                attributes.push(("wait_target", types::boolean(self.context, true)));
                "tpu.wait_dma"
            }
        };
        self.op(name, &operands, &[], &attributes)?;
        Ok(())
    }
}
