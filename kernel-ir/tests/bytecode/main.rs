//! Modules from elsewhere, read without MLIR: what JAX writes, compared with what MLIR prints for it, and bytes that are
//! no modules at all.
#![allow(missing_docs, clippy::unwrap_used, clippy::print_stdout, reason = "tests")]

mod compare;
mod hostile;
mod jax;
mod memory;
mod stablehlo;
mod versions;
