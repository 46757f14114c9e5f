//! What the embedded hub keeps: one folder, or an object store; no database.
//!
//! ```text
//! ROOT/hub.json                       the format of this folder, and the object store if there is one
//! ROOT/lock                           held while a hub serves it
//! ROOT/locks/N                        held while a record is compared and swapped
//! ROOT/accounts.json                  users, organisations and hashed tokens, for the operator alone
//! ROOT/link-key                       what upload links are signed with, likewise
//! ROOT/names/OWNER/NAME.json          which repository has this name, who may see it, when it was made
//! ROOT/repos/ID/refs/{heads,tags,pr}/NAME    the id of a commit
//!              /pulls/N.json          a pull request
//!              /commits/ID.json       parent, tree, message, date
//!              /trees/ID.json         path -> file
//!              /objects/ab/cdef..     contents, by SHA-256
//!              /parts/..              pieces of a large file that is being uploaded
//! ROOT/incoming/                      files that are being written
//! ```
//! With an object store all of it is there, under the same keys, except `hub.json`, the locks and `incoming`.
//!
//! Commits, trees and objects never change once written, and are written before the ref that leads to
//! them; a ref changes by one atomic compare-and-swap. So a hub that is killed at any moment loads again
//! in the state before or after each write, never between. What no ref leads to is garbage, for
//! [`collect`](Store::collect).

mod backend;
mod backup;
mod cloud;
mod folder;
mod fsck;
mod gc;
mod history;
mod import;
mod large;
mod objects;
mod pulls;
mod refs;
mod repo;
mod trees;

use std::collections::HashMap;
use std::fs::File;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use fs_err as fs;

use crate::atomic;
use crate::error::{Code, Error, Result};
use crate::hub::oid::Oid;
use crate::hub::repo::RepoId;

use backend::Backend;
use cloud::Cloud;
use folder::Folder;
use trees::TreeCache;

pub(crate) use history::{Change, Commit, NewCommit, Tree};
pub(crate) use large::Incoming;
pub(crate) use objects::StoredFile;
pub(crate) use pulls::{Pull, PullStatus};
pub(crate) use refs::{RefKind, RefName};
pub(crate) use repo::{Repo, RepoInfo};

/// The format that this build reads and writes.
const FORMAT: u32 = 2;

/// The folder of a hub.
#[derive(Debug)]
pub(crate) struct Store {
    root: PathBuf,
    /// The object store, if that is where the records are.
    url: Option<String>,
    backend: Box<dyn Backend>,
    trees: TreeCache,
    /// The bytes of contents in each repository, and when they were counted.
    usage: Mutex<HashMap<Oid, (u64, Instant)>>,
    /// Held while this process serves the folder.
    _lock: Option<File>,
}

#[derive(serde::Serialize, serde::Deserialize)]
struct Format {
    format: u32,
    /// The URL of an object store.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    store: Option<String>,
}

impl Store {
    /// Opens the hub in `root` to serve it, making it if `root` is empty or missing.
    ///
    /// # Errors
    /// `H0501` if `root` holds something else, `H0502` if another process serves it.
    pub(crate) fn open(root: &Path) -> Result<Self> {
        Self::open_in(root, None)
    }

    /// The same with everything but this server's own files in the object store `url`.
    ///
    /// # Errors
    /// Also `H0501` if `url` is no object store, or not the one that `root` was made for.
    pub(crate) fn open_in(root: &Path, url: Option<&str>) -> Result<Self> {
        let unusable = |why: String| Error::new(Code::Root, format!("{} {why}", root.display()));
        fs::create_dir_all(root).map_err(|e| unusable(format!("cannot be made: {e}")))?;
        if !root.join("hub.json").exists() {
            let mut entries = fs::read_dir(root).map_err(|e| unusable(e.to_string()))?;
            if entries.next().is_some() {
                return Err(unusable("holds files, but not those of a hub".into()));
            }
            let format = Format { format: FORMAT, store: url.map(str::to_owned) };
            atomic::write(&root.join("hub.json"), &to_json(&format))?;
        }
        let mut store = Self::attach(root)?;
        if url.is_some() && url != store.url.as_deref() {
            return Err(unusable(format!("was not made for the object store {}", url.unwrap_or_default())));
        }
        let path = store.root.join("lock");
        let lock = File::options()
            .create(true)
            .truncate(false)
            .write(true)
            .open(&path)
            .map_err(|e| Error::io(&path, e))?;
        if lock.try_lock().is_err() {
            return Err(Error::new(Code::RootInUse, format!("another hub is serving {}", root.display())));
        }
        store._lock = Some(lock);
        store.clear_incoming()?;
        Ok(store)
    }

