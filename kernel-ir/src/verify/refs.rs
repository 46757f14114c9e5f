//! K0002 for operations on memory: the right memory, one offset an axis, windows of equal shape.

use super::shape::require;
use crate::ir::{
    DType, Elem, Extent, Kernel, MemorySpace, Offset, Op, OpKind, RefType, Size, TileType, Type, Value,
};

fn place(kernel: &Kernel, v: Value) -> Result<&RefType, String> {
    match kernel.ty(v) {
        Type::Ref(r) => Ok(r),
        other => Err(format!("wants a ref, not a {other}")),
    }
}

/// Whether an operation on memory fits its operands; what breaks is a phrase that follows the operation's name.
pub(super) fn fits(kernel: &Kernel, op: &Op) -> Result<(), String> {
    match &op.kind {
        OpKind::Load { base, offsets } => vector(kernel, *base, offsets, op.results[0]),
        OpKind::Store { base, offsets, value } => vector(kernel, *base, offsets, *value),
        OpKind::LoadScalar { base, offsets } => scalar(kernel, *base, offsets, op.results[0]),
        OpKind::StoreScalar { base, offsets, value } => scalar(kernel, *base, offsets, *value),
        OpKind::Slice { base, offsets, sizes } => {
            let r = place(kernel, *base)?;
            check_offsets(kernel, r, offsets)?;
            require(sizes.len() == r.shape.len(), "has one size an axis")?;
            let scalars = |s: &Size| match s {
                Size::Const(n) => *n > 0,
                Size::Value(v) => *kernel.ty(*v) == Type::Scalar(DType::I32),
            };
            require(sizes.iter().all(scalars), "has sizes that are at least 1, or i32 scalars")?;
            let shape = sizes.iter().map(|s| match s {
                Size::Const(n) => Extent::Static(*n),
                Size::Value(_) => Extent::Dynamic,
            });
            let want = RefType { elem: r.elem, shape: shape.collect(), space: r.space };
            require(*kernel.ty(op.results[0]) == Type::Ref(want), "yields a ref of its sizes")
        }
        OpKind::Squeeze { base, axes } => {
            let r = place(kernel, *base)?;
            let units = axes.iter().all(|a| r.shape.get(*a) == Some(&Extent::Static(1)));
            require(units, "takes axes of length 1")?;
            let left = r.shape.iter().enumerate().filter(|(i, _)| !axes.contains(i));
            let want = RefType { elem: r.elem, shape: left.map(|(_, e)| *e).collect(), space: r.space };
            require(*kernel.ty(op.results[0]) == Type::Ref(want), "yields the ref without those axes")
        }
        OpKind::CopyStart { src, dst, sem } | OpKind::CopyWait { src, dst, sem } => {
            let (s, d, sem) = (place(kernel, *src)?, place(kernel, *dst)?, place(kernel, *sem)?);
            require(s.dtype().is_some() && s.elem == d.elem, "moves data of one element type")?;
            require(s.shape == d.shape, "moves between windows of one shape")?;
            require(sem.elem == Elem::DmaSemaphore && sem.shape.is_empty(), "counts on one semaphore")
        }
        _ => Ok(()),
    }
}

fn check_offsets(kernel: &Kernel, r: &RefType, offsets: &[Offset]) -> Result<(), String> {
    require(offsets.len() == r.shape.len(), "has one offset an axis")?;
    let scalar = |o: &Offset| match o {
        Offset::Const(n) => i32::try_from(*n).is_ok(),
        Offset::Value(v) => *kernel.ty(*v) == Type::Scalar(DType::I32),
    };
    require(offsets.iter().all(scalar), "has offsets that are i32")
}

fn vector(kernel: &Kernel, base: Value, offsets: &[Offset], value: Value) -> Result<(), String> {
    let r = place(kernel, base)?;
    check_offsets(kernel, r, offsets)?;
    require(r.space == MemorySpace::Vmem, "reaches VMEM only")?;
    let Type::Tile(TileType { dtype, shape }) = kernel.ty(value) else {
        return Err("moves a tile".to_owned());
    };
    require(r.dtype() == Some(*dtype), "moves elements of the ref's type")?;
    require(shape.len() == r.shape.len(), "moves a tile of the ref's rank")?;
    require(r.static_shape().is_some(), "reaches memory of a known shape")
}

fn scalar(kernel: &Kernel, base: Value, offsets: &[Offset], value: Value) -> Result<(), String> {
    let r = place(kernel, base)?;
    check_offsets(kernel, r, offsets)?;
    require(r.space == MemorySpace::Smem, "reaches SMEM only")?;
    let fits = r.dtype().is_some_and(|d| *kernel.ty(value) == Type::Scalar(d));
    require(fits, "moves one element of the ref's type")
}
