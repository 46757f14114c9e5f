//! Where a hub's records lie: a map from keys such as `repos/ID/refs/heads/v1` to bytes.
//!
//! Everything except refs, repository records and pull requests is written once and never changed, so
//! one conditional operation, [`Backend::swap`], is all that concurrent writers need.

use std::fs::File;
use std::time::SystemTime;

use tempfile::NamedTempFile;

use crate::error::Result;

/// One record of a listing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Entry {
    pub(crate) key: String,
    /// In bytes.
    pub(crate) size: u64,
    pub(crate) modified: SystemTime,
}

/// The storage under a hub. Keys are made of checked names joined by `/`; those without a `/` are for the
/// operator alone.
///
/// A write has reached stable storage when the call returns, and a reader sees all of it or nothing.
pub(crate) trait Backend: std::fmt::Debug + Send + Sync {
    /// The bytes under `key`.
    fn read(&self, key: &str) -> Result<Option<Vec<u8>>>;

    /// The record under `key` as a local file, to be read from any position.
    fn open(&self, key: &str) -> Result<Option<File>>;

    /// Something that differs when the record under `key` has changed, cheap to ask for often.
    fn stamp(&self, key: &str) -> Result<Option<String>>;

    /// How many bytes are under `key`.
    fn size(&self, key: &str) -> Result<Option<u64>>;

    /// Stores a finished temporary file, made by [`Backend::scratch`], under `key`.
    fn put(&self, key: &str, file: NamedTempFile) -> Result<()>;

    /// Replaces what is under `key` if that is exactly `expected` (`None`: nothing); `new` of `None`
    /// removes it. Says whether it did.
    fn swap(&self, key: &str, expected: Option<&[u8]>, new: Option<&[u8]>) -> Result<bool>;

    /// The last names of the keys `folder/NAME` and `folder/NAME/..`, each once, in order.
    fn names(&self, folder: &str) -> Result<Vec<String>>;

    /// Every record below `folder`.
    fn walk(&self, folder: &str) -> Result<Vec<Entry>>;

    /// Makes the record under `key` count as new, so that [`Backend::remove_older`] spares it. Says
    /// whether there is one.
    fn touch(&self, key: &str) -> Result<bool>;

    /// Removes the record under `key` if it was neither written nor touched since `cutoff`.
    fn remove_older(&self, key: &str, cutoff: SystemTime) -> Result<bool>;

    /// A temporary file on this machine for content that is still arriving.
    fn scratch(&self) -> Result<NamedTempFile>;
}
