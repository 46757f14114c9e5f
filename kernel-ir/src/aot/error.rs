//! What can go wrong while compiling with libtpu, and how it is told to the user.

use std::path::PathBuf;
use std::time::Duration;

use crate::diag::{Diagnostic, Report, SourceLoc};

use super::message::{self, Message};
use crate::target::Generation;

/// Why a kernel was not compiled.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum AotError {
    /// libtpu found an error in the kernel, or in the call of it.
    #[error("libtpu rejects `{}` for {}: {}", .0.kernel, .0.generation, .0.headline)]
    Rejected(Box<Rejection>),
    /// libtpu, which aborts on some kernels, took its process down.
    #[error("libtpu crashed while compiling `{kernel}` for {generation}: {reason}")]
    Crashed {
        /// The kernel's name.
        kernel: String,
        /// What it was compiled for.
        generation: Generation,
        /// libtpu's last words, or how the process ended.
        reason: String,
        /// How the process ended: a signal or an exit code.
        ending: String,
    },
    /// There is no libtpu.so.
    #[error("libtpu is not found")]
    NoLibtpu {
        /// Where it was looked for.
        looked: Vec<PathBuf>,
    },
    /// The compiler took too long, and was stopped.
    #[error("libtpu did not finish `{kernel}` for {generation} within {} s", .limit.as_secs())]
    Timeout {
        /// The kernel's name.
        kernel: String,
        /// What it was compiled for.
        generation: Generation,
        /// How long it had.
        limit: Duration,
    },
    /// The child process that compiles does not come up.
    #[error("the process that runs libtpu cannot be started: {problem}")]
    NoWorker {
        /// What happened.
        problem: String,
    },
}

/// What libtpu says against a kernel.
#[derive(Debug, Clone, PartialEq)]
pub struct Rejection {
    /// The kernel's name.
    pub kernel: String,
    /// What it was compiled for.
    pub generation: Generation,
    /// OpenXLA's code for it, e.g. `E2002`, which has a page at `https://openxla.org/xla/errors`.
    pub xla_code: Option<String>,
    /// The sentence that says what is wrong.
    pub headline: String,
    /// The lines of the kernel's source that it concerns, innermost first; empty if libtpu names none.
    pub places: Vec<SourceLoc>,
    /// Line and column in the module, when it was given as text and names no source.
    pub position: Option<(u32, u32)>,
    /// The operation as libtpu prints it.
    pub operation: Option<String>,
    /// VMEM needed and allowed, when that is what is wrong, as libtpu writes them: `17.00M`.
    pub vmem: Option<(String, String)>,
    /// The largest VMEM allocations, when libtpu lists them.
    pub allocations: Vec<String>,
    /// The message as it came.
    pub raw: String,
}

impl AotError {
    pub(crate) fn rejected(kernel: &str, generation: Generation, raw: String) -> AotError {
        let Message { code, headline, places, position, operation, vmem, allocations } = message::parse(&raw);
        AotError::Rejected(Box::new(Rejection {
            kernel: kernel.to_owned(),
            generation,
            xla_code: code,
            headline,
            places,
            position,
            operation,
            vmem,
            allocations,
            raw,
        }))
    }

    /// The error's stable code.
    pub fn code(&self) -> &'static str {
        match self {
            AotError::Rejected(rejection) => rejection.code(),
            AotError::Crashed { .. } => "K0502",
            AotError::NoLibtpu { .. } => "K0503",
            AotError::Timeout { .. } => "K0504",
            AotError::NoWorker { .. } => "K0509",
        }
    }

    /// The error as a diagnostic, at the line of the kernel if libtpu names one.
    pub fn diagnostic(&self) -> Diagnostic {
        let diagnostic = Diagnostic::error(self.code(), self.to_string());
        match self {
            AotError::Rejected(rejection) => rejection.explain(diagnostic),
            AotError::Crashed { ending, .. } => diagnostic.note(format!("its process ended with {ending}")).help(
                "libtpu aborts on some kernels instead of refusing them; leave out operations one by one to find \
                 the one it cannot take",
            ),
            AotError::NoLibtpu { looked } => {
                let looked: Vec<String> = looked.iter().map(|path| path.display().to_string()).collect();
                let diagnostic = match looked.is_empty() {
                    true => diagnostic.note("no Python environment was found to look in"),
                    false => diagnostic.note(format!("looked at {}", looked.join(", "))),
                };
                diagnostic.help(
                    "`pip install libtpu` in a `.venv` of this folder (it runs without a TPU, on Linux x86-64), or set \
                     TPU_LIBRARY_PATH to libtpu.so or TESSERA_PYTHON to a Python that has it",
                )
            }
            AotError::Timeout { .. } => {
                diagnostic.help("a kernel that unrolls into very many operations compiles slowly: use smaller tiles")
            }
            AotError::NoWorker { .. } => diagnostic.help(
                "a program that compiles calls `kernel_ir::aot::child_main_if_requested()` first in `main`, or has \
                 `tessera-aot-worker` beside it: `cargo build -p kernel-ir --bin tessera-aot-worker`",
            ),
        }
    }
}

impl Rejection {
    /// The stable code: K0505 for VMEM, one for each of OpenXLA's codes with advice, K0501 for the rest.
    pub fn code(&self) -> &'static str {
        match self.xla_code.as_deref() {
            _ if self.vmem.is_some() => "K0505",
            Some("E1001") => "K0505",
            Some("E2001") => "K0506",
            Some("E2002") => "K0507",
            Some("E2003") => "K0508",
            _ => "K0501",
        }
    }

    fn explain(&self, mut diagnostic: Diagnostic) -> Diagnostic {
        let mut label = "libtpu rejects this operation";
        for place in &self.places {
            diagnostic = diagnostic.at(place.clone(), label);
            label = "reached from here";
        }
        if let Some((line, column)) = self.position {
            diagnostic =
                diagnostic.note(format!("it is at line {line}, column {column} of the module's text"));
        }
        if let Some(operation) = &self.operation {
            diagnostic = diagnostic.note(format!("the operation, as the compiler has it: {operation}"));
        }
        if let Some((used, limit)) = &self.vmem {
            diagnostic = diagnostic.note(format!("{used} of VMEM are needed, {limit} are allowed"));
        }
        for allocation in &self.allocations {
            diagnostic = diagnostic.note(allocation);
        }
        if let Some(code) = &self.xla_code {
            let page = code.trim_start_matches('E');
            diagnostic = diagnostic.note(format!("{code}: https://openxla.org/xla/errors/error_{page}"));
        }
        match self.advice() {
            Some(advice) => diagnostic.help(advice),
            None => diagnostic,
        }
    }

    fn advice(&self) -> Option<&'static str> {
        Some(match self.code() {
            "K0505" => {
                "use smaller blocks or fewer buffers, or raise the kernel's VMEM limit if the chip has more"
            }
            "K0506" => "convert the operand to a type that this generation's MXU takes",
            "K0507" => {
                "make the last two extents of the block multiples of (8, 128), or the whole extents of the array"
            }
            "K0508" => "write the index as a multiple of a constant, or promise that it is one",
            _ => return None,
        })
    }
}

impl From<AotError> for Diagnostic {
    fn from(error: AotError) -> Diagnostic {
        error.diagnostic()
    }
}

impl From<AotError> for Report {
    fn from(error: AotError) -> Report {
        error.diagnostic().into()
    }
}
