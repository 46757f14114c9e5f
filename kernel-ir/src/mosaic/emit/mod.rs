//! From a kernel to a Mosaic module: the bytes that libtpu compiles, and how they are called.
//!
//! The module is built from upstream MLIR operations and opaque `tpu` ones, checked by MLIR's own verifier, given the
//! names of Mosaic's stable form, and written as bytecode. Every operation carries the location of the user's line.

mod arith;
mod bits;
mod combine;
mod context;
mod control;
mod entry;
mod function;
mod layout;
mod legalize;
mod mangle;
mod memory;
mod ops;
mod signature;
mod sync;
mod text;
mod top;
mod types;
mod window;

use melior::ir::BytecodeWriterConfig;
use melior::ir::operation::{OperationLike as _, OperationMutLike as _};

use crate::diag::{Diagnostic, Report};
use crate::ir::{DType, Demand, Kernel, OpKind, Span};
use crate::mosaic::call::Operand;
use crate::target::VmemUse;

/// The version of the stable form that modules are written in: the oldest that says everything, so that older
/// compilers read them too.
pub const MOSAIC_VERSION: i64 = 15;

/// Version of MLIR's bytecode: the first, which every reader knows.
const BYTECODE_VERSION: i64 = 0;

type Fallible<T> = Result<T, Diagnostic>;

/// A kernel as the compiler takes it, and how it is called.
#[derive(Clone, PartialEq, Debug)]
pub struct Module {
    /// The kernel's name.
    pub name: String,
    /// MLIR bytecode in Mosaic's stable form.
    pub bytecode: Vec<u8>,
    /// The operands of the custom call, in order.
    pub operands: Vec<Operand>,
    /// The parameters that are its results, in order.
    pub results: Vec<String>,
    /// What must hold of the dims of a call.
    pub demands: Vec<Demand>,
    /// VMEM that windows and scratch take.
    pub vmem: VmemUse,
    /// What ties it to other devices.
    pub mesh: MeshUse,
}

/// What a kernel does with other devices; XLA must be told.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct MeshUse {
    /// It copies or signals to other devices.
    pub communicates: bool,
    /// It waits on the barrier semaphore, which XLA hands out by a collective's id.
    pub barrier: bool,
}

impl MeshUse {
    /// What a kernel does.
    pub fn of(kernel: &Kernel) -> Self {
        let mut found = Self::default();
        kernel.each_op(&mut |op| match op.kind {
            OpKind::CopyStartRemote { .. } | OpKind::SemSignal { device: Some(_), .. } => {
                found.communicates = true;
            }
            OpKind::BarrierSemaphore => found.barrier = true,
            _ => {}
        });
        found
    }
}

/// Translates a kernel.
///
/// # Errors
/// `K0601` where Mosaic has no form for what a line asks; `K0602` where the kernel breaks the rules of its own IR (a
/// verified kernel does not); `K0603` where MLIR's verifier refuses the result.
pub fn emit(kernel: &Kernel) -> Result<Module, Report> {
    context::with_context(|context| build(context, kernel)).map_err(Report::from)
}

impl Kernel {
    /// The kernel as a Mosaic module.
    ///
    /// # Errors
    /// As [`emit`].
    pub fn mosaic(&self) -> Result<Module, Report> {
        emit(self)
    }
}

fn build(context: &melior::Context, kernel: &Kernel) -> Fallible<Module> {
    let foreign = |d: DType| DType::FOREIGN.contains(&d);
    if let Some(v) = kernel.values.iter().find(|v| v.ty.dtype().is_some_and(foreign)) {
        let message = format!("a {} is in a kernel from elsewhere: it is run, but not written again", v.ty);
        return Err(problem(kernel, v.span, "K0601", message));
    }
    let mut module = melior::ir::Module::new(function::location(context, kernel, kernel.span));
    let signature = signature::Signature::new(kernel);
    let mut body = signature.declare(context, module.body())?;
    body.block_ops(&kernel.body)?;
    body.span = kernel.span;
    body.op("func.return", &[], &[], &[])?;
    drop(body);
    context::verify(context, &module).map_err(|c| refused(kernel, c))?;
    let failed = |e: melior::Error| problem(kernel, kernel.span, "K0603", e.to_string());
    mangle::mangle(&module).map_err(failed)?;
    {
        let mut op = module.as_operation_mut();
        op.set_attribute("sym_name", types::string(context, &kernel.name));
        let version = types::i64(context, MOSAIC_VERSION);
        op.set_attribute("stable_mosaic.version", version);
    }
    let config = BytecodeWriterConfig::new();
    config.set_desired_emit_version(BYTECODE_VERSION);
    Ok(Module {
        name: kernel.name.clone(),
        bytecode: module.as_operation().write_bytecode_with_config(&config).map_err(failed)?,
        operands: signature.operands(),
        results: signature.results(),
        demands: kernel.demands.clone(),
        vmem: VmemUse::of(kernel),
        mesh: MeshUse::of(kernel),
    })
}

impl Module {
    /// The module as readable MLIR, with the names of the dialects that it is made of.
    ///
    /// # Errors
    /// `K0603` if the bytes are no module.
    pub fn text(&self) -> Result<String, Report> {
        context::with_context(|context| text::read(context, &self.bytecode)).map_err(|c| {
            Diagnostic::error("K0603", format!("`{}` cannot be read back", self.name)).note(c.message).into()
        })
    }
}

/// An error at a line of the user's.
fn problem(kernel: &Kernel, span: Span, code: &'static str, message: impl Into<String>) -> Diagnostic {
    let d = Diagnostic::error(code, message);
    match kernel.spans.get(span.0 as usize) {
        Some(loc) => d.at(loc.clone(), format!("in kernel `{}`", kernel.name)),
        None => d,
    }
}

fn refused(kernel: &Kernel, complaint: context::Complaint) -> Diagnostic {
    let message = format!("MLIR refuses the module of `{}`", kernel.name);
    let d = match complaint.loc {
        Some(loc) => Diagnostic::error("K0603", message).at(loc, "because of this line"),
        None => problem(kernel, kernel.span, "K0603", message),
    };
    d.note(complaint.message)
}
