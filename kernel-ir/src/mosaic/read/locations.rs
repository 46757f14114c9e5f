//! Source lines that JAX keeps apart from a module, put back.
//!
//! JAX takes the locations off a module, so that equal kernels are equal bytes, and writes them as another one: a list
//! in the order of the text, where each operation comes before its regions, and a block's arguments before its operations.

use super::module::{AttrId, Attribute, Module, Operation};

/// The locations of a module: an attribute table, and ids in it.
pub(super) struct Locations {
    /// The table.
    pub(super) attributes: Vec<Attribute>,
    /// For the module itself, and for each operation and argument.
    pub(super) list: Vec<AttrId>,
}

/// Gives a module's operations their locations. A list that is not of this module's length says nothing, and is left.
pub(super) fn restore(module: &mut Module, locations: Locations) {
    if locations.list.len() != 1 + count(&module.body) {
        return;
    }
    let first = module.attributes.len() as u32;
    let moved = |id: AttrId| AttrId(first + id.0);
    module.attributes.extend(locations.attributes.into_iter().map(|a| match a {
        Attribute::FileLoc(place) => Attribute::FileLoc(place),
        Attribute::NameLoc { name, child } => Attribute::NameLoc { name, child: moved(child) },
        Attribute::CallLoc { callee, caller } => {
            Attribute::CallLoc { callee: moved(callee), caller: moved(caller) }
        }
        Attribute::FusedLoc(all) => Attribute::FusedLoc(all.into_iter().map(moved).collect()),
        // No location leads to anything else.
        _ => Attribute::UnknownLoc,
    }));
    let mut list = locations.list.into_iter().skip(1).map(moved);
    place(&mut module.body, &mut list);
}

/// The number of operations and arguments.
fn count(operations: &[Operation]) -> usize {
    let blocks = operations.iter().flat_map(|o| &o.regions).flat_map(|r| &r.blocks);
    operations.len() + blocks.map(|b| b.arguments.len() + count(&b.operations)).sum::<usize>()
}

fn place(operations: &mut [Operation], list: &mut impl Iterator<Item = AttrId>) {
    for op in operations {
        op.location = list.next();
        for block in op.regions.iter_mut().flat_map(|r| &mut r.blocks) {
            // An argument keeps no location.
            let _argument = block.arguments.len().checked_sub(1).and_then(|last| list.nth(last));
            place(&mut block.operations, list);
        }
    }
}
