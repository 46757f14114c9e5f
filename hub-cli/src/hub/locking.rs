//! From what a project depends on to the commits of all of it: every variant's own dependencies count too.

use std::collections::BTreeSet;

use crate::error::{Code, Error, Result};
use crate::package::{Metadata, split_variant};

use super::client::Client;
use super::dependency::KernelDependency;
use super::lock::LockFile;
use super::oid::CommitId;
use super::repo::RepoId;

/// The most kernels that one project may come to depend on.
const MAX_KERNELS: usize = 256;
/// The largest metadata.json that is read, in bytes.
const MAX_METADATA: u64 = 32 << 20;

/// Publishers that the user trusts although the hub does not say so.
#[derive(Clone, Debug, Default)]
pub struct Allowed(BTreeSet<String>);

impl Allowed {
    /// From `OWNER/NAME` and `OWNER`.
    ///
    /// # Errors
    /// `H0101` for what can be neither.
    pub fn parse(names: &[String]) -> Result<Self> {
        for name in names {
            match name.contains('/') {
                true => drop(name.parse::<RepoId>()?),
                false => drop(RepoId::new(name, "x")?),
            }
        }
        Ok(Self(names.iter().cloned().collect()))
    }

    fn contains(&self, repo: &RepoId) -> bool {
        self.0.contains(&repo.to_string()) || self.0.contains(repo.owner())
    }
}

/// Locks `wanted` and everything that they depend on, as Python's `kernels lock` does: for every variant, so
/// that one lock file serves every machine.
///
/// # Errors
/// `H0213` for a publisher that neither the hub nor `allowed` trusts, `H0310` for kernels that depend on each
/// other in a circle, `H02xx` if something does not exist.
pub fn lock(client: &Client, wanted: &[KernelDependency], allowed: &Allowed) -> Result<LockFile> {
    let mut walk =
        Walk { client, allowed, trusted: BTreeSet::new(), above: vec![], found: LockFile::default() };
    wanted.iter().try_for_each(|dependency| walk.visit(dependency))?;
    Ok(walk.found)
}

struct Walk<'a> {
    client: &'a Client,
    allowed: &'a Allowed,
    /// Owners that the hub trusts.
    trusted: BTreeSet<String>,
    /// The kernels whose dependencies are being looked at.
    above: Vec<KernelDependency>,
    found: LockFile,
}

impl Walk<'_> {
    fn visit(&mut self, dependency: &KernelDependency) -> Result<()> {
        if self.found.locks.contains_key(dependency) {
            return Ok(());
        }
        if self.above.contains(dependency) {
            let circle: Vec<_> = self.above.iter().chain([dependency]).map(ToString::to_string).collect();
            let message = format!("kernels depend on each other in a circle: {}", circle.join(" -> "));
            return Err(Error::new(Code::Drift, message));
        }
        if self.found.locks.len() + self.above.len() >= MAX_KERNELS {
            return Err(Error::new(
                Code::TooLarge,
                format!("more than {MAX_KERNELS} kernels are depended on"),
            ));
        }
        self.require_trust(&dependency.repo)?;
        let commit = self.client.resolve(&dependency.repo, &dependency.revision()?)?;
        self.above.push(dependency.clone());
        for needed in self.depends(&dependency.repo, &commit)? {
            self.visit(&needed)?;
        }
        self.above.pop();
        self.found.locks.insert(dependency.clone(), commit);
        Ok(())
    }

    /// What the variants of a commit depend on.
    fn depends(&self, repo: &RepoId, commit: &CommitId) -> Result<BTreeSet<KernelDependency>> {
        let mut depends = BTreeSet::new();
        let mut variants = 0;
        for file in self.client.files(repo, commit)? {
            let Some((variant, path)) = split_variant(&file.path) else { continue };
            if path.as_str() != "metadata.json" {
                continue;
            }
            variants += 1;
            let json = self.client.read(repo, commit, &file, MAX_METADATA)?;
            let metadata = Metadata::parse(&json, &format!("{repo}: {variant}/metadata.json"))?;
            depends.extend(metadata.kernel_depends);
        }
        if variants == 0 {
            return Err(Error::new(Code::NoVariant, format!("{repo} at {commit} holds no build variant")));
        }
        Ok(depends)
    }

    fn require_trust(&mut self, repo: &RepoId) -> Result<()> {
        if self.allowed.contains(repo) || self.trusted.contains(repo.owner()) {
            return Ok(());
        }
        if self.client.trusts(repo.owner())? {
            self.trusted.insert(repo.owner().to_owned());
            return Ok(());
        }
        let for_whom = match self.above.last() {
            Some(dependent) => format!(", which {dependent} depends on,"),
            None => String::new(),
        };
        let message =
            format!("{repo}{for_whom} is not of a publisher that {} trusts", self.client.endpoint());
        Err(Error::new(Code::Untrusted, message).help(format!(
            "if you have looked at its code, pass --allow {repo}, or --allow {}",
            repo.owner()
        )))
    }
}
