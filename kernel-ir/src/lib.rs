//! Tessera's core: record a TPU kernel written in Rust, verify it, run it on the CPU, and turn it into a Mosaic module.

pub mod diag;
pub mod ir;
