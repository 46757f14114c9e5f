//! One line of a commit: what it may be, and the checks that need nothing but the line.

use base64::Engine;
use serde::Deserialize;

use crate::error::{Code, Error, Result};
use crate::hub::oid::{CommitId, Oid};
use crate::hub::path::RepoPath;

/// One line of a commit, checked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CommitRecord {
    /// What the first line says.
    Header(CommitHeader),
    /// A file with its content.
    File {
        /// Where it goes; never bytecode.
        path: RepoPath,
        /// The decoded content.
        content: Vec<u8>,
    },
    /// A file whose content was sent before, through LFS.
    Large {
        /// Where it goes; never bytecode.
        path: RepoPath,
        /// The content's SHA-256.
        sha256: Oid,
        /// In bytes; clients leave it out when they copy a file.
        size: Option<u64>,
    },
    /// A file that goes.
    DeletedFile(RepoPath),
    /// A folder that goes with all that is in it.
    DeletedFolder(RepoPath),
}

/// The first line of a commit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CommitHeader {
    /// Not blank, without space around it.
    pub title: String,
    /// Perhaps empty.
    pub description: String,
    /// The head that the branch must have.
    pub parent: Option<CommitId>,
}

impl CommitRecord {
    /// Reads one line of JSON.
    ///
    /// # Errors
    /// `H0506` if it is not a record, `H0103` for a path that leads out of the repository, `H0407` for
    /// bytecode.
    pub fn parse(line: &[u8]) -> Result<Self> {
        let line = serde_json::from_slice(line)
            .map_err(|e| bad(format!("a line of the commit is not valid: {e}")))?;
        Ok(match line {
            Line::Header { summary, description, parent_commit } => {
                let title = summary.trim().to_owned();
                if title.is_empty() {
                    return Err(bad("the commit has no summary".into()));
                }
                let description = description.as_deref().unwrap_or_default().trim().to_owned();
                Self::Header(CommitHeader { title, description, parent: parent_commit })
            }
            Line::File { path, content, encoding } => {
                let path = publishable(&path)?;
                let content = decode(&path, content, encoding.as_deref())?;
                Self::File { path, content }
            }
            Line::LfsFile { path, oid, size } => {
                Self::Large { path: publishable(&path)?, sha256: large_id(&oid)?, size }
            }
            Line::DeletedFile { path } => Self::DeletedFile(RepoPath::parse(&path)?),
            Line::DeletedFolder { path } => Self::DeletedFolder(RepoPath::parse(path.trim_end_matches('/'))?),
        })
    }
}

/// A line as clients write it.
#[derive(Deserialize)]
#[serde(tag = "key", content = "value", rename_all = "camelCase", rename_all_fields = "camelCase")]
enum Line {
    Header {
        summary: String,
        #[serde(default)]
        description: Option<String>,
        parent_commit: Option<CommitId>,
    },
    File {
        path: String,
        content: String,
        #[serde(default)]
        encoding: Option<String>,
    },
    LfsFile {
        path: String,
        oid: String,
        #[serde(default)]
        size: Option<u64>,
    },
    DeletedFile {
        path: String,
    },
    DeletedFolder {
        path: String,
    },
}

/// Checks the id of a large file: a SHA-256.
pub(in super::super) fn large_id(text: &str) -> Result<Oid> {
    match Oid::parse(text) {
        Ok(oid) if text.len() == 64 => Ok(oid),
        _ => Err(bad(format!("{text:?} is not a SHA-256 in hexadecimal digits"))),
    }
}

/// Checks a path that somebody wants to publish.
pub(in super::super) fn publishable(path: &str) -> Result<RepoPath> {
    let path = RepoPath::parse(path)?;
    if path.is_bytecode() {
        let message = format!("{path} is Python bytecode, which this hub does not take");
        return Err(Error::new(Code::File, message));
    }
    Ok(path)
}

fn decode(path: &RepoPath, content: String, encoding: Option<&str>) -> Result<Vec<u8>> {
    match encoding {
        Some("base64") => base64::engine::general_purpose::STANDARD
            .decode(content)
            .map_err(|e| bad(format!("the content of {path} is not base64: {e}"))),
        None | Some("utf-8") => Ok(content.into_bytes()),
        Some(other) => Err(bad(format!("the encoding {other:?} of {path} is not known"))),
    }
}

fn bad(message: String) -> Error {
    Error::new(Code::BadRequest, message)
}
