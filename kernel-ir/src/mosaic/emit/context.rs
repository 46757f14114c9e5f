//! The MLIR context: one a thread, with the upstream dialects that kernels use, so that MLIR's own verifier runs.

use std::cell::RefCell;

use melior::Context;
use melior::diagnostic::DiagnosticSeverity;
use melior::dialect::DialectHandle;
use melior::ir::Location;
use melior::ir::operation::OperationLike as _;

use crate::diag::SourceLoc;

thread_local! {
    /// Making a context and loading its dialects costs more than emitting a kernel, so a thread keeps one.
    static CONTEXT: Context = new_context();
}

/// Runs `f` with this thread's context.
pub(super) fn with_context<R>(f: impl FnOnce(&Context) -> R) -> R {
    CONTEXT.with(f)
}

fn new_context() -> Context {
    let context = Context::new_with_threading(false);
    // The `tpu` dialect exists in libtpu only; its operations, attributes and types stay opaque to us.
    context.set_allow_unregistered_dialects(true);
    for handle in
        [DialectHandle::arith(), DialectHandle::func(), DialectHandle::memref(), DialectHandle::scf()]
    {
        handle.load_dialect(&context);
    }
    load_math_and_vector(&context);
    context
}

#[allow(unsafe_code, reason = "melior has no handles for the math and vector dialects")]
fn load_math_and_vector(context: &Context) {
    // SAFETY: the two functions return handles to static tables of libMLIR, and the context is alive.
    unsafe {
        for handle in [mlir_sys::mlirGetDialectHandle__math__(), mlir_sys::mlirGetDialectHandle__vector__()] {
            mlir_sys::mlirDialectHandleLoadDialect(handle, context.to_raw());
        }
    }
}

/// What MLIR said, and of which line.
pub(super) struct Complaint {
    /// MLIR's words.
    pub(super) message: String,
    /// The line in the user's source, if the message has one.
    pub(super) loc: Option<SourceLoc>,
}

/// Runs MLIR's verifier over a module; the first error, if any.
pub(super) fn verify(context: &Context, module: &melior::ir::Module<'_>) -> Result<(), Complaint> {
    listen(context, || module.as_operation().verify())
}

/// Runs `f`, which says whether it went well, and collects the first error that MLIR reports meanwhile.
pub(super) fn listen(context: &Context, f: impl FnOnce() -> bool) -> Result<(), Complaint> {
    let first: RefCell<Option<Complaint>> = RefCell::new(None);
    let id = context.attach_diagnostic_handler(|d| {
        if matches!(d.severity(), DiagnosticSeverity::Error) && first.borrow().is_none() {
            *first.borrow_mut() = Some(Complaint { message: d.to_string(), loc: source_loc(d.location()) });
        }
        true
    });
    let ok = f();
    context.detach_diagnostic_handler(id);
    match first.into_inner() {
        Some(complaint) => Err(complaint),
        None if ok => Ok(()),
        None => Err(Complaint { message: "MLIR refused the module without saying why".into(), loc: None }),
    }
}

fn source_loc(loc: Location<'_>) -> Option<SourceLoc> {
    if !loc.is_file_line_col_range() {
        return None;
    }
    Some(SourceLoc {
        file: loc.file_line_col_range_filename().as_string_ref().as_str().ok()?.into(),
        line: u32::try_from(loc.file_line_col_range_start_line()).ok()?,
        column: u32::try_from(loc.file_line_col_range_start_column()).ok()?,
    })
}
