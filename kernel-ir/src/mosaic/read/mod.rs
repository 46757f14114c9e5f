//! From the bytes of a Mosaic module to a kernel: what JAX's Pallas writes and what [`super::emit`] writes.
//!
//! `bytecode` turns MLIR's bytecode into a [`module::Module`]; `lower` makes a kernel of it. No MLIR is needed.
//! Bytes are hostile until read: every length is checked, nesting is bounded, and memory grows with the input only.

mod bytecode;
mod floats;
mod module;
mod print;

pub use bytecode::is_bytecode;

use crate::diag::Report;

/// A module as MLIR text in the generic form, with the names of the dialects that its operations belong to.
///
/// # Errors
/// `K0801` to `K0804` where the bytes are no module that is read.
pub fn mlir(bytes: &[u8]) -> Result<String, Report> {
    Ok(bytecode::parse(bytes)?.to_string())
}
