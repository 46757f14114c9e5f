//! Paths inside a repository, checked once and safe to join from then on.

use std::fmt;
use std::path::{Path, PathBuf};

use crate::error::{Code, Error, Result};

/// A relative path with `/` separators that cannot leave the folder it is joined to.
///
/// No segment is empty, `.`, `..` or `.git`; there are no backslashes, control characters, drive
/// letters or colons in the first segment's drive position; it is at most 1024 bytes, a segment 255.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RepoPath(String);

impl RepoPath {
    /// Checks `path`.
    ///
    /// # Errors
    /// `H0103`, naming the rule that `path` breaks.
    pub fn parse(path: &str) -> Result<Self> {
        match fault(path) {
            None => Ok(Self(path.to_owned())),
            Some(fault) => Err(Error::new(Code::Path, format!("the path {path:?} {fault}"))),
        }
    }

    /// The path as the hub writes it.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Where this path lies under `root`.
    pub fn under(&self, root: &Path) -> PathBuf {
        self.segments().fold(root.to_path_buf(), |path, segment| path.join(segment))
    }

    /// The parts between the slashes.
    pub fn segments(&self) -> impl Iterator<Item = &str> {
        self.0.split('/')
    }

    /// The rest of this path below the folder `folder`, if it lies in it.
    pub fn strip_folder(&self, folder: &str) -> Option<RepoPath> {
        Some(Self(self.0.strip_prefix(folder)?.strip_prefix('/')?.to_owned()))
    }

    /// The path `folder/self`.
    pub(crate) fn in_folder(&self, folder: &RepoPath) -> Self {
        Self(format!("{folder}/{self}"))
    }

    /// Whether Python would take this file as bytecode to execute.
    pub(crate) fn is_bytecode(&self) -> bool {
        self.0.ends_with(".pyc") || self.segments().any(|s| s == "__pycache__")
    }
}

impl fmt::Display for RepoPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl serde::Serialize for RepoPath {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&self.0)
    }
}

impl<'de> serde::Deserialize<'de> for RepoPath {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        Self::parse(&text).map_err(serde::de::Error::custom)
    }
}

fn fault(path: &str) -> Option<&'static str> {
    if path.is_empty() {
        return Some("is empty");
    }
    if path.len() > 1024 {
        return Some("is longer than 1024 bytes");
    }
    if path.starts_with('/') {
        return Some("is absolute");
    }
    if path.contains('\\') {
        return Some("contains a backslash");
    }
    if path.chars().any(char::is_control) {
        return Some("contains a control character");
    }
    path.split('/').find_map(|segment| match segment {
        "" => Some("has an empty segment"),
        "." => Some("has a `.` segment"),
        ".." => Some("leaves its folder through `..`"),
        s if s.eq_ignore_ascii_case(".git") => Some("reaches into `.git`"),
        s if s.len() > 255 => Some("has a segment longer than 255 bytes"),
        // Windows would take `C:x` as another drive, wherever it stands in a join.
        s if s.as_bytes().get(1) == Some(&b':') => Some("has a drive letter"),
        _ => None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn ordinary_paths_pass() {
        for path in ["README.md", ".gitattributes", "build/torch-tpu/mosaic/a-b_c.mlirbc", "a/..b/c..", "é/ü"]
        {
            assert_eq!(RepoPath::parse(path).unwrap().as_str(), path);
        }
    }

    #[test]
    fn paths_that_escape_are_refused() {
        let long = "a/".repeat(600) + "a";
        for path in [
            "",
            "/",
            "/etc/passwd",
            "..",
            "../x",
            "a/../b",
            "a/..",
            "./a",
            "a/.",
            "a//b",
            "a/",
            "a\\..\\b",
            "C:/x",
            "c:x",
            "a/C:x",
            "a\0b",
            "a\nb",
            ".git/config",
            "a/.GIT/hooks",
            &long,
        ] {
            assert_eq!(RepoPath::parse(path).unwrap_err().code(), Code::Path, "{path:?}");
        }
    }

    proptest! {
        #[test]
        fn an_accepted_path_stays_under_its_root(path in "[a./\\\\:\u{0}]{0,12}") {
            if let Ok(path) = RepoPath::parse(&path) {
                let joined = path.under(Path::new("/base"));
                prop_assert!(joined.starts_with("/base/"));
                prop_assert!(joined.components().all(|c| c != std::path::Component::ParentDir));
            }
        }
    }
}
