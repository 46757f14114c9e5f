//! A backend in one folder of this machine: a record is a file, a key its path.
//!
//! A write is a temporary file, fsync, rename, and fsync of every folder that got a new entry.

use std::fs::File;
use std::io::{ErrorKind, Write};
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use fs_err as fs;
use sha2::{Digest, Sha256};
use tempfile::NamedTempFile;

use crate::atomic;
use crate::error::{Error, Result};

use super::backend::{Backend, Entry};

/// How many swaps may run at once; those of one key never do.
const LOCKS: u8 = 64;

/// The folder. Its lock files make a swap atomic among threads and among processes: the operator's commands write
/// beside the server.
#[derive(Debug)]
pub(super) struct Folder {
    root: PathBuf,
}

impl Folder {
    /// # Errors
    /// `H0109` if the folder cannot be written.
    pub(super) fn new(root: PathBuf) -> Result<Self> {
        let folder = Self { root };
        atomic::make_folder(&folder.root.join("locks"))?;
        for number in 0..LOCKS {
            folder.open_lock(number)?;
        }
        Ok(folder)
    }

    fn open_lock(&self, number: u8) -> Result<File> {
        let path = self.root.join(format!("locks/{number}"));
        let opened = File::options().create(true).truncate(false).write(true).open(&path);
        opened.map_err(|e| Error::io(&path, e))
    }

    fn path(&self, key: &str) -> PathBuf {
        debug_assert!(key.split('/').all(|name| !matches!(name, "" | "." | "..")), "{key:?} is no key");
        self.root.join(key)
    }

    /// Waits until nobody else swaps `key`; they wait until the result is dropped.
    fn lock(&self, key: &str) -> Result<File> {
        // A hash that is the same in every process, also of another build.
        let lock = self.open_lock(Sha256::digest(key)[0] % LOCKS)?;
        lock.lock().map_err(|e| Error::io(&self.root.join("locks"), e))?;
        Ok(lock)
    }

    fn write(&self, path: &Path, bytes: &[u8]) -> Result<()> {
        let mut file = self.scratch()?;
        file.write_all(bytes).map_err(|e| Error::io(path, e))?;
        self.place(file, path)
    }

    fn place(&self, file: NamedTempFile, path: &Path) -> Result<()> {
        if path.parent() == Some(&self.root) {
            // A temporary file is its maker's alone, and this one stays so.
            return atomic::place_secret(file, path);
        }
        let folder = path.parent().unwrap_or(&self.root);
        self.make_folder(folder)?;
        atomic::place(file, path)?;
        atomic::sync_folder(folder)
    }

    /// Makes `folder`, and makes each new name on the way to it durable.
    fn make_folder(&self, folder: &Path) -> Result<()> {
        if folder.is_dir() {
            return Ok(());
        }
        let above = folder.parent().unwrap_or(&self.root);
        self.make_folder(above)?;
        match fs::create_dir(folder) {
            Err(e) if e.kind() != ErrorKind::AlreadyExists => Err(Error::io(folder, e)),
            _ => atomic::sync_folder(above),
        }
    }
}

impl Backend for Folder {
    fn read(&self, key: &str) -> Result<Option<Vec<u8>>> {
        let path = self.path(key);
        present(&path, fs::read(&path))
    }

    fn open(&self, key: &str) -> Result<Option<File>> {
        let path = self.path(key);
        present(&path, File::open(&path))
    }

    fn stamp(&self, key: &str) -> Result<Option<String>> {
        let path = self.path(key);
        let Some(metadata) = present(&path, fs::metadata(&path))? else { return Ok(None) };
        let modified = metadata.modified().map_err(|e| Error::io(&path, e))?;
        Ok(Some(format!("{modified:?} {}", metadata.len())))
    }

    fn size(&self, key: &str) -> Result<Option<u64>> {
        let path = self.path(key);
        Ok(present(&path, fs::metadata(&path))?.filter(|m| m.is_file()).map(|m| m.len()))
    }

    fn put(&self, key: &str, file: NamedTempFile) -> Result<()> {
        self.place(file, &self.path(key))
    }

    fn swap(&self, key: &str, expected: Option<&[u8]>, new: Option<&[u8]>) -> Result<bool> {
        let _one_at_a_time = self.lock(key)?;
        if self.read(key)?.as_deref() != expected {
            return Ok(false);
        }
        let path = self.path(key);
        match new {
            Some(bytes) => self.write(&path, bytes)?,
            None if expected.is_none() => {}
            None => {
                fs::remove_file(&path).map_err(|e| Error::io(&path, e))?;
                atomic::sync_folder(path.parent().unwrap_or(&self.root))?;
            }
        }
        Ok(true)
    }

    fn names(&self, folder: &str) -> Result<Vec<String>> {
        let mut names: Vec<_> = entries(&self.path(folder))?.into_iter().map(|(name, _)| name).collect();
        names.sort();
        Ok(names)
    }

