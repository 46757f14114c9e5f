//! The body of a commit: one JSON record a line, read and stored line by line.

use std::future::poll_fn;
use std::pin::Pin;

use axum::body::{Body, Bytes, HttpBody};
use base64::Engine;
use serde::Deserialize;

use crate::error::{Code, Error};
use crate::hub::oid::{CommitId, Oid};
use crate::hub::path::RepoPath;

use super::respond::{Answer, Refusal};
use super::store::{Change, Repo, StoredFile};

/// The most changes in one commit.
const MAX_CHANGES: usize = 20_000;

/// The first line of a commit.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Header {
    pub(super) summary: String,
    #[serde(default)]
    pub(super) description: Option<String>,
    pub(super) parent_commit: Option<CommitId>,
}

#[derive(Deserialize)]
#[serde(tag = "key", content = "value", rename_all = "camelCase")]
enum Line {
    Header(Header),
    File(File),
    LfsFile(LargeFile),
    DeletedFile(Deleted),
    DeletedFolder(Deleted),
}

#[derive(Deserialize)]
struct File {
    path: String,
    content: String,
    #[serde(default)]
    encoding: Option<String>,
}

/// A file that was uploaded before, through LFS.
#[derive(Deserialize)]
struct LargeFile {
    path: String,
    oid: String,
    /// Clients leave it out when they copy a file.
    #[serde(default)]
    size: Option<u64>,
}

#[derive(Deserialize)]
struct Deleted {
    path: String,
}

/// What the lines read so far ask for.
#[derive(Debug)]
pub(super) struct Upload {
    pub(super) header: Option<Header>,
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
        let line = serde_json::from_slice(line)
            .map_err(|e| Refusal::bad_request(format!("a line of the commit is not valid: {e}")))?;
        if self.changes.len() == MAX_CHANGES {
            return Err(
                Error::new(Code::TooLarge, format!("a commit holds at most {MAX_CHANGES} changes")).into()
            );
        }
        match line {
            Line::Header(header) if self.header.is_none() => {
                if header.summary.trim().is_empty() {
                    return Err(Refusal::bad_request("the commit has no summary"));
                }
                self.header = Some(header);
            }
            _ if self.header.is_none() => {
                return Err(Refusal::bad_request("the first line of a commit is its header"));
            }
            Line::Header(_) => return Err(Refusal::bad_request("the commit has two headers")),
            Line::File(file) => {
                let path = publishable(&file.path)?;
                let content = decode(&file)?;
                if content.len() > self.max_file {
                    return Err(Error::new(
                        Code::TooLarge,
                        format!("{path} is larger than {} bytes", self.max_file),
                    )
                    .into());
                }
                self.changes.push(Change::Put(path, repo.put_object(&content, &mut self.room)?));
            }
            Line::LfsFile(file) => {
                let (path, sha256) = (publishable(&file.path)?, large_id(&file.oid)?);
                let stored = repo.object_size(&sha256)?;
                let size = file.size.or(stored).unwrap_or_default();
                if stored != Some(size) || !repo.has_object(&sha256, size)? {
                    return Err(Refusal::bad_request(format!(
                        "{path} has not been uploaded: there is no content {sha256} of {size} bytes"
                    )));
                }
                self.changes.push(Change::Put(path, StoredFile::large(sha256, size)));
            }
            Line::DeletedFile(d) => self.changes.push(Change::DeleteFile(RepoPath::parse(&d.path)?)),
            Line::DeletedFolder(d) => {
                self.changes.push(Change::DeleteFolder(RepoPath::parse(d.path.trim_end_matches('/'))?))
            }
        }
        Ok(())
    }
}

/// Checks the id of a large file: a SHA-256.
pub(super) fn large_id(text: &str) -> Answer<Oid> {
    match Oid::parse(text) {
        Ok(oid) if text.len() == 64 => Ok(oid),
        _ => Err(Refusal::bad_request(format!("{text:?} is not a SHA-256 in hexadecimal digits"))),
    }
}

/// Checks a path that somebody wants to publish.
pub(super) fn publishable(path: &str) -> Answer<RepoPath> {
    let path = RepoPath::parse(path)?;
    if path.is_bytecode() {
        return Err(Error::new(
            Code::File,
            format!("{path} is Python bytecode, which this hub does not take"),
        )
        .into());
    }
    Ok(path)
}

