//! A copy of a hub that is being served: another folder that can be served in its place.

use std::io::Write;
use std::path::Path;

use crate::error::{Code, Error, Result};

use super::{Repo, Store, name_key, to_json};

/// Files beside the records, for the operator alone.
const PRIVATE: [&str; 2] = ["accounts.json", "link-key"];

/// What a backup wrote.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize)]
pub(crate) struct Copied {
    pub(crate) repositories: usize,
    /// Records that were not in the copy yet.
    pub(crate) records: usize,
    pub(crate) bytes: u64,
}

impl Store {
    /// Brings the hub in the folder `to`, made if missing, to this one's state.
    ///
    /// The refs of a repository are read first and written last, after everything that they lead to, so
    /// the copy is whole even while this hub is written. Immutable records are copied once.
    ///
    /// # Errors
    /// `H0501` and `H0502` if `to` holds something else or is being served.
    pub(crate) fn back_up(&self, to: &Path) -> Result<Copied> {
        let copy = Store::open(to)?;
        let mut copied = Copied::default();
        let mut kept = Vec::new();
        for repo in self.repos()? {
            self.copy_repo(&repo, &copy, &mut copied)?;
            kept.push(name_key(repo.id()));
            copied.repositories += 1;
        }
        for repo in copy.repos()? {
            if !kept.contains(&name_key(repo.id())) {
                copy.delete(repo.id())?;
            }
        }
        for name in PRIVATE {
            let Some(bytes) = self.private(name)? else { continue };
            copy.swap_private(name, copy.private(name)?.as_deref(), &bytes)?;
        }
        Ok(copied)
    }

    fn copy_repo(&self, repo: &Repo<'_>, copy: &Store, copied: &mut Copied) -> Result<()> {
        let target = Repo { store: copy, id: repo.id.clone(), info: repo.info.clone() };
        // A pull request is recorded after its ref, so these have theirs among the heads.
        let pulls = repo.pulls()?;
        let heads = repo.heads()?;
        for key in repo.reachable(heads.iter().map(|(_, head)| head.clone()))? {
            let size = self.backend.size(&key)?;
            if size.is_some() && copy.backend.size(&key)? == size {
                continue;
            }
            copied.bytes += self.copy_record(&key, copy)?;
            copied.records += 1;
        }
        for (name, old) in target.heads()? {
            if !heads.iter().any(|(kept, _)| *kept == name) {
                target.swap_ref(&name, Some(&old), None)?;
            }
        }
        for (name, head) in &heads {
            target.swap_ref(name, target.get_ref(name)?.as_ref(), Some(head))?;
        }
        for pull in &pulls {
            copy.write_json(&target.pull_key(pull.number), pull)?;
        }
        let name = name_key(repo.id());
        copy.backend.swap(&name, copy.backend.read(&name)?.as_deref(), Some(&to_json(repo.info())))?;
        Ok(())
    }

    fn copy_record(&self, key: &str, copy: &Store) -> Result<u64> {
        let mut source =
            self.backend.open(key)?.ok_or_else(|| Error::new(Code::Stored, format!("{key} is missing")))?;
        let mut file = copy.backend.scratch()?;
        let bytes = std::io::copy(&mut source, &mut file).map_err(|e| Error::io(file.path(), e))?;
        file.flush().map_err(|e| Error::io(file.path(), e))?;
        copy.backend.put(key, file)?;
        Ok(bytes)
    }
}
