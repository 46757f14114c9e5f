//! The cache on disk, in the layout that Python's `huggingface_hub` and `kernels` read, also offline.
//!
//! ```text
//! CACHE/.locks/kernels--OWNER--NAME/kernels-cli.lock    one writer of a repository at a time
//! CACHE/kernels--OWNER--NAME/blobs/OID                  contents
//!                           /snapshots/COMMIT/PATH      links to ../../blobs/OID
//!                           /refs/v1                    the commit that a branch stood at
//!                           /incoming/                  what is being downloaded
//! ```
//! A file enters `blobs` when its content was checked, a snapshot when all its files were, and a ref
//! last. `refs` is what makes Python find a version offline. No `trees/` is written: Python would
//! demand every file listed there.

use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};

use fs_err as fs;
use tempfile::{NamedTempFile, TempDir};

use crate::atomic;
use crate::error::{Code, Error, Result};

use super::listing::RemoteFile;
use super::oid::{CommitId, Oid};
use super::path::RepoPath;
use super::repo::RepoId;

/// The cache folder of this user, as HF_HUB_CACHE names it.
#[derive(Clone, Debug)]
pub struct Cache {
    root: PathBuf,
}

/// One repository's part of the cache, locked against other writers.
#[derive(Debug)]
pub(crate) struct RepoCache {
    dir: PathBuf,
    _lock: File,
}

impl Cache {
    /// The cache in the folder `root`, which need not exist yet.
    pub fn new(root: impl Into<PathBuf>) -> Self {
        Self { root: root.into() }
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

    /// Locks `repo` for writing, waiting for other writers, and clears what they left unfinished.
    pub(crate) fn lock(&self, repo: &RepoId) -> Result<RepoCache> {
        let name = Self::folder_name(repo);
        let locks = self.root.join(".locks").join(&name);
        atomic::make_folder(&locks)?;
        let path = locks.join("kernels-cli.lock");
        let lock = File::options()
            .create(true)
            .truncate(false)
            .write(true)
            .open(&path)
            .map_err(|e| Error::io(&path, e))?;
        lock.lock().map_err(|e| Error::io(&path, e))?;
        self.mark()?;

        let cache = RepoCache { dir: self.root.join(name), _lock: lock };
        let incoming = cache.incoming();
        if incoming.exists() {
            fs::remove_dir_all(&incoming).map_err(|e| Error::io(&incoming, e))?;
        }
        for folder in [cache.dir.join("blobs"), cache.dir.join("snapshots"), incoming] {
            atomic::make_folder(&folder)?;
        }
        Ok(cache)
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

    /// Tells backup programs that this folder can be made again.
    fn mark(&self) -> Result<()> {
        let tag = self.root.join("CACHEDIR.TAG");
        if tag.exists() {
            return Ok(());
        }
        atomic::write(
            &tag,
            b"Signature: 8a477f597d28d172789f06886806bc55\n# A cache of Hugging Face Hub downloads.\n",
        )
    }
}

impl RepoCache {
    fn incoming(&self) -> PathBuf {
        self.dir.join("incoming")
    }

    /// Where the content `oid` lies, or will lie.
    pub(crate) fn blob(&self, oid: &Oid) -> PathBuf {
        self.dir.join("blobs").join(oid.as_str())
    }

    /// Whether the content of `file` is in the cache and undamaged.
    pub(crate) fn has(&self, file: &RemoteFile) -> bool {
        matches!(hash_file(&self.blob(&file.oid), &file.oid), Ok((size, oid)) if size == file.size && oid == file.oid)
    }

    /// Stores a content that `fill` writes and has checked.
    pub(crate) fn store(&self, oid: &Oid, fill: impl FnOnce(&mut NamedTempFile) -> Result<()>) -> Result<()> {
        let incoming = self.incoming();
        let mut file = NamedTempFile::new_in(&incoming).map_err(|e| Error::io(&incoming, e))?;
        fill(&mut file)?;
        atomic::place(file, &self.blob(oid))
    }

    /// Links checked files into the snapshot of `commit`, which appears whole if it is new.
    pub(crate) fn link(&self, commit: &CommitId, files: &[RemoteFile]) -> Result<PathBuf> {
        atomic::sync_folder(&self.dir.join("blobs"))?;
        let snapshots = self.dir.join("snapshots");
        let snapshot = snapshots.join(commit.as_str());
        let incoming = self.incoming();
        let staged = TempDir::new_in(&incoming).map_err(|e| Error::io(&incoming, e))?;
        if snapshot.is_dir() {
            // Another variant of this commit, or Python, was here first: each file is replaced by itself.
            for file in files {
                self.link_one(file, &snapshot, staged.path())?;
            }
            return Ok(snapshot);
        }
        let new = staged.path().join("snapshot");
        for file in files {
            self.link_one(file, &new, staged.path())?;
        }
        atomic::make_folder(&new)?;
        fs::rename(&new, &snapshot).map_err(|e| Error::io(&snapshot, e))?;
        atomic::sync_folder(&snapshots)?;
        Ok(snapshot)
    }

    /// Links `file` into the snapshot that lies, or will lie, in `snapshots`; it replaces what is there.
    fn link_one(&self, file: &RemoteFile, snapshot: &Path, staged: &Path) -> Result<()> {
        let path = file.path.under(snapshot);
        atomic::make_folder(path.parent().unwrap_or(snapshot))?;
        let up = "../".repeat(file.path.segments().count() + 1);
        let link = staged.join("link");
        make_link(&format!("{up}blobs/{}", file.oid), &self.blob(&file.oid), &link)?;
        fs::rename(&link, &path).map_err(|e| Error::io(&path, e))
    }

    /// Records that the branch or tag `name` stands at `commit`.
    pub(crate) fn write_ref(&self, name: &str, commit: &CommitId) -> Result<()> {
        let path = RepoPath::parse(name)?.under(&self.dir.join("refs"));
        atomic::make_folder(path.parent().unwrap_or(&self.dir))?;
        atomic::write(&path, commit.as_str().as_bytes())
    }
}

impl Drop for RepoCache {
    fn drop(&mut self) {
        // Leftovers are cleared by the next writer too.
        let _ = fs::remove_dir_all(self.incoming());
    }
}

/// Makes `link` lead to the blob, as a relative link where the system has links, else as a copy.
fn make_link(relative: &str, blob: &Path, link: &Path) -> Result<()> {
    #[cfg(unix)]
    {
        let _ = blob;
        fs::os::unix::fs::symlink(relative, link).map_err(|e| Error::io(link, e))
    }
    #[cfg(not(unix))]
    {
        let _ = relative;
        fs::copy(blob, link).map(drop).map_err(|e| Error::io(link, e))
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
