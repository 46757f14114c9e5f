//! Goes through the module: the operands and results of an operation, and the operations of a block.

use super::scope::{Known, Lower};
use super::{DEEPEST, Fallible};
use crate::ir::{Type, Value};
use crate::mosaic::read::module::{Block, Operation, Region, ValueId};

/// Operations of the largest module, those of a function once for each call of it.
const MOST_OPERATIONS: usize = 1 << 16;

impl<'m> Lower<'m> {
    /// The operands of an operation that takes a fixed number of them.
    pub(super) fn operands<const N: usize>(&self, op: &Operation) -> Fallible<[ValueId; N]> {
        let operands = op.operands.as_slice();
        operands
            .try_into()
            .map_err(|_| self.malformed(format!("has {} operands instead of {N}", operands.len())))
    }

    /// The result of an operation that makes one.
    pub(super) fn result(&self, op: &Operation) -> Fallible<ValueId> {
        match op.results[..] {
            [v] => Ok(v),
            _ => Err(self.malformed(format!("has {} results instead of 1", op.results.len()))),
        }
    }

    /// The type of the only result, a scalar or a tile.
    pub(super) fn result_type(&self, op: &Operation) -> Fallible<Type> {
        let v = self.result(op)?;
        self.value_type(self.module.values[v.0 as usize])
    }

    /// Says what the only result has become: a scalar or tile of the type that the module declares.
    pub(super) fn done(&mut self, op: &Operation, x: Value) -> Fallible<()> {
        let v = self.result(op)?;
        self.bind(v, x)
    }

    /// As [`Lower::done`], for one of several results.
    pub(super) fn bind(&mut self, v: ValueId, x: Value) -> Fallible<()> {
        let declared = self.value_type(self.module.values[v.0 as usize])?;
        if declared != *self.ty(x) {
            return Err(self.malformed(format!("declares a {declared}, but makes a {}", self.ty(x))));
        }
        self.set(v, Known::Value(x));
        Ok(())
    }

    /// Translates an operation.
    fn operation(&mut self, op: &'m Operation) -> Fallible<()> {
        (self.name, self.span) = (&op.name, self.places.of(op));
        if self.live.needs(op) { self.dispatch(op) } else { Ok(()) }
    }

    /// Translates the operations of a block but the last, which ends it and is returned.
    pub(super) fn operations(&mut self, block: &'m Block, end: &str) -> Fallible<&'m Operation> {
        let Some((last, ops)) = block.operations.split_last() else {
            return Err(self.malformed("has an empty block"));
        };
        if self.depth > DEEPEST {
            return Err(self.unsupported(format!("is nested more than {DEEPEST} deep")));
        }
        self.depth += 1;
        for op in ops {
            self.lowered += 1;
            if self.lowered > MOST_OPERATIONS {
                let message = format!("is where the module gets more than {MOST_OPERATIONS} operations");
                return Err(self.unsupported(message));
            }
            self.operation(op)?;
        }
        self.depth -= 1;
        (self.name, self.span) = (&last.name, self.places.of(last));
        if &*last.name != end {
            return Err(self.malformed(format!("ends a block instead of `{end}`")));
        }
        Ok(last)
    }

    /// The only block of a region.
    pub(super) fn only_block(&self, op: &'m Operation, region: usize) -> Fallible<&'m Block> {
        match op.regions.get(region) {
            Some(Region { blocks }) if blocks.len() == 1 => Ok(&blocks[0]),
            Some(Region { blocks }) if blocks.len() > 1 => {
                Err(self.unsupported("has a region of several blocks"))
            }
            _ => Err(self.malformed("has no region with a block")),
        }
    }
}
