//! Whether new modules serve every call that old ones served: dtypes, TPU generations, shapes.
//!
//! Demands on dims are arithmetic, so that one set follows from another cannot be decided in general. Where the
//! new demands are not among the old ones, a caller is searched for that the old set admits and the new one
//! refuses, among the numbers that the demands speak of and their neighbours.

use std::collections::BTreeSet;

use kernel_ir::ir::dims::Dims;
use kernel_ir::ir::{Demand, DimExpr};
use kernel_ir::mosaic::call::{ModuleEntry, OpInterface, Table};

use super::Comparison;
use super::ops::{dtypes, signature};

/// The most combinations of extents that are tried for one module and generation.
const MAX_TRIES: usize = 100_000;
/// Extents that every search tries.
const COMMON: [i64; 12] = [1, 2, 7, 8, 16, 100, 128, 256, 1000, 1024, 4096, 8192];

pub(super) fn compare(name: &str, old: &OpInterface, new: &OpInterface, found: &mut Comparison) {
    for module in &old.modules {
        let same: Vec<_> = new.modules.iter().filter(|m| equal(&m.dtypes, &module.dtypes)).collect();
        if same.is_empty() {
            found.breaks(format!(
                "{name} loses the dtype {}: `{}` fails with it",
                dtypes(&module.dtypes),
                signature(name, old)
            ));
            continue;
        }
        let generations = module.generations.iter().map(|g| Some(g.as_str()));
        for generation in generations.chain(module.generations.is_empty().then_some(None)) {
            serves_all(name, old, module, &same, generation, found);
        }
    }
    for module in &new.modules {
        let before: Vec<_> = old.modules.iter().filter(|m| equal(&m.dtypes, &module.dtypes)).collect();
        if before.is_empty() {
            found.adds(format!("{name} with {}", dtypes(&module.dtypes)));
        }
        for generation in &module.generations {
            if !before.is_empty() && !before.iter().any(|m| m.generations.contains(generation)) {
                found.adds(format!("{name} with {} on {generation}", dtypes(&module.dtypes)));
            }
        }
    }
}

/// Whether the modules `new` of the same dtypes serve on `generation` all that `old` serves there.
fn serves_all(
    name: &str,
    op: &OpInterface,
    old: &ModuleEntry,
    new: &[&ModuleEntry],
    generation: Option<&str>,
    found: &mut Comparison,
) {
    let on = generation.map(|g| format!(" on {g}")).unwrap_or_default();
    let runs = |m: &&ModuleEntry| generation.is_none_or(|g| m.generations.iter().any(|known| known == g));
    let new: Vec<_> = new.iter().copied().filter(runs).collect();
    if new.is_empty() {
        found.breaks(format!("{name} with {} has no module{on} any more", dtypes(&old.dtypes)));
        return;
    }
    if new.iter().any(|m| m.demands.iter().all(|demand| old.demands.contains(demand))) {
        return;
    }
    let lost = candidates(op, old, &new)
        .find(|dims| meets(old, dims) && !new.iter().any(|module| meets(module, dims)));
    if let Some(dims) = lost {
        let call: Vec<_> = op
            .arguments
            .iter()
            .map(|argument| match argument.tensor_type(&old.dtypes, &dims) {
                Ok(array) => format!("{}: {array}", argument.name),
                Err(_) => argument.name.clone(),
            })
            .collect();
        let needs: Vec<_> = new
            .iter()
            .flat_map(|m| &m.demands)
            .filter(|d| d.holds(&dims) != Some(true))
            .map(Demand::to_string)
            .collect();
        let needs: BTreeSet<_> = needs.into_iter().collect();
        let needs = needs.into_iter().collect::<Vec<_>>().join(" and ");
        found.breaks(format!("`{name}({})`{on} fails: it would need {needs}", call.join(", ")));
    }
}

fn meets(module: &ModuleEntry, dims: &Dims) -> bool {
    module.demands.iter().all(|demand| demand.holds(dims) == Some(true))
}

/// Two tables with the same entries, in any order.
fn equal(a: &Table<String>, b: &Table<String>) -> bool {
    a.len() == b.len() && a.iter().all(|(name, value)| b.get(name) == Some(value))
}

/// Dims to try: every combination of interesting extents if they are few, else a fixed scatter of them.
fn candidates<'a>(
    op: &'a OpInterface,
    old: &'a ModuleEntry,
    new: &[&'a ModuleEntry],
) -> impl Iterator<Item = Dims> + use<'a> {
    let demands: Vec<&Demand> =
        old.demands.iter().chain(new.iter().flat_map(|module| &module.demands)).collect();
    let mut extents: BTreeSet<i64> = COMMON.into_iter().collect();
    let mut read = BTreeSet::new();
    for side in demands.iter().flat_map(|demand| [&demand.left, &demand.right]) {
        constants(side, &mut extents);
        side.each_dim(&mut |dim| {
            read.insert(dim.to_string());
        });
    }
    let extents: Vec<i64> = extents.into_iter().filter(|n| (1..1 << 31).contains(n)).collect();
    let free: Vec<&String> = op.dims.iter().filter(|dim| read.contains(*dim)).collect();
    let all = extents.len().saturating_pow(u32::try_from(free.len()).unwrap_or(u32::MAX));
    // Odd, so that stepping by it visits different combinations until all were seen.
    let step = if all <= MAX_TRIES { 1 } else { (all / MAX_TRIES) | 1 };
    (0..all.min(MAX_TRIES)).map(move |n| {
        let mut at = n.wrapping_mul(step) % all.max(1);
        let mut dims: Dims = op.dims.iter().map(|dim| (dim.clone(), extents[0])).collect();
        for dim in &free {
            dims.insert((*dim).clone(), extents[at % extents.len()]);
            at /= extents.len();
        }
        dims
    })
}

/// The numbers in `expr`, with their neighbours and multiples.
fn constants(expr: &DimExpr, into: &mut BTreeSet<i64>) {
    match expr {
        DimExpr::Const(n) => {
            let near = [n.saturating_sub(1), *n, n.saturating_add(1)];
            into.extend(near.into_iter().chain([2, 3, 5].map(|times| n.saturating_mul(times))));
        }
        DimExpr::Dim(_) => {}
        DimExpr::Op(_, sides) => {
            constants(&sides.0, into);
            constants(&sides.1, into);
        }
    }
}
