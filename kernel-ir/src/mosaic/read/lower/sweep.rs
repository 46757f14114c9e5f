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
    let mut kept = vec![];
    for mut op in std::mem::take(&mut block.ops).into_iter().rev() {
        let needed = has_effect(&op.kind) || op.results.iter().any(|v| used.contains(v));
        if !needed {
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
        kept.push(op);
    }
    kept.reverse();
    block.ops = kept;
}

/// Whether an operation does more than make its results. A loop may also not end.
const fn has_effect(kind: &OpKind) -> bool {
    match kind {
        OpKind::If { .. } | OpKind::For { .. } | OpKind::While { .. } | OpKind::PrngBits => true,
        _ => !kind.makes_value(),
    }
}
