//! `completions`: a script for the user's shell.

use clap::CommandFactory;
use serde_json::json;

use crate::cli::{Cli, Completions};
use crate::error::Result;
use crate::output::Output;

pub(super) fn run(args: &Completions, output: &Output) -> Result<()> {
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut Cli::command(), "kernels-cli", &mut script);
    let script = String::from_utf8_lossy(&script).into_owned();
    output.result(json!({"shell": args.shell.to_string(), "script": script}), || script.clone());
    Ok(())
}
