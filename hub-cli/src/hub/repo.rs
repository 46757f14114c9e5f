//! What is asked for: a repository, and a revision of it.

use std::fmt;
use std::str::FromStr;

use crate::error::{Code, Error, Result};

use super::oid::CommitId;

/// A repository: `owner/name`.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct RepoId {
    owner: String,
    name: String,
}

impl RepoId {
    /// A checked id from its halves.
    ///
    /// # Errors
    /// `H0101` with the rule that is broken.
    pub fn new(owner: &str, name: &str) -> Result<Self> {
        let bad = |why: &str| {
            Err(Error::new(Code::RepoId, format!("`{owner}/{name}` is not a repository id: {why}")))
        };
        if owner.len() + name.len() + 1 > 96 {
            return bad("it is longer than 96 characters");
        }
        for half in [owner, name] {
            if half.is_empty() {
                return bad("it must be OWNER/NAME");
            }
            if !half.bytes().all(|b| b.is_ascii_alphanumeric() || b"-_.".contains(&b)) {
                return bad("only letters, digits, `-`, `_` and `.` may be used");
            }
            if half.starts_with(['-', '.']) || half.ends_with(['-', '.']) {
                return bad("it may not start or end with `-` or `.`");
            }
            if half.contains("--") || half.contains("..") {
                return bad("it may not contain `--` or `..`");
            }
        }
        if name.ends_with(".git") {
            return bad("it may not end with `.git`");
        }
        Ok(Self { owner: owner.to_owned(), name: name.to_owned() })
    }

    /// The user or organization that the repository belongs to.
    pub fn owner(&self) -> &str {
        &self.owner
    }

    /// The repository's own name.
    pub fn name(&self) -> &str {
        &self.name
    }
}

impl FromStr for RepoId {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        let (owner, name) = text.split_once('/').unwrap_or((text, ""));
        Self::new(owner, name)
    }
}

impl fmt::Display for RepoId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.owner, self.name)
    }
}

impl serde::Serialize for RepoId {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

/// A version of a kernel, kept on the branch `vN`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, serde::Serialize)]
#[serde(transparent)]
pub struct Version(pub u32);

impl Version {
    /// The branch that holds this version, such as `v1`.
    pub fn branch(self) -> String {
        self.to_string()
    }

    /// The version that a branch holds, if its name is `v` and a number.
    pub fn from_branch(branch: &str) -> Option<Self> {
        let number = branch.strip_prefix('v')?;
        let version = Self(number.parse().ok()?);
        // `v01` and `v+1` are other branches, not other spellings.
        (version.branch() == branch).then_some(version)
    }
}

impl fmt::Display for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "v{}", self.0)
    }
}

/// Which state of a repository is meant.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Revision {
    /// A version: the newest commit of its branch.
    Version(Version),
    /// The newest commit of a branch, or the commit of a tag.
    Branch(String),
    /// Exactly one commit.
    Commit(CommitId),
}

impl From<Version> for Revision {
    fn from(version: Version) -> Self {
        Self::Version(version)
    }
}

impl From<CommitId> for Revision {
    fn from(commit: CommitId) -> Self {
        Self::Commit(commit)
    }
}

impl FromStr for Revision {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        if let Ok(commit) = text.parse() {
            return Ok(Self::Commit(commit));
        }
        if let Some(version) = Version::from_branch(text) {
            return Ok(Self::Version(version));
        }
        check_ref_name(text)?;
        Ok(Self::Branch(text.to_owned()))
    }
}

impl fmt::Display for Revision {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Version(version) => version.fmt(f),
            Self::Branch(name) => f.write_str(name),
            Self::Commit(commit) => commit.fmt(f),
        }
    }
}

/// Checks the name of a branch or tag by git's rules (`git check-ref-format`), 200 bytes at most.
///
/// # Errors
/// `H0102`.
pub(crate) fn check_ref_name(name: &str) -> Result<()> {
    let forbidden = |c: char| c.is_control() || c.is_whitespace() || "~^:?*[\\".contains(c);
    let bad_segment =
        |s: &str| s.is_empty() || s.starts_with(['.', '-']) || s.ends_with('.') || s.ends_with(".lock");
    let bad = name.is_empty()
        || name == "@"
        || name.len() > 200
        || name.contains("..")
        || name.contains("@{")
        || name.contains(forbidden)
        || name.split('/').any(bad_segment);
    if bad {
        return Err(Error::new(
            Code::Revision,
            format!("{name:?} is not a version, a branch, a tag or a commit"),
        ));
    }
    Ok(())
}

/// Splits `owner/name@revision`, the short form of the command line.
///
/// # Errors
/// `H0101` and `H0102`.
pub fn parse_spec(text: &str) -> Result<(RepoId, Option<Revision>)> {
    match text.split_once('@') {
        Some((repo, revision)) => Ok((repo.parse()?, Some(revision.parse()?))),
        None => Ok((text.parse()?, None)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn repo_ids_follow_the_hubs_rules() {
        for good in ["acme/add-one", "A.b_c/d0", "a/b"] {
            assert_eq!(good.parse::<RepoId>().unwrap().to_string(), good);
        }
        let long = format!("a/{}", "b".repeat(95));
        for bad in [
            "", "a", "a/", "/a", "a/b/c", "../a", "a/..", "a--b/c", "a/b.git", "-a/b", "a/b-", "a/b c",
            "a/b%2F", &long,
        ] {
            assert_eq!(bad.parse::<RepoId>().unwrap_err().code(), Code::RepoId, "{bad:?}");
        }
    }

    #[test]
    fn revisions_are_told_apart() {
        let commit = "0123456789abcdef0123456789abcdef01234567";
        assert_eq!("v12".parse::<Revision>().unwrap(), Version(12).into());
        assert_eq!("v012".parse::<Revision>().unwrap(), Revision::Branch("v012".into()));
        assert_eq!("main".parse::<Revision>().unwrap(), Revision::Branch("main".into()));
        assert_eq!(commit.parse::<Revision>().unwrap(), Revision::Commit(commit.parse().unwrap()));
        for bad in ["", "a..b", "/a", "a/", "a b", "../../x", "a/../b", "x.lock", "a\\b", ".hidden", "@"] {
            assert_eq!(bad.parse::<Revision>().unwrap_err().code(), Code::Revision, "{bad:?}");
        }
    }

    #[test]
    fn the_short_form_splits_at_the_at_sign() {
        let (repo, revision) = parse_spec("acme/add-one@v2").unwrap();
        assert_eq!((repo.to_string().as_str(), revision), ("acme/add-one", Some(Version(2).into())));
        assert_eq!(parse_spec("acme/add-one").unwrap().1, None);
    }
}
