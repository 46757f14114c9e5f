//! Kernel packages: what is in them, how they are made from source, and how they are checked.

pub mod audit;
pub mod build;
mod digest;
mod git;
mod import;
mod interface;
#[cfg(feature = "aot")]
mod libtpu;
mod lint;
pub mod manifest;
#[cfg(feature = "aot")]
mod memory;
mod metadata;
mod ops;
mod python;
pub mod signing;
mod verify;

pub use digest::Digest;
pub use git::GitState;
pub use import::{Imported, Python};
pub(crate) use interface::signature as interface_signature;
pub use interface::{Comparison, Interface, PythonApi};
#[cfg(feature = "aot")]
pub(crate) use libtpu::Libtpu;
pub use metadata::{Backend, Builder, Metadata, Provenance};
pub use ops::{Candidate, GenerationCheck, OpSource, PackagedOp, Refusal, Verdict};
pub use verify::{LocalPackage, Variant};
pub(crate) use verify::{MAX_FILE, split_variant};

use crate::error::{Code, Error, Result};

/// Whether `name` can name a kernel: `^[a-z][-a-z0-9]*[a-z0-9]$`, at most 64 characters.
///
/// # Errors
/// `H0402`.
pub(crate) fn check_name(name: &str) -> Result<()> {
    let plain = name.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-');
    let ends = name.starts_with(|c: char| c.is_ascii_lowercase()) && !name.ends_with('-');
    if plain && ends && (2..=64).contains(&name.len()) {
        return Ok(());
    }
    Err(Error::new(Code::Name, format!("{name:?} cannot name a kernel"))
        .help("use lower-case letters, digits and `-`, with a letter first and no `-` last, such as `ragged-dot-tpu`"))
}

/// The Python form of a kernel's name: `ragged-dot-tpu` is `ragged_dot_tpu`.
pub(crate) fn python_name(name: &str) -> String {
    name.replace('-', "_")
}

/// Whether a folder name is that of a build variant, such as `torch-universal` or
/// `torch211-cxx11-cu130-x86_64-linux`.
pub(crate) fn is_variant_name(name: &str) -> bool {
    let framework = name.starts_with("torch") || name.starts_with("tvm-ffi");
    framework && name.contains('-') && name.bytes().all(|b| b.is_ascii_alphanumeric() || b"-_.".contains(&b))
}
