//! Large files: content that arrives in a stream, in one piece or in parts, under an announced SHA-256.

use std::io::{Read, Write};

use sha2::{Digest, Sha256};
use tempfile::NamedTempFile;

use crate::error::{Code, Error, Result};
use crate::hub::oid::Oid;

use super::{Repo, Store};

/// How much of a content is copied at once.
pub(super) const BLOCK: usize = 1 << 20;

/// A content that is arriving; dropped unfinished, it leaves nothing.
#[derive(Debug)]
pub(crate) struct Incoming {
    file: NamedTempFile,
    hasher: Sha256,
    size: u64,
    expected: u64,
}

impl Store {
    /// Begins a content of `size` bytes.
    pub(crate) fn incoming(&self, size: u64) -> Result<Incoming> {
        Ok(Incoming { file: self.backend.scratch()?, hasher: Sha256::new(), size: 0, expected: size })
    }
}

impl Incoming {
    /// Takes the next bytes.
    ///
    /// # Errors
    /// `H0301` if they are more than announced.
    pub(crate) fn write(&mut self, bytes: &[u8]) -> Result<()> {
        self.size += bytes.len() as u64;
        if self.size > self.expected {
            let message =
                format!("the upload is longer than the {} bytes that were announced", self.expected);
            return Err(Error::new(Code::Size, message));
        }
        self.hasher.update(bytes);
        self.file.write_all(bytes).map_err(|e| Error::io(self.file.path(), e))
    }

    /// The SHA-256 of what came, its size, and where it lies.
    pub(super) fn finish(self) -> Result<(Oid, u64, NamedTempFile)> {
        if self.size != self.expected {
            let message = format!("the upload has {} bytes, {} were announced", self.size, self.expected);
            return Err(Error::new(Code::Size, message));
        }
        Ok((Oid::parse(&hex::encode(self.hasher.finalize()))?, self.size, self.file))
    }
}

impl Repo<'_> {
    /// Stores a whole content as the object `sha256`.
    ///
    /// # Errors
    /// `H0301` and `H0302` if it is not what was announced.
    pub(crate) fn keep(&self, sha256: &Oid, incoming: Incoming) -> Result<()> {
        let (found, size, file) = incoming.finish()?;
        if found != *sha256 {
            let message = format!("the upload has the SHA-256 {found}, {sha256} was announced");
            return Err(Error::new(Code::Content, message));
        }
        self.place_object(sha256, size, file)
    }

    /// Stores part `number` of the object `sha256` and returns the part's own SHA-256.
    pub(crate) fn keep_part(&self, sha256: &Oid, number: u64, incoming: Incoming) -> Result<Oid> {
        let (found, _, file) = incoming.finish()?;
        self.store.backend.put(&self.part_key(sha256, number), file)?;
        Ok(found)
    }

    /// Makes the object `sha256` of its parts, which must have these ids, in order.
    ///
    /// # Errors
    /// `H0506` if a part did not arrive; `H0301` and `H0302` if they do not add up to what was announced.
    pub(crate) fn join_parts(&self, sha256: &Oid, size: u64, parts: u64) -> Result<()> {
        if self.has_object(sha256, size)? {
            return Ok(());
        }
        let mut whole = self.store.incoming(size)?;
        let mut block = vec![0; BLOCK];
        for number in 1..=parts {
            let key = self.part_key(sha256, number);
            let mut part = self.store.backend.open(&key)?.ok_or_else(|| {
                Error::new(Code::BadRequest, format!("part {number} of {sha256} has not been uploaded"))
            })?;
            loop {
                match part.read(&mut block).map_err(|e| Error::new(Code::Stored, format!("{key}: {e}")))? {
                    0 => break,
                    read => whole.write(&block[..read])?,
                }
            }
        }
        self.keep(sha256, whole)?;
        for number in 1..=parts {
            // What stays behind is garbage.
            let _ = self.store.backend.remove_older(
                &self.part_key(sha256, number),
                std::time::SystemTime::now() + std::time::Duration::from_secs(1),
            );
        }
        Ok(())
    }

    fn part_key(&self, sha256: &Oid, number: u64) -> String {
        self.key(&format!("parts/{sha256}-{number}"))
    }
}
