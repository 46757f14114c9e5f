//! What a package must be before it is published, beyond what [`LocalPackage::open`] checks of any package.

use std::collections::BTreeMap;
use std::path::Path;

use fs_err as fs;

use crate::error::{Code, Error, Result};
use crate::hub::RepoPath;

use super::{GitState, LocalPackage, Variant, lint};

/// The most bytes of a package that is published.
const MAX_PACKAGE: u64 = 4 << 30;

/// Exceptions that the publisher makes knowingly.
#[derive(Clone, Copy, Debug, Default)]
pub struct Allowances {
    /// Sources that differ from their commit.
    pub dirty: bool,
    /// Modules that no TPU generation is known to accept.
    pub unchecked: bool,
}

/// Checks everything about `package` that can be checked without a hub. `at` is where it lies.
///
/// # Errors
/// `H0304` for a variant without a digest, `H0406` for Python files, `H0407` for a package that is too large,
/// `H0414` for modules that libtpu never saw, `H0415` for sources that were not committed.
pub fn audit(package: &LocalPackage, at: &Path, allow: Allowances) -> Result<()> {
    let mut bytes = 0;
    for variant in &package.variants {
        let name = &variant.name;
        if variant.metadata.digest.is_none() {
            return Err(Error::new(Code::Digest, format!("{name} has no digest"))
                .help("build it with `kernels-cli build`"));
        }
        let mut sources = BTreeMap::new();
        for (path, file) in &variant.files {
            bytes += fs::metadata(file).map_err(|e| Error::io(file, e))?.len();
            if path.as_str().ends_with(".py") {
                sources.insert(path.clone(), fs::read(file).map_err(|e| Error::io(file, e))?);
            }
        }
        check_sources(variant, &sources)?;
        if !allow.unchecked {
            check_generations(variant)?;
        }
    }
    if bytes > MAX_PACKAGE {
        return Err(Error::new(
            Code::File,
            format!("the package has {bytes} bytes, more than {MAX_PACKAGE}"),
        ));
    }
    if allow.dirty { Ok(()) } else { check_clean(package, at) }
}

fn check_sources(variant: &Variant, sources: &BTreeMap<RepoPath, Vec<u8>>) -> Result<()> {
    lint::check_python(sources, &variant.metadata.name).map_err(|e| {
        let text = e.to_string();
        let message = text.split_once("] ").map_or(text.as_str(), |(_, message)| message);
        Error::new(e.code(), format!("{}: {message}", variant.name))
    })
}

/// Every module states a TPU generation whose compiler accepted it.
fn check_generations(variant: &Variant) -> Result<()> {
    let ops = variant.index.iter().flat_map(|index| index.ops.iter());
    let unchecked: Vec<_> = ops
        .flat_map(|(_, op)| &op.modules)
        .filter(|m| m.generations.is_empty())
        .map(|m| m.file.as_str())
        .collect();
    if unchecked.is_empty() {
        return Ok(());
    }
    let message = format!("{}: libtpu has not accepted {}", variant.name, unchecked.join(", "));
    Err(Error::new(Code::Unchecked, message)
        .help("build it without --no-tpu-check, or publish it with --allow-unchecked"))
}

/// The sources of the package are those of a commit that others can look at.
fn check_clean(package: &LocalPackage, at: &Path) -> Result<()> {
    let stated = package.variants.iter().find_map(|v| v.metadata.provenance.as_ref()?.kernel.clone());
    let (state, what) = match stated {
        Some(state) => (Some(state), "was built from"),
        None => (GitState::of(at), "lies among"),
    };
    match state {
        Some(GitState { commit, dirty: true }) => {
            let message = format!(
                "the package {what} files that differ from their commit {}",
                &commit[..12.min(commit.len())]
            );
            Err(Error::new(Code::Dirty, message)
                .help("commit the changes and build again, or publish it with --allow-dirty"))
        }
        _ => Ok(()),
    }
}
