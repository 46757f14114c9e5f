//! Imports a variant in Python as `kernels` would, to see that it can be.

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::error::{Code, Error, Result};

use super::Metadata;

/// Prints `ok`, or `absent NAME` for a module of others that is not installed here.
const SCRIPT: &str = r#"
import importlib.util, pathlib, sys
folder, name = pathlib.Path(sys.argv[1]), sys.argv[2]
spec = importlib.util.spec_from_file_location(name, folder / "__init__.py")
module = importlib.util.module_from_spec(spec)
sys.modules[name] = module
try:
    spec.loader.exec_module(module)
except ModuleNotFoundError as error:
    if error.name and error.name.split(".")[0] != name:
        print("absent", error.name)
        sys.exit()
    raise
missing = [public for public in module.__all__ if not hasattr(module, public)]
if missing:
    sys.exit("__all__ names " + ", ".join(missing) + ", which the module does not have")
print("ok")
"#;

/// A Python to try packages with.
#[derive(Clone, Debug)]
pub struct Python(PathBuf);

/// How an import went.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Imported {
    /// It was imported, and has every name of `__all__`.
    Whole,
    /// It needs this module of others, which is not installed here.
    Needs(String),
}

impl Python {
    /// `program` if it is given, else the `python3` of this machine, if there is one.
    pub fn find(program: Option<PathBuf>) -> Option<Self> {
        let python = Self(program.unwrap_or_else(|| "python3".into()));
        let runs = python.command().args(["-c", ""]).output().is_ok_and(|output| output.status.success());
        runs.then_some(python)
    }

    /// Imports the variant in `folder`.
    ///
    /// # Errors
    /// `H0417` with Python's own words.
    pub fn import(&self, folder: &Path, metadata: &Metadata) -> Result<Imported> {
        let output = self.command().args(["-c", SCRIPT]).arg(folder).arg(&metadata.id).output();
        let output = output.map_err(|e| Error::io(&self.0, e))?;
        let said = String::from_utf8_lossy(&output.stdout).into_owned();
        if output.status.success() {
            let absent = said.lines().find_map(|line| line.strip_prefix("absent "));
            return Ok(absent.map_or(Imported::Whole, |name| Imported::Needs(name.to_owned())));
        }
        let message = format!("Python cannot import {}", folder.display());
        Err(Error::new(Code::Import, message).report(String::from_utf8_lossy(&output.stderr)))
    }

    /// Python on its own: no folder of the user's, no bytecode left behind.
    fn command(&self) -> Command {
        let mut command = Command::new(&self.0);
        command.args(["-I", "-B"]);
        command
    }
}
