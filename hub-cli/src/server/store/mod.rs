//! What the embedded hub keeps on disk: one folder, no database.
//!
//! ```text
//! ROOT/hub.json                           the format of this folder
//! ROOT/lock                               held while a hub serves it
//! ROOT/kernels/OWNER/NAME/repo.json       who may see it, when it was made
//!                        /refs/heads/BRANCH   the id of a commit
//!                        /refs/tags/TAG
//!                        /commits/ID.json     parent, tree, message, date
//!                        /trees/ID.json       path -> file
//!                        /objects/ab/cdef..   contents, by SHA-256
//! ROOT/incoming/                          files that are being written
//! ROOT/trash/                             repositories on their way out
//! ```
//! Commits, trees and objects never change once written, and are written before the ref that leads to
//! them; a ref changes by one atomic rename. So a hub that is killed at any moment loads again in the
//! state before or after each write, never between.

mod history;
mod objects;
mod refs;
mod repo;

use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::Mutex;

use fs_err as fs;

use crate::atomic;
use crate::error::{Code, Error, Result};
use crate::hub::repo::RepoId;

pub(crate) use history::{Change, Tree};
pub(crate) use objects::StoredFile;
pub(crate) use refs::RefKind;
pub(crate) use repo::Repo;

/// The format that this build reads and writes.
const FORMAT: u32 = 1;

/// The folder of a hub, locked for this process.
#[derive(Debug)]
pub(crate) struct Store {
    root: PathBuf,
    /// Serializes changes of refs and of the set of repositories.
    writing: Mutex<()>,
    _lock: File,
}

#[derive(serde::Serialize, serde::Deserialize)]
struct Format {
    format: u32,
}

impl Store {
    /// Opens the hub in `root`, making it if `root` is empty or missing.
    ///
    /// # Errors
    /// `H0501` if `root` holds something else, `H0502` if another process serves it.
    pub(crate) fn open(root: &Path) -> Result<Self> {
        let unusable = |why: String| Error::new(Code::Root, format!("{} {why}", root.display()));
        fs::create_dir_all(root).map_err(|e| unusable(format!("cannot be made: {e}")))?;
        let root = fs::canonicalize(root).map_err(|e| unusable(format!("cannot be opened: {e}")))?;

        let marker = root.join("hub.json");
        if !marker.exists() {
            let mut entries = fs::read_dir(&root).map_err(|e| unusable(e.to_string()))?;
            if entries.next().is_some() {
                return Err(unusable("holds files, but not those of a hub".into()));
            }
            atomic::write(&marker, &to_json(&Format { format: FORMAT }))?;
        }
        let found: Format = read_json(&marker)?;
        if found.format != FORMAT {
            return Err(unusable(format!("has format {}, this kernels-cli knows {FORMAT}", found.format)));
        }

        let lock = root.join("lock");
        let file = File::options()
            .create(true)
            .truncate(false)
            .write(true)
            .open(&lock)
            .map_err(|e| Error::io(&lock, e))?;
        if file.try_lock().is_err() {
            return Err(Error::new(Code::RootInUse, format!("another hub is serving {}", root.display())));
        }
        let store = Self { root, writing: Mutex::new(()), _lock: file };
        store.clear_leftovers()?;
        Ok(store)
    }