fn decode(file: &File) -> Answer<Vec<u8>> {
    match file.encoding.as_deref() {
        Some("base64") => base64::engine::general_purpose::STANDARD
            .decode(&file.content)
            .map_err(|e| Refusal::bad_request(format!("the content of {:?} is not base64: {e}", file.path))),
        None | Some("utf-8") => Ok(file.content.clone().into_bytes()),
        Some(other) => {
            Err(Refusal::bad_request(format!("the encoding {other:?} of {:?} is not known", file.path)))
        }
    }
}

/// A body, a piece at a time.
pub(super) struct Chunks {
    body: Body,
    received: u64,
    limit: u64,
}

impl Chunks {
    /// The pieces of `body`, which may have `limit` bytes.
    pub(super) fn new(body: Body, limit: u64) -> Self {
        Self { body, received: 0, limit }
    }

    /// The next piece.
    pub(super) async fn next(&mut self) -> Answer<Option<Bytes>> {
        loop {
            match poll_fn(|cx| Pin::new(&mut self.body).poll_frame(cx)).await {
                None => return Ok(None),
                Some(Err(e)) => return Err(Refusal::bad_request(format!("the body ended early: {e}"))),
                Some(Ok(frame)) => {
                    let Ok(chunk) = frame.into_data() else { continue };
                    self.received += chunk.len() as u64;
                    if self.received > self.limit {
                        let message = format!("the upload is larger than {} bytes", self.limit);
                        return Err(Error::new(Code::TooLarge, message).into());
                    }
                    return Ok(Some(chunk));
                }
            }
        }
    }

    /// The next pieces together, `size` bytes or a little more; fewer only at the end.
    pub(super) async fn gather(&mut self, size: usize) -> Answer<Vec<u8>> {
        let mut gathered = Vec::new();
        while gathered.len() < size {
            match self.next().await? {
                Some(chunk) => gathered.extend_from_slice(&chunk),
                None => break,
            }
        }
        Ok(gathered)
    }
}

/// Splits a body into lines, holding at most one of them in memory.
pub(super) struct Lines {
    chunks: Chunks,
    pending: Vec<u8>,
    ended: bool,
    max_line: usize,
}

impl Lines {
    /// Lines of `body`, each of at most `max_line` bytes, `max_total` in all.
    pub(super) fn new(body: Body, max_line: usize, max_total: u64) -> Self {
        Self { chunks: Chunks::new(body, max_total), pending: Vec::new(), ended: false, max_line }
    }

    /// The next line that is not blank.
    pub(super) async fn next(&mut self) -> Answer<Option<Vec<u8>>> {
        let mut searched = 0;
        loop {
            if let Some(at) = self.pending[searched..].iter().position(|b| *b == b'\n') {
                let rest = self.pending.split_off(searched + at + 1);
                let line = std::mem::replace(&mut self.pending, rest);
                searched = 0;
                if !line.trim_ascii().is_empty() {
                    return Ok(Some(line));
                }
                continue;
            }
            if self.ended {
                let line = std::mem::take(&mut self.pending);
                return Ok((!line.trim_ascii().is_empty()).then_some(line));
            }
            searched = self.pending.len();
            match self.chunks.next().await? {
                Some(chunk) => self.pending.extend_from_slice(&chunk),
                None => self.ended = true,
            }
            if self.pending.len() > self.max_line {
                let message = format!("a line of the commit is longer than {} bytes", self.max_line);
                return Err(Error::new(Code::TooLarge, message).into());
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(body: &'static str, max_line: usize, max_total: u64) -> Result<Vec<String>, Refusal> {
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        runtime.block_on(async {
            let mut lines = Lines::new(Body::from(body), max_line, max_total);
            let mut all = Vec::new();
            while let Some(line) = lines.next().await? {
                all.push(String::from_utf8(line).unwrap().trim().to_owned());
            }
            Ok(all)
        })
    }

    #[test]
    fn bodies_are_cut_at_line_ends_within_their_limits() {
        assert_eq!(lines("a\n\n  \nbc\r\nd", 100, 100).unwrap(), ["a", "bc", "d"]);
        assert_eq!(lines("", 100, 100).unwrap(), [""; 0]);
        assert!(lines("aaaa\nb", 3, 100).is_err());
        assert!(lines("a\nb\nc\n", 100, 5).is_err());
    }
}
