//! Arrays in files: what `run` reads, writes and compares. NumPy's `.npy` and `.safetensors`.

mod compare;
mod npy;
mod safetensors;

use std::path::{Path, PathBuf};

use fs_err as fs;
use kernel_ir::exec::Array;

use crate::atomic;
use crate::error::{Code, Error, Result};

pub(crate) use compare::{Comparison, Tolerance, compare};

/// A file, and the tensor in it if it holds several: `x.npy`, `inputs.safetensors#x`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ArrayPath {
    file: PathBuf,
    tensor: Option<String>,
}

/// The formats, by the ending of the file's name.
enum Format {
    Npy,
    Safetensors,
}

impl std::str::FromStr for ArrayPath {
    type Err = std::convert::Infallible;

    fn from_str(s: &str) -> std::result::Result<Self, Self::Err> {
        Ok(match s.rsplit_once('#') {
            Some((file, tensor)) if file.ends_with(".safetensors") => {
                Self { file: file.into(), tensor: Some(tensor.to_owned()) }
            }
            _ => Self { file: s.into(), tensor: None },
        })
    }
}

impl std::fmt::Display for ArrayPath {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match &self.tensor {
            Some(tensor) => write!(f, "{}#{tensor}", self.file.display()),
            None => write!(f, "{}", self.file.display()),
        }
    }
}

impl ArrayPath {
    /// Reads the array.
    ///
    /// # Errors
    /// `H0109` if the file cannot be read, `H0601` if it is no array of a type that kernels have.
    pub(crate) fn read(&self) -> Result<Array> {
        let format = format(&self.file)?;
        let bytes = fs::read(&self.file).map_err(|e| Error::io(&self.file, e))?;
        let array = match format {
            Format::Npy => npy::decode(&bytes),
            Format::Safetensors => safetensors::decode(&bytes, self.tensor.as_deref()),
        };
        array.map_err(|problem| Error::new(Code::ArrayFile, format!("{self}: {problem}")))
    }

    /// Writes an array, replacing the file at once.
    ///
    /// # Errors
    /// `H0109` if the file cannot be written, `H0601` for an ending that says no format.
    pub(crate) fn write(&self, array: &Array) -> Result<()> {
        let bytes = match format(&self.file)? {
            Format::Npy => npy::encode(array),
            Format::Safetensors => safetensors::encode(array, self.tensor.as_deref().unwrap_or("out")),
        };
        let bytes = bytes.map_err(|problem| Error::new(Code::ArrayFile, format!("{self}: {problem}")))?;
        // A bare name lies in the current folder.
        atomic::write(&Path::new(".").join(&self.file), &bytes)
    }
}

fn format(file: &Path) -> Result<Format> {
    match file.extension().and_then(|e| e.to_str()) {
        Some("npy") => Ok(Format::Npy),
        Some("safetensors") => Ok(Format::Safetensors),
        _ => {
            let message = format!("{} says no array format", file.display());
            Err(Error::new(Code::ArrayFile, message)
                .help("name the file x.npy or x.safetensors (one tensor of it: x.safetensors#NAME)"))
        }
    }
}
