//! Garbage: what no name and no ref leads to, such as uploads whose commit never came.

use std::collections::HashSet;
use std::time::{Duration, SystemTime};

use crate::error::Result;
use crate::hub::oid::CommitId;

use super::{Repo, Store};

/// What a collection removed, or would remove.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize)]
pub(crate) struct Collected {
    pub(crate) records: usize,
    pub(crate) bytes: u64,
}

impl Store {
    /// Removes garbage that is older than `age`; with `dry_run` it only counts.
    ///
    /// It may run while the hub is served, as long as no upload takes longer than `age`: a writer that
    /// finds a content already here makes it young again.
    pub(crate) fn collect(&self, age: Duration, dry_run: bool) -> Result<Collected> {
        // Taken first: what becomes reachable after this is younger.
        let cutoff = SystemTime::now().checked_sub(age).unwrap_or(SystemTime::UNIX_EPOCH);
        let mut reachable = HashSet::new();
        let mut named = HashSet::new();
        for repo in self.repos()? {
            named.insert(repo.info.folder.as_str().to_owned());
            reachable.extend(repo.reachable(repo.heads()?.into_iter().map(|(_, head)| head))?);
        }
        let mut collected = Collected::default();
        for folder in self.backend.names("repos")? {
            for entry in self.backend.walk(&format!("repos/{folder}"))? {
                // Refs and pull requests of a repository that has a name always count.
                let kind = entry.key.split('/').nth(2).unwrap_or_default();
                let counted = named.contains(&folder)
                    && (matches!(kind, "refs" | "pulls") || reachable.contains(&entry.key));
                if counted || entry.modified >= cutoff {
                    continue;
                }
                if dry_run || self.backend.remove_older(&entry.key, cutoff)? {
                    collected.records += 1;
                    collected.bytes += entry.size;
                }
            }
        }
        Ok(collected)
    }
}

impl Repo<'_> {
    /// The keys of every commit, tree and object that these heads lead to.
    pub(super) fn reachable(&self, heads: impl Iterator<Item = CommitId>) -> Result<HashSet<String>> {
        let mut keys = HashSet::new();
        for head in heads {
            let mut next = Some(head);
            while let Some(id) = next.take() {
                if !keys.insert(self.commit_key(&id)) {
                    break;
                }
                let commit = self.commit(&id)?;
                if keys.insert(self.tree_key(&commit.tree)) {
                    let tree = self.tree_by_id(&commit.tree)?;
                    keys.extend(tree.files.values().map(|file| self.object_key(&file.sha256)));
                }
                next = commit.parent;
            }
        }
        Ok(keys)
    }
}
