//! One repository's part of the cache while it is written: locked, contents first, names last.

use std::fs::File;
use std::path::{Path, PathBuf};

use fs_err as fs;
use tempfile::TempDir;

use crate::atomic;
use crate::error::{Error, Result};
use crate::hub::listing::RemoteFile;
use crate::hub::oid::{CommitId, Oid};
use crate::hub::path::RepoPath;
use crate::hub::repo::RepoId;

use super::{Cache, hash_file};

/// One repository's part of the cache, locked against other writers.
#[derive(Debug)]
pub(crate) struct RepoCache {
    dir: PathBuf,
    _lock: File,
}

impl Cache {
    /// Locks `repo` for writing, waiting for other writers, and clears what they left unfinished.
    pub(crate) fn lock(&self, repo: &RepoId) -> Result<RepoCache> {
        let lock = self.lock_only(repo)?;
        self.mark()?;

        let cache = RepoCache { dir: self.root.join(Self::folder_name(repo)), _lock: lock };
        cache.clear()?;
        for folder in [cache.dir.join("blobs"), cache.dir.join("snapshots"), cache.incoming()] {
            atomic::make_folder(&folder)?;
        }
        Ok(cache)
    }

    /// Waits for other writers of `repo`; they wait until the result is dropped.
    pub(super) fn lock_only(&self, repo: &RepoId) -> Result<File> {
        let locks = self.root.join(".locks").join(Self::folder_name(repo));
        atomic::make_folder(&locks)?;
        let path = locks.join("kernels-cli.lock");
        let lock = File::options()
            .create(true)
            .truncate(false)
            .write(true)
            .open(&path)
            .map_err(|e| Error::io(&path, e))?;
        lock.lock().map_err(|e| Error::io(&path, e))?;
        Ok(lock)
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

    /// Where the content `oid` is gathered while it arrives.
    pub(crate) fn part(&self, oid: &Oid) -> PathBuf {
        self.incoming().join(oid.as_str())
    }

    /// Makes gathered contents, which were checked, a part of the cache.
    pub(crate) fn admit<'a>(&self, oids: impl Iterator<Item = &'a Oid>) -> Result<()> {
        let moves: Vec<_> = oids.map(|oid| (self.part(oid), self.blob(oid))).collect();
        if moves.is_empty() {
            return Ok(());
        }
        // Python's client believes whatever lies among the contents: first the bytes, then the names.
        atomic::sync_files(&self.incoming(), moves.iter().map(|(from, _)| from.as_path()))?;
        for (from, to) in &moves {
            fs::rename(from, to).map_err(|e| Error::io(to, e))?;
        }
        atomic::sync_folder(&self.dir.join("blobs"))
    }

    /// Removes what earlier writers left unfinished, but for contents that can be gone on with.
    fn clear(&self) -> Result<()> {
        let incoming = self.incoming();
        let Ok(entries) = fs::read_dir(&incoming) else { return Ok(()) };
        for entry in entries {
            let path = entry.map_err(|e| Error::io(&incoming, e))?.path();
            let is_part =
                path.file_name().and_then(|name| name.to_str()).is_some_and(|n| Oid::parse(n).is_ok());
            let cleared = match path.is_dir() && !path.is_symlink() {
                true => fs::remove_dir_all(&path),
                false if is_part && !path.is_symlink() => Ok(()),
                false => fs::remove_file(&path),
            };
            cleared.map_err(|e| Error::io(&path, e))?;
        }
        Ok(())
    }

    /// Links checked files into the snapshot of `commit`, which appears whole if it is new.
    pub(crate) fn link(&self, commit: &CommitId, files: &[RemoteFile]) -> Result<PathBuf> {
        let snapshots = self.dir.join("snapshots");
        let snapshot = snapshots.join(commit.as_str());
        // What another variant, an earlier run or Python linked already is left alone.
        let missing: Vec<_> = files.iter().filter(|file| !self.is_linked(file, &snapshot)).collect();
        if missing.is_empty() && snapshot.is_dir() {
            return Ok(snapshot);
        }
        let incoming = self.incoming();
        let staged = TempDir::new_in(&incoming).map_err(|e| Error::io(&incoming, e))?;
        if snapshot.is_dir() {
            for file in missing {
                let (path, link) = (file.path.under(&snapshot), staged.path().join("link"));
                self.make_link(file, &link)?;
                atomic::make_folder(path.parent().unwrap_or(&snapshot))?;
                fs::rename(&link, &path).map_err(|e| Error::io(&path, e))?;
            }
            return Ok(snapshot);
        }
        let new = staged.path().join("snapshot");
        atomic::make_folder(&new)?;
        for file in files {
            let path = file.path.under(&new);
            atomic::make_folder(path.parent().unwrap_or(&new))?;
            self.make_link(file, &path)?;
        }
        fs::rename(&new, &snapshot).map_err(|e| Error::io(&snapshot, e))?;
        atomic::sync_folder(&snapshots)?;
        Ok(snapshot)
    }

    /// Whether the snapshot leads to the content of `file` already.
    fn is_linked(&self, file: &RemoteFile, snapshot: &Path) -> bool {
        fs::read_link(file.path.under(snapshot)).is_ok_and(|target| target == self.link_target(file))
    }

    /// Where a link of a snapshot leads, from where it lies.
    fn link_target(&self, file: &RemoteFile) -> PathBuf {
        let up = "../".repeat(file.path.segments().count() + 1);
        format!("{up}blobs/{}", file.oid).into()
    }

    /// Makes `link`, which is or will be the path of `file` in a snapshot, lead to its content: as a relative
    /// link where the system has links, else as a copy.
    fn make_link(&self, file: &RemoteFile, link: &Path) -> Result<()> {
        #[cfg(unix)]
        let made = fs::os::unix::fs::symlink(self.link_target(file), link);
        #[cfg(not(unix))]
        let made = fs::copy(self.blob(&file.oid), link).map(drop);
        made.map_err(|e| Error::io(link, e))
    }

    /// Records it unless another commit is recorded.
    pub(crate) fn write_new_ref(&self, name: &str, commit: &CommitId) -> Result<()> {
        match RepoPath::parse(name)?.under(&self.dir.join("refs")).exists() {
            true => Ok(()),
            false => self.write_ref(name, commit),
        }
    }

    /// Records that the branch or tag `name` stands at `commit`.
    pub(crate) fn write_ref(&self, name: &str, commit: &CommitId) -> Result<()> {
        let path = RepoPath::parse(name)?.under(&self.dir.join("refs"));
        if fs::read_to_string(&path).is_ok_and(|text| text == commit.as_str()) {
            return Ok(());
        }
        atomic::make_folder(path.parent().unwrap_or(&self.dir))?;
        atomic::write(&path, commit.as_str().as_bytes())
    }
}

impl Drop for RepoCache {
    fn drop(&mut self) {
        // Leftovers are cleared by the next writer too; what can be gone on with keeps the folder.
        let _ = self.clear();
        let _ = fs::remove_dir(self.incoming());
    }
}
