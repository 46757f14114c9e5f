//! The contents of files, each stored once under its SHA-256.

use std::path::PathBuf;

use sha2::{Digest, Sha256};

use crate::atomic;
use crate::error::Result;
use crate::hub::oid::Oid;

use super::Repo;

/// A file of a tree: the id that the protocol shows, the key of the content, and its size in bytes.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub(crate) struct StoredFile {
    pub(crate) oid: Oid,
    pub(crate) sha256: Oid,
    pub(crate) size: u64,
}

impl Repo<'_> {
    /// Stores `content` and returns how to refer to it.
    pub(crate) fn put_object(&self, content: &[u8]) -> Result<StoredFile> {
        let sha256 = Oid::parse(&hex::encode(Sha256::digest(content)))?;
        let file = StoredFile { oid: Oid::of_blob(content), sha256, size: content.len() as u64 };
        let path = self.object_path(&file);
        // A file of the right name and length was persisted whole: it is this content.
        if !path.metadata().is_ok_and(|m| m.len() == file.size) {
            atomic::make_folder(path.parent().unwrap_or(self.dir()))?;
            self.store.write(&path, content)?;
        }
        Ok(file)
    }

    /// Where the content of `file` lies.
    pub(crate) fn object_path(&self, file: &StoredFile) -> PathBuf {
        let (head, tail) = file.sha256.as_str().split_at(2);
        self.dir().join("objects").join(head).join(tail)
    }
}
