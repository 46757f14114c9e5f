//! Calls of a kernel: by the names of its parameters, by position, and on every device of a simulated mesh.

use std::sync::PoisonError;

use crate::diag::{Diagnostic, Report};
use crate::ir::Kernel;

use super::array::Array;
use super::bind::{self, Binding, Given};
use super::core::{Argument, Call};
use super::grid::{self, Grid};
use super::mesh::Mesh;
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
/// as in [`call`] and makes element `i` of the result. Each device is one thread that runs the whole grid in order;
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
    if devices.len() > MOST_DEVICES {
        let message = format!("a mesh of {} devices; at most {MOST_DEVICES} run here", devices.len());
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
    let mesh = Mesh::new(devices.len(), options.shuffle);
    let options = Options { shuffle: None, ..options.clone() };
    let grid = Grid::new(kernel, &plan.written, &first.grid, &options);
    let one = |id: usize, binding: &Binding<'_>| {
        let mesh = Some(mesh.endpoint(id));
        let arguments = &binding.arguments;
        grid::walk(
            &grid,
            Call { kernel, plan: &plan, arguments, options: &options, product_threads: 1, mesh },
            1,
        )
    };
    let failures = std::thread::scope(|scope| {
        let threads = bindings.iter().enumerate().map(|(id, binding)| {
            let device = mesh.endpoint(id).guard();
            let run = move || device.finish(one(id, binding));
            std::thread::Builder::new().stack_size(STACK).spawn_scoped(scope, run)
        });
        let threads: Vec<_> = threads.collect();
        let join = |t: std::io::Result<std::thread::ScopedJoinHandle<'_, Result<(), Diagnostic>>>| match t {
            Ok(t) => t.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)).err(),
            Err(e) => Some(Diagnostic::error("K0411", format!("no thread for a device: {e}"))),
        };
        threads.into_iter().map(join).collect::<Vec<_>>()
    });
    // Devices that stopped because of another one tell nothing: the mesh knows who failed.
    let failed = mesh.failed().and_then(|id| failures.get(id)?.clone().map(on(id)));
    if let Some(d) = failed.or_else(|| mesh.verdict(kernel)).or_else(|| failures.into_iter().flatten().next())
    {
        return Err(d.into());
    }
    Ok(bindings.into_iter().map(|b| outputs(b).into_iter().map(|(_, a)| a).collect()).collect())
}

/// The most devices of a simulated mesh: each is a thread.
const MOST_DEVICES: usize = 256;
/// Bytes of a device's stack: regions nest, and every level takes a few frames.
const STACK: usize = 16 << 20;

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
