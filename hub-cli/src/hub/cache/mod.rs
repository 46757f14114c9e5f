//! The cache on disk, in the layout that Python's `huggingface_hub` and `kernels` read, also offline.
//!
//! ```text
//! CACHE/.locks/kernels--OWNER--NAME/kernels-cli.lock    one writer of a repository at a time
//! CACHE/kernels--OWNER--NAME/blobs/OID                  contents
//!                           /snapshots/COMMIT/PATH      links to ../../blobs/OID
//!                           /refs/v1                    the commit that a branch stood at
//!                           /incoming/OID               what is being downloaded
//! ```
//! A file enters `blobs` when its content was checked, a snapshot when all its files were, and a ref
//! last. `refs` is what makes Python find a version offline. No `trees/` is written: Python would
//! demand every file listed there.

use std::io::Read;
use std::path::{Path, PathBuf};

use fs_err as fs;

use crate::error::{Code, Error, Result};
use crate::package::signing::TrustStore;

use super::oid::{CommitId, Oid};
use super::path::RepoPath;
use super::repo::RepoId;

mod upkeep;
mod writer;

pub use upkeep::{CacheReport, CachedRepo, Collected, RECENT};
pub(crate) use writer::RepoCache;

/// The cache folder of this user, as HF_HUB_CACHE names it.
#[derive(Clone, Debug)]
pub struct Cache {
    root: PathBuf,
    trust: TrustStore,
}

impl Cache {
    /// The cache in the folder `root`, which need not exist yet.
    pub fn new(root: impl Into<PathBuf>) -> Self {
        Self { root: root.into(), trust: TrustStore::default() }
    }

    /// The same cache for a user who trusts these keys: what they do not vouch for is not let in, nor given out.
    #[must_use]
    pub fn trusting(self, trust: TrustStore) -> Self {
        Self { trust, ..self }
    }

    /// The keys that the user trusts.
    pub fn trust(&self) -> &TrustStore {
        &self.trust
    }

    /// The cache's folder.
    pub fn root(&self) -> &Path {
        &self.root
    }

    fn folder_name(repo: &RepoId) -> String {
        format!("kernels--{}--{}", repo.owner(), repo.name())
    }

    /// The commit that the branch or tag `name` stood at when it was last fetched.
    pub(crate) fn read_ref(&self, repo: &RepoId, name: &str) -> Option<CommitId> {
        let path = self.root.join(Self::folder_name(repo)).join("refs").join(name);
        fs::read_to_string(path).ok()?.trim().parse().ok()
    }

    /// The names of the refs that are cached.
    pub(crate) fn ref_names(&self, repo: &RepoId) -> Vec<String> {
        let entries = fs::read_dir(self.root.join(Self::folder_name(repo)).join("refs"));
        entries.into_iter().flatten().flatten().filter_map(|e| e.file_name().into_string().ok()).collect()
    }

    /// The files of `commit` that lie in its snapshot, by path, and where each content really lies.
    /// Bytecode that Python left there is none of them.
    ///
    /// # Errors
    /// `H0211` if there is no such snapshot.
    pub(crate) fn snapshot(
        &self,
        repo: &RepoId,
        commit: &CommitId,
    ) -> Result<(PathBuf, Vec<(RepoPath, PathBuf)>)> {
        let dir = self.root.join(Self::folder_name(repo)).join("snapshots").join(commit.as_str());
        let mut files = Vec::new();
        if !dir.is_dir() {
            return Err(Error::new(
                Code::Offline,
                format!("{repo} at {commit} is not in the cache {}", self.root.display()),
            ));
        }
        collect(&dir, "", &mut files)?;
        Ok((dir, files))
    }
}

/// The files below `dir` with their paths in the repository, and where each content really lies.
fn collect(dir: &Path, prefix: &str, files: &mut Vec<(RepoPath, PathBuf)>) -> Result<()> {
    for entry in fs::read_dir(dir).map_err(|e| Error::io(dir, e))? {
        let entry = entry.map_err(|e| Error::io(dir, e))?;
        let name = entry.file_name();
        let path = format!("{prefix}{}", name.to_string_lossy());
        // Folders are real ones here; whatever else there is counts as a file and must prove its content.
        if entry.file_type().is_ok_and(|t| t.is_dir()) {
            collect(&entry.path(), &format!("{path}/"), files)?;
        } else {
            let path = RepoPath::parse(&path)?;
            if path.is_bytecode() {
                continue;
            }
            let real = fs::canonicalize(entry.path()).map_err(|e| {
                Error::new(Code::CacheDamaged, format!("{} leads nowhere", entry.path().display())).because(e)
            })?;
            files.push((path, real));
        }
    }
    files.sort();
    Ok(())
}

/// The size of the file at `path`, and the id of its content in the manner of `like`.
pub(crate) fn hash_file(path: &Path, like: &Oid) -> Result<(u64, Oid)> {
    let fail = |e| Error::io(path, e);
    let mut file = fs::File::open(path).map_err(fail)?;
    let size = file.metadata().map_err(fail)?.len();
    let mut hasher = like.hasher(size);
    let mut buffer = vec![0; 64 << 10];
    loop {
        match file.read(&mut buffer).map_err(fail)? {
            0 => return Ok((size, hasher.finish())),
            count => hasher.update(&buffer[..count]),
        }
    }
}
