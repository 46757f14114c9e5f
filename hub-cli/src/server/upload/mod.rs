//! The body of a commit: one JSON record a line, read and stored line by line.

mod body;
mod record;

use crate::error::{Code, Error};

use super::respond::{Answer, Refusal};
use super::store::{Change, Repo, StoredFile};

pub(super) use body::{Chunks, Lines};
pub use record::{CommitHeader, CommitRecord};
pub(super) use record::{large_id, publishable};

/// The most changes in one commit.
const MAX_CHANGES: usize = 20_000;

/// What the lines read so far ask for.
#[derive(Debug)]
pub(super) struct Upload {
    pub(super) header: Option<CommitHeader>,
    pub(super) changes: Vec<Change>,
    /// The largest file, in bytes.
    max_file: usize,
    /// How many bytes the owner may still store, if there is a quota.
    room: Option<u64>,
}

impl Upload {
    /// An upload of files of at most `max_file` bytes, `room` bytes of new content in all.
    pub(super) fn new(max_file: usize, room: Option<u64>) -> Self {
        Self { header: None, changes: Vec::new(), max_file, room }
    }

    /// Takes one more line; the content of a file goes to `repo`'s objects at once.
    pub(super) fn take(&mut self, line: &[u8], repo: &Repo<'_>) -> Answer<()> {
        if self.changes.len() == MAX_CHANGES {
            let message = format!("a commit holds at most {MAX_CHANGES} changes");
            return Err(Error::new(Code::TooLarge, message).into());
        }
        let change = match CommitRecord::parse(line)? {
            CommitRecord::Header(header) if self.header.is_none() => {
                self.header = Some(header);
                return Ok(());
            }
            _ if self.header.is_none() => {
                return Err(Refusal::bad_request("the first line of a commit is its header"));
            }
            CommitRecord::Header(_) => return Err(Refusal::bad_request("the commit has two headers")),
            CommitRecord::File { path, content } => {
                if content.len() > self.max_file {
                    let message = format!("{path} is larger than {} bytes", self.max_file);
                    return Err(Error::new(Code::TooLarge, message).into());
                }
                Change::Put(path, repo.put_object(&content, &mut self.room)?)
            }
            CommitRecord::Large { path, sha256, size } => {
                let stored = repo.object_size(&sha256)?;
                let size = size.or(stored).unwrap_or_default();
                if stored != Some(size) || !repo.has_object(&sha256, size)? {
                    return Err(Refusal::bad_request(format!(
                        "{path} has not been uploaded: there is no content {sha256} of {size} bytes"
                    )));
                }
                Change::Put(path, StoredFile::large(sha256, size))
            }
            CommitRecord::DeletedFile(path) => Change::DeleteFile(path),
            CommitRecord::DeletedFolder(path) => Change::DeleteFolder(path),
        };
        self.changes.push(change);
        Ok(())
    }
}
