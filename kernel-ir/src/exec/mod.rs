//! The CPU executor: runs a kernel as the TPU would, with checks that hardware does not make.
//!
//! It is the oracle of this project, so its semantics are exact where hardware's are: blocks stick out of arrays at the
//! edge, an output block starts undefined, a copy lands when it is waited for. What was never written is *poison*: NaN in
//! floats, a recognisable number in integers, and an error as soon as it steers control.
//!
//! A call goes through `bind` (arguments and dims), `plan` (the body, compiled once), and `grid` (the steps, on all cores
//! along leading parallel axes). It never checks what `verify` checks.

mod array;
mod bind;
mod bytes;
mod core;
mod data;
mod dma;
mod elementwise;
mod fault;
mod fused;
mod gemm;
mod grid;
mod layout;
mod math;
mod plan;
mod scalar;
mod scalar_ops;
mod step;
mod tile;
mod tile_ops;
mod view;
mod window;

use std::sync::Arc;
use std::sync::PoisonError;

use crate::diag::{Diagnostic, Report};
use crate::ir::Kernel;
use crate::ir::dims::Dims;

pub use array::Array;
pub use data::Element;

use self::core::{Argument, Call};

/// How a kernel is run.
#[derive(Clone, Debug)]
pub struct Options {
    /// Threads to use; `None` for all of them. With one thread, steps run in the order of the grid.
    pub threads: Option<usize>,
    /// Runs the indices of every parallel axis in an order drawn from this seed, each with fresh scratch: a kernel that
    /// needs an order then gives wrong results.
    pub shuffle: Option<u64>,
    /// Sizes of dims that no input has as a length.
    pub dims: Dims,
    /// The most rounds of one loop.
    pub max_iterations: u64,
}

impl Default for Options {
    fn default() -> Self {
        Self { threads: None, shuffle: None, dims: Dims::new(), max_iterations: 1 << 26 }
    }
}

/// The arrays that a kernel made, in the order of its parameters.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Outputs {
    arrays: Vec<(Arc<str>, Array)>,
}

impl Outputs {
    /// The output of this name.
    pub fn get(&self, name: &str) -> Option<&Array> {
        self.iter().find(|(n, _)| *n == name).map(|(_, a)| a)
    }

    /// Names and arrays.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &Array)> {
        self.arrays.iter().map(|(n, a)| (&**n, a))
    }

    /// The first output.
    pub fn into_first(self) -> Option<Array> {
        self.arrays.into_iter().next().map(|(_, a)| a)
    }
}

impl std::ops::Index<&str> for Outputs {
    type Output = Array;

    /// # Panics
    /// If the kernel has no such output.
    fn index(&self, name: &str) -> &Array {
        match self.get(name) {
            Some(a) => a,
            None => panic!("the kernel has no output `{name}`"),
        }
    }
}

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
/// K0404 and K0405 when arguments do not fit, all of them in one report; K0401 to K0411 when a grid step fails, the
/// first one in the order of the grid, with the kernel's name, the step and the line.
pub fn run(kernel: &Kernel, inputs: &[(&str, &Array)], options: &Options) -> Result<Outputs, Report> {
    let binding = bind::bind(kernel, inputs, &options.dims).map_err(Report::new)?;
    let plan = plan::compile(kernel, &binding.dims, &binding.grid)
        .map_err(|fault| fault.diagnostic(kernel, None))?;
    let call = Call { kernel, plan: &plan, arguments: &binding.arguments, options, product_threads: 1 };
    let grid = grid::Grid::new(kernel, &binding.grid, options);
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
    let outputs = kernel.params.iter().zip(binding.arguments);
    Ok(Outputs {
        arrays: outputs
            .filter_map(|(p, a)| match a {
                Argument::Output { shape, data, .. } => {
                    let data = data.into_inner().unwrap_or_else(PoisonError::into_inner);
                    Some((p.name.clone(), Array::from_data(shape, data)))
                }
                _ => None,
            })
            .collect(),
    })
}