    /// The repository `id`.
    ///
    /// # Errors
    /// `H0202` if there is none.
    pub(crate) fn repo(&self, id: &RepoId) -> Result<Repo<'_>> {
        let repo = Repo::at(self, id.clone());
        if repo.exists() { Ok(repo) } else { Err(missing_repo(id)) }
    }

    /// All repositories, sorted by id.
    pub(crate) fn repos(&self) -> Result<Vec<Repo<'_>>> {
        let mut repos = Vec::new();
        let top = self.root.join("kernels");
        for owner in folder_names(&top)? {
            for name in folder_names(&top.join(&owner))? {
                if let Ok(id) = RepoId::new(&owner, &name) {
                    repos.extend(self.repo(&id).ok());
                }
            }
        }
        repos.sort_by(|a, b| a.id().cmp(b.id()));
        Ok(repos)
    }

    /// Makes the repository `id` with an empty `main` branch.
    ///
    /// # Errors
    /// `H0507` if it exists.
    pub(crate) fn create(&self, id: &RepoId, private: bool, user: &str) -> Result<()> {
        let _writing = self.write_lock();
        let repo = Repo::at(self, id.clone());
        if repo.exists() {
            return Err(Error::new(Code::Exists, format!("the repository {id} exists")));
        }
        repo.initialize(private, user)
    }

    /// Removes the repository `id` with all its history.
    pub(crate) fn delete(&self, id: &RepoId) -> Result<()> {
        let _writing = self.write_lock();
        let repo = self.repo(id)?;
        let trash = self.root.join("trash");
        let grave = tempfile::tempdir_in(&trash).map_err(|e| Error::io(&trash, e))?;
        let to = grave.path().join("repo");
        fs::rename(repo.dir(), &to).map_err(|e| Error::io(repo.dir(), e))?;
        atomic::sync_folder(repo.dir().parent().unwrap_or(&self.root))
    }

    /// Gives the repository `from` the id `to`.
    pub(crate) fn rename(&self, from: &RepoId, to: &RepoId) -> Result<()> {
        let _writing = self.write_lock();
        let from = self.repo(from)?;
        let target = Repo::at(self, to.clone());
        if target.exists() {
            return Err(Error::new(Code::Exists, format!("the repository {to} exists")));
        }
        let folder = target.dir().parent().unwrap_or(&self.root);
        atomic::make_folder(folder)?;
        fs::rename(from.dir(), target.dir()).map_err(|e| Error::io(from.dir(), e))?;
        atomic::sync_folder(folder)
    }

    fn write_lock(&self) -> std::sync::MutexGuard<'_, ()> {
        // The guarded data are on disk and consistent at every step, so a panic elsewhere spoils nothing.
        self.writing.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
    }

    /// Writes a file of this hub, whole or not at all.
    fn write(&self, path: &Path, bytes: &[u8]) -> Result<()> {
        atomic::write_through(&self.root.join("incoming"), path, bytes)
    }

    /// Removes what an earlier process did not finish.
    fn clear_leftovers(&self) -> Result<()> {
        for name in ["trash", "incoming"] {
            let folder = self.root.join(name);
            if folder.exists() {
                fs::remove_dir_all(&folder).map_err(|e| Error::io(&folder, e))?;
            }
            atomic::make_folder(&folder)?;
        }
        Ok(())
    }
}

/// The refusal of a repository that does not exist, or that the caller may not know of.
pub(crate) fn missing_repo(id: &RepoId) -> Error {
    Error::new(Code::RepoNotFound, format!("there is no repository {id}"))
}

/// The names of the entries in `folder`; none if it does not exist.
fn folder_names(folder: &Path) -> Result<Vec<String>> {
    let entries = match fs::read_dir(folder) {
        Ok(entries) => entries,
        Err(e) if e.kind() == std::io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(e) => return Err(Error::io(folder, e)),
    };
    let mut names = Vec::new();
    for entry in entries {
        let entry = entry.map_err(|e| Error::io(folder, e))?;
        names.extend(entry.file_name().into_string().ok());
    }
    Ok(names)
}

fn to_json(value: &impl serde::Serialize) -> Vec<u8> {
    serde_json::to_vec_pretty(value)
        .expect("the hub's records have string keys and no other obstacles to JSON")
}

fn read_json<T: serde::de::DeserializeOwned>(path: &Path) -> Result<T> {
    let damaged = |why: String| Error::new(Code::Stored, format!("{}: {why}", path.display()));
    let bytes = fs::read(path).map_err(|e| damaged(e.to_string()))?;
    serde_json::from_slice(&bytes).map_err(|e| damaged(e.to_string()))
}
