//! K0303, K0304, K0307: which blocks grid steps see, tried out on steps of a possible call.
//!
//! A finding names the steps that show it, so it is never a false alarm about them. A block index that comes from a
//! prefetched array may be anything, so it does not tell steps apart, and is not judged otherwise.

use std::collections::{HashMap, HashSet};

use super::Found;
use super::maps::{Map, Trial};
use super::params::parallel_axes;
use crate::diag::Diagnostic;
use crate::ir::{Kernel, Param, Role, Window};

type Blocks = Vec<Option<i64>>;

pub(super) fn check(kernel: &Kernel, found: &mut Found) {
    let Some(trial) = Trial::of(kernel) else { return };
    for p in &kernel.params {
        let Some(w) = &p.window else { continue };
        let map = Map::new(kernel, w);
        let seen: Vec<Blocks> = trial.steps.iter().map(|s| map.at(&trial, s)).collect();
        let c = Check { kernel, trial: &trial, p, w };
        found.extend(c.bounds(&seen));
        if p.role == Role::Output {
            found.extend(c.race(&seen).or_else(|| c.revisit(&seen)));
        }
    }
}

struct Check<'k> {
    kernel: &'k Kernel,
    trial: &'k Trial,
    p: &'k Param,
    w: &'k Window,
}

impl Check<'_> {
    /// K0307: a block outside the array.
    fn bounds(&self, seen: &[Blocks]) -> Option<Diagnostic> {
        let array = self.p.array.as_ref()?;
        for (axis, (extent, block)) in array.shape.iter().zip(&self.w.block).enumerate() {
            let (Some(n), Ok(b)) = (extent.eval(&self.trial.dims), i64::try_from(*block)) else { continue };
            if n <= 0 || b <= 0 {
                continue;
            }
            let blocks = (n + b - 1) / b;
            let outside = |s: &Blocks| s.get(axis).copied().flatten().filter(|i| !(0..blocks).contains(i));
            let Some((step, i)) = seen.iter().enumerate().find_map(|(k, s)| Some((k, outside(s)?))) else {
                continue;
            };
            let name = &self.p.name;
            let has = if blocks == 1 {
                "the only block is 0".to_owned()
            } else {
                format!("blocks are 0 to {}", blocks - 1)
            };
            let d =
                Diagnostic::error("K0307", format!("block {i} on axis {axis} of `{name}` is out of bounds"))
                    .at(self.kernel.loc(self.w.span).clone(), format!("{has} on this axis"))
                    .note(format!("in grid step {}{}", show(&self.trial.steps[step]), self.call()));
            let elements = i >= b && i % b == 0;
            return Some(if elements {
                d.help("a block map yields block indices, not element offsets")
            } else {
                d
            });
        }
        None
    }

    /// K0303: two steps that differ on a parallel axis write one block.
    fn race(&self, seen: &[Blocks]) -> Option<Diagnostic> {
        let parallel = parallel_axes(self.kernel);
        let mut first: HashMap<&Blocks, usize> = HashMap::new();
        for (k, blocks) in seen.iter().enumerate() {
            let other = *first.entry(blocks).or_insert(k);
            let (a, b) = (&self.trial.steps[other], &self.trial.steps[k]);
            let Some(axis) = parallel.iter().find(|i| a[**i] != b[**i]) else { continue };
            let name = &self.p.name;
            let data = blocks.iter().any(Option::is_none);
            let message = format!("steps of parallel axis {axis} write the same block of `{name}`");
            let label =
                if data { "may yield the same block for them" } else { "yields the same block for them" };
            let d = Diagnostic::error("K0303", message)
                .at(self.kernel.loc(self.w.span).clone(), label)
                .note(format!("grid steps {} and {}{}", show(a), show(b), self.call()));
            let d = if data {
                d.note("an index from a prefetched array may be the same for two steps")
            } else {
                d
            };
            return Some(d.help(format!(
                "make axis {axis} sequential (`seq`), or let every step of it have blocks of its own"
            )));
        }
        None
    }

    /// K0304: a block that is left and visited again.
    fn revisit(&self, seen: &[Blocks]) -> Option<Diagnostic> {
        if seen.iter().flatten().any(Option::is_none) {
            return None;
        }
        let mut left: HashSet<&Blocks> = HashSet::new();
        for (k, pair) in seen.windows(2).enumerate() {
            if pair[0] == pair[1] {
                continue;
            }
            left.insert(&pair[0]);
            if left.contains(&pair[1]) {
                let before = seen.iter().rposition(|s| *s == pair[0]).map_or(k, |p| p.min(k));
                let first = seen.iter().position(|s| *s == pair[1])?;
                let [a, b, c] = [first, before, k + 1].map(|i| show(&self.trial.steps[i]));
                let message = format!("an output block of `{}` is left and visited again", self.p.name);
                let d = Diagnostic::error("K0304", message)
                    .at(self.kernel.loc(self.w.span).clone(), "comes back to a block")
                    .note(format!(
                        "grid step {a} has the block, {b} another, and {c} the first one again{}",
                        self.call()
                    ));
                return Some(d.help(
                    "put the grid axis that this map ignores last, or give the output an axis for it",
                ));
            }
        }
        None
    }

    /// The sizes that were tried, if the kernel leaves any open.
    fn call(&self) -> String {
        if self.trial.dims.is_empty() {
            return String::new();
        }
        let sizes: Vec<_> = self.trial.dims.iter().map(|(d, n)| format!("{d} = {n}")).collect();
        format!(", e.g. with {}", sizes.join(", "))
    }
}

/// `(0, 3)`
fn show(step: &[i64]) -> String {
    format!("({})", step.iter().map(ToString::to_string).collect::<Vec<_>>().join(", "))
}