    fn walk(&self, folder: &str) -> Result<Vec<Entry>> {
        let (mut found, mut pending) = (Vec::new(), vec![folder.to_owned()]);
        while let Some(folder) = pending.pop() {
            for (name, metadata) in entries(&self.path(&folder))? {
                let key = format!("{folder}/{name}");
                if metadata.is_dir() {
                    pending.push(key);
                } else {
                    let modified = metadata.modified().map_err(|e| Error::io(&self.path(&key), e))?;
                    found.push(Entry { key, size: metadata.len(), modified });
                }
            }
        }
        Ok(found)
    }

    fn touch(&self, key: &str) -> Result<bool> {
        let path = self.path(key);
        let file = present(&path, File::options().append(true).open(&path))?;
        file.map(|f| f.set_modified(SystemTime::now()).map_err(|e| Error::io(&path, e)))
            .transpose()
            .map(|touched| touched.is_some())
    }

    fn remove_older(&self, key: &str, cutoff: SystemTime) -> Result<bool> {
        let path = self.path(key);
        let doomed = self.scratch()?.into_temp_path();
        // Moved first and judged then: a writer that touches it too late does not find it and writes it anew.
        if present(&path, fs::rename(&path, &doomed))?.is_none() {
            return Ok(false);
        }
        let modified = fs::metadata(&doomed).and_then(|m| m.modified()).map_err(|e| Error::io(&path, e))?;
        if modified >= cutoff {
            fs::rename(&doomed, &path).map_err(|e| Error::io(&path, e))?;
            return Ok(false);
        }
        Ok(true)
    }

    fn scratch(&self) -> Result<NamedTempFile> {
        atomic::scratch(&self.root.join("incoming"))
    }
}

/// `None` for what does not exist.
fn present<T>(path: &Path, result: std::io::Result<T>) -> Result<Option<T>> {
    match result {
        Ok(value) => Ok(Some(value)),
        // A key below a record, such as `a/b` where `a` is a file, is not there either.
        Err(e) if matches!(e.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) => Ok(None),
        Err(e) => Err(Error::io(path, e)),
    }
}

/// What `folder` holds; nothing if it does not exist. Names that are not UTF-8 are not ours.
fn entries(folder: &Path) -> Result<Vec<(String, std::fs::Metadata)>> {
    let Some(listed) = present(folder, fs::read_dir(folder))? else { return Ok(Vec::new()) };
    let mut found = Vec::new();
    for entry in listed {
        let entry = entry.map_err(|e| Error::io(folder, e))?;
        let Ok(name) = entry.file_name().into_string() else { continue };
        // It may have gone since it was listed.
        if let Some(metadata) = present(&entry.path(), entry.metadata())? {
            found.push((name, metadata));
        }
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    fn folder() -> (tempfile::TempDir, Folder) {
        let root = tempfile::tempdir().unwrap();
        fs::create_dir(root.path().join("incoming")).unwrap();
        let folder = Folder::new(root.path().to_owned()).unwrap();
        (root, folder)
    }

    #[test]
    fn of_many_that_swap_one_record_one_wins() {
        let (_root, folder) = folder();
        assert!(folder.swap("a/b/c", None, Some(b"0")).unwrap());
        let winners = std::thread::scope(|scope| {
            let racers: Vec<_> = (1..=8_u8)
                .map(|n| {
                    // Each as a process of its own would see it.
                    let folder = Folder::new(folder.root.clone()).unwrap();
                    scope.spawn(move || folder.swap("a/b/c", Some(b"0"), Some(&[n])).unwrap())
                })
                .collect();
            racers.into_iter().map(|racer| racer.join().unwrap()).filter(|won| *won).count()
        });
        assert_eq!(winners, 1);
        assert!(!folder.swap("a/b/c", None, Some(b"x")).unwrap());
        assert_eq!(folder.names("a").unwrap(), ["b"]);
        let now = folder.read("a/b/c").unwrap().unwrap();
        assert!(folder.swap("a/b/c", Some(&now), None).unwrap());
        assert_eq!(folder.read("a/b/c").unwrap(), None);
    }

    #[test]
    fn only_old_records_that_nobody_touched_are_removed() {
        let (_root, folder) = folder();
        for key in ["x/old", "x/touched"] {
            folder.swap(key, None, Some(b"1")).unwrap();
            let past = SystemTime::now() - Duration::from_secs(1000);
            File::options().append(true).open(folder.path(key)).unwrap().set_modified(past).unwrap();
        }
        assert!(folder.touch("x/touched").unwrap());
        assert!(!folder.touch("x/none").unwrap());
        let cutoff = SystemTime::now() - Duration::from_secs(500);
        assert!(folder.remove_older("x/old", cutoff).unwrap());
        assert!(!folder.remove_older("x/touched", cutoff).unwrap());
        assert_eq!(folder.walk("x").unwrap().len(), 1);
    }
}
