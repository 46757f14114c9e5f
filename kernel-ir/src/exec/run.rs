//! Calls of a kernel: by the names of its parameters, by position, and on every device of a simulated mesh.

use std::sync::PoisonError;

use crate::diag::{Diagnostic, Report};
use crate::ir::Kernel;

use super::array::Array;
use super::bind::{self, Binding, Given};
use super::core::{Argument, Call};
use super::grid::{self, Grid};
use super::members;
use super::plan::{self, Plan};
use super::{Options, Outputs};

impl Kernel {
    /// Runs the kernel on the CPU with [`Options::default`]; see [`run`].
    ///
    /// # Errors
    /// As [`run`].
    pub fn run(&self, inputs: &[(&str, &Array)]) -> Result<Outputs, Report> {
        run(self, inputs, &Options::default())
    }
}

/// Runs a verified kernel on the CPU. `inputs` are its inputs and prefetched arrays by name; sizes of dims come from
/// their shapes.
///
/// # Errors
/// K0404 and K0405 when arguments do not fit, all of them in one report; K0401 to K0412 when a grid step fails, the
/// first one in the order of the grid, with the kernel's name, the step and the line.
pub fn run(kernel: &Kernel, inputs: &[(&str, &Array)], options: &Options) -> Result<Outputs, Report> {
    let outputs = execute(kernel, Given::Named(inputs), options)?;
    Ok(Outputs { arrays: outputs.into_iter().map(|(p, a)| (kernel.params[p].name.clone(), a)).collect() })
}

/// As [`run`], by position: `arguments` are the prefetched arrays, then the inputs, each in the order of the kernel's
/// parameters; the outputs come in theirs.
///
/// # Errors
/// As [`run`].
pub fn call(kernel: &Kernel, arguments: &[Array], options: &Options) -> Result<Vec<Array>, Report> {
    let outputs = execute(kernel, Given::Listed(arguments), options)?;
    Ok(outputs.into_iter().map(|(_, a)| a).collect())
}

/// Runs a kernel on every device of a simulated mesh: device `i`, whose logical id is `i`, is called with `devices[i]`
/// as in [`call`] and makes element `i` of the result. Each device is one thread that runs the whole grid in order, or a
/// thread a core where the kernel names cores;
/// [`Options::shuffle`] varies the order in which messages between devices arrive.
///
/// # Errors
/// As [`run`]; also K0402 when the devices wait for each other forever, with the line of each one, and K0404 when they
/// are called with arrays of different shapes.
pub fn run_mesh(
    kernel: &Kernel,
    devices: &[Vec<Array>],
    options: &Options,
) -> Result<Vec<Vec<Array>>, Report> {
    let on = |id: usize| move |d: Diagnostic| d.note(format!("on device {id}"));
    if devices.len() > members::MOST {
        let message = format!("a mesh of {} devices; at most {} run here", devices.len(), members::MOST);
        return Err(Diagnostic::error("K0404", message).into());
    }
    let mut bindings = vec![];
    for (id, arguments) in devices.iter().enumerate() {
        let binding = bind::bind(kernel, Given::Listed(arguments), options)
            .map_err(|all| Report::new(all.into_iter().map(on(id)).collect()))?;
        bindings.push(binding);
    }
    let Some(first) = bindings.first() else { return Ok(vec![]) };
    if let Some(id) = bindings.iter().position(|b| b.dims != first.dims) {
        let message = format!("device {id} is called with arrays of other shapes than device 0");
        return Err(Diagnostic::error("K0404", message).into());
    }
    let plan = compile(kernel, first)?;
    members::run(kernel, &plan, &bindings, options)?;
    Ok(bindings.into_iter().map(|b| outputs(b).into_iter().map(|(_, a)| a).collect()).collect())
}

fn compile(kernel: &Kernel, binding: &Binding<'_>) -> Result<Plan, Diagnostic> {
    plan::compile(kernel, &binding.dims, &binding.grid, &binding.memory())
        .map_err(|fault| fault.diagnostic(kernel, None))
}

/// Outputs by parameter.
fn outputs(binding: Binding<'_>) -> Vec<(usize, Array)> {
    let made = binding.arguments.into_iter().enumerate().filter_map(|(p, a)| match a {
        Argument::Output { shape, data, .. } => {
            let data = data.into_inner().unwrap_or_else(PoisonError::into_inner);
            Some((p, Array::from_data(shape, data)))
        }
        _ => None,
    });
    made.collect()
}

fn execute(kernel: &Kernel, given: Given<'_, '_>, options: &Options) -> Result<Vec<(usize, Array)>, Report> {
    let binding = bind::bind(kernel, given, options).map_err(Report::new)?;
    let plan = compile(kernel, &binding)?;
    if members::names_cores(kernel) {
        members::run(kernel, &plan, std::slice::from_ref(&binding), options)?;
        return Ok(outputs(binding));
    }
    let arguments = &binding.arguments;
    let call = Call { kernel, plan: &plan, arguments, options, product_threads: 1, mesh: None };
    let grid = Grid::new(kernel, &plan.written, &binding.grid, options);
    match options.threads {
        // On a thread of the pool: from outside, every product would put this thread to sleep and wake it again.
        None => rayon::scope(|_| grid::walk(&grid, call, rayon::current_num_threads()))?,
        Some(0 | 1) => grid::walk(&grid, call, 1)?,
        Some(n) => {
            let pool = rayon::ThreadPoolBuilder::new().num_threads(n).build();
            let pool = pool.map_err(|e| Diagnostic::error("K0411", format!("no {n} threads: {e}")))?;
            pool.install(|| grid::walk(&grid, call, n))?;
        }
    }
    Ok(outputs(binding))
}
