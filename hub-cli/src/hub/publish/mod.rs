//! Puts a built package on a hub as one version: one commit on the branch `vN`, the card on `main`.
//!
//! A [`Plan`] compares the package with what is there and writes nothing; [`Plan::publish`] carries it out, and
//! [`Plan::propose`] makes a pull request of it. Writes go through the official crate `hf-hub`, but for pull
//! requests, which its version 1.0 gets wrong.

mod mirror;
mod plan;
mod proposal;
mod writer;

use crate::error::{Code, Error, Result};
use crate::package::LocalPackage;

use super::client::Client;
use super::endpoint::Token;
use super::oid::CommitId;
use super::path::RepoPath;
use super::repo::{RepoId, Revision, Version};

pub use mirror::{Mirrored, mirror};
use plan::changed;
pub use plan::{Changes, Plan};
pub use proposal::Proposed;
use writer::Writer;

/// What a publication changed.
#[derive(Clone, Debug, serde::Serialize)]
pub struct Published {
    /// The repository.
    pub repo: RepoId,
    /// The version.
    pub version: Version,
    /// The branch's newest commit, which holds the package.
    pub commit: CommitId,
    /// Files that were sent.
    pub uploaded: usize,
    /// Files that were there already with the same content.
    pub unchanged: usize,
    /// Files of an earlier form of this version that were removed.
    pub removed: usize,
    /// Bytes that were sent.
    pub bytes: u64,
    /// Whether the card on `main` was written.
    pub card: bool,
}

/// Publishes `package` as `version` of `repo`; a repository that is not there yet is made, `private` if asked.
///
/// # Errors
/// Those of [`Plan::make`] and [`Plan::publish`].
pub fn publish(
    client: &Client,
    token: Option<&Token>,
    package: &LocalPackage,
    repo: &RepoId,
    version: Version,
    private: bool,
) -> Result<Published> {
    Plan::make(client, package, repo, version)?.publish(client, token, private)
}

impl Plan {
    /// Carries the plan out: the version appears, or changes, in one step, or not at all. A plan whose result
    /// is there already makes no commit, so that it can be tried again after any failure.
    ///
    /// # Errors
    /// `H0416` if it would break callers, `H0204` and `H0212` if the hub does not allow it, `H0209` if somebody
    /// else published at the same time.
    pub fn publish(&self, client: &Client, token: Option<&Token>, private: bool) -> Result<Published> {
        self.refuse_breaks()?;
        let writer = Writer::new(client, token, &self.repo)?;
        if !self.repository_exists {
            writer.create_repository(private)?;
        }
        let branch = self.version.branch();
        let title = format!("{} {}", self.name, self.version);
        let commit = match &self.head {
            Some(head) => self.commit(client, &writer, &branch, head, &self.changes, &title)?,
            None => self.begin(client, &writer, &branch, &title)?,
        };
        let card = self.write_card(client, &writer)?;
        self.confirm(client, &commit)?;
        let changes = &self.changes;
        Ok(Published {
            repo: self.repo.clone(),
            version: self.version,
            commit,
            uploaded: changes.added.len() + changes.changed.len(),
            unchanged: changes.unchanged,
            removed: changes.removed.len(),
            bytes: changes.bytes,
            card,
        })
    }

    /// Commits `changes` to a branch that stands at `head`.
    fn commit(
        &self,
        client: &Client,
        writer: &Writer<'_>,
        branch: &str,
        head: &CommitId,
        changes: &Changes,
        title: &str,
    ) -> Result<CommitId> {
        if changes.is_empty() {
            return Ok(head.clone());
        }
        let result = writer.commit(branch, head, &self.files, changes, title);
        match result {
            // The hub may have taken it and the answer was lost: then what is there is what was sent.
            Err(e) if matches!(e.code(), Code::Moved | Code::Unreachable | Code::Status) => {
                let now = client.resolve(&self.repo, &Revision::Branch(branch.to_owned()));
                match now {
                    Ok(now) if now != *head && self.confirm(client, &now).is_ok() => Ok(now),
                    _ => Err(e),
                }
            }
            other => other,
        }
    }

    /// Makes the branch of a new version: it is filled under another name first, so that nobody sees it empty.
    fn begin(&self, client: &Client, writer: &Writer<'_>, branch: &str, title: &str) -> Result<CommitId> {
        // Named after its content, so that another attempt finds it and another package does not.
        let staging = format!("publishing-{branch}-{}", self.fingerprint());
        writer.create_branch(&staging, None)?;
        let head = client.resolve(&self.repo, &Revision::Branch(staging.clone()))?;
        let there = client.files(&self.repo, &head)?;
        let changes = Changes::between(&self.files, &there, |path| self.is_stale(path));
        let commit = self.commit(client, writer, &staging, &head, &changes, title)?;
        let made = writer.create_branch(branch, Some(&commit))?;
        writer.delete_branch(&staging)?;
        if made {
            return Ok(commit);
        }
        let theirs = client.resolve(&self.repo, &self.version.into())?;
        if self.confirm(client, &theirs).is_ok() {
            return Ok(theirs);
        }
        let message = format!("somebody else published {} {} meanwhile", self.repo, self.version);
        Err(Error::new(Code::Moved, message).help("look at what is there now: run the command again"))
    }

    fn write_card(&self, client: &Client, writer: &Writer<'_>) -> Result<bool> {
        let Some(card) = &self.card else { return Ok(false) };
        let main = client.resolve(&self.repo, &Revision::Branch("main".to_owned()))?;
        let there = client.files(&self.repo, &main)?;
        let changes = Changes::between(card, &there, |_| false);
        if changes.is_empty() {
            return Ok(false);
        }
        writer.commit("main", &main, card, &changes, "Update the card")?;
        Ok(true)
    }

    /// Reads back what the hub holds at `commit`: the ids must be those of the package's files, and no file of an
    /// earlier form may be left.
    fn confirm(&self, client: &Client, commit: &CommitId) -> Result<()> {
        let there = client.files(&self.repo, commit)?;
        let message = |path: &RepoPath| format!("{path} on the hub is not the file that was published");
        if let Some(path) = changed(&self.files, &there).first() {
            return Err(Error::new(Code::Content, message(path)));
        }
        let left =
            there.iter().find(|file| self.is_stale(&file.path) && !self.files.contains_key(&file.path));
        match left {
            Some(file) => Err(Error::new(
                Code::Content,
                format!("{} is still on the hub, and not of this package", file.path),
            )),
            None => Ok(()),
        }
    }
}
