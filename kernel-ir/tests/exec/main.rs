//! The CPU executor against formulas written out here in `f64`, and against what hardware is documented to do.

mod build;
mod kernels;
mod ops;
mod products;
