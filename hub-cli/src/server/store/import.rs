//! Commits of other hubs under the ids that they have there, so that what was pinned or locked there is found here.

use std::io::Read;
use std::path::Path;

use fs_err as fs;

use crate::error::{Code, Error, Result};
use crate::hub::oid::{CommitId, Oid};

use super::history::Commit;
use super::large::BLOCK;
use super::{Incoming, RefName, Repo, StoredFile, Tree, repo};

impl Repo<'_> {
    /// Stores the content of `path`, which a hub lists as `oid`.
    ///
    /// # Errors
    /// `H0302` if it is another content.
    pub(crate) fn import_file(&self, oid: &Oid, path: &Path) -> Result<StoredFile> {
        let fail = |e| Error::io(path, e);
        let mut file = fs::File::open(path).map_err(fail)?;
        let size = file.metadata().map_err(fail)?.len();
        let (mut incoming, mut hasher) = (self.store.incoming(size)?, oid.hasher(size));
        let mut block = vec![0; BLOCK];
        loop {
            let read = file.read(&mut block).map_err(fail)?;
            if read == 0 {
                break;
            }
            hasher.update(&block[..read]);
            incoming.write(&block[..read])?;
        }
        if hasher.finish() != *oid {
            return Err(Error::new(Code::Content, format!("{} is not the content {oid}", path.display())));
        }
        let sha256 = self.keep_any(incoming)?;
        // The hub that lists a SHA-256 keeps the file in LFS.
        let lfs = sha256 == *oid;
        Ok(if lfs {
            StoredFile::large(sha256, size)
        } else {
            StoredFile { oid: oid.clone(), sha256, size, lfs }
        })
    }

    /// Stores a content that has come whole, and returns its SHA-256.
    fn keep_any(&self, incoming: Incoming) -> Result<Oid> {
        let (sha256, size, file) = incoming.finish()?;
        if !self.has_object(&sha256, size)? {
            self.place_object(&sha256, size, file)?;
        }
        Ok(sha256)
    }

    /// Makes `name` lead to the commit `id` of the hub `origin`, which has the files of `tree`; its past stays there.
    /// Says whether that is new.
    ///
    /// # Errors
    /// `H0510` if commits that were made here would be hidden, `H0302` if the commit is here with other files,
    /// `H0209` if the ref moves meanwhile.
    pub(crate) fn import(&self, name: &RefName, id: &CommitId, tree: &Tree, origin: &str) -> Result<bool> {
        let head = self.get_ref(name)?;
        if head.as_ref() == Some(id) {
            return Ok(false);
        }
        if let Some(head) = &head
            && self.commit(head)?.origin.is_none()
        {
            let message = format!("the {name} of {} leads to {head}, which was made on this hub", self.id());
            return Err(Error::new(Code::Conflict, message)
                .help("what is published here is not imported over: delete it, or import to another hub"));
        }
        if self.has_commit(id)? {
            if self.commit(id)?.tree != tree.id() {
                let message = format!("{id} of {} has other files here than on {origin}", self.id());
                return Err(Error::new(Code::Content, message));
            }
        } else {
            let commit = Commit {
                id: id.clone(),
                tree: tree.id(),
                parent: None,
                title: format!("{} of {}", name.name(), self.id()),
                description: format!("Imported from {origin}"),
                author: self.id().owner().to_owned(),
                date: repo::now(),
                origin: Some(origin.to_owned()),
            };
            self.store.write_json(&self.tree_key(&commit.tree), tree)?;
            self.store.write_json(&self.commit_key(id), &commit)?;
        }
        if self.swap_ref(name, head.as_ref(), Some(id))? {
            return Ok(true);
        }
        Err(Error::new(Code::Moved, format!("the {name} of {} was changed at the same time", self.id())))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::hub::path::RepoPath;
    use crate::server::store::{RefKind, Store};

    #[test]
    fn one_id_never_stands_for_two_states() {
        let folder = tempfile::tempdir().unwrap();
        let store = Store::open(&folder.path().join("hub")).unwrap();
        let id = "acme/toy-kernel".parse().unwrap();
        store.create(&id, false, "acme").unwrap();
        let repo = store.repo(&id).unwrap();
        let commit: CommitId = "0123456789abcdef0123456789abcdef01234567".parse().unwrap();
        let tree_of = |content: &str| {
            let path = folder.path().join("content");
            fs::write(&path, content).unwrap();
            let file = repo.import_file(&Oid::of_blob(content.as_bytes()), &path).unwrap();
            Tree { files: [(RepoPath::parse("a").unwrap(), file)].into() }
        };
        let name = |kind, name| RefName::new(kind, name).unwrap();
        let v1 = name(RefKind::Branch, "v1");
        assert!(repo.import(&v1, &commit, &tree_of("one"), "https://hub").unwrap());
        assert!(!repo.import(&v1, &commit, &tree_of("one"), "https://hub").unwrap());
        let tag = name(RefKind::Tag, "t");
        let other = repo.import(&tag, &commit, &tree_of("two"), "https://hub").unwrap_err();
        assert_eq!(other.code(), Code::Content);
        let main = name(RefKind::Branch, "main");
        assert_eq!(
            repo.import(&main, &commit, &tree_of("one"), "https://hub").unwrap_err().code(),
            Code::Conflict
        );
        fs::write(folder.path().join("content"), "three").unwrap();
        let wrong = repo.import_file(&Oid::of_blob(b"four"), &folder.path().join("content")).unwrap_err();
        assert_eq!(wrong.code(), Code::Content);
        assert_eq!(store.check(true).unwrap().damages, [""; 0]);
    }
}
