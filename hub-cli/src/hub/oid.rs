//! Object ids: git's SHA-1 of a blob, SHA-256 of a large file, and the id of a commit.

use std::fmt;
use std::str::FromStr;

use sha1::Sha1;
use sha2::{Digest, Sha256};

use crate::error::{Code, Error, Result};

/// The id of a file's content: `sha1("blob <size>\0" + content)` in 40 hexadecimal digits, or the
/// plain SHA-256 in 64 for files that the hub keeps in LFS. It names the file in the cache.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, serde::Serialize)]
#[serde(transparent)]
pub struct Oid(String);

impl Oid {
    /// Checks that `text` is 40 or 64 hexadecimal digits.
    ///
    /// # Errors
    /// `H0303`.
    pub fn parse(text: &str) -> Result<Self> {
        hex_id(text, "a file").map(Self)
    }

    /// The git id of `content`.
    pub fn of_blob(content: &[u8]) -> Self {
        let mut hasher = Hasher::git(content.len() as u64);
        hasher.update(content);
        hasher.finish()
    }

    /// The id's digits.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// A hasher that will reproduce this id from a content of `size` bytes.
    pub(crate) fn hasher(&self, size: u64) -> Hasher {
        if self.0.len() == 40 { Hasher::git(size) } else { Hasher::Sha256(Sha256::new()) }
    }
}

impl fmt::Display for Oid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl<'de> serde::Deserialize<'de> for Oid {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        Self::parse(&text).map_err(serde::de::Error::custom)
    }
}

/// The id of a commit: 40 (or 64) hexadecimal digits.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, serde::Serialize)]
#[serde(transparent)]
pub struct CommitId(String);

impl CommitId {
    /// The id's digits.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl FromStr for CommitId {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        hex_id(text, "a commit").map(Self)
    }
}

impl fmt::Display for CommitId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl<'de> serde::Deserialize<'de> for CommitId {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        text.parse().map_err(serde::de::Error::custom)
    }
}

/// Hashes a content piece by piece.
pub(crate) enum Hasher {
    Git(Sha1),
    Sha256(Sha256),
}

impl Hasher {
    /// A hasher for git's id of a blob of `size` bytes.
    pub(crate) fn git(size: u64) -> Self {
        Self::git_object("blob", size)
    }

    fn git_object(kind: &str, size: u64) -> Self {
        Self::Git(Sha1::new_with_prefix(format!("{kind} {size}\0")))
    }

    pub(crate) fn update(&mut self, bytes: &[u8]) {
        match self {
            Self::Git(hasher) => hasher.update(bytes),
            Self::Sha256(hasher) => hasher.update(bytes),
        }
    }

    pub(crate) fn finish(self) -> Oid {
        Oid(match self {
            Self::Git(hasher) => hex::encode(hasher.finalize()),
            Self::Sha256(hasher) => hex::encode(hasher.finalize()),
        })
    }
}

/// The id that git gives the tree object with these entries, each `(mode, name, id)`.
///
/// Entries are sorted here as git sorts them: a folder's name compares as if it ended in `/`.
pub(crate) fn git_tree_id(mut entries: Vec<(bool, &str, Oid)>) -> Oid {
    entries.sort_by_key(|(folder, name, _)| if *folder { format!("{name}/") } else { (*name).to_owned() });
    let mut body = Vec::new();
    for (folder, name, oid) in entries {
        let mode = if folder { "40000" } else { "100644" };
        body.extend_from_slice(format!("{mode} {name}\0").as_bytes());
        body.extend(hex::decode(oid.as_str()).expect("an Oid holds hexadecimal digits"));
    }
    git_object("tree", &body)
}

/// The id that git gives the commit object with this text.
pub(crate) fn git_commit_id(text: &str) -> CommitId {
    CommitId(git_object("commit", text.as_bytes()).0)
}

fn git_object(kind: &str, body: &[u8]) -> Oid {
    let mut hasher = Hasher::git_object(kind, body.len() as u64);
    hasher.update(body);
    hasher.finish()
}

fn hex_id(text: &str, what: &str) -> Result<String> {
    let hex = text.bytes().all(|b| b.is_ascii_digit() || (b'a'..=b'f').contains(&b));
    if hex && matches!(text.len(), 40 | 64) {
        return Ok(text.to_owned());
    }
    Err(Error::new(Code::ObjectId, format!("{text:?} is not the id of {what} (40 or 64 hexadecimal digits)")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_are_gits() {
        // `git hash-object`, `git mktree` on a file and a folder, and the well-known empty tree.
        let hello = Oid::of_blob(b"hello\n");
        assert_eq!(hello.as_str(), "ce013625030ba8dba906f756967f9e9ca394464a");
        assert_eq!(git_tree_id(vec![]).as_str(), "4b825dc642cb6eb9a060e54bf8d69288fbee4904");
        let inner = git_tree_id(vec![(false, "x", hello.clone())]);
        assert_eq!(inner.as_str(), GIT_INNER);
        assert_eq!(git_tree_id(vec![(true, "a", inner), (false, "a.b", hello)]).as_str(), GIT_OUTER);
    }

    const GIT_INNER: &str = "e31a96220fbfbe7601ecc086a36b96dc27a8867e";
    const GIT_OUTER: &str = "ae079d5d2fecf69af67f09002152cd6cbbbd6ef8";

    #[test]
    fn only_hexadecimal_ids_pass() {
        for bad in [
            "",
            "../../x",
            "CE013625030BA8DBA906F756967F9E9CA394464A",
            "ce01",
            &"g".repeat(40),
            &"a".repeat(41),
        ] {
            assert_eq!(Oid::parse(bad).unwrap_err().code(), Code::ObjectId, "{bad:?}");
        }
    }
}
