//! Which parameters a kernel writes to, through whatever refs.

use std::collections::HashMap;

use crate::ir::{Kernel, OpKind, Value};

/// By parameter: whether the body writes to its memory or its array.
pub(in crate::exec) fn written(kernel: &Kernel) -> Vec<bool> {
    let params = kernel.params.iter().enumerate();
    let mut roots: HashMap<Value, usize> = params.map(|(i, p)| (p.value, i)).collect();
    let mut written = vec![false; kernel.params.len()];
    kernel.each_op(&mut |op| {
        if let Some(base) = base_of(&op.kind) {
            let root = roots.get(&base).copied();
            roots.extend(op.results.first().copied().zip(root));
        }
        if let Some(root) = target_of(&op.kind).and_then(|v| roots.get(&v)) {
            written[*root] = true;
        }
    });
    written
}

/// The ref that an op makes another one of.
pub(super) const fn base_of(kind: &OpKind) -> Option<Value> {
    match kind {
        OpKind::Slice { base, .. }
        | OpKind::Squeeze { base, .. }
        | OpKind::ReshapeRef { base }
        | OpKind::BitcastRef { base } => Some(*base),
        _ => None,
    }
}

/// The ref that an op writes to, sooner or later.
pub(super) const fn target_of(kind: &OpKind) -> Option<Value> {
    match kind {
        OpKind::Store { base, .. }
        | OpKind::StoreStrided { base, .. }
        | OpKind::StoreMasked { base, .. }
        | OpKind::StoreScalar { base, .. } => Some(*base),
        OpKind::CopyStart { dst, .. }
        | OpKind::CopyWait { dst, .. }
        | OpKind::CopyStartRemote { dst, .. } => Some(*dst),
        _ => None,
    }
}
