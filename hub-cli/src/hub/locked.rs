//! Fetching what a lock file pins, and nothing else.

use std::path::Path;

use crate::error::{Code, Error, Result};

use super::cache::Cache;
use super::client::Client;
use super::dependency::{KernelDependency, Pin};
use super::fetch::{Fetched, Progress, Wanted, fetch, open_cached};
use super::lock::{LockFile, project_dependencies};
use super::oid::CommitId;
use super::repo::Revision;

/// Checks a lock file against the pyproject.toml beside it, if there is one that names kernels.
///
/// # Errors
/// `H0310` for a kernel that is not locked at its version.
pub fn check_against_project(lock: &LockFile, lock_path: &Path) -> Result<()> {
    let project = lock_path.with_file_name("pyproject.toml");
    if !project.exists() {
        return Ok(());
    }
    match project_dependencies(&project) {
        Ok(wanted) => wanted.iter().try_for_each(|dependency| lock.commit(dependency).map(drop)),
        // A project may lock kernels in another way.
        Err(e) if e.code() == Code::Project => Ok(()),
        Err(e) => Err(e),
    }
}

/// Fetches `dependency` at the commit that `lock` pins it to; from the cache alone without a `client`.
///
/// # Errors
/// `H0310` if it is not locked, states another version than the lock file, or depends on what is not locked;
/// those of [`fetch`] and [`open_cached`].
pub fn fetch_locked(
    client: Option<&Client>,
    cache: &Cache,
    lock: &LockFile,
    dependency: &KernelDependency,
    variants: &[String],
    progress: &mut dyn Progress,
) -> Result<Fetched> {
    let commit = lock.commit(dependency)?;
    let wanted = Wanted {
        repo: dependency.repo.clone(),
        revision: Revision::Commit(commit.clone()),
        variants: variants.to_vec(),
    };
    let fetched = match client {
        Some(client) => fetch(client, cache, &wanted, progress)?,
        None => open_cached(cache, &wanted)?,
    };
    check(lock, dependency, commit, &fetched)?;
    if let Pin::Version(version) = dependency.pin {
        // Python looks for a version by the name of its branch.
        cache.lock(&dependency.repo)?.write_new_ref(&version.branch(), commit)?;
    }
    Ok(fetched)
}

fn check(lock: &LockFile, dependency: &KernelDependency, commit: &CommitId, fetched: &Fetched) -> Result<()> {
    for variant in &fetched.variants {
        let metadata = &variant.metadata;
        if let Pin::Version(version) = dependency.pin
            && metadata.version != version.0
        {
            let (name, states) = (&variant.name, metadata.version);
            let message = format!("{dependency} is locked to {commit}, where {name} states version {states}");
            return Err(Error::new(Code::Drift, message).help("run `kernels-cli lock`"));
        }
        for needed in &metadata.kernel_depends {
            lock.commit(needed).map_err(|e| {
                let message = format!("{dependency} depends on {needed}, which is not locked");
                Error::new(e.code(), message).help("run `kernels-cli lock`")
            })?;
        }
    }
    Ok(())
}