    /// Opens the hub in `root` beside the process that may be serving it.
    ///
    /// # Errors
    /// `H0501` if `root` holds no hub.
    pub(crate) fn attach(root: &Path) -> Result<Self> {
        let unusable = |why: String| Error::new(Code::Root, format!("{} {why}", root.display()));
        let root = fs::canonicalize(root).map_err(|e| unusable(format!("cannot be opened: {e}")))?;
        let marker = fs::read(root.join("hub.json")).map_err(|_| unusable("holds no hub".into()))?;
        let found: Format = from_json("hub.json", &marker)?;
        if found.format != FORMAT {
            return Err(unusable(format!("has format {}, this kernels-cli knows {FORMAT}", found.format)));
        }
        atomic::make_folder(&root.join("incoming"))?;
        let backend: Box<dyn Backend> = match &found.store {
            Some(url) => Box::new(Cloud::open(url, &root)?),
            None => Box::new(Folder::new(root.clone())?),
        };
        let (trees, usage) = Default::default();
        Ok(Self { root, url: found.store, backend, trees, usage, _lock: None })
    }

    /// Opens the hub in `root` beside the process that may be serving it, making it if there is none.
    ///
    /// # Errors
    /// `H0501` if `root` holds something else.
    pub(crate) fn open_or_attach(root: &Path) -> Result<Self> {
        match Self::open(root) {
            Err(e) if e.code() == Code::RootInUse => Self::attach(root),
            opened => opened,
        }
    }

    /// Whether the records are files of this machine.
    pub(crate) fn is_local(&self) -> bool {
        self.url.is_none()
    }

    /// A record for the operator alone, such as the accounts.
    pub(crate) fn private(&self, name: &str) -> Result<Option<Vec<u8>>> {
        self.backend.read(name)
    }

    /// Replaces a record for the operator if it is still `expected`; says whether it was.
    pub(crate) fn swap_private(&self, name: &str, expected: Option<&[u8]>, new: &[u8]) -> Result<bool> {
        self.backend.swap(name, expected, Some(new))
    }

    /// Something that differs when a record for the operator has changed.
    pub(crate) fn private_stamp(&self, name: &str) -> Result<Option<String>> {
        self.backend.stamp(name)
    }

