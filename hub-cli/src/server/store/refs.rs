//! Branches and tags: names that lead to commits.

use std::collections::BTreeMap;
use std::path::PathBuf;

use fs_err as fs;
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, percent_decode_str, utf8_percent_encode};

use crate::atomic;
use crate::error::{Code, Error, Result};
use crate::hub::oid::CommitId;
use crate::hub::repo::check_ref_name;

use super::{Repo, folder_names};

/// A ref's name is one file name: `/` and `.` at its start are escaped.
const FILE_NAME: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'_').remove(b'.');

/// The two kinds of refs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum RefKind {
    Branch,
    Tag,
}

impl RefKind {
    fn folder(self) -> &'static str {
        match self {
            Self::Branch => "refs/heads",
            Self::Tag => "refs/tags",
        }
    }

    fn noun(self) -> &'static str {
        match self {
            Self::Branch => "branch",
            Self::Tag => "tag",
        }
    }
}

impl Repo<'_> {
    /// All refs of `kind` with their commits.
    pub(crate) fn refs(&self, kind: RefKind) -> Result<BTreeMap<String, CommitId>> {
        let mut refs = BTreeMap::new();
        for file in folder_names(&self.dir().join(kind.folder()))? {
            let Ok(name) = percent_decode_str(&file).decode_utf8() else { continue };
            if check_ref_name(&name).is_ok()
                && let Some(commit) = self.get_ref(kind, &name)?
            {
                refs.insert(name.into_owned(), commit);
            }
        }
        Ok(refs)
    }

    /// The commit of the branch, tag or commit id `revision` (also as `refs/heads/..`, `refs/tags/..`).
    ///
    /// # Errors
    /// `H0203` if there is none.
    pub(crate) fn resolve(&self, revision: &str) -> Result<CommitId> {
        let found = if let Some(branch) = revision.strip_prefix("refs/heads/") {
            self.get_ref(RefKind::Branch, branch)?
        } else if let Some(tag) = revision.strip_prefix("refs/tags/") {
            self.get_ref(RefKind::Tag, tag)?
        } else if let Ok(commit) = revision.parse() {
            self.has_commit(&commit).then_some(commit)
        } else {
            match self.get_ref(RefKind::Branch, revision)? {
                None => self.get_ref(RefKind::Tag, revision)?,
                found => found,
            }
        };
        found.ok_or_else(|| {
            Error::new(Code::RevisionNotFound, format!("{} has no revision {revision:?}", self.id()))
        })
    }

    /// Makes a branch or tag at `commit`.
    ///
    /// # Errors
    /// `H0507` if it exists, `H0506` if its name would be ambiguous.
    pub(crate) fn create_ref(&self, kind: RefKind, name: &str, commit: &CommitId) -> Result<()> {
        check_ref_name(name)?;
        if name.starts_with("refs/") || name.parse::<CommitId>().is_ok() {
            return Err(Error::new(Code::BadRequest, format!("{name:?} may not name a {}", kind.noun())));
        }
        let _writing = self.store.write_lock();
        if self.get_ref(kind, name)?.is_some() {
            return Err(Error::new(
                Code::Exists,
                format!("{} has a {} {name:?} already", self.id(), kind.noun()),
            ));
        }
        self.set_ref(kind, name, commit)
    }

    /// Removes a branch or tag.
    pub(crate) fn delete_ref(&self, kind: RefKind, name: &str) -> Result<()> {
        if (kind, name) == (RefKind::Branch, "main") {
            return Err(Error::new(Code::BadRequest, "the branch main cannot be deleted"));
        }
        let _writing = self.store.write_lock();
        if self.get_ref(kind, name)?.is_none() {
            return Err(Error::new(
                Code::RevisionNotFound,
                format!("{} has no {} {name:?}", self.id(), kind.noun()),
            ));
        }
        let path = self.ref_path(kind, name);
        fs::remove_file(&path).map_err(|e| Error::io(&path, e))?;
        atomic::sync_folder(&self.dir().join(kind.folder()))
    }

    pub(super) fn get_ref(&self, kind: RefKind, name: &str) -> Result<Option<CommitId>> {
        if check_ref_name(name).is_err() {
            return Ok(None);
        }
        let path = self.ref_path(kind, name);
        match fs::read_to_string(&path) {
            Ok(text) => Ok(Some(text.trim().parse().map_err(|e| {
                Error::new(Code::Stored, format!("{} does not hold a commit id", path.display())).because(e)
            })?)),
            Err(e) if e.kind() == std::io::ErrorKind::NotFound => Ok(None),
            Err(e) => Err(Error::io(&path, e)),
        }
    }

    /// Points a ref at `commit`. The caller holds the store's write lock.
    pub(super) fn set_ref(&self, kind: RefKind, name: &str, commit: &CommitId) -> Result<()> {
        self.store.write(&self.ref_path(kind, name), format!("{commit}\n").as_bytes())
    }

    fn ref_path(&self, kind: RefKind, name: &str) -> PathBuf {
        self.dir().join(kind.folder()).join(utf8_percent_encode(name, FILE_NAME).to_string())
    }
}
