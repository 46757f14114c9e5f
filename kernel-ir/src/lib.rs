//! Tessera's core: record a TPU kernel written in Rust, verify it, run it on the CPU, and turn it into a Mosaic module.

// The macros name this crate by its outside name, also in its own tests.
extern crate self as kernel_ir;

#[cfg(feature = "aot")]
pub mod aot;
pub mod diag;
pub mod dsl;
pub mod exec;
pub mod ir;
pub mod mosaic;
mod record;
pub mod target;
pub mod verify;

pub use dsl::{k, prelude};
