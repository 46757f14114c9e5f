//! Runs a kernel on all members of a mesh at once: on devices, each of which is one core or several.
//!
//! A kernel that names a core is written for as many as its grid has steps, as JAX writes a map over cores: each step then runs on
//! a core of its own, at the same time as all others. Any other kernel walks its grid on each device.

use crate::diag::{Diagnostic, Report};
use crate::ir::{Kernel, OpKind};

use super::Options;
use super::bind::Binding;
use super::core::Call;
use super::grid::{self, Grid};
use super::mesh::Mesh;
use super::plan::Plan;

/// The most members of a simulated mesh: each is a thread.
pub(super) const MOST: usize = 256;
/// Bytes of a member's stack: regions nest, and every level takes a few frames.
const STACK: usize = 16 << 20;

/// Whether each step of the grid is a core of its own, which others signal by its number.
pub(super) fn names_cores(kernel: &Kernel) -> bool {
    let mut found = false;
    kernel.each_op(&mut |op| found |= matches!(op.kind, OpKind::SemSignal { core: Some(_), .. }));
    found
}

/// Runs a kernel on devices that are called alike, each with its own arguments.
pub(super) fn run(
    kernel: &Kernel,
    plan: &Plan,
    devices: &[Binding<'_>],
    options: &Options,
) -> Result<(), Report> {
    let Some(first) = devices.first() else { return Ok(()) };
    let named = names_cores(kernel);
    let cores = if named { cores(kernel, plan, &first.grid, devices.len())? } else { 1 };
    let mesh = Mesh::new(devices.len(), cores, options.shuffle);
    let options = &Options { shuffle: None, ..options.clone() };
    let grid = Grid::new(kernel, &plan.written, &first.grid, options);
    let one = |id: usize, arguments| {
        let mesh = Some(mesh.endpoint(id));
        let call = Call { kernel, plan, arguments, options, product_threads: 1, mesh };
        match named {
            true => grid::stretch(&grid, &call, (id % cores) as u64, 1),
            false => grid::walk(&grid, call, 1),
        }
    };
    let of_device = |(i, binding)| (i * cores..(i + 1) * cores).map(move |id| (id, binding));
    let failures = std::thread::scope(|scope| {
        let threads =
            devices.iter().enumerate().flat_map(of_device).map(|(id, binding): (_, &Binding<'_>)| {
                let (member, one) = (mesh.endpoint(id).guard(), &one);
                let run = move || member.finish(one(id, &binding.arguments));
                std::thread::Builder::new().stack_size(STACK).spawn_scoped(scope, run)
            });
        let threads: Vec<_> = threads.collect();
        let join = |t: std::io::Result<std::thread::ScopedJoinHandle<'_, Result<(), Diagnostic>>>| match t {
            Ok(t) => t.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)).err(),
            Err(e) => Some(Diagnostic::error("K0411", format!("no thread for a device: {e}"))),
        };
        threads.into_iter().map(join).collect::<Vec<_>>()
    });
    // Members that stopped because of another one tell nothing: the mesh knows who failed.
    let on = |id: usize| failures.get(id)?.clone().map(|d| d.note(format!("on {}", mesh.name(id))));
    let failed = mesh.failed().and_then(on);
    match failed.or_else(|| mesh.verdict(kernel)).or_else(|| failures.into_iter().flatten().next()) {
        Some(d) => Err(d.into()),
        None => Ok(()),
    }
}

/// How many cores a device has for a kernel that names them.
fn cores(kernel: &Kernel, plan: &Plan, grid: &[i64], devices: usize) -> Result<usize, Diagnostic> {
    if let Some(p) = grid::of_one_core(kernel, &plan.written) {
        let message =
            format!("`{}` is on the chip as a whole, which several cores cannot share here", p.name);
        let d = Diagnostic::error("K0411", message).at(kernel.loc(p.span).clone(), "declared here");
        return Err(d
            .note(format!("in kernel `{}`", kernel.name))
            .help("keep it in HBM, or give it a window"));
    }
    let steps = grid.iter().try_fold(1_usize, |all, n| all.checked_mul(usize::try_from(*n).ok()?));
    steps.filter(|n| (1..=MOST / devices.max(1)).contains(n)).ok_or_else(|| {
        let message = format!("a grid of {grid:?} cores on {devices} devices; 1 to {MOST} run here in all");
        Diagnostic::error("K0404", message).note(format!("in kernel `{}`", kernel.name))
    })
}
