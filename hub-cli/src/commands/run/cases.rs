//! Many runs out of one list, for test suites: each case says what happened to it, and none stops the others.

use std::path::{Path, PathBuf};

use fs_err as fs;
use rayon::prelude::*;
use serde::Deserialize;
use serde_json::{Value, json};

use super::execute::{Job, execute};
use crate::arrays::ArrayPath;
use crate::error::{Code, Error, Result};
use crate::module::{ResultType, Target};
use crate::output::Output;

/// One run. Paths are relative to the list; what a suite notes beside is left alone.
#[derive(Debug, Deserialize)]
struct Case {
    name: String,
    module: PathBuf,
    /// The op of a package.
    #[serde(default)]
    op: Option<String>,
    /// The call of a StableHLO text, by number.
    #[serde(default)]
    call: Option<usize>,
    #[serde(default)]
    args: Vec<String>,
    /// Where the results go.
    #[serde(default)]
    outs: Vec<String>,
    /// Types of the results, for a module by itself.
    #[serde(default)]
    results: Vec<String>,
    /// Results that start as an operand: operand, result.
    #[serde(default)]
    aliases: Vec<(usize, usize)>,
    /// With more than one, the first axis of every array is the device.
    #[serde(default = "one_device")]
    devices: usize,
    /// Multiply `f32` as `f32`, whatever precision the module asks for.
    #[serde(default)]
    exact: bool,
}

const fn one_device() -> usize {
    1
}

/// Runs every case of a list; the result is one entry a case, in order.
///
/// # Errors
/// `H0109` or `H0602` if the list itself cannot be read.
pub(super) fn run(list: &Path, output: &Output) -> Result<()> {
    let text = fs::read(list).map_err(|e| Error::io(list, e))?;
    let cases: Vec<Case> = serde_json::from_slice(&text).map_err(|e| {
        Error::new(Code::RunArguments, format!("{} is no list of cases: {e}", list.display()))
    })?;
    let folder = list.parent().unwrap_or(Path::new("."));
    let told: Vec<Value> = cases.par_iter().map(|case| tell(folder, case)).collect();
    let failed = told.iter().filter(|t| t["ok"] != true).count();
    output.result(Value::from(told.clone()), || {
        let lines = told.iter().map(|t| match t["ok"].as_bool() {
            Some(true) => format!("ok      {}\n", t["name"].as_str().unwrap_or_default()),
            _ => {
                let text = |key: &str| t[key].as_str().unwrap_or_default().to_owned();
                format!("FAILED  {}: [{}] {}\n", text("name"), text("code"), text("message"))
            }
        });
        lines.collect::<String>() + &format!("{} ran, {failed} failed", told.len())
    });
    Ok(())
}

fn tell(folder: &Path, case: &Case) -> Value {
    match one(folder, case) {
        Ok(seconds) => json!({"name": case.name, "ok": true, "seconds": seconds}),
        Err(e) => {
            // The module's own finding says more than that there is one.
            let (code, message) = e.finding().unwrap_or((e.code().doc().code.to_owned(), e.to_string()));
            json!({"name": case.name, "ok": false, "code": code, "message": message})
        }
    }
}

fn one(folder: &Path, case: &Case) -> Result<f64> {
    let array = |path: &String| folder.join(path).to_string_lossy().parse::<ArrayPath>();
    let paths = |all: &[String]| all.iter().filter_map(|p| array(p).ok()).collect::<Vec<_>>();
    let target = Target::open(&folder.join(&case.module))?;
    let results = case.results.iter().map(|t| t.parse::<ResultType>().map(|t| t.0));
    let results: std::result::Result<Vec<_>, String> = results.collect();
    let call = case.call.map(|n| n.to_string());
    let finished = execute(
        &target,
        Job {
            choice: case.op.as_deref().or(call.as_deref()),
            arrays: paths(&case.args).iter().map(ArrayPath::read).collect::<Result<_>>()?,
            results: results.map_err(|problem| Error::new(Code::RunArguments, problem))?,
            aliases: case.aliases.clone(),
            devices: Some(case.devices).filter(|n| *n > 1),
            exact: case.exact,
            threads: Some(1),
            repeat: 1,
        },
    )?;
    for (path, array) in paths(&case.outs).iter().zip(&finished.results) {
        path.write(array)?;
    }
    Ok(finished.seconds)
}
