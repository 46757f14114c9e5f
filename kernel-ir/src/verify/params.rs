//! K0003, K0306: parameters fit their arrays and windows, and block maps take grid indices to block indices.

use super::Found;
use crate::diag::Diagnostic;
use crate::ir::{
    DType, Extent, Kernel, MemorySpace, Op, OpKind, Param, RefType, Role, Semantics, Type, Window, WindowUnit,
};

/// Bytes of the largest array that is worth talking about: what `i64` offsets can reach.
const LARGEST_ARRAY: i64 = 1 << 56;

/// Checks every parameter; true when all of them fit, so that rules about windows may read them.
pub(super) fn check(kernel: &Kernel, found: &mut Found) -> bool {
    let before = found.len();
    for p in &kernel.params {
        let Type::Ref(r) = kernel.ty(p.value) else { continue };
        if let Err(what) = fits(p, r) {
            let message = format!("parameter `{}` {what}", p.name);
            found.push(Diagnostic::error("K0003", message).at(kernel.loc(p.span).clone(), "declared here"));
        } else if let Some(w) = &p.window {
            map(kernel, p, w, found);
        }
    }
    found.len() == before
}

fn fits(p: &Param, r: &RefType) -> Result<(), String> {
    let wrong = |what: &str| Err(what.to_owned());
    let Some(array) = &p.array else {
        return match p.role {
            Role::Scratch if p.window.is_some() => wrong("is scratch, but has a window"),
            Role::Scratch if r.static_shape().is_none() => wrong("is scratch of unknown size"),
            Role::Scratch => scratch(r),
            _ => wrong("has no array"),
        };
    };
    let bytes = array.shape.iter().filter_map(|e| e.known()).try_fold(array.dtype.bytes() as i64, |b, n| {
        if n < 0 { None } else { b.checked_mul(n.max(1)).filter(|b| *b <= LARGEST_ARRAY) }
    });
    if bytes.is_none() {
        return wrong("is an array of negative or absurd size");
    }
    if r.dtype() != Some(array.dtype) {
        return Err(format!("is {r}, but its array is of {}", array.dtype));
    }
    match (p.role, &p.window) {
        (Role::Scratch, _) => return wrong("is scratch, but has an array"),
        (Role::Prefetch, _) if r.space != MemorySpace::Smem => {
            return wrong("is prefetched, but not to SMEM");
        }
        (Role::Prefetch, Some(_)) => return wrong("is prefetched, but has a window"),
        (_, Some(_)) if !matches!(r.space, MemorySpace::Vmem | MemorySpace::Smem) => {
            return wrong("has a window, but not in VMEM or SMEM");
        }
        (_, Some(Window { unit: WindowUnit::Elements(pads), block, .. })) if pads.len() != block.len() => {
            return wrong("has a window that is padded along other axes than its own");
        }
        (_, Some(w)) => {
            let block: Vec<_> = w.block.iter().map(|n| Extent::Static(*n)).collect();
            if r.shape != block {
                return Err(format!("is {r}, but its window has another shape"));
            }
        }
        (_, None) => {
            let same = array.shape.len() == r.shape.len()
                && array.shape.iter().zip(&r.shape).all(|(e, x)| match x {
                    Extent::Static(n) => e.known() == i64::try_from(*n).ok(),
                    Extent::Dynamic => true,
                });
            if !same {
                return Err(format!("is {r}, but its array has another shape"));
            }
        }
    }
    Ok(())
}

fn scratch(r: &RefType) -> Result<(), String> {
    let semaphore = r.dtype().is_none();
    match r.space {
        MemorySpace::Semaphore if semaphore => Ok(()),
        MemorySpace::Vmem | MemorySpace::Smem if !semaphore => Ok(()),
        _ => Err(format!("is scratch of type {r}, which is in no memory for it")),
    }
}

/// K0306 for one window.
fn map(kernel: &Kernel, p: &Param, w: &Window, found: &mut Found) {
    let i32s = |vs: &[crate::ir::Value]| vs.iter().all(|v| *kernel.ty(*v) == Type::Scalar(DType::I32));
    let mut wrong = |message: String, label: String| {
        found.push(Diagnostic::error("K0306", message).at(kernel.loc(w.span).clone(), label));
    };
    let (axes, args) = (kernel.grid.len(), w.index.args.len());
    if args != axes || !i32s(&w.index.args) {
        let message =
            format!("the block map of `{}` takes {args} indices, but the grid has {axes} axes", p.name);
        wrong(message, format!("takes {args} indices"));
    }
    let rank = p.array.as_ref().map_or(0, |a| a.shape.len());
    let results = w.index.results.len();
    if results != rank || !i32s(&w.index.results) {
        let message = format!("the block map of `{}` yields {results} indices for {rank} axes", p.name);
        wrong(message, format!("yields {results} block indices"));
    }
    for op in &w.index.ops {
        if let Some(what) = foreign(kernel, op) {
            let message = format!("the block map of `{}` {what}", p.name);
            let d = Diagnostic::error("K0306", message).at(kernel.loc(op.span).clone(), "in this block map");
            found.push(d.help("a block map computes with its grid indices, dims, and prefetched arrays"));
        }
    }
}

/// Why an operation has no place in a block map.
fn foreign(kernel: &Kernel, op: &Op) -> Option<String> {
    match &op.kind {
        OpKind::Constant(_) | OpKind::NumPrograms { .. } | OpKind::Dim { .. } => {}
        OpKind::Unary { .. } | OpKind::Binary { .. } | OpKind::Compare { .. } => {}
        OpKind::Select { .. } | OpKind::Cast { .. } | OpKind::AssumeMultiple { .. } => {}
        OpKind::ProgramId { .. } => {
            return Some("calls `program_id`: the grid's indices are its arguments".into());
        }
        OpKind::LoadScalar { base, .. } => {
            let p = kernel.param(*base);
            if p.is_none_or(|p| p.role != Role::Prefetch) {
                return Some("reads memory that is not prefetched".into());
            }
        }
        OpKind::If { .. } | OpKind::For { .. } | OpKind::While { .. } => {
            return Some("loops or branches".into());
        }
        _ => return Some("works on tiles or memory".into()),
    }
    let scalar = op.results.iter().all(|v| matches!(kernel.ty(*v), Type::Scalar(_)));
    (!scalar).then(|| "works on tiles".into())
}

/// Axes of the grid whose steps may run on several cores.
pub(super) fn parallel_axes(kernel: &Kernel) -> Vec<usize> {
    let axes = kernel.grid.iter().enumerate();
    axes.filter(|(_, g)| g.semantics == Semantics::Parallel).map(|(i, _)| i).collect()
}
