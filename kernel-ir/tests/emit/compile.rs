//! Modules handed to libtpu, or to no one where it is not installed.

use std::io::Write as _;
use std::sync::OnceLock;

use kernel_ir::aot::{AotError, Compiler, Job};
use kernel_ir::ir::dims::Dims;
use kernel_ir::ir::{ArrayType, DType, Kernel};
use kernel_ir::mosaic::Module;
use kernel_ir::mosaic::call::{CallOperand, CustomCall, Operand, TensorType};
use kernel_ir::target::Generation;

/// The compiler that all tests share, or `None` where libtpu is not installed.
fn compiler() -> Option<&'static Compiler> {
    static COMPILER: OnceLock<Option<Compiler>> = OnceLock::new();
    let compiler = COMPILER.get_or_init(|| match Compiler::new() {
        Ok(compiler) => Some(compiler),
        Err(error @ AotError::NoLibtpu { .. }) => {
            // Not `eprintln!`, which the test harness would swallow.
            let _unheard = writeln!(std::io::stderr(), "skipped, for want of libtpu: {}", error.diagnostic());
            None
        }
        Err(error) => panic!("{}", error.diagnostic()),
    });
    compiler.as_ref()
}

/// Values for dims, by name.
pub(crate) fn dims(values: &[(&str, i64)]) -> Dims {
    values.iter().map(|(name, value)| ((*name).to_owned(), *value)).collect()
}

fn tensor(array: &ArrayType, dims: &Dims) -> TensorType {
    let shape: Option<Vec<i64>> = array.shape.iter().map(|e| e.eval(dims)).collect();
    let dtype = match array.dtype {
        DType::Bool => DType::I32,
        other => other,
    };
    TensorType::new(dtype.numpy(), shape.expect("the test gives every dim"))
}

/// A StableHLO program that calls the module with arrays of the sizes that `dims` give.
pub(crate) fn program(kernel: &Kernel, module: &Module, dims: &Dims) -> String {
    let array = |name: &str| {
        let p = kernel.params.iter().find(|p| &*p.name == name).expect("an operand is a parameter");
        tensor(p.array.as_ref().expect("an operand has an array"), dims)
    };
    let scalar = |e: &kernel_ir::ir::DimExpr| i32::try_from(e.eval(dims).unwrap()).unwrap();
    let mut arguments = vec![];
    let operands = module
        .operands
        .iter()
        .map(|operand| match operand {
            Operand::Expr(e) => CallOperand::Scalar(scalar(e)),
            Operand::Exprs(es) => CallOperand::Vector(es.iter().map(scalar).collect()),
            Operand::Argument(name) => {
                arguments.push(array(name));
                CallOperand::Argument(arguments.len() - 1)
            }
        })
        .collect();
    let call = CustomCall {
        kernel: module.name.clone(),
        arguments: arguments.clone(),
        operands,
        results: module.results.iter().map(|name| array(name)).collect(),
        backend_config: module.backend_config(),
    };
    call.to_stablehlo().unwrap()
}

/// Compiles each kernel for each generation; what was refused, as `kernel generation: why`.
pub(crate) fn refusals(kernels: &[Kernel], generations: &[Generation], dims: &Dims) -> Vec<String> {
    let Some(compiler) = compiler() else { return vec![] };
    let mut jobs = vec![];
    for kernel in kernels {
        let module = kernel.mosaic().unwrap_or_else(|e| panic!("{}: {e}", kernel.name));
        let stablehlo = program(kernel, &module, dims);
        for generation in generations {
            let (kernel, stablehlo) = (kernel.name.clone(), stablehlo.clone());
            jobs.push(Job { kernel, generation: *generation, stablehlo });
        }
    }
    let results = compiler.compile_all(&jobs, &|_| ());
    let refused = jobs.iter().zip(results).filter_map(|(job, result)| {
        let error = result.err()?;
        Some(format!("{} {}: {}", job.kernel, job.generation, error.diagnostic()))
    });
    refused.collect()
}
