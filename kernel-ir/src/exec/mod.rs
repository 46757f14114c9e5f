//! The CPU executor: runs a kernel as the TPU would, with checks that hardware does not make.
//!
//! It is the oracle of this project, so its semantics are exact where hardware's are: blocks stick out of arrays at the
//! edge, an output block starts undefined, a copy lands when it is waited for. What was never written is *poison*: NaN in
//! floats, a recognisable number in integers, and an error as soon as it steers control.
//!
//! A call goes through `bind` (arguments and dims), `plan` (the body, compiled once), and `grid` (the steps, on all cores
//! along leading parallel axes). It never checks what `verify` checks.

mod array;
#[cfg(target_arch = "x86_64")]
mod bf16_pairs;
mod bind;
mod bytes;
mod core;
mod data;
mod dma;
mod elementwise;
mod fault;
#[cfg(target_arch = "x86_64")]
mod fma;
mod fused;
mod gemm;
mod grid;
mod layout;
mod math;
mod matrix;
mod members;
mod mesh;
mod plan;
mod random;
mod recast;
mod remote;
mod run;
mod scalar;
mod scalar_ops;
mod semaphore;
mod sharing;
mod step;
mod store;
mod tile;
mod tile_ops;
#[cfg(target_arch = "x86_64")]
mod transpose;
mod view;
mod wide;
mod window;

use std::sync::Arc;

use crate::ir::dims::Dims;

pub use crate::ir::narrow::{F8E4M3B11Fnuz, F8E4M3Fn, F8E5M2, I4};
pub use array::Array;
pub use data::Element;
pub use run::{call, run, run_mesh};

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
    /// The most grid steps and rounds of loops of one core, all together.
    pub max_rounds: u64,
    /// Multiplies `f32` operands as `f32` whatever the product's [`Precision`](crate::ir::Precision) says.
    pub exact_products: bool,
    /// Pallas's `input_output_aliases`: for each pair, the output starts with the contents of the argument. Both count
    /// as in [`call`]: arguments are the prefetched arrays, then the inputs.
    ///
    /// They are one array, and each sees what is written to the other, when both lie in HBM (with a window or without), or
    /// both in one memory of the chip and the kernel writes to the argument. Otherwise the argument keeps what the caller
    /// passed. A windowed block of the argument is what the array holds when the step before has ended. (A TPU fetches it
    /// while that step runs: there, a block is as it was before that step.)
    ///
    /// A windowed output block starts undefined, as always; blocks that are never written keep what the argument held.
    pub aliases: Vec<(usize, usize)>,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            threads: None,
            shuffle: None,
            dims: Dims::new(),
            max_iterations: 1 << 26,
            max_rounds: 1 << 36,
            exact_products: false,
            aliases: vec![],
        }
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
