//! Which values anything depends on: ops that only make other values are left out of the plan.

use crate::ir::{Block, Kernel, Op, OpKind, Value};

/// What a kernel's values are needed for.
#[derive(Debug)]
pub(super) struct Needed {
    /// By value: how many needed ops and block results read it.
    pub(super) uses: Vec<u32>,
}

impl Needed {
    /// Counts the uses of every value of a kernel.
    pub(super) fn of(kernel: &Kernel) -> Self {
        let mut needed = Self { uses: vec![0; kernel.values.len()] };
        needed.block(&kernel.body);
        for window in kernel.params.iter().filter_map(|p| p.window.as_ref()) {
            needed.block(&window.index);
        }
        needed
    }

    /// True when the plan must run the op.
    pub(super) fn op(&self, op: &Op) -> bool {
        has_effect(&op.kind) || op.results.iter().any(|r| self.uses[r.0 as usize] > 0)
    }

    fn block(&mut self, block: &Block) {
        block.results.iter().for_each(|v| self.read(*v));
        // Every use of a value comes after it: one walk from the end sees all of them.
        for op in block.ops.iter().rev() {
            if self.op(op) {
                op.kind.blocks().into_iter().for_each(|b| self.block(b));
                op.kind.operands().into_iter().for_each(|v| self.read(v));
            }
        }
    }

    fn read(&mut self, v: Value) {
        self.uses[v.0 as usize] += 1;
    }
}

/// True for ops that do more than make a value.
fn has_effect(kind: &OpKind) -> bool {
    let advances = matches!(kind, OpKind::PrngBits);
    !kind.makes_value() || advances || !kind.blocks().is_empty()
}
