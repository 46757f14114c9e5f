//! The CPU executor against formulas written out here in `f64`, and against what hardware is documented to do.
#![allow(clippy::unwrap_used, reason = "tests may fail")]

mod arguments;
mod bits;
mod build;
mod control;
mod copies;
mod cores;
mod hostile;
mod kernels;
mod mesh;
mod narrow;
mod ops;
mod products;
mod random;
mod refs;
mod semaphores;
mod whole_stores;
mod windows;
