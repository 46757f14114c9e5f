//! Compares ops: arguments, results, dtypes, and through [`coverage`](super::coverage) the shapes they serve.

use kernel_ir::ir::DimExpr;
use kernel_ir::mosaic::call::{ArgumentInterface, Index, OpInterface, Table};

use super::{Comparison, coverage};

pub(super) fn compare(old: &Index, new: &Index, found: &mut Comparison) {
    for (name, before) in old.ops.iter() {
        match new.ops.get(name) {
            None => found.breaks(format!("the op {name} is gone: `{}` fails", signature(name, before))),
            Some(after) => {
                let breaks = found.breaking.len();
                arrays(name, "argument", &before.arguments, &after.arguments, found);
                arrays(name, "result", &before.results, &after.results, found);
                // Shapes of other arguments cannot be compared.
                if found.breaking.len() == breaks {
                    coverage::compare(name, before, after, found);
                }
            }
        }
    }
    for (name, op) in new.ops.iter().filter(|(name, _)| old.ops.get(name).is_none()) {
        found.adds(format!("the op `{}`", signature(name, op)));
    }
}

/// An op as people write a call of it: `toy(x: T[m, k])`.
pub(crate) fn signature(name: &str, op: &OpInterface) -> String {
    let arguments: Vec<_> = op.arguments.iter().map(array).collect();
    format!("{name}({})", arguments.join(", "))
}

fn array(array: &ArgumentInterface) -> String {
    let shape: Vec<_> = array.shape.iter().map(DimExpr::to_string).collect();
    format!("{}: {}[{}]", array.name, array.dtype, shape.join(", "))
}

fn arrays(
    op: &str,
    what: &str,
    old: &[ArgumentInterface],
    new: &[ArgumentInterface],
    found: &mut Comparison,
) {
    for (at, before) in old.iter().enumerate() {
        match new.get(at) {
            None => found.breaks(format!("{op} loses its {what} `{}`", array(before))),
            Some(after)
                if (&before.dtype, &before.shape, &before.name)
                    != (&after.dtype, &after.shape, &after.name) =>
            {
                found.breaks(format!(
                    "{op} takes another {what}: `{}` becomes `{}`",
                    array(before),
                    array(after)
                ));
            }
            Some(_) => {}
        }
    }
    for after in new.iter().skip(old.len()) {
        // An op has no defaults: whoever calls it without this array fails.
        found.breaks(format!(
            "{op} gets one more {what}, `{}`, which callers of today do not know",
            array(after)
        ));
    }
}

/// Dtypes as people write them: `T = bfloat16`.
pub(super) fn dtypes(table: &Table<String>) -> String {
    let all: Vec<_> = table.iter().map(|(variable, dtype)| format!("{variable} = {dtype}")).collect();
    all.join(", ")
}