    /// The repository `id`.
    ///
    /// # Errors
    /// `H0202` if there is none.
    pub(crate) fn repo(&self, id: &RepoId) -> Result<Repo<'_>> {
        let key = name_key(id);
        let bytes = self.backend.read(&key)?.ok_or_else(|| missing_repo(id))?;
        Ok(Repo { store: self, id: id.clone(), info: from_json(&key, &bytes)? })
    }

    /// All repositories, sorted by id.
    pub(crate) fn repos(&self) -> Result<Vec<Repo<'_>>> {
        let mut repos = Vec::new();
        for owner in self.backend.names("names")? {
            repos.extend(self.repos_of(&owner)?);
        }
        Ok(repos)
    }

    /// The repositories of one owner, sorted by name.
    pub(crate) fn repos_of(&self, owner: &str) -> Result<Vec<Repo<'_>>> {
        if RepoId::new(owner, "x").is_err() {
            return Ok(Vec::new());
        }
        let names = self.backend.names(&format!("names/{owner}"))?;
        let ids = names.iter().filter_map(|name| RepoId::new(owner, name.strip_suffix(".json")?).ok());
        let mut repos = Vec::new();
        for id in ids {
            match self.repo(&id) {
                Ok(repo) => repos.push(repo),
                // Deleted since it was listed.
                Err(e) if e.code() == Code::RepoNotFound => {}
                Err(e) => return Err(e),
            }
        }
        repos.sort_by(|a, b| a.id.cmp(&b.id));
        Ok(repos)
    }

    /// Makes the repository `id` with an empty `main` branch.
    ///
    /// # Errors
    /// `H0507` if it exists.
    pub(crate) fn create(&self, id: &RepoId, private: bool, user: &str) -> Result<()> {
        let exists = || Error::new(Code::Exists, format!("the repository {id} exists"));
        if self.repo(id).is_ok() {
            return Err(exists());
        }
        let mut random = [0; 20];
        getrandom::fill(&mut random).map_err(|e| Error::io(&self.root, e.into()))?;
        let info = RepoInfo { folder: Oid::parse(&hex::encode(random))?, private, created: repo::now() };
        let repo = Repo { store: self, id: id.clone(), info };
        repo.initialize(user)?;
        // The name, last, is what makes the repository exist.
        if self.backend.swap(&name_key(id), None, Some(&to_json(&repo.info)))? {
            Ok(())
        } else {
            Err(exists())
        }
    }

    /// Takes the repository's name away; its contents are garbage from then on.
    ///
    /// # Errors
    /// `H0202` if there is no such repository.
    pub(crate) fn delete(&self, id: &RepoId) -> Result<()> {
        let repo = self.repo(id)?;
        let removed = self.backend.swap(&name_key(id), Some(&to_json(&repo.info)), None)?;
        if removed { Ok(()) } else { Err(missing_repo(id)) }
    }

    /// Gives the repository `from` the id `to`.
    ///
    /// # Errors
    /// `H0202` if there is no `from`, `H0507` if there is another `to`.
    pub(crate) fn rename(&self, from: &RepoId, to: &RepoId) -> Result<()> {
        let repo = self.repo(from)?;
        let record = to_json(&repo.info);
        // A rename that was interrupted left the repository with both names: repeating it ends it.
        let done = self.repo(to).is_ok_and(|other| other.info.folder == repo.info.folder && from != to);
        if !done && !self.backend.swap(&name_key(to), None, Some(&record))? {
            return Err(Error::new(Code::Exists, format!("the repository {to} exists")));
        }
        self.backend.swap(&name_key(from), Some(&record), None)?;
        Ok(())
    }

    fn write_json(&self, key: &str, value: &impl serde::Serialize) -> Result<()> {
        let mut file = self.backend.scratch()?;
        file.write_all(&to_json(value)).map_err(|e| Error::io(file.path(), e))?;
        self.backend.put(key, file)
    }

    fn read_json<T: serde::de::DeserializeOwned>(&self, key: &str) -> Result<T> {
        let bytes = self.backend.read(key)?;
        from_json(key, &bytes.ok_or_else(|| Error::new(Code::Stored, format!("{key} is missing")))?)
    }

    fn lock_usage(&self) -> MutexGuard<'_, HashMap<Oid, (u64, Instant)>> {
        self.usage.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Removes what an earlier process did not finish.
    fn clear_incoming(&self) -> Result<()> {
        let folder = self.root.join("incoming");
        for entry in fs::read_dir(&folder).map_err(|e| Error::io(&folder, e))? {
            let path = entry.map_err(|e| Error::io(&folder, e))?.path();
            fs::remove_file(&path).map_err(|e| Error::io(&path, e))?;
        }
        Ok(())
    }
}

/// The refusal of a repository that does not exist, or that the caller may not know of.
pub(crate) fn missing_repo(id: &RepoId) -> Error {
    Error::new(Code::RepoNotFound, format!("there is no repository {id}"))
}

fn name_key(id: &RepoId) -> String {
    format!("names/{}/{}.json", id.owner(), id.name())
}

fn to_json(value: &impl serde::Serialize) -> Vec<u8> {
    serde_json::to_vec_pretty(value)
        .expect("the hub's records have string keys and no other obstacles to JSON")
}

fn from_json<T: serde::de::DeserializeOwned>(key: &str, bytes: &[u8]) -> Result<T> {
    serde_json::from_slice(bytes).map_err(|e| Error::new(Code::Stored, format!("{key}: {e}")))
}
