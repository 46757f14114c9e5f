//! The files of a commit as the hub lists them, checked before anything is done with them.

use std::collections::{BTreeMap, HashMap};

use serde::Deserialize;

use crate::error::{Code, Error, Result};

use super::oid::Oid;
use super::path::RepoPath;

/// The most files in one revision.
pub(crate) const MAX_FILES: usize = 100_000;
/// The largest file in bytes.
pub(crate) const MAX_FILE: u64 = 8 << 30;

/// One file of a revision: what it must be when it arrives.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RemoteFile {
    /// Where it lies in the repository.
    pub path: RepoPath,
    /// Git's id of the content, or its SHA-256 if the hub keeps it in LFS.
    pub oid: Oid,
    /// Its size in bytes.
    pub size: u64,
}

impl RemoteFile {
    /// Whether `bytes` are the content of this file.
    pub(crate) fn holds(&self, bytes: &[u8]) -> bool {
        let mut hasher = self.oid.hasher(bytes.len() as u64);
        hasher.update(bytes);
        self.size == bytes.len() as u64 && hasher.finish() == self.oid
    }
}

/// An entry of the tree endpoint.
#[derive(Deserialize)]
pub(crate) struct TreeEntry {
    #[serde(rename = "type")]
    kind: String,
    path: String,
    #[serde(default)]
    oid: String,
    #[serde(default)]
    size: u64,
    lfs: Option<Lfs>,
}

#[derive(Deserialize)]
struct Lfs {
    oid: String,
    size: u64,
}

/// Collects the pages of a listing, and refuses what cannot be a repository.
#[derive(Default)]
pub(crate) struct Listing {
    files: BTreeMap<RepoPath, RemoteFile>,
    folded: HashMap<String, RepoPath>,
}

impl Listing {
    /// Takes one more entry.
    pub(crate) fn take(&mut self, entry: TreeEntry) -> Result<()> {
        let path = RepoPath::parse(&entry.path)
            .map_err(|e| e.help("the hub listed it: nothing of this revision was written"))?;
        match entry.kind.as_str() {
            "directory" => return Ok(()),
            "file" => {}
            other => {
                return Err(Error::new(
                    Code::Protocol,
                    format!("the hub lists {path} as {other:?}, which is no file"),
                ));
            }
        }
        let (oid, size) = match &entry.lfs {
            Some(lfs) => (Oid::parse(lfs.oid.trim_start_matches("sha256:"))?, lfs.size),
            None => (Oid::parse(&entry.oid)?, entry.size),
        };
        self.add(RemoteFile { path, oid, size })
    }

    /// Takes one more file.
    pub(crate) fn add(&mut self, file: RemoteFile) -> Result<()> {
        let RemoteFile { path, size, .. } = &file;
        if *size > MAX_FILE {
            return Err(Error::new(
                Code::TooLarge,
                format!("{path} is listed with {size} bytes, more than {MAX_FILE}"),
            ));
        }
        if self.files.len() == MAX_FILES {
            return Err(Error::new(Code::TooLarge, format!("the revision has more than {MAX_FILES} files")));
        }
        // On a file system that ignores case, the second of two such files would replace the first.
        if let Some(other) = self.folded.insert(path.as_str().to_lowercase(), path.clone()) {
            return Err(Error::new(
                Code::Listing,
                format!("{other} and {path} are listed, which are one file on some systems"),
            ));
        }
        self.files.insert(file.path.clone(), file);
        Ok(())
    }

    /// The files by path, once no more entries come.
    pub(crate) fn finish(self) -> Result<Vec<RemoteFile>> {
        for path in self.files.keys() {
            let above = path.as_str().match_indices('/').map(|(at, _)| path.as_str()[..at].to_lowercase());
            for folder in above {
                if let Some(file) = self.folded.get(&folder) {
                    return Err(Error::new(
                        Code::Listing,
                        format!("{file} is listed as a file, and as the folder of {path}"),
                    ));
                }
            }
        }
        Ok(self.files.into_values().collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn listing(entries: &[(&str, &str, u64)]) -> Result<Vec<RemoteFile>> {
        let mut listing = Listing::default();
        for (path, oid, size) in entries {
            let json = serde_json::json!({"type": "file", "path": path, "oid": oid, "size": size});
            listing.take(serde_json::from_value(json).unwrap())?;
        }
        listing.finish()
    }

    #[test]
    fn impossible_listings_are_refused() {
        let oid = "ce013625030ba8dba906f756967f9e9ca394464a";
        let code = |entries: &[(&str, &str, u64)]| listing(entries).unwrap_err().code();
        assert_eq!(listing(&[("b", oid, 6), ("a/x", oid, 6)]).unwrap().len(), 2);
        assert_eq!(code(&[("../x", oid, 6)]), Code::Path);
        assert_eq!(code(&[("x", "../../x", 6)]), Code::ObjectId);
        assert_eq!(code(&[("x", oid, u64::MAX)]), Code::TooLarge);
        assert_eq!(code(&[("a", oid, 6), ("a", oid, 6)]), Code::Listing);
        assert_eq!(code(&[("a/B", oid, 6), ("A/b", oid, 6)]), Code::Listing);
        assert_eq!(code(&[("a", oid, 6), ("a/b", oid, 6)]), Code::Listing);
        assert_eq!(code(&[("a", oid, 6), ("a-", oid, 6), ("A/b", oid, 6)]), Code::Listing);
    }
}
