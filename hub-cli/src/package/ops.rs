//! The seams to what makes and what judges compiled modules.

use kernel_ir::diag::Report;
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

/// Says for which TPU generations a module is a valid program.
pub trait GenerationCheck {
    /// The generations, such as `v5e`, whose compiler accepts `module` of `op` with these bytes.
    ///
    /// # Errors
    /// The findings, if the compiler refuses it where it should not, or cannot be run.
    fn generations(&self, op: &OpInterface, module: &ModuleEntry, body: &[u8])
    -> Result<Vec<String>, Report>;
}
