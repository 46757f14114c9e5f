//! The verifier: finds everything that is wrong with a kernel before any TPU is seen, in one run.
//!
//! After [`verify`] has passed, later stages may return errors, but never panic. Its rules, by code:
//!
//! The kernel hangs together (stops here if not):
//! - `K0001` [`structure`]: every value is made once and before its use; indices are inside their tables; what goes
//!   into a region and comes out of it matches in number and type; nesting is bounded.
//! - `K0003`, `K0306` [`params`]: a parameter fits its array and window; a block map takes the grid's indices, yields
//!   one block index an axis, and computes with scalars and prefetched arrays only.
//! - `K0002`, `K0104` [`shape`], [`refs`]: every operation fits its operands; grid axes exist.
//!
//! Data flow:
//! - `K0201`, `K0202`, `K0206`, `K0207` [`dataflow`]: outputs are written, scratch is written before it is read,
//!   parameters are used (a warning), inputs are not written.
//! - `K0203`, `K0204`, `K0205` [`copies`]: copies and waits pair up, nothing touches a window in flight.
//! - `K0109` [`bounds`]: no access that is known to leave its ref.
//!
//! The launch and the machine:
//! - `K0301` [`launch`]: a block fits its array. `K0312`: every dim can be read off an argument (a warning).
//! - `K0302` [`tiling`]: blocks are made of whole (8, 128) tiles.
//! - `K0303`, `K0304`, `K0307` [`races`]: steps of a parallel axis write different blocks, output blocks are visited
//!   in one go, and block indices are inside their arrays; tried out on grid steps by [`maps`].
//! - `K0305`, `K0311` [`memory`]: VMEM and SMEM suffice.
//! - `K0308` [`alignment`], [`windows`]: traced indices into tiled axes are known to be aligned, by [`ints`].
//! - `K0310`, `K0313` [`windows`]: copies take what the DMA engine can take: whole tiles.
//! - `K0309` [`dtypes`]: the machine has the operation for the element type (some as a warning: not natively).
//!
//! Not checked yet: that a wait matches the size of the copy it waits for; that scratch carried over a parallel axis
//! is not relied upon; that every element of an output is written (the CPU executor reports what was not).

mod alignment;
mod bounds;
mod copies;
mod dataflow;
mod dtypes;
mod ints;
mod launch;
mod maps;
mod memory;
mod params;
mod races;
mod refs;
mod shape;
mod structure;
mod tiling;
mod views;
mod windows;

pub use ints::IntFact;

use crate::diag::{Diagnostic, Report};
use crate::ir::{Kernel, OpKind, Value};
use crate::target::{Generation, VmemUse};

/// Findings, in the order of the rules.
type Found = Vec<Diagnostic>;

/// What the verifier learned on the way, for later stages.
#[derive(Clone, Debug)]
pub struct Facts {
    /// Findings that are no errors.
    pub warnings: Report,
    /// One a parameter, in order.
    pub windows: Vec<WindowFacts>,
    /// What the kernel takes of VMEM.
    pub vmem: VmemUse,
    ints: Vec<IntFact>,
}

/// What a parameter's block depends on.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct WindowFacts {
    /// Grid axes that the block map reads, ascending; none for a parameter without a window.
    pub axes: Vec<usize>,
    /// True if the block also depends on a prefetched array.
    pub data_dependent: bool,
}

impl WindowFacts {
    /// True if every grid step sees the same block, which then needs one buffer only.
    pub const fn is_constant(&self) -> bool {
        self.axes.is_empty() && !self.data_dependent
    }
}

impl Facts {
    /// What is known of a scalar: [`IntFact::ANY`] for what is not an `i32` scalar of the verified kernel.
    pub fn int(&self, v: Value) -> IntFact {
        self.ints.get(v.0 as usize).copied().unwrap_or(IntFact::ANY)
    }

    /// Whether the kernel's windows and scratch fit a generation's VMEM.
    pub fn fits(&self, generation: Generation) -> bool {
        self.vmem.total() <= generation.target().vmem_bytes
    }
}

