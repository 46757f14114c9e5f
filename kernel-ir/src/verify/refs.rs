//! K0002 for operations on memory: the right memory, one offset an axis, windows of equal shape.

use super::shape::require;
use crate::ir::{
    DType, Elem, Extent, Kernel, MemorySpace, Offset, Op, OpKind, RefType, Semantics, Size, TileType, Type,
    Value,
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
        OpKind::LoadStrided { base, offsets, strides } => {
            strided(strides, offsets)?;
            vector(kernel, *base, offsets, op.results[0])
        }
        OpKind::StoreStrided { base, offsets, strides, value } => {
            strided(strides, offsets)?;
            vector(kernel, *base, offsets, *value)
        }
        OpKind::StoreMasked { base, offsets, value, mask } => {
            vector(kernel, *base, offsets, *value)?;
            let shape = kernel.ty(*value).shape().unwrap_or_default();
            require(*kernel.ty(*mask) == Type::tile(DType::Bool, shape), "wants a mask of the tile's shape")
        }
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
        OpKind::ReshapeRef { base } => {
            let (r, to) = (place(kernel, *base)?, place(kernel, op.results[0])?);
            require(r.elem == to.elem && r.space == to.space, "keeps the element type and the memory")?;
            let len = |r: &RefType| {
                r.static_shape().and_then(|s| s.iter().try_fold(1, |n: usize, d| n.checked_mul(*d)))
            };
            require(len(r).is_some() && len(r) == len(to), "keeps the elements of a known shape")
        }
        OpKind::BitcastRef { base } => {
            let (r, to) = (place(kernel, *base)?, place(kernel, op.results[0])?);
            require(r.space == to.space, "keeps the memory")?;
            require(packs(r, to) || packs(to, r), "keeps the bits of numbers")
        }
        OpKind::CopyStart { src, dst, sem } | OpKind::CopyWait { src, dst, sem } => {
            copies(place(kernel, *src)?, place(kernel, *dst)?)?;
            semaphore(place(kernel, *sem)?)
        }
        OpKind::CopyStartRemote { src, sent, dst, received, device } => {
            copies(place(kernel, *src)?, place(kernel, *dst)?)?;
            semaphore(place(kernel, *sent)?)?;
            semaphore(place(kernel, *received)?)?;
            require(*kernel.ty(*device) == Type::Scalar(DType::I32), "goes to a device by its i32 id")
        }
        OpKind::SemSignal { sem, amount, device, core } => {
            semaphore(place(kernel, *sem)?)?;
            let numbers = [Some(*amount), *device, *core].into_iter().flatten();
            require(numbers.into_iter().all(|v| *kernel.ty(v) == Type::Scalar(DType::I32)), "counts in i32")?;
            let cores = kernel.grid.iter().all(|g| g.semantics == Semantics::Parallel);
            require(core.is_none() || cores, "names a core only if all axes of the grid are parallel")
        }
        OpKind::SemWait { sem, amount } => {
            semaphore(place(kernel, *sem)?)?;
            require(*kernel.ty(*amount) == Type::Scalar(DType::I32), "counts in i32")
        }
        OpKind::SemRead { sem } => {
            semaphore(place(kernel, *sem)?)?;
            require(*kernel.ty(op.results[0]) == Type::Scalar(DType::I32), "counts in i32")
        }
        OpKind::BarrierSemaphore => {
            let r = place(kernel, op.results[0])?;
            let fits = r.elem == Elem::Semaphore && r.space == MemorySpace::Semaphore && r.shape.is_empty();
            require(fits, "yields one semaphore")
        }
        _ => Ok(()),
    }
}

/// One stride an axis, each at least 1.
fn strided(strides: &[usize], offsets: &[Offset]) -> Result<(), String> {
    let fits = strides.len() == offsets.len() && strides.iter().all(|s| (1..=i32::MAX as usize).contains(s));
    require(fits, "has one stride an axis, at least 1")
}

/// Two ends of a copy.
fn copies(src: &RefType, dst: &RefType) -> Result<(), String> {
    require(src.dtype().is_some() && src.elem == dst.elem, "moves data of one element type")?;
    require(src.shape == dst.shape, "moves between windows of one shape")
}

/// One semaphore of either kind.
fn semaphore(sem: &RefType) -> Result<(), String> {
    let counts = matches!(sem.elem, Elem::DmaSemaphore | Elem::Semaphore);
    require(counts && sem.shape.is_empty(), "counts on one semaphore")
}

/// Whether an element of `wide` holds those of `narrow` along the last axis but one.
fn packs(wide: &RefType, narrow: &RefType) -> bool {
    let (Some(w), Some(n)) = (wide.dtype(), narrow.dtype()) else { return false };
    let (rank, ratio) = (wide.shape.len(), w.bits() / n.bits().max(1));
    let axis = |i: usize| match (wide.shape[i], narrow.shape[i]) {
        (Extent::Static(a), Extent::Static(b)) if i + 2 == rank => a.checked_mul(ratio) == Some(b),
        (a, b) => a == b && (i + 2 != rank || ratio == 1),
    };
    let numbers = w != DType::Bool && n != DType::Bool && w.bits() >= n.bits();
    numbers && (rank >= 2 || ratio == 1) && narrow.shape.len() == rank && (0..rank).all(axis)
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
