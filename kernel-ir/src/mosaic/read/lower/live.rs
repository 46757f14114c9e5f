//! Which operations matter: those with an effect, and those whose results reach one.
//!
//! Pallas reads what it is about to overwrite, and keeps what nobody asks for; none of it is translated.

use super::{DEEPEST, Fallible};
use crate::diag::{Diagnostic, SourceLoc};
use crate::mosaic::read::module::{Block, Module, Operation, ValueId};

/// Operations that say something about a run, but change nothing in it.
const REMARKS: [&str; 8] = [
    "tpu.trace_start",
    "tpu.trace_stop",
    "tpu.trace_value",
    "tpu.log",
    "tpu.log_buffer",
    "tpu.delay",
    "tpu.debug_assert_insn",
    "vector.print",
];

/// Operations that end a block.
pub(super) const ENDS: [&str; 4] = ["func.return", "scf.yield", "scf.condition", "tpu.yield"];

/// What matters in a module.
pub(super) struct Live {
    /// By value: whether something that matters uses it.
    used: Vec<bool>,
}

impl Live {
    /// Looks through all functions.
    ///
    /// # Errors
    /// `K0811` if regions are nested too deep.
    pub(super) fn new(module: &Module) -> Fallible<Self> {
        let mut live = Self { used: vec![false; module.values.len()] };
        for function in &module.body {
            if is_deep(function, 0) {
                let file = format!("<{}>", module.name.as_deref().unwrap_or("module")).into();
                let at = module.place(function.location).cloned();
                let at = at.unwrap_or(SourceLoc { file, line: 0, column: 0 });
                let message = format!("regions are nested more than {DEEPEST} deep, which is not supported");
                return Err(Diagnostic::error("K0811", message).at(at, "in this function"));
            }
            live.regions(function);
        }
        Ok(live)
    }

    /// Whether an operation must be translated.
    pub(super) fn needs(&self, op: &Operation) -> bool {
        if REMARKS.contains(&&*op.name) {
            return false;
        }
        has_effect(op) || op.results.iter().any(|v| self.is_used(*v))
    }

    fn is_used(&self, v: ValueId) -> bool {
        self.used.get(v.0 as usize).copied().unwrap_or(true)
    }

    fn regions(&mut self, op: &Operation) {
        for block in op.regions.iter().flat_map(|r| &r.blocks) {
            self.block(block);
        }
    }

    /// Goes backwards: uses come after what they use.
    fn block(&mut self, block: &Block) {
        for op in block.operations.iter().rev() {
            if ENDS.contains(&&*op.name) || self.needs(op) {
                for v in &op.operands {
                    if let Some(used) = self.used.get_mut(v.0 as usize) {
                        *used = true;
                    }
                }
                self.regions(op);
            }
        }
    }
}

fn is_deep(op: &Operation, depth: usize) -> bool {
    let inside = || op.regions.iter().flat_map(|r| &r.blocks).flat_map(|b| &b.operations);
    depth > DEEPEST || inside().any(|op| is_deep(op, depth + 1))
}

/// Whether an operation does more than make its results.
fn has_effect(op: &Operation) -> bool {
    if REMARKS.contains(&&*op.name) || ENDS.contains(&&*op.name) {
        return false;
    }
    if op.regions.is_empty() {
        return op.results.is_empty()
            || matches!(&*op.name, "func.call" | "tpu.prng_random_bits" | "tpu.fetch_and_add_sync");
    }
    op.regions.iter().flat_map(|r| &r.blocks).flat_map(|b| &b.operations).any(has_effect)
}
