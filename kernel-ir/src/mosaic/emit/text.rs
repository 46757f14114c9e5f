//! Readable text of a module.

use melior::Context;
use melior::ir::Module;
use melior::ir::operation::{OperationLike as _, OperationPrintingFlags};

use super::context::{Complaint, listen};
use super::mangle;

/// Reads bytecode and prints it under the dialects' own names. MLIR's text shows memory spaces and semaphores that
/// only libtpu's parser reads, so the text is for people; the bytecode is for machines.
pub(super) fn read(context: &Context, bytecode: &[u8]) -> Result<String, Complaint> {
    let mut module = None;
    listen(context, || {
        module = parse(context, bytecode);
        module.is_some()
    })?;
    let plain = |e: melior::Error| Complaint { message: e.to_string(), loc: None };
    let Some(module) = module else {
        return Err(Complaint { message: "not MLIR bytecode".into(), loc: None });
    };
    mangle::demangle(&module).map_err(plain)?;
    module.as_operation().to_string_with_flags(OperationPrintingFlags::new()).map_err(plain)
}

#[allow(unsafe_code, reason = "melior parses a module from a `&str` only, and bytecode is not UTF-8")]
fn parse<'c>(context: &'c Context, bytecode: &[u8]) -> Option<Module<'c>> {
    let source = mlir_sys::MlirStringRef { data: bytecode.as_ptr().cast(), length: bytecode.len() };
    // SAFETY: `source` points at `bytecode`, which outlives the call; the returned module is owned by us.
    unsafe {
        let raw = mlir_sys::mlirModuleCreateParse(context.to_raw(), source);
        (!raw.ptr.is_null()).then(|| Module::from_raw(raw))
    }
}
