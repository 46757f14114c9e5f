//! The kernel compiler and the TPU compiler, where this program was built with them.

use crate::error::Result;
use crate::package::OpSource;

/// The ops of the `kernels` crate, compiled on demand.
///
/// # Errors
/// `H0413` if this program was built without the feature `emit`.
#[cfg(feature = "emit")]
pub(crate) fn ops() -> Result<Box<dyn OpSource>> {
    Ok(Box::new(emit::Kernels))
}

#[cfg(not(feature = "emit"))]
pub(crate) fn ops() -> Result<Box<dyn OpSource>> {
    use crate::error::{Code, Error};
    Err(Error::new(Code::NoCompiler, "this kernels-cli was built without the kernel compiler"))
}

#[cfg(feature = "emit")]
mod emit {
    use kernel_ir::diag::Report;

    use crate::package::{OpSource, PackagedOp};

    pub(super) struct Kernels;

    impl OpSource for Kernels {
        fn op(&self, name: &str) -> Option<Result<PackagedOp, Report>> {
            let op = kernels::packaged_op(name)?;
            Some(op.map(|op| PackagedOp { interface: op.interface, files: op.files }))
        }

        fn names(&self) -> Vec<String> {
            kernels::package::OPS.iter().map(|name| (*name).to_owned()).collect()
        }
    }
}
