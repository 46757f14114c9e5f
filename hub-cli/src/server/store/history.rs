//! Trees and commits, with the ids that git would give them, and how a branch moves on.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use crate::error::{Code, Error, Result};
use crate::hub::oid::{CommitId, Oid, git_commit_id, git_tree_id};
use crate::hub::path::RepoPath;

use super::{RefName, Repo, StoredFile, repo};

/// How often a commit that names no parent is tried on a branch that keeps moving.
const ATTEMPTS: usize = 100;

/// The files of one commit.
#[derive(Clone, Debug, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub(crate) struct Tree {
    pub(crate) files: BTreeMap<RepoPath, StoredFile>,
}

/// One commit.
#[derive(Clone, Debug, serde::Serialize, serde::Deserialize)]
pub(crate) struct Commit {
    pub(crate) id: CommitId,
    pub(crate) tree: Oid,
    pub(crate) parent: Option<CommitId>,
    pub(crate) title: String,
    pub(crate) description: String,
    pub(crate) author: String,
    /// Seconds since 1970.
    pub(crate) date: u64,
    /// The hub that it was imported from and has its id from.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) origin: Option<String>,
}

/// One line of an upload.
#[derive(Clone, Debug)]
pub(crate) enum Change {
    Put(RepoPath, StoredFile),
    DeleteFile(RepoPath),
    DeleteFolder(RepoPath),
}

/// A commit to be made.
#[derive(Clone, Debug)]
pub(crate) struct NewCommit {
    pub(crate) changes: Vec<Change>,
    pub(crate) title: String,
    pub(crate) description: String,
    pub(crate) author: String,
    /// The head that the branch must have.
    pub(crate) parent: Option<CommitId>,
}

impl Commit {
    /// Whether its id is what it must be: the one that git gives it, or what another hub said.
    pub(super) fn is_genuine(&self) -> bool {
        self.origin.is_some() || self.git_id() == self.id
    }

    /// The id that git gives this commit, from everything else in it.
    fn git_id(&self) -> CommitId {
        let mut text = format!("tree {}\n", self.tree);
        if let Some(parent) = &self.parent {
            text += &format!("parent {parent}\n");
        }
        let (author, date) = (&self.author, self.date);
        text += &format!(
            "author {author} <> {date} +0000\ncommitter {author} <> {date} +0000\n\n{}\n",
            self.title
        );
        if !self.description.is_empty() {
            text += &format!("\n{}\n", self.description);
        }
        git_commit_id(&text)
    }
}

impl Tree {
    /// The files and folders below `folder` (the whole tree if `None`), folders with their git ids.
    pub(crate) fn folders(&self) -> BTreeMap<String, Oid> {
        let mut folders = BTreeMap::new();
        self.folder_id("", &mut folders);
        folders
    }

    /// The git id of the whole tree.
    pub(crate) fn id(&self) -> Oid {
        self.folder_id("", &mut BTreeMap::new())
    }

    /// The id of the folder with this `prefix` (empty or ending in `/`); ids of those below go to `seen`.
    fn folder_id(&self, prefix: &str, seen: &mut BTreeMap<String, Oid>) -> Oid {
        let mut entries = Vec::new();
        let mut last = "";
        for (path, file) in self.below(prefix) {
            match path.split_once('/') {
                None => entries.push((false, path, file.oid.clone())),
                Some((name, _)) if name != last => {
                    let id = self.folder_id(&format!("{prefix}{name}/"), seen);
                    seen.insert(format!("{prefix}{name}"), id.clone());
                    entries.push((true, name, id));
                    last = name;
                }
                Some(_) => {}
            }
        }
        git_tree_id(entries)
    }

    /// The files whose path starts with `prefix`, with the rest of their paths.
    fn below<'a>(&'a self, prefix: &'a str) -> impl Iterator<Item = (&'a str, &'a StoredFile)> {
        self.files.iter().filter_map(move |(path, file)| Some((path.as_str().strip_prefix(prefix)?, file)))
    }

    /// The tree that `changes` make of this one.
    pub(super) fn changed(&self, changes: &[Change]) -> Result<Self> {
        let mut tree = self.clone();
        for change in changes {
            tree.apply(change)?;
        }
        tree.check()?;
        Ok(tree)
    }

    /// This tree with what changed from `old` to `new`.
    ///
    /// # Errors
    /// `H0510` naming the files that changed here as well, in another way.
    pub(super) fn merged(&self, old: &Self, new: &Self) -> Result<Self> {
        let paths: BTreeSet<_> = old.files.keys().chain(new.files.keys()).collect();
        let (mut merged, mut conflicts) = (self.clone(), Vec::new());
        for path in paths {
            let (was, ours, theirs) = (old.files.get(path), self.files.get(path), new.files.get(path));
            if theirs == was || theirs == ours {
                continue;
            }
            if ours != was {
                conflicts.push(path.as_str());
            } else if let Some(file) = theirs {
                merged.files.insert(path.clone(), file.clone());
            } else {
                merged.files.remove(path);
            }
        }
        if !conflicts.is_empty() {
            return Err(Error::new(Code::Conflict, format!("both sides changed {}", conflicts.join(", "))));
        }
        merged.check()?;
        Ok(merged)
    }

    fn apply(&mut self, change: &Change) -> Result<()> {
        let missing = |path: &RepoPath| {
            Error::new(Code::FileNotFound, format!("{path} cannot be deleted: it does not exist"))
        };
        match change {
            Change::Put(path, file) => {
                self.files.insert(path.clone(), file.clone());
            }
            Change::DeleteFile(path) => {
                self.files.remove(path).ok_or_else(|| missing(path))?;
            }
            Change::DeleteFolder(folder) => {
                let before = self.files.len();
                self.files.retain(|path, _| path.strip_folder(folder.as_str()).is_none());
                if self.files.len() == before {
                    return Err(missing(folder));
                }
            }
        }
        Ok(())
    }

    /// Refuses a tree in which a path is a file and a folder at once.
    fn check(&self) -> Result<()> {
        for path in self.files.keys() {
            for (at, _) in path.as_str().match_indices('/') {
                let folder = RepoPath::parse(&path.as_str()[..at])?;
                if self.files.contains_key(&folder) {
                    return Err(Error::new(
                        Code::BadRequest,
                        format!("{folder} would be a file and the folder of {path}"),
                    ));
                }
            }
        }
        Ok(())
    }
}

