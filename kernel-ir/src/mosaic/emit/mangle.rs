//! The names that libtpu reads: Mosaic's stable form calls every operation `stable_mosaic.<name>` and keeps what was a
//! property as a plain attribute.

use melior::ir::RegionLike as _;
use melior::ir::block::BlockLike as _;
use melior::ir::operation::{OperationBuilder, OperationLike as _};
use melior::ir::{BlockRef, Module, OperationRef, Region, ValueLike as _};

/// What stands before the name of every operation of the stable form.
const PREFIX: &str = "stable_mosaic.";

/// Gives every operation inside `module` its stable name.
pub(super) fn mangle(module: &Module<'_>) -> Result<(), melior::Error> {
    rename_block(module.body(), &|name| format!("{PREFIX}{name}"))
}

/// Undoes [`mangle`].
pub(super) fn demangle(module: &Module<'_>) -> Result<(), melior::Error> {
    rename_block(module.body(), &|name| name.strip_prefix(PREFIX).unwrap_or(name).to_owned())
}

fn rename_block<'c, 'a>(
    block: BlockRef<'c, 'a>,
    rename: &dyn Fn(&str) -> String,
) -> Result<(), melior::Error> {
    let mut next = block.first_operation();
    while let Some(op) = next {
        next = op.next_in_block();
        for region in op.regions() {
            let mut inner = region.first_block();
            while let Some(block) = inner {
                inner = block.next_in_region();
                rename_block(block, rename)?;
            }
        }
        rename_op(block, op, rename)?;
    }
    Ok(())
}

#[allow(unsafe_code, reason = "melior moves no regions, replaces no uses and erases no operations")]
fn rename_op<'c, 'a>(
    block: BlockRef<'c, 'a>,
    op: OperationRef<'c, 'a>,
    rename: &dyn Fn(&str) -> String,
) -> Result<(), melior::Error> {
    let name = op.name();
    let name = rename(name.as_string_ref().as_str()?);
    let operands: Vec<_> = op.operands().collect();
    let results: Vec<_> = op.results().map(|r| r.r#type()).collect();
    let attributes: Vec<_> = op.attributes().collect();
    let regions: Vec<Region<'c>> = op.regions().map(|_| Region::new()).collect();
    let renamed = OperationBuilder::new(&name, op.location())
        .add_operands(&operands)
        .add_results(&results)
        .add_attributes(&attributes)
        .add_regions_vec(regions)
        .build()?;
    let renamed = block.insert_operation_before(op, renamed);
    for (new, old) in renamed.regions().zip(op.regions()) {
        // SAFETY: both regions are alive and distinct; `new` is empty and takes the blocks of `old`.
        unsafe { mlir_sys::mlirRegionTakeBody(new.to_raw(), old.to_raw()) };
    }
    for (new, old) in renamed.results().zip(op.results()) {
        // SAFETY: both values are alive and have the same type.
        unsafe { mlir_sys::mlirValueReplaceAllUsesOfWith(old.to_raw(), new.to_raw()) };
    }
    // SAFETY: nothing uses the results of `op` any more, its regions are empty, and no one reads `op` after this.
    unsafe { mlir_sys::mlirOperationDestroy(op.to_raw()) };
    Ok(())
}
