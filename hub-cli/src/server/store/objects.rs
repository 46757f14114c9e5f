//! The contents of files, each stored once in its repository under its SHA-256.

use std::fs::File;
use std::io::{Read, Write};

use sha2::{Digest, Sha256};
use tempfile::NamedTempFile;

use crate::error::{Code, Error, Result};
use crate::hub::oid::Oid;

use super::Repo;

/// A file of a tree.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub(crate) struct StoredFile {
    /// The git id that the protocol shows: that of the content, or of its pointer for a large file.
    pub(crate) oid: Oid,
    /// The key of the content.
    pub(crate) sha256: Oid,
    /// In bytes.
    pub(crate) size: u64,
    /// Uploaded through LFS, and shown as such.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(crate) lfs: bool,
}

impl StoredFile {
    /// How a file that was uploaded through LFS stands in a tree.
    pub(crate) fn large(sha256: Oid, size: u64) -> Self {
        Self { oid: Oid::of_blob(pointer(&sha256, size).as_bytes()), sha256, size, lfs: true }
    }

    /// The length of the pointer that git would store.
    pub(crate) fn pointer_size(&self) -> usize {
        pointer(&self.sha256, self.size).len()
    }

    /// What identifies the content in an ETag: LFS files go by their SHA-256.
    pub(crate) fn etag(&self) -> &Oid {
        if self.lfs { &self.sha256 } else { &self.oid }
    }
}

/// Git LFS's pointer file, version 1.
fn pointer(sha256: &Oid, size: u64) -> String {
    format!("version https://git-lfs.github.com/spec/v1\noid sha256:{sha256}\nsize {size}\n")
}

impl Repo<'_> {
    /// Stores `content` and returns how to refer to it. What is new counts against `room`, in bytes.
    ///
    /// # Errors
    /// `H0509` if there is not enough room.
    pub(crate) fn put_object(&self, content: &[u8], room: &mut Option<u64>) -> Result<StoredFile> {
        let sha256 = Oid::parse(&hex::encode(Sha256::digest(content)))?;
        let size = content.len() as u64;
        if !self.has_object(&sha256, size)? {
            if let Some(room) = room {
                *room = room.checked_sub(size).ok_or_else(|| self.no_room(size))?;
            }
            let mut file = self.store.backend.scratch()?;
            file.write_all(content).map_err(|e| Error::io(file.path(), e))?;
            self.place_object(&sha256, size, file)?;
        }
        Ok(StoredFile { oid: Oid::of_blob(content), sha256, size, lfs: false })
    }

    /// The refusal of `size` more bytes.
    pub(crate) fn no_room(&self, size: u64) -> Error {
        let owner = self.id().owner();
        Error::new(Code::Quota, format!("{size} more bytes are more than the quota of {owner} allows"))
    }

    /// Stores a file whose SHA-256 and size the caller has computed.
    pub(crate) fn place_object(&self, sha256: &Oid, size: u64, file: NamedTempFile) -> Result<()> {
        self.store.backend.put(&self.object_key(sha256), file)?;
        self.charge(size);
        Ok(())
    }

    /// Whether this content is here; if so it is safe from garbage collection for a while.
    pub(crate) fn has_object(&self, sha256: &Oid, size: u64) -> Result<bool> {
        let key = self.object_key(sha256);
        // A record of the right name and length was stored whole: it is this content.
        Ok(self.store.backend.touch(&key)? && self.store.backend.size(&key)? == Some(size))
    }

    /// The size of a content that is here.
    pub(crate) fn object_size(&self, sha256: &Oid) -> Result<Option<u64>> {
        self.store.backend.size(&self.object_key(sha256))
    }

    /// The content of `file`.
    ///
    /// # Errors
    /// `H0505` if it is missing or has another length.
    pub(crate) fn open_object(&self, file: &StoredFile) -> Result<File> {
        let damaged = |why: &str| Error::new(Code::Stored, format!("the content {} {why}", file.sha256));
        let opened =
            self.store.backend.open(&self.object_key(&file.sha256))?.ok_or_else(|| damaged("is missing"))?;
        if opened.metadata().map_err(|e| damaged(&e.to_string()))?.len() != file.size {
            return Err(damaged(&format!("is not {} bytes long", file.size)));
        }
        Ok(opened)
    }

    /// The content of a small `file`, such as an index.
    pub(crate) fn read_object(&self, file: &StoredFile) -> Result<Vec<u8>> {
        let mut content = Vec::new();
        let damaged =
            |e: std::io::Error| Error::new(Code::Stored, format!("the content {}: {e}", file.sha256));
        self.open_object(file)?.read_to_end(&mut content).map_err(damaged)?;
        Ok(content)
    }

    pub(super) fn object_key(&self, sha256: &Oid) -> String {
        let (head, tail) = sha256.as_str().split_at(2);
        self.key(&format!("objects/{head}/{tail}"))
    }
}