impl Repo<'_> {
    pub(super) fn commit_key(&self, commit: &CommitId) -> String {
        self.key(&format!("commits/{commit}.json"))
    }

    pub(super) fn tree_key(&self, tree: &Oid) -> String {
        self.key(&format!("trees/{tree}.json"))
    }

    pub(crate) fn has_commit(&self, commit: &CommitId) -> Result<bool> {
        Ok(self.store.backend.size(&self.commit_key(commit))?.is_some())
    }

    pub(crate) fn commit(&self, commit: &CommitId) -> Result<Commit> {
        self.store.read_json(&self.commit_key(commit))
    }

    pub(crate) fn tree(&self, commit: &CommitId) -> Result<Arc<Tree>> {
        self.tree_by_id(&self.commit(commit)?.tree)
    }

    pub(super) fn tree_by_id(&self, tree: &Oid) -> Result<Arc<Tree>> {
        let key = self.tree_key(tree);
        self.store.trees.get(&key, || self.store.read_json(&key))
    }

    /// The commits from `commit` back to the first, newest first.
    pub(crate) fn log(&self, commit: &CommitId) -> Result<Vec<Commit>> {
        let mut log = Vec::new();
        let mut next = Some(commit.clone());
        while let Some(id) = next {
            let commit = self.commit(&id)?;
            next = commit.parent.clone();
            log.push(commit);
        }
        Ok(log)
    }

    /// Makes a commit on `branch` and returns its new head.
    ///
    /// Without a difference there is no new commit. A repetition of the commit that is the head already
    /// (same parent, same tree, same title) returns the head, since clients repeat a request whose
    /// answer was lost.
    ///
    /// # Errors
    /// `H0203` if there is no such branch, `H0209` if its head is not `new.parent`.
    pub(crate) fn commit_to(&self, branch: &RefName, new: &NewCommit) -> Result<CommitId> {
        for _ in 0..ATTEMPTS {
            let head = self.existing_ref(branch)?;
            if let Some(expected) = new.parent.as_ref().filter(|parent| **parent != head) {
                if self.is_repetition(&head, expected, new)? {
                    return Ok(head);
                }
                let message = format!("the {branch} of {} is at {head}, not at {expected}", self.id());
                return Err(Error::new(Code::Moved, message));
            }
            let commit = self.commit_on(&head, new)?;
            if commit == head || self.swap_ref(branch, Some(&head), Some(&commit))? {
                return Ok(commit);
            }
        }
        Err(Error::new(Code::Moved, format!("the {branch} of {} does not stop moving", self.id())))
    }

    /// Records the commit that `new` makes of `parent`; `parent` itself if it changes nothing.
    pub(super) fn commit_on(&self, parent: &CommitId, new: &NewCommit) -> Result<CommitId> {
        let old = self.tree(parent)?;
        let tree = old.changed(&new.changes)?;
        if tree == *old {
            return Ok(parent.clone());
        }
        self.record_commit(Some(parent.clone()), &tree, (&new.title, &new.description), &new.author)
    }

    fn is_repetition(&self, head: &CommitId, expected: &CommitId, new: &NewCommit) -> Result<bool> {
        let last = self.commit(head)?;
        Ok(last.parent.as_ref() == Some(expected)
            && last.title == new.title
            && self.tree(expected)?.changed(&new.changes)?.id() == last.tree)
    }

    /// Replaces the history of `branch` by one commit with the same files.
    pub(crate) fn squash(&self, branch: &RefName, title: &str, user: &str) -> Result<CommitId> {
        let head = self.existing_ref(branch)?;
        let commit = self.record_commit(None, &*self.tree(&head)?, (title, ""), user)?;
        if self.swap_ref(branch, Some(&head), Some(&commit))? {
            return Ok(commit);
        }
        Err(Error::new(Code::Moved, format!("the {branch} of {} was changed at the same time", self.id())))
    }

    /// Writes a commit and its tree; no ref leads to them yet.
    pub(super) fn record_commit(
        &self,
        parent: Option<CommitId>,
        tree: &Tree,
        (title, description): (&str, &str),
        user: &str,
    ) -> Result<CommitId> {
        let mut commit = Commit {
            id: git_commit_id(""),
            tree: tree.id(),
            parent,
            title: title.to_owned(),
            description: description.to_owned(),
            author: user.to_owned(),
            date: repo::now(),
            origin: None,
        };
        commit.id = commit.git_id();
        self.store.write_json(&self.tree_key(&commit.tree), tree)?;
        self.store.write_json(&self.commit_key(&commit.id), &commit)?;
        Ok(commit.id)
    }
}
