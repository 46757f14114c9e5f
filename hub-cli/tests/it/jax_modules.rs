//! Mosaic modules that JAX and Tokamax make run from their own bytes, and give the results that JAX gives.
//!
//! `tools/conformance/make.py` makes the modules, their operands and the expected results at test time; its `peers` say which kernels
//! these are, and with what tolerance. It keeps them in Cargo's folder for tests while neither the scripts nor JAX change.

use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;

use crate::python::python;

fn script(python: &Path, name: &str, argument: &Path) -> String {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
    let script = root.join("tools/conformance").join(name);
    let output = Command::new(python).arg(script).arg(argument).output().unwrap();
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(output.status.success(), "{name}: {said}\n{}", String::from_utf8_lossy(&output.stderr));
    said
}

#[test]
#[allow(clippy::print_stdout, reason = "says how many cases it compared, or why none")]
fn kernels_of_jax_and_tokamax_give_their_results() {
    let Some(python) = python() else { return };
    let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("jax-modules");
    let said = script(&python, "make.py", &folder);
    let cases = folder.join("cases.json");
    if said.starts_with("skipped") {
        return println!("{said}");
    }
    let run = Command::new(env!("CARGO_BIN_EXE_kernels-cli"))
        .args(["run", "--json", "--cases"])
        .arg(&cases)
        .output()
        .unwrap();
    let answers: Vec<Value> = serde_json::from_slice(&run.stdout)
        .unwrap_or_else(|e| panic!("{e}: {}", String::from_utf8_lossy(&run.stderr)));
    let failed: Vec<_> = answers.iter().filter(|a| a["ok"] != true).map(ToString::to_string).collect();
    assert!(failed.is_empty() && !answers.is_empty(), "{}", failed.join("\n"));
    println!("{}", script(&python, "compare.py", &cases));
}
