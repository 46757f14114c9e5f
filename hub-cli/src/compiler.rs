//! The kernel compiler and the TPU compiler, where this program was built with them.

use std::path::Path;

use crate::error::{Code, Error, Result};
use crate::output::Output;
use crate::package::{GenerationCheck, OpSource};

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
    Err(Error::new(Code::NoCompiler, "this kernels-cli was built without the kernel compiler"))
}

/// libtpu, as a judge of modules; `cache` remembers its verdicts, `output` shows how it gets on.
///
/// # Errors
/// `H0413` if this program was built without the feature `aot`, `H0411` if there is no libtpu here.
#[cfg(feature = "aot")]
pub(crate) fn tpu(cache: &Path, output: &Output) -> Result<Box<dyn GenerationCheck>> {
    let compiler = kernel_ir::aot::Compiler::new().map_err(|e| {
        Error::new(Code::Tpu, "the modules cannot be checked with the TPU compiler")
            .report(e.diagnostic().render(kernel_ir::diag::Style::Colour))
            .help("or pass --no-tpu-check: the modules then claim no TPU generation")
    })?;
    let steps = output.steps("modules compiled by libtpu");
    Ok(Box::new(crate::package::Libtpu::new(compiler, cache.join("libtpu"), steps)))
}

#[cfg(not(feature = "aot"))]
pub(crate) fn tpu(_: &Path, _: &Output) -> Result<Box<dyn GenerationCheck>> {
    Err(Error::new(Code::NoCompiler, "this kernels-cli was built without libtpu's binding")
        .help("pass --no-tpu-check"))
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

#[cfg(all(test, feature = "emit"))]
mod tests {
    #[test]
    fn the_index_states_the_version_that_is_emitted() {
        assert_eq!(i64::from(crate::package::build::MOSAIC_VERSION), kernel_ir::mosaic::emit::MOSAIC_VERSION);
    }
}
