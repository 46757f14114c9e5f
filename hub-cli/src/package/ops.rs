//! The seams to what makes and what judges compiled modules.

use kernel_ir::diag::{Diagnostic, Report};
use kernel_ir::mosaic::call::{ModuleEntry, OpInterface};

/// An op as it goes into a package: its interface, and the modules as files.
#[derive(Clone, Debug)]
pub struct PackagedOp {
    /// What index.json says about it; its modules name the files.
    pub interface: OpInterface,
    /// The files by path in the variant, such as `mosaic/ragged_dot-bf16.mlirbc`.
    pub files: Vec<(String, Vec<u8>)>,
}

/// Compiles ops by name.
pub trait OpSource {
    /// The op `name`, or `None` if there is no such op.
    ///
    /// # Errors
    /// The findings, if its kernel does not record, verify or compile.
    fn op(&self, name: &str) -> Option<Result<PackagedOp, Report>>;

    /// The names of all ops.
    fn names(&self) -> Vec<String>;
}

/// A module to be judged.
#[derive(Clone, Copy, Debug)]
pub struct Candidate<'a> {
    /// The op that it implements.
    pub op: &'a OpInterface,
    /// What index.json says about it.
    pub module: &'a ModuleEntry,
    /// Its Mosaic bytecode.
    pub body: &'a [u8],
}

/// What the TPU compiler says about one module.
#[derive(Clone, Debug, Default)]
pub struct Verdict {
    /// The generations, such as `v5e`, that it is a valid program for.
    pub accepted: Vec<String>,
    /// Why it is none for the others.
    pub refused: Vec<Refusal>,
}

/// Why a generation does not take a module.
#[derive(Clone, Debug)]
pub struct Refusal {
    /// The generation, such as `v4`.
    pub generation: String,
    /// What its compiler has against the module.
    pub finding: Diagnostic,
}

/// Says for which TPU generations modules are valid programs.
pub trait GenerationCheck {
    /// A verdict on each module, in order.
    ///
    /// # Errors
    /// The findings, if the compiler cannot be run.
    fn check(&self, modules: &[Candidate<'_>]) -> Result<Vec<Verdict>, Report>;
}
