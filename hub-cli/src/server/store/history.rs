//! Trees and commits, with the ids that git would give them.

use std::collections::BTreeMap;

use crate::error::{Code, Error, Result};
use crate::hub::oid::{CommitId, Oid, git_commit_id, git_tree_id};
use crate::hub::path::RepoPath;

use super::{RefKind, Repo, StoredFile, read_json, repo, to_json};

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
}

/// One line of an upload.
#[derive(Clone, Debug)]
pub(crate) enum Change {
    Put(RepoPath, StoredFile),
    DeleteFile(RepoPath),
    DeleteFolder(RepoPath),
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

    pub(super) fn apply(&mut self, change: Change) -> Result<()> {
        let missing = |path: &RepoPath| {
            Error::new(Code::FileNotFound, format!("{path} cannot be deleted: it does not exist"))
        };
        match change {
            Change::Put(path, file) => {
                self.files.insert(path, file);
            }
            Change::DeleteFile(path) => {
                self.files.remove(&path).ok_or_else(|| missing(&path))?;
            }
            Change::DeleteFolder(folder) => {
                let before = self.files.len();
                self.files.retain(|path, _| path.strip_folder(folder.as_str()).is_none());
                if self.files.len() == before {
                    return Err(missing(&folder));
                }
            }
        }
        Ok(())
    }

    /// Refuses a tree in which a path is a file and a folder at once.
    pub(super) fn check(&self) -> Result<()> {
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
    pub(crate) fn has_commit(&self, commit: &CommitId) -> bool {
        self.dir().join("commits").join(format!("{commit}.json")).is_file()
    }

    pub(crate) fn commit(&self, commit: &CommitId) -> Result<Commit> {
        read_json(&self.dir().join("commits").join(format!("{commit}.json")))
    }

    pub(crate) fn tree(&self, commit: &CommitId) -> Result<Tree> {
        let tree = self.commit(commit)?.tree;
        read_json(&self.dir().join("trees").join(format!("{tree}.json")))
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

    /// Commits `changes` to `branch` and returns its new head.
    ///
    /// Without a difference there is no new commit. A repetition of the commit that is the head already
    /// (same parent, same tree, same title) returns the head, since clients repeat a request whose
    /// answer was lost.
    ///
    /// # Errors
    /// `H0203` if there is no such branch, `H0209` if its head is not `expected`.
    pub(crate) fn commit_changes(
        &self,
        branch: &str,
        expected: Option<&CommitId>,
        changes: Vec<Change>,
        (title, description): (&str, &str),
        user: &str,
    ) -> Result<CommitId> {
        let _writing = self.store.write_lock();
        let head = self.get_ref(RefKind::Branch, branch)?.ok_or_else(|| {
            Error::new(Code::RevisionNotFound, format!("{} has no branch {branch:?}", self.id()))
        })?;
        if let Some(expected) = expected.filter(|e| **e != head) {
            let last = self.commit(&head)?;
            if last.parent.as_ref() == Some(expected) && last.title == title {
                let again = Self::changed(&self.tree(expected)?, changes)?;
                if again.id() == last.tree {
                    return Ok(head);
                }
            }
            return Err(Error::new(
                Code::Moved,
                format!("{branch} of {} is at {head}, not at {expected}", self.id()),
            ));
        }
        let old = self.tree(&head)?;
        let new = Self::changed(&old, changes)?;
        if new == old {
            return Ok(head);
        }
        let commit = self.record_commit(Some(head), &new, title, description, user)?;
        self.set_ref(RefKind::Branch, branch, &commit)?;
        Ok(commit)
    }

    /// Writes a commit and its tree; no ref leads to them yet.
    pub(super) fn record_commit(
        &self,
        parent: Option<CommitId>,
        tree: &Tree,
        title: &str,
        description: &str,
        user: &str,
    ) -> Result<CommitId> {
        let (tree_id, date) = (tree.id(), repo::now());
        let mut text = format!("tree {tree_id}\n");
        if let Some(parent) = &parent {
            text += &format!("parent {parent}\n");
        }
        text += &format!("author {user} <> {date} +0000\ncommitter {user} <> {date} +0000\n\n{title}\n");
        if !description.is_empty() {
            text += &format!("\n{description}\n");
        }
        let id = git_commit_id(&text);
        let commit = Commit {
            id: id.clone(),
            tree: tree_id.clone(),
            parent,
            title: title.to_owned(),
            description: description.to_owned(),
            author: user.to_owned(),
            date,
        };
        self.store.write(&self.dir().join("trees").join(format!("{tree_id}.json")), &to_json(tree))?;
        self.store.write(&self.dir().join("commits").join(format!("{id}.json")), &to_json(&commit))?;
        Ok(id)
    }
}
