//! From the bytes of a Mosaic module to a kernel: what JAX's Pallas writes and what [`super::emit`] writes.
//!
//! `bytecode` turns MLIR's bytecode into a [`module::Module`]; `lower` makes a kernel of it. No MLIR is needed.
//! Bytes are hostile until read: every length is checked, nesting is bounded, and memory grows with the input only.

mod bytecode;
mod call;
mod floats;
mod locations;
mod lower;
mod module;
mod print;
pub mod stablehlo;

pub use bytecode::is_bytecode;
pub use call::CallTypes;

use crate::diag::Report;
use crate::ir::Kernel;
use crate::verify;

/// The kernel of a module, which hangs together: see [`verify::well_formed`]. What is not known of the call stays open.
///
/// # Errors
/// `K0801` to `K0804` where the bytes are no module that is read; `K0810` for an operation that is not known, `K0811` for a
/// form of one that is not, `K0812` for a module that breaks the rules of its own operations; those of
/// [`verify::well_formed`].
pub fn kernel(bytes: &[u8], call: Option<&CallTypes>) -> Result<Kernel, Report> {
    located(bytes, None, call)
}

/// The kernel of a module, with the source lines that JAX writes apart from it: MLIR bytecode too. Where these are not of
/// this module, the kernel is what it is without.
///
/// # Errors
/// As [`kernel`].
pub fn located(bytes: &[u8], lines: Option<&[u8]>, call: Option<&CallTypes>) -> Result<Kernel, Report> {
    let mut module = bytecode::parse(bytes)?;
    if let Some(Ok(found)) = lines.map(bytecode::locations) {
        locations::restore(&mut module, found);
    }
    let kernel = lower::lower(&module, call)?;
    verify::well_formed(&kernel)?;
    Ok(kernel)
}

/// The version of Mosaic's stable form that a module is in; `None` where its operations have their own names.
///
/// # Errors
/// `K0801` to `K0804` where the bytes are no module that is read.
pub fn version(bytes: &[u8]) -> Result<Option<i64>, Report> {
    Ok(bytecode::parse(bytes)?.version)
}

/// A module as MLIR text in the generic form, with the names of the dialects that its operations belong to.
///
/// # Errors
/// `K0801` to `K0804` where the bytes are no module that is read.
pub fn mlir(bytes: &[u8]) -> Result<String, Report> {
    Ok(bytecode::parse(bytes)?.to_string())
}
