//! Branches, tags and pull requests: names that lead to commits.

use std::collections::BTreeMap;
use std::fmt;

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, percent_decode_str, utf8_percent_encode};

use crate::error::{Code, Error, Result};
use crate::hub::oid::CommitId;
use crate::hub::repo::check_ref_name;

use super::Repo;

/// A ref's name is one part of a key: `/` is escaped.
const KEY_PART: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'_').remove(b'.');

/// The kinds of refs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum RefKind {
    Branch,
    Tag,
    /// The proposed state of a pull request; the name is its number.
    Pull,
}

impl RefKind {
    /// All kinds.
    pub(crate) const ALL: [Self; 3] = [Self::Branch, Self::Tag, Self::Pull];

    /// What stands before the name in a full ref.
    pub(crate) fn prefix(self) -> &'static str {
        match self {
            Self::Branch => "refs/heads/",
            Self::Tag => "refs/tags/",
            Self::Pull => "refs/pr/",
        }
    }

    fn noun(self) -> &'static str {
        match self {
            Self::Branch => "branch",
            Self::Tag => "tag",
            Self::Pull => "pull request",
        }
    }

    fn folder(self) -> &'static str {
        self.prefix().trim_end_matches('/')
    }
}

/// A checked name of a ref.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct RefName {
    kind: RefKind,
    name: String,
}

impl RefName {
    /// The ref of `kind` called `name`.
    ///
    /// # Errors
    /// `H0102` if that is not a name.
    pub(crate) fn new(kind: RefKind, name: &str) -> Result<Self> {
        check_ref_name(name)?;
        // File systems end at 255 bytes, and an escaped byte takes three.
        if utf8_percent_encode(name, KEY_PART).map(str::len).sum::<usize>() > 240 {
            return Err(Error::new(Code::Revision, format!("the name {name:?} is too long")));
        }
        Ok(Self { kind, name: name.to_owned() })
    }

    /// What a writer calls `revision`: `refs/heads/x`, `refs/pr/1`, or the bare name of a branch.
    ///
    /// # Errors
    /// `H0102` if that is not a name.
    pub(crate) fn of_revision(revision: &str) -> Result<Self> {
        for kind in RefKind::ALL {
            if let Some(name) = revision.strip_prefix(kind.prefix()) {
                return Self::new(kind, name);
            }
        }
        Self::new(RefKind::Branch, revision)
    }

    pub(crate) fn kind(&self) -> RefKind {
        self.kind
    }

    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    fn key(&self, repo: &Repo<'_>) -> String {
        repo.key(&format!("{}/{}", self.kind.folder(), utf8_percent_encode(&self.name, KEY_PART)))
    }
}

impl fmt::Display for RefName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {:?}", self.kind.noun(), self.name)
    }
}

impl Repo<'_> {
    /// All refs of `kind` with their commits.
    pub(crate) fn refs(&self, kind: RefKind) -> Result<BTreeMap<String, CommitId>> {
        let mut refs = BTreeMap::new();
        for part in self.store.backend.names(&self.key(kind.folder()))? {
            let Ok(name) = percent_decode_str(&part).decode_utf8() else { continue };
            if let Ok(name) = RefName::new(kind, &name)
                && let Some(commit) = self.get_ref(&name)?
            {
                refs.insert(name.name, commit);
            }
        }
        Ok(refs)
    }

    /// All refs with their commits.
    pub(super) fn heads(&self) -> Result<Vec<(RefName, CommitId)>> {
        let mut heads = Vec::new();
        for kind in RefKind::ALL {
            heads.extend(self.refs(kind)?.into_iter().map(|(name, commit)| (RefName { kind, name }, commit)));
        }
        Ok(heads)
    }

    /// The commit of the branch, tag or commit id `revision` (also as `refs/heads/..`, `refs/pr/..`).
    ///
    /// # Errors
    /// `H0203` if there is none.
    pub(crate) fn resolve(&self, revision: &str) -> Result<CommitId> {
        let named = |kind| RefName::new(kind, revision).map_or(Ok(None), |name| self.get_ref(&name));
        let found = if revision.starts_with("refs/") {
            RefName::of_revision(revision).map_or(Ok(None), |name| self.get_ref(&name))?
        } else if let Ok(commit) = revision.parse() {
            self.has_commit(&commit)?.then_some(commit)
        } else {
            match named(RefKind::Branch)? {
                None => named(RefKind::Tag)?,
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
        let name = RefName::new(kind, name)?;
        if name.name.starts_with("refs/") || name.name.parse::<CommitId>().is_ok() {
            return Err(Error::new(
                Code::BadRequest,
                format!("{:?} may not name a {}", name.name, kind.noun()),
            ));
        }
        if self.swap_ref(&name, None, Some(commit))? {
            return Ok(());
        }
        Err(Error::new(Code::Exists, format!("{} has a {name} already", self.id())))
    }

    /// Removes a branch or tag.
    ///
    /// # Errors
    /// `H0203` if there is none, `H0506` for `main`, `H0209` if it moves meanwhile.
    pub(crate) fn delete_ref(&self, kind: RefKind, name: &str) -> Result<()> {
        if (kind, name) == (RefKind::Branch, "main") {
            return Err(Error::new(Code::BadRequest, "the branch main cannot be deleted"));
        }
        let name = RefName::new(kind, name)?;
        let commit = self.existing_ref(&name)?;
        if self.swap_ref(&name, Some(&commit), None)? {
            return Ok(());
        }
        Err(Error::new(Code::Moved, format!("the {name} of {} was changed at the same time", self.id())))
    }

    /// The commit of `name`.
    ///
    /// # Errors
    /// `H0203` if there is no such ref.
    pub(crate) fn existing_ref(&self, name: &RefName) -> Result<CommitId> {
        self.get_ref(name)?
            .ok_or_else(|| Error::new(Code::RevisionNotFound, format!("{} has no {name}", self.id())))
    }

    pub(super) fn get_ref(&self, name: &RefName) -> Result<Option<CommitId>> {
        let Some(bytes) = self.store.backend.read(&name.key(self))? else { return Ok(None) };
        let text = String::from_utf8_lossy(&bytes);
        text.trim().parse().map(Some).map_err(|e| {
            Error::new(Code::Stored, format!("the {name} of {} is no commit id", self.id())).because(e)
        })
    }

    /// Moves a ref from one commit to another (`None`: it does not exist); says whether it was there.
    pub(super) fn swap_ref(
        &self,
        name: &RefName,
        from: Option<&CommitId>,
        to: Option<&CommitId>,
    ) -> Result<bool> {
        let text = |commit: &CommitId| format!("{commit}\n").into_bytes();
        self.store.backend.swap(&name.key(self), from.map(text).as_deref(), to.map(text).as_deref())
    }
}
