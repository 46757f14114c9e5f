//! One repository of the embedded hub.

use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

use crate::atomic;
use crate::error::Result;
use crate::hub::repo::RepoId;

use super::{Change, RefKind, Store, Tree, read_json, to_json};

/// A handle on one repository; its files are read when asked for.
#[derive(Debug)]
pub(crate) struct Repo<'a> {
    pub(super) store: &'a Store,
    id: RepoId,
    dir: PathBuf,
}

/// What is recorded about a repository as a whole.
#[derive(Clone, Debug, serde::Serialize, serde::Deserialize)]
pub(crate) struct RepoInfo {
    /// Readable only with the token.
    pub(crate) private: bool,
    /// Seconds since 1970.
    pub(crate) created: u64,
}

impl<'a> Repo<'a> {
    pub(super) fn at(store: &'a Store, id: RepoId) -> Self {
        let dir = store.root.join("kernels").join(id.owner()).join(id.name());
        Self { store, id, dir }
    }

    pub(crate) fn id(&self) -> &RepoId {
        &self.id
    }

    pub(super) fn dir(&self) -> &Path {
        &self.dir
    }

    pub(super) fn exists(&self) -> bool {
        self.dir.join("repo.json").is_file()
    }

    pub(crate) fn info(&self) -> Result<RepoInfo> {
        read_json(&self.dir.join("repo.json"))
    }

    /// Writes the first commit and, last, the record that makes the repository visible.
    pub(super) fn initialize(&self, private: bool, user: &str) -> Result<()> {
        for folder in ["refs/heads", "refs/tags", "commits", "trees", "objects"] {
            atomic::make_folder(&self.dir.join(folder))?;
        }
        let commit = self.record_commit(None, &Tree::default(), "initial commit", "", user)?;
        self.set_ref(RefKind::Branch, "main", &commit)?;
        self.store.write(&self.dir.join("repo.json"), &to_json(&RepoInfo { private, created: now() }))
    }

    /// The tree that `changes` make of `tree`.
    pub(super) fn changed(tree: &Tree, changes: Vec<Change>) -> Result<Tree> {
        let mut tree = tree.clone();
        for change in changes {
            tree.apply(change)?;
        }
        tree.check()?;
        Ok(tree)
    }
}

/// Seconds since 1970.
pub(super) fn now() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |d| d.as_secs())
}
