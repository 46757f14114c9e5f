//! Kernel packages and the hubs that hold them: the library behind `kernels-cli`.
//!
//! - [`get_kernel`] brings a kernel into the cache and checks every byte of it.
//! - [`hub`] is a client of the Hugging Face Hub, or of any hub that speaks its protocol.
//! - [`server`] is such a hub, out of one folder.
//! - [`package`] builds and checks packages.
//!
//! Every failure is an [`Error`] with a stable code, which [`codes`] explains.

mod arrays;
mod atomic;
mod cli;
pub mod codes;
mod commands;
mod compiler;
pub mod error;
pub mod hub;
mod kernel;
mod module;
mod output;
pub mod package;
pub mod server;
pub mod settings;

use std::process::ExitCode;

use clap::Parser;

pub use error::{Code, Error, Result};
pub use hub::{Revision, Version};
pub use kernel::{Kernel, Module, get_kernel};

/// Runs the program with the process's arguments and environment.
///
/// The exit code is 0 for success, 1 for a failure with a diagnostic, 2 for arguments that cannot be
/// understood.
pub fn run() -> ExitCode {
    // libtpu runs in this program, started again as its own child.
    #[cfg(feature = "aot")]
    kernel_ir::aot::child_main_if_requested();
    let cli = cli::Cli::parse();
    let output = output::Output::new(cli.global.json, cli.global.quiet);
    match commands::run(cli, &settings::Environment::of_process(), &output) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            output.failure(&error);
            ExitCode::from(if matches!(error.code(), Code::Arguments | Code::RunArguments) { 2 } else { 1 })
        }
    }
}
