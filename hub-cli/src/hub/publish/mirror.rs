//! Copies versions from one hub to another, file by file, checked on the way.

use std::collections::BTreeSet;

use crate::error::Result;
use crate::hub::client::Client;
use crate::hub::endpoint::Token;
use crate::hub::path::RepoPath;
use crate::hub::repo::{RepoId, Revision, Version};
use crate::package::Comparison;

use super::plan::Upload;
use super::{Changes, Plan, Published};

/// The largest card, in bytes.
const MAX_CARD: u64 = 16 << 20;

/// Makes `version` of `to` on the hub `target` what it is of `from` on the hub `source`, and the card too. The
/// commits have other ids there: a lock file pins one hub's.
///
/// # Errors
/// `H0202` and `H0203` if there is no such version, those of [`Plan::publish`] for the other hub.
pub fn mirror(
    (source, from): (&Client, &RepoId),
    (target, token, to): (&Client, Option<&Token>, &RepoId),
    version: Version,
    private: bool,
) -> Result<Published> {
    let commit = source.resolve(from, &version.into())?;
    let mut files = Upload::new();
    for file in source.files(from, &commit)? {
        if !file.path.is_bytecode() {
            let content = source.read(from, &commit, &file, crate::package::MAX_FILE)?;
            files.insert(file.path, content);
        }
    }
    let plan = Plan::of_files(target, to, version, files, card(source, from)?)?;
    plan.publish(target, token, private)
}

/// The README of `main`, if there is one.
fn card(source: &Client, from: &RepoId) -> Result<Option<Upload>> {
    let Some(main) = source.heads(from)?.branches.remove("main") else { return Ok(None) };
    let readme = RepoPath::parse("README.md")?;
    match source.files(from, &main)?.into_iter().find(|file| file.path == readme) {
        Some(file) => Ok(Some(Upload::from([(readme, source.read(from, &main, &file, MAX_CARD)?)]))),
        None => Ok(None),
    }
}

impl Plan {
    /// A plan that makes a version hold exactly `files`.
    fn of_files(
        client: &Client,
        repo: &RepoId,
        version: Version,
        files: Upload,
        card: Option<Upload>,
    ) -> Result<Self> {
        let (repository_exists, heads) = super::plan::heads(client, repo)?;
        let head = heads.branches.get(&version.branch()).cloned();
        let mut plan = Self {
            repo: repo.clone(),
            repository_exists,
            version,
            head,
            changes: Changes::default(),
            interface: Comparison::default(),
            next_version: version,
            name: repo.name().to_owned(),
            files,
            card,
            variants: BTreeSet::new(),
            whole: true,
        };
        let there = match plan.head.is_some() {
            true => client.files(repo, &client.resolve(repo, &Revision::Version(version))?)?,
            false => vec![],
        };
        plan.changes = Changes::between(&plan.files, &there, |path| plan.is_stale(path));
        Ok(plan)
    }
}