impl Kernel {
    /// Checks the kernel against every rule; see [`verify`].
    ///
    /// # Errors
    /// As [`verify`].
    pub fn verify(&self) -> Result<Facts, Report> {
        verify(self)
    }
}

/// Checks a kernel against every rule.
///
/// # Errors
/// All findings, warnings too, if one of them is an error.
pub fn verify(kernel: &Kernel) -> Result<Facts, Report> {
    structure::check(kernel).map_err(Report::from)?;
    let mut found = Found::new();
    let params_fit = params::check(kernel, &mut found);
    let shapes_fit = shape::check(kernel, &mut found);
    if params_fit {
        launch_rules(kernel, &mut found);
    }
    if !(params_fit && shapes_fit) {
        return Err(Report::new(found));
    }
    let ints = ints::analyse(kernel);
    let views = views::resolve(kernel, &ints);
    dataflow::check(kernel, &views, &ints, &mut found);
    copies::check(kernel, &views, &ints, &mut found);
    bounds::check(kernel, &views, &ints, &mut found);
    alignment::check(kernel, &views, &ints, &mut found);
    windows::check(kernel, &views, &mut found);
    dtypes::check(kernel, &mut found);
    let report = Report::new(found);
    if report.has_errors() {
        return Err(report);
    }
    let windows = kernel.params.iter().map(maps::depends).collect();
    Ok(Facts { warnings: report, windows, vmem: VmemUse::of(kernel), ints })
}

/// Checks that a kernel from elsewhere hangs together: the first group of rules, which later stages take for granted.
/// Whether a TPU would take it, and whether it is a good kernel, is not asked.
///
/// # Errors
/// K0001, or all findings of K0002, K0003, K0104 and K0306.
pub fn well_formed(kernel: &Kernel) -> Result<(), Report> {
    structure::check(kernel).map_err(Report::from)?;
    let mut found = Found::new();
    let fits = params::check(kernel, &mut found) & shape::check(kernel, &mut found);
    if fits { Ok(()) } else { Err(Report::new(found)) }
}

/// The rules about the launch alone, for a kernel whose body could not be recorded without errors.
pub fn verify_launch(kernel: &Kernel) -> Report {
    let mut found = Found::new();
    if params::check(kernel, &mut found) {
        launch_rules(kernel, &mut found);
    }
    Report::new(found)
}

/// Reads parameters and block maps, which must have been checked.
fn launch_rules(kernel: &Kernel, found: &mut Found) {
    launch::check(kernel, found);
    tiling::check(kernel, found);
    races::check(kernel, found);
    memory::check(kernel, &VmemUse::of(kernel), found);
}

/// What the user calls an operation.
fn operation(kind: &OpKind) -> String {
    let named = |n: &dyn std::fmt::Debug| format!("{n:?}").to_lowercase();
    match kind {
        OpKind::Unary { op, .. } => named(op),
        OpKind::Binary { op, .. } => named(op),
        OpKind::Reduce { op, .. } => named(op),
        OpKind::Cast { .. } => "to".to_owned(),
        OpKind::Constant(_) => "constant".to_owned(),
        OpKind::AssumeMultiple { .. } => "multiple_of".to_owned(),
        OpKind::ProgramId { .. } => "program_id".to_owned(),
        OpKind::NumPrograms { .. } => "num_programs".to_owned(),
        OpKind::LoadScalar { .. } => "get".to_owned(),
        OpKind::StoreScalar { .. } => "set".to_owned(),
        OpKind::ExtractSlice { .. } => "slice".to_owned(),
        OpKind::ToScalar { .. } => "to_scalar".to_owned(),
        OpKind::CopyStart { .. } => "copy".to_owned(),
        OpKind::CopyWait { .. } => "wait".to_owned(),
        other => {
            let text = format!("{other:?}");
            text.chars().take_while(|c| c.is_alphanumeric()).collect::<String>().to_lowercase()
        }
    }
}
