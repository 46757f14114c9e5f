//! Removes what turned out not to be needed: operations whose results nothing uses, and that do nothing else.

use std::collections::HashSet;

use crate::ir::{Block, OpKind, Value};

/// Sweeps a block and those inside it; what the block yields stays.
pub(super) fn sweep(block: &mut Block) {
    sweep_block(block, &mut HashSet::new());
}

/// Goes backwards: uses come after what they use.
fn sweep_block(block: &mut Block, used: &mut HashSet<Value>) {
    used.extend(&block.results);
    let mut needed = vec![false; block.ops.len()];
    for (op, needed) in block.ops.iter_mut().zip(&mut needed).rev() {
        *needed = has_effect(&op.kind) || op.results.iter().any(|v| used.contains(v));
        if !*needed {
            continue;
        }
        match &mut op.kind {
            OpKind::If { then, otherwise, .. } => {
                sweep_block(then, used);
                sweep_block(otherwise, used);
            }
            OpKind::For { body, .. } => sweep_block(body, used),
            OpKind::While { cond, body, .. } => {
                sweep_block(body, used);
                sweep_block(cond, used);
            }
            _ => {}
        }
        used.extend(op.kind.operands());
    }
    let mut needed = needed.into_iter();
    block.ops.retain(|_| needed.next().unwrap_or(true));
}

/// Whether an operation does more than make its results. A loop may also not end.
const fn has_effect(kind: &OpKind) -> bool {
    match kind {
        OpKind::If { .. } | OpKind::For { .. } | OpKind::While { .. } | OpKind::PrngBits => true,
        _ => !kind.makes_value(),
    }
}
