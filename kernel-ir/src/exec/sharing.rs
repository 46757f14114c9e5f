//! Which parallel steps use which block of an output: no two may write one, and none may read what another one writes.
//!
//! A step reads an output when an input is aliased to it. Steps along parallel axes run in any order, on any core, so what such
//! a read sees is decided by nobody.

use std::collections::HashMap;

use super::layout::Axes;

/// The users of an output's blocks; a step counts by its indices on the parallel axes.
#[derive(Debug, Default)]
pub(super) struct Users {
    writers: HashMap<Axes, Axes>,
    /// The step that read a block; `None` if several did.
    readers: HashMap<Axes, Option<Axes>>,
}

/// What another parallel step does to a block that one writes or reads.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Conflict {
    /// It writes the block, too: its indices.
    Written(Axes),
    /// It reads the block that this one writes, or writes the one that this one reads.
    Read,
}

impl Users {
    /// Notes that a step writes a block.
    pub(super) fn write(&mut self, block: Axes, step: Axes) -> Option<Conflict> {
        let before = *self.writers.entry(block).or_insert(step);
        if before != step {
            return Some(Conflict::Written(before));
        }
        self.readers.get(&block).is_some_and(|reader| *reader != Some(step)).then_some(Conflict::Read)
    }

    /// Notes that a step reads a block.
    pub(super) fn read(&mut self, block: Axes, step: Axes) -> Option<Conflict> {
        let reader = self.readers.entry(block).or_insert(Some(step));
        if *reader != Some(step) {
            *reader = None;
        }
        self.writers.get(&block).is_some_and(|writer| *writer != step).then_some(Conflict::Read)
    }
}
