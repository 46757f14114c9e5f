//! The body of a commit: one JSON record a line, read and stored line by line.

use std::future::poll_fn;
use std::pin::Pin;

use axum::body::{Body, Bytes, HttpBody};
use base64::Engine;
use serde::Deserialize;

use crate::error::{Code, Error};
use crate::hub::oid::CommitId;
use crate::hub::path::RepoPath;

use super::respond::{Answer, Refusal};
use super::store::{Change, Repo};

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
    LfsFile(serde::de::IgnoredAny),
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

#[derive(Deserialize)]
struct Deleted {
    path: String,
}

/// What the lines read so far ask for.
#[derive(Debug, Default)]
pub(super) struct Upload {
    pub(super) header: Option<Header>,
    pub(super) changes: Vec<Change>,
}

impl Upload {
    /// Takes one more line; the content of a file goes to `repo`'s objects at once.
    pub(super) fn take(&mut self, line: &[u8], repo: &Repo<'_>, max_file: usize) -> Answer<()> {
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
                if content.len() > max_file {
                    return Err(Error::new(
                        Code::TooLarge,
                        format!("{path} is larger than {max_file} bytes"),
                    )
                    .into());
                }
                self.changes.push(Change::Put(path, repo.put_object(&content)?));
            }
            Line::LfsFile(_) => {
                return Err(Refusal::unsupported("this hub takes files inline, not through LFS"));
            }
            Line::DeletedFile(d) => self.changes.push(Change::DeleteFile(RepoPath::parse(&d.path)?)),
            Line::DeletedFolder(d) => {
                self.changes.push(Change::DeleteFolder(RepoPath::parse(d.path.trim_end_matches('/'))?))
            }
        }
        Ok(())
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

/// Splits a body into lines, holding at most one of them in memory.
pub(super) struct Lines {
    body: Body,
    pending: Vec<u8>,
    ended: bool,
    received: u64,
    max_line: usize,
    max_total: u64,
}

impl Lines {
    /// Lines of `body`, each of at most `max_line` bytes, `max_total` in all.
    pub(super) fn new(body: Body, max_line: usize, max_total: u64) -> Self {
        Self { body, pending: Vec::new(), ended: false, received: 0, max_line, max_total }
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
            match self.chunk().await? {
                Some(chunk) => self.pending.extend_from_slice(&chunk),
                None => self.ended = true,
            }
            if self.pending.len() > self.max_line {
                return Err(Error::new(
                    Code::TooLarge,
                    format!("a line of the commit is longer than {} bytes", self.max_line),
                )
                .into());
            }
        }
    }

    async fn chunk(&mut self) -> Answer<Option<Bytes>> {
        loop {
            match poll_fn(|cx| Pin::new(&mut self.body).poll_frame(cx)).await {
                None => return Ok(None),
                Some(Err(e)) => return Err(Refusal::bad_request(format!("the body ended early: {e}"))),
                Some(Ok(frame)) => {
                    let Ok(chunk) = frame.into_data() else { continue };
                    self.received += chunk.len() as u64;
                    if self.received > self.max_total {
                        return Err(Error::new(
                            Code::TooLarge,
                            format!("the commit is larger than {} bytes", self.max_total),
                        )
                        .into());
                    }
                    return Ok(Some(chunk));
                }
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
