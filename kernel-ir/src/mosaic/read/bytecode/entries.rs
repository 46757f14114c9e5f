//! The table of attributes and types as it stands in the file: whose each entry is, and its bytes.

use super::cursor::Cursor;
use super::fault::{Budget, Fallible};
use super::file::{Dialects, Strings};

/// An attribute or a type, not yet decoded.
#[derive(Clone, Copy)]
pub(super) struct Entry<'b> {
    pub(super) data: Cursor<'b>,
    /// It belongs to MLIR itself.
    pub(super) builtin: bool,
    /// It is in its dialect's binary encoding; otherwise it is MLIR text.
    pub(super) binary: bool,
}

/// Attributes and types, each in the order of their indices.
pub(super) struct Entries<'b> {
    pub(super) attributes: Vec<Entry<'b>>,
    pub(super) types: Vec<Entry<'b>>,
}

impl<'b> Entries<'b> {
    pub(super) fn read(
        mut offsets: Cursor<'b>,
        mut data: Cursor<'b>,
        dialects: &Dialects,
        strings: &Strings<'b>,
        budget: &mut Budget,
    ) -> Fallible<Self> {
        let attributes = offsets.count()?;
        let types = offsets.count()?;
        let mut group = |count: usize| {
            let mut all = budget.vec(offsets.at(), count)?;
            while all.len() < count {
                let dialect = offsets.index(dialects.len(), "dialect")?;
                let builtin = strings.raw(dialects.name(dialect)) == b"builtin";
                let entries = offsets.count()?;
                if entries > count - all.len() {
                    return Err(offsets.malformed("a group has more entries than its table"));
                }
                for _ in 0..entries {
                    let (length, binary) = offsets.flagged()?;
                    all.push(Entry { data: data.part(length)?, builtin, binary });
                }
            }
            Ok(all)
        };
        let tables = Self { attributes: group(attributes)?, types: group(types)? };
        offsets.finish("the table of attributes and types")?;
        Ok(tables)
    }
}
