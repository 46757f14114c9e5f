//! One repository of the embedded hub.

use std::time::{Instant, SystemTime, UNIX_EPOCH};

use crate::error::{Code, Error, Result};
use crate::hub::oid::Oid;
use crate::hub::repo::RepoId;

use super::{RefKind, RefName, Store, Tree, to_json};

/// How long a computed size of a repository counts; other processes may collect garbage meanwhile.
const USAGE_SECONDS: u64 = 60;

/// A handle on one repository; its records are read when asked for.
#[derive(Debug)]
pub(crate) struct Repo<'a> {
    pub(super) store: &'a Store,
    pub(super) id: RepoId,
    pub(super) info: RepoInfo,
}

/// What is recorded about a repository as a whole, under its name.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub(crate) struct RepoInfo {
    /// Which folder of `repos/` holds it; it keeps that when it is renamed.
    pub(crate) folder: Oid,
    /// Readable only by its owner and the owner's members.
    pub(crate) private: bool,
    /// Seconds since 1970.
    pub(crate) created: u64,
}

impl Repo<'_> {
    pub(crate) fn id(&self) -> &RepoId {
        &self.id
    }

    pub(crate) fn info(&self) -> &RepoInfo {
        &self.info
    }

    /// The key of this repository's record `name`.
    pub(super) fn key(&self, name: &str) -> String {
        format!("repos/{}/{name}", self.info.folder)
    }

    /// Writes the first commit and the branch `main`; the repository has no name yet.
    pub(super) fn initialize(&self, user: &str) -> Result<()> {
        let commit = self.record_commit(None, &Tree::default(), ("initial commit", ""), user)?;
        self.swap_ref(&RefName::new(RefKind::Branch, "main")?, None, Some(&commit))?;
        Ok(())
    }

    /// Makes this repository private or public.
    pub(crate) fn set_private(&self, private: bool) -> Result<()> {
        let new = RepoInfo { private, ..self.info.clone() };
        let swapped = self.store.backend.swap(
            &super::name_key(&self.id),
            Some(&to_json(&self.info)),
            Some(&to_json(&new)),
        )?;
        if !swapped {
            return Err(Error::new(Code::Moved, format!("{} was changed at the same time", self.id)));
        }
        Ok(())
    }

    /// How many bytes of contents this repository holds.
    pub(crate) fn usage(&self) -> Result<u64> {
        let mut known = self.store.lock_usage();
        if let Some((bytes, at)) = known.get(&self.info.folder)
            && at.elapsed().as_secs() < USAGE_SECONDS
        {
            return Ok(*bytes);
        }
        let bytes = self.store.backend.walk(&self.key("objects"))?.iter().map(|entry| entry.size).sum();
        known.insert(self.info.folder.clone(), (bytes, Instant::now()));
        Ok(bytes)
    }

    pub(super) fn charge(&self, size: u64) {
        if let Some((bytes, _)) = self.store.lock_usage().get_mut(&self.info.folder) {
            *bytes += size;
        }
    }
}

/// Seconds since 1970.
pub(super) fn now() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |d| d.as_secs())
}
