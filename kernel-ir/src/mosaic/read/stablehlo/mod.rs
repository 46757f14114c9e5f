//! Mosaic kernels inside StableHLO text, as `jax.jit(f).lower(..).as_text()` prints it: which `tpu_custom_call`s there are,
//! with their modules and the types of their operands and results.
//!
//! The text is scanned, not parsed: only the calls are understood. Both forms that MLIR prints are read, in linear time:
//!
//! ```text
//! %0 = stablehlo.custom_call @tpu_custom_call(%arg0) {backend_config = "..", ..} : (tensor<8x128xf32>) -> tensor<8x128xf32>
//! %0 = "stablehlo.custom_call"(%arg0) <{call_target_name = "tpu_custom_call", ..}> : (..) -> ..
//! ```

mod scan;
mod types;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde::Deserialize;

use super::{CallTypes, bytecode};
use crate::diag::{Diagnostic, Report};
use crate::ir::{ArrayType, Kernel};
use scan::{Call, Scanner};

/// A call of a Mosaic kernel.
#[derive(Clone, PartialEq, Debug)]
pub struct TpuCall {
    /// What JAX calls the kernel: the call's `kernel_name`, else the name of the module.
    pub name: String,
    /// The module: MLIR bytecode, or MLIR text.
    pub body: Vec<u8>,
    /// `1` for a module in Mosaic's stable form; absent for one in the compiler's own.
    pub serialization_format: Option<i64>,
    /// The source lines of the module's operations, which JAX keeps apart from it: MLIR bytecode.
    pub debug_locations: Option<Vec<u8>>,
    /// Types of the operands, in order. An unsigned element type stands as the signless one of its width.
    pub operands: Vec<ArrayType>,
    /// Types of the results, in order.
    pub results: Vec<ArrayType>,
    /// Operands that results share memory with: an index into `operands` and one into `results`.
    pub aliases: Vec<(usize, usize)>,
    /// The kernel copies to or signals other devices.
    pub has_communication: bool,
    /// The line of the call in the text, from 1.
    pub line: u32,
}

impl TpuCall {
    /// The kernel that is called, with its source lines where they are known.
    ///
    /// # Errors
    /// As [`super::kernel`].
    pub fn kernel(&self) -> Result<Kernel, Report> {
        let types = CallTypes { operands: Some(self.operands.clone()), results: self.results.clone() };
        super::located(&self.body, self.debug_locations.as_deref(), Some(&types))
    }
}

/// The part of `backend_config` that says what is called.
#[derive(Deserialize)]
struct BackendConfig {
    custom_call_config: CustomCallConfig,
}

#[derive(Deserialize)]
struct CustomCallConfig {
    body: String,
    serialization_format: Option<i64>,
    debug_locations: Option<String>,
    #[serde(default)]
    has_communication: bool,
}

/// The Mosaic calls of a StableHLO text, in the order in which they stand. Empty for a text without any.
///
/// # Errors
/// `K0805`, one for each call that is malformed or whose arrays have an element type that kernels do not have.
pub fn calls(text: &str) -> Result<Vec<TpuCall>, Report> {
    let (mut calls, mut faults) = (vec![], vec![]);
    let mut scanner = Scanner::new(text);
    while let Some((line, call)) = scanner.next_call() {
        let call = call.and_then(|c| match c {
            Some(c) => understand(&c, line).map(Some),
            None => Ok(None),
        });
        match call {
            Ok(call) => calls.extend(call),
            Err(message) => {
                let message = format!("the `{}` of line {line} is not understood: {message}", scan::TARGET);
                faults.push(Diagnostic::error("K0805", message));
            }
        }
    }
    if faults.is_empty() { Ok(calls) } else { Err(Report { diagnostics: faults }) }
}

/// Why a call is not understood.
type Fallible<T> = Result<T, String>;

fn understand(call: &Call<'_>, line: u32) -> Fallible<TpuCall> {
    let config = call.string("backend_config")?.ok_or("it has no `backend_config`")?;
    let config: BackendConfig =
        serde_json::from_str(&config).map_err(|e| format!("its `backend_config` is malformed: {e}"))?;
    let config = config.custom_call_config;
    let decode =
        |field, text: &str| STANDARD.decode(text).map_err(|e| format!("its `{field}` is no base64: {e}"));
    let body = decode("body", &config.body)?;
    let debug_locations = config.debug_locations.map(|text| decode("debug_locations", &text)).transpose()?;
    let name = match call.string("kernel_name")? {
        Some(name) => name,
        None => bytecode::parse(&body)
            .ok()
            .and_then(|m| m.name)
            .unwrap_or_else(|| scan::TARGET.into())
            .to_string(),
    };
    let (operands, results) = types::signature(call.types)?;
    let aliases = match call.attribute("output_operand_aliases") {
        Some(text) => aliases(text, operands.len(), results.len())?,
        None => vec![],
    };
    Ok(TpuCall {
        name,
        body,
        serialization_format: config.serialization_format,
        debug_locations,
        operands,
        results,
        aliases,
        has_communication: config.has_communication,
        line,
    })
}

/// Reads `[#stablehlo.output_operand_alias<output_tuple_indices = [0], operand_index = 1, ..>, ..]`. A call with one result
/// has no output tuple, and its list of indices is empty.
fn aliases(text: &str, operands: usize, results: usize) -> Fallible<Vec<(usize, usize)>> {
    let mut all = vec![];
    for alias in text.split("output_operand_alias<").skip(1) {
        let after = |key: &str| Some(alias.split_once(key)?.1.trim_start().strip_prefix('=')?.trim_start());
        let number = |text: &str| {
            let digits = text.split(|c: char| !c.is_ascii_digit()).next()?;
            digits.parse::<usize>().ok()
        };
        let operand = after("operand_index").and_then(number);
        let result = after("output_tuple_indices").and_then(|t| {
            let list = t.strip_prefix('[')?.trim_start();
            if list.starts_with(']') { Some(0) } else { number(list) }
        });
        match (operand, result) {
            (Some(o), Some(r)) if o < operands && r < results => all.push((o, r)),
            _ => return Err("its `output_operand_aliases` name no operand or no result".into()),
        }
    }
    Ok(all)
}
