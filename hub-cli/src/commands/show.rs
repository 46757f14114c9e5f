//! `show`: a Mosaic module, readable.

use kernel_ir::mosaic::read::{self, stablehlo::TpuCall};
use serde_json::json;

use super::run::open;
use crate::cli::{Form, Show};
use crate::error::{Error, Result};
use crate::module::{Summary, Target};
use crate::output::Output;
use crate::settings::HubSettings;

pub(super) fn run(args: &Show, hub: impl FnOnce() -> Result<HubSettings>, output: &Output) -> Result<()> {
    let target = open(&args.target, hub)?;
    let choice = args.op.as_deref().or(args.call.as_deref());
    if choice.is_none() && target.choices().len() > 1 {
        return list(&target, output);
    }
    let (body, call) = target.module(choice)?;
    let refused = |report| Error::refused(&report);
    if args.emit == Some(Form::Mlir) {
        let text = read::mlir(&body).map_err(refused)?;
        output.result(json!({"mlir": text}), || text.clone());
        return Ok(());
    }
    let kernel = call.map_or_else(|| read::kernel(&body, None), TpuCall::kernel).map_err(refused)?;
    if args.emit == Some(Form::Tir) {
        let text = kernel.to_string();
        output.result(json!({"tir": text}), || text.clone());
        return Ok(());
    }
    let summary = Summary::new(&kernel, read::version(&body).map_err(refused)?, body.len());
    let document = json!(summary);
    output.result(document.clone(), || match args.emit {
        Some(Form::Json) => format!("{document:#}"),
        _ => summary.text(),
    });
    Ok(())
}

/// What there is to choose from.
fn list(target: &Target, output: &Output) -> Result<()> {
    let choices = target.choices();
    let flag = if matches!(target, Target::Package(_)) { "--op" } else { "--call" };
    output.result(json!({"choices": choices}), || {
        let lines = choices.iter().enumerate().map(|(i, name)| format!("{i:>3}  {name}\n"));
        lines.collect::<String>() + &format!("choose one with {flag}")
    });
    Ok(())
}
