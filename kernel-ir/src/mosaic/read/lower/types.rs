//! What MLIR's types are to the IR. The only place that says which element types there are.

use super::Fallible;
use super::attributes::between;
use super::scope::Lower;
use crate::ir::{DType, Elem, Extent, MemorySpace, RefType, Type};
use crate::mosaic::read::module::{Attribute, Signedness, Type as Mlir, TypeId};

/// Axes of the largest shape.
const MOST_AXES: usize = 16;

/// Elements of the largest tile: more than the VMEM of any TPU holds bytes.
const LARGEST_TILE: usize = 1 << 28;

/// Elements of the largest array.
const LARGEST_ARRAY: usize = 1 << 48;

impl Lower<'_> {
    /// The element type of a scalar, vector or memref. An `index` is an `i32`; signs belong to operations.
    pub(super) fn element(&self, id: TypeId) -> Fallible<DType> {
        Ok(match self.module.ty(id) {
            Mlir::Float(name) => match &**name {
                "f32" => DType::F32,
                "bf16" => DType::Bf16,
                "f8E4M3FN" => DType::F8E4M3Fn,
                "f8E5M2" => DType::F8E5M2,
                "f8E4M3B11FNUZ" => DType::F8E4M3B11Fnuz,
                other => return Err(self.unsupported(format!("has elements of type {other}"))),
            },
            Mlir::Integer { bits: 1, .. } => DType::Bool,
            Mlir::Integer { bits: 4, .. } => DType::I4,
            Mlir::Integer { bits: 8, .. } => DType::I8,
            Mlir::Integer { bits: 16, .. } => DType::I16,
            Mlir::Integer { bits: 32, .. } | Mlir::Index => DType::I32,
            Mlir::Integer { bits, signedness } => {
                let sign = match signedness {
                    Signedness::Signless => "i",
                    Signedness::Signed => "si",
                    Signedness::Unsigned => "ui",
                };
                return Err(self.unsupported(format!("has elements of type {sign}{bits}")));
            }
            _ => return Err(self.malformed("has elements that are no numbers")),
        })
    }

    /// The type of a scalar or vector. A vector of rank 0 is a scalar.
    pub(super) fn value_type(&self, id: TypeId) -> Fallible<Type> {
        match self.module.ty(id) {
            Mlir::Vector { shape, element } => {
                let dtype = self.element(*element)?;
                let shape: Option<Vec<usize>> =
                    shape.iter().map(|n| usize::try_from(*n).ok().filter(|n| *n > 0)).collect();
                let shape =
                    shape.ok_or_else(|| self.malformed("makes a vector of a length that is not positive"))?;
                if shape.is_empty() {
                    return Ok(Type::Scalar(dtype));
                }
                self.tile_type(dtype, shape)
            }
            Mlir::Integer { .. } | Mlir::Index | Mlir::Float(_) => Ok(Type::Scalar(self.element(id)?)),
            _ => Err(self.malformed("makes neither a scalar nor a vector")),
        }
    }

    /// The type of a tile, if there can be one.
    pub(super) fn tile_type(&self, dtype: DType, shape: Vec<usize>) -> Fallible<Type> {
        let len = shape.iter().try_fold(1_usize, |n, d| n.checked_mul(*d));
        if shape.len() > MOST_AXES || len.is_none_or(|n| n > LARGEST_TILE) {
            return Err(self.malformed("makes a vector that is larger than any TPU's memory"));
        }
        Ok(Type::tile(dtype, shape))
    }

    /// The type of a memref. Its layout is the compiler's affair.
    pub(super) fn ref_type(&self, id: TypeId) -> Fallible<RefType> {
        let Mlir::MemRef { shape, element, space, .. } = self.module.ty(id) else {
            return Err(self.malformed("has an operand or result that should be a memref"));
        };
        let elem = match self.module.ty(*element) {
            Mlir::Opaque(name) if &**name == "!tpu.dma_semaphore" => Elem::DmaSemaphore,
            Mlir::Opaque(name) if &**name == "!tpu.semaphore" => Elem::Semaphore,
            Mlir::Opaque(name) => return Err(self.unsupported(format!("has elements of type {name}"))),
            _ => Elem::Data(self.element(*element)?),
        };
        let extent = |n: &Option<i64>| match n {
            None => Some(Extent::Dynamic),
            Some(n) => usize::try_from(*n).ok().map(Extent::Static),
        };
        let shape: Option<Vec<_>> = shape.iter().map(extent).collect();
        let shape = shape.ok_or_else(|| self.malformed("has a memref of negative length"))?;
        let mut known = shape.iter().filter_map(|e| e.known());
        let len = known.try_fold(1_usize, |n, d| n.checked_mul(d.max(1)).filter(|n| *n <= LARGEST_ARRAY));
        if shape.len() > MOST_AXES || len.is_none() {
            return Err(self.malformed("has a memref of absurd size"));
        }
        let space = match (elem, space) {
            (Elem::Data(_), None) => MemorySpace::Vmem,
            (Elem::Data(_), Some(space)) => self.space(self.module.attr(*space))?,
            _ => MemorySpace::Semaphore,
        };
        Ok(RefType { elem, shape, space })
    }

    /// What a memory space attribute means: `#tpu.memory_space<vmem>`, perhaps followed by a kind of core.
    pub(super) fn space(&self, attribute: &Attribute) -> Fallible<MemorySpace> {
        let Attribute::Opaque(text) = attribute else {
            return Err(self.malformed("has a memory space that is not Mosaic's"));
        };
        let name = between(text).split(',').next().unwrap_or_default().trim();
        match name {
            "vmem" => Ok(MemorySpace::Vmem),
            "smem" => Ok(MemorySpace::Smem),
            "any" | "hbm" | "host" => Ok(MemorySpace::Any),
            "semaphore_mem" => Ok(MemorySpace::Semaphore),
            other => Err(self.unsupported(format!("reaches the memory space `{other}`"))),
        }
    }
}
