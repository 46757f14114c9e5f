//! Ahead-of-time compilation with the real TPU compiler, libtpu, on a machine without a TPU.
//!
//! libtpu is a PJRT plugin: it takes a StableHLO program, which calls a Mosaic module through `tpu_custom_call`, and
//! compiles it for a named topology. That it does so is the proof that a module is a valid TPU program; what it says
//! against one comes back as a [`Diagnostic`](crate::diag::Diagnostic) at the user's line, since a module carries its
//! source locations.
//!
//! libtpu aborts the process on some kernels, so it only ever runs in a child ([`Compiler`]): the same program started
//! again if it calls [`child_main_if_requested`], else `tessera-aot-worker`. The two speak JSON over pipes.
//!
//! ```no_run
//! use kernel_ir::aot::{Compiler, Generation, Job};
//!
//! kernel_ir::aot::child_main_if_requested();
//! let compiler = Compiler::new()?;
//! # let stablehlo = String::new();
//! let job = Job { kernel: "matmul".into(), generation: Generation::V6e, stablehlo };
//! println!("{} bytes of code", compiler.compile(&job)?.code_bytes);
//! # Ok::<(), kernel_ir::aot::AotError>(())
//! ```

mod child;
mod compiler;
mod error;
mod locate;
mod location;
mod message;
mod pjrt;
mod protocol;
mod worker;

pub use crate::target::Generation;
pub use compiler::{Compiled, Compiler, Job, Options, Progress};
pub use error::{AotError, Rejection};
pub use worker::child_main_if_requested;
