//! Pull requests: a proposed commit under `refs/pr/N`, and a record of what became of it.

use crate::error::{Code, Error, Result};
use crate::hub::oid::CommitId;

use super::{NewCommit, RefKind, RefName, Repo, repo, to_json};

/// What became of a pull request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum PullStatus {
    Draft,
    Open,
    Closed,
    Merged,
}

/// One pull request.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub(crate) struct Pull {
    pub(crate) number: u64,
    pub(crate) title: String,
    pub(crate) description: String,
    pub(crate) author: String,
    /// Seconds since 1970.
    pub(crate) created: u64,
    pub(crate) status: PullStatus,
    /// The branch that it would change.
    pub(crate) base: String,
    /// The branch's head after the merge.
    pub(crate) merge_commit: Option<CommitId>,
}

impl Pull {
    /// The ref that holds the proposed commits.
    pub(crate) fn git_ref(&self) -> Result<RefName> {
        RefName::new(RefKind::Pull, &self.number.to_string())
    }
}

impl Repo<'_> {
    /// All pull requests, newest first.
    pub(crate) fn pulls(&self) -> Result<Vec<Pull>> {
        let mut numbers: Vec<u64> = self
            .store
            .backend
            .names(&self.key("pulls"))?
            .iter()
            .filter_map(|name| name.strip_suffix(".json")?.parse().ok())
            .collect();
        numbers.sort_unstable_by(|a, b| b.cmp(a));
        numbers.into_iter().map(|number| self.pull(number)).collect()
    }

    /// The pull request `number`.
    ///
    /// # Errors
    /// `H0203` if there is none.
    pub(crate) fn pull(&self, number: u64) -> Result<Pull> {
        let key = self.pull_key(number);
        if self.store.backend.size(&key)?.is_none() {
            let message = format!("{} has no pull request {number}", self.id());
            return Err(Error::new(Code::RevisionNotFound, message));
        }
        self.store.read_json(&key)
    }

    /// Opens a pull request for the branch `base` whose first commit is `new`; one without changes
    /// starts at the head of `base`.
    ///
    /// # Errors
    /// `H0203` if there is no such branch, or no commit `new.parent`.
    pub(crate) fn propose(
        &self,
        base: &str,
        status: PullStatus,
        new: &NewCommit,
    ) -> Result<(Pull, CommitId)> {
        let start = match &new.parent {
            Some(parent) => self.resolve(parent.as_str())?,
            None => self.existing_ref(&RefName::new(RefKind::Branch, base)?)?,
        };
        let commit = self.commit_on(&start, new)?;
        let taken = self.refs(RefKind::Pull)?.keys().filter_map(|name| name.parse::<u64>().ok()).max();
        let mut pull = Pull {
            number: taken.unwrap_or(0) + 1,
            title: new.title.clone(),
            description: new.description.clone(),
            author: new.author.clone(),
            created: repo::now(),
            status,
            base: base.to_owned(),
            merge_commit: None,
        };
        // Who makes the ref has the number.
        while !self.swap_ref(&pull.git_ref()?, None, Some(&commit))? {
            pull.number += 1;
        }
        self.store.write_json(&self.pull_key(pull.number), &pull)?;
        Ok((pull, commit))
    }

    /// Closes or reopens a pull request.
    pub(crate) fn set_pull_status(&self, pull: &Pull, status: PullStatus) -> Result<Pull> {
        self.update_pull(pull, Pull { status, ..pull.clone() })
    }

    /// Puts what a pull request changes onto its base branch, as one commit.
    ///
    /// # Errors
    /// `H0510` naming the files that the branch changed too, `H0209` if the branch moves meanwhile.
    pub(crate) fn merge_pull(&self, pull: &Pull, user: &str) -> Result<Pull> {
        if matches!(pull.status, PullStatus::Merged | PullStatus::Closed) {
            let message = format!("pull request {} of {} is not open", pull.number, self.id());
            return Err(Error::new(Code::Conflict, message));
        }
        let base = RefName::new(RefKind::Branch, &pull.base)?;
        let (ours, theirs) = (self.existing_ref(&base)?, self.existing_ref(&pull.git_ref()?)?);
        let history: Vec<_> = self.log(&ours)?.into_iter().map(|commit| commit.id).collect();
        let start = self.log(&theirs)?.into_iter().map(|commit| commit.id).find(|id| history.contains(id));
        let merged = if start.as_ref() == Some(&ours) {
            theirs
        } else {
            let old = start.map(|start| self.tree(&start)).transpose()?.unwrap_or_default();
            let tree = self.tree(&ours)?.merged(&old, &*self.tree(&theirs)?)?;
            let title = format!("Merge pull request {}: {}", pull.number, pull.title);
            self.record_commit(Some(ours.clone()), &tree, (&title, &pull.description), user)?
        };
        if !self.swap_ref(&base, Some(&ours), Some(&merged))? {
            return Err(Error::new(Code::Moved, format!("the {base} of {} moved meanwhile", self.id())));
        }
        self.update_pull(
            pull,
            Pull { status: PullStatus::Merged, merge_commit: Some(merged), ..pull.clone() },
        )
    }

    fn update_pull(&self, old: &Pull, new: Pull) -> Result<Pull> {
        let key = self.pull_key(old.number);
        if self.store.backend.swap(&key, Some(&to_json(old)), Some(&to_json(&new)))? {
            return Ok(new);
        }
        Err(Error::new(Code::Moved, format!("pull request {} was changed at the same time", old.number)))
    }

    pub(super) fn pull_key(&self, number: u64) -> String {
        self.key(&format!("pulls/{number}.json"))
    }
}
