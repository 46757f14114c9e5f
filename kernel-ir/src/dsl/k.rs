//! What `#[tpu_kernel]` expands to. Public because expansions name it; usable by hand.

use std::panic::Location;

pub use super::compare::{Compare, Eq, Ord};
pub use super::control::{Carried, Carry, Init, State, carried, for_range};
pub use super::launch::{Grid, Param};
pub use super::refs::{AddSet, DivSet, HostStore, MulSet, Set, SubSet};
use crate::diag::Report;
use crate::ir::Kernel;
use crate::verify;

/// The place that names this call.
#[track_caller]
pub const fn here() -> &'static Location<'static> {
    Location::caller()
}

/// The condition of a plain `if` or `while`, which is decided while the kernel is recorded.
#[diagnostic::on_unimplemented(
    message = "`if` and `while` decide while the kernel is recorded, but this condition is known only on the TPU",
    label = "a `{Self}`",
    note = "for effects use `when(cond, || ...)`, to choose between tiles `select(mask, a, b)`, and to loop `while_loop`"
)]
pub trait HostBool {
    #[doc(hidden)]
    fn get(self) -> bool;
}
impl HostBool for bool {
    fn get(self) -> bool {
        self
    }
}
impl HostBool for &bool {
    fn get(self) -> bool {
        *self
    }
}

/// What the condition of an `if` or `while` becomes, so that a traced `cond` is explained.
pub fn host_bool<B: HostBool>(b: B) -> bool {
    b.get()
}

/// Records what `f` does as a kernel, and verifies it.
///
/// # Errors
/// Everything that is wrong with the kernel, in one report.
pub fn record<const G: usize>(
    name: &'static str,
    grid: Grid<G>,
    at: &'static Location<'static>,
    f: impl FnOnce(),
) -> Result<Kernel, Report> {
    let (axes, demands) = grid.into_axes();
    let (kernel, mut found) = crate::record::record(name, axes, demands, at, f);
    if found.is_empty() {
        verify::verify(&kernel)?;
        return Ok(kernel);
    }
    // The body has holes where the errors are, but the launch is whole: say in one run what is wrong with both.
    found.extend(verify::verify_launch(&kernel).diagnostics);
    Err(Report::new(found))
}
