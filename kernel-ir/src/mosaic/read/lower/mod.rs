//! From a module, as MLIR has it, to a kernel.
//!
//! Most operations have a counterpart in the IR. The others are made of several, here, so that no later stage knows
//! them: products with batches and any order of axes become products of matrices, reductions over several axes one
//! after the other, packing becomes shifts. Forms that older versions of Mosaic's stable dialect had are understood
//! where they differ: [`attributes`] takes either spelling of a list, [`copies`] either order of operands.
//!
//! What has no effect and is not used is left out ([`live`], [`sweep`]); constants, reshapes and conversions are made where they
//! are first used, if at all ([`scope`]), so that a chain of them costs one operation.
//!
//! A module is hostile: nesting, the rank and size of values, and the number of operations made are bounded.

mod affine;
mod arith;
mod attributes;
mod bits;
mod build;
mod cast;
mod compare;
mod control;
mod copies;
mod dispatch;
mod error;
mod layout;
mod live;
mod matmul;
mod memory;
mod moves;
mod params;
mod places;
mod reduce;
mod rotate;
mod scope;
mod signature;
mod sweep;
mod types;
mod views;
mod walk;
mod window;

use super::call::CallTypes;
use super::module::Module;
use crate::diag::{Diagnostic, Report};
use crate::ir::{Block, Kernel};

/// Regions nested deeper than this are refused, as `verify` does.
const DEEPEST: usize = 60;

type Fallible<T> = Result<T, Diagnostic>;

/// Makes a kernel of a module.
///
/// Parameters are called `prefetch0`, `in0`, `out0`, `scratch0` and so on. Arrays have the shapes of `call`; without it
/// the axes that the module leaves open are dims called `in0_0`. A grid bound that the call fixes is the dim `grid0` of
/// its axis. Without `call`, the outputs are the last arguments that the body writes.
///
/// # Errors
/// `K0810` for an operation that is not known, `K0811` for a form of one that is not, `K0812` for a module that breaks
/// the rules of its own operations.
pub(crate) fn lower(module: &Module, call: Option<&CallTypes>) -> Result<Kernel, Report> {
    kernel(module, call).map_err(Report::from)
}

fn kernel(module: &Module, call: Option<&CallTypes>) -> Fallible<Kernel> {
    let live = live::Live::new(module)?;
    let mut lower = scope::Lower::new(module, live);
    let signature = lower.signature()?;
    let params = lower.declare(&signature)?;
    let mut windows = lower.windows(&signature, &params)?;
    windows.iter_mut().flatten().for_each(|w| sweep::sweep(&mut w.index));
    let ops = lower.body(&signature, &params)?;
    let mut body = Block { args: vec![], ops, results: vec![] };
    sweep::sweep(&mut body);
    let params = lower.params(&signature, params, windows, &body, call)?;
    let (launch, name) = signature.launch(&mut lower);
    Ok(lower.kernel(launch, name, params, body))
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "tests may fail")]
mod tests;
