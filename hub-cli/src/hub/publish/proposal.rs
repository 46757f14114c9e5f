//! A publication as a pull request, which the owner of the repository merges.
//!
//! Three requests by hand: `hf-hub` 1.0 asks without `create_pr` how files are to be sent, and does not find the
//! pull request in the answer.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use reqwest::Url;
use serde::Deserialize;
use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use crate::error::{Code, Error, Result};
use crate::hub::client::Client;
use crate::hub::path::RepoPath;
use crate::hub::refusal::printable;
use crate::hub::repo::{RepoId, Version};

use super::Plan;

/// How many files one question about uploads may hold.
const MAX_FILES: usize = 256;

/// A pull request that was made.
#[derive(Clone, Debug, serde::Serialize)]
pub struct Proposed {
    /// The repository.
    pub repo: RepoId,
    /// The version.
    pub version: Version,
    /// Where it can be looked at.
    pub pull_request: String,
    /// Files that were sent.
    pub uploaded: usize,
    /// Files that it removes.
    pub removed: usize,
}

#[derive(Deserialize)]
struct Answers {
    files: Vec<Answer>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Answer {
    path: String,
    upload_mode: String,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Made {
    pull_request_url: Option<String>,
}

#[derive(Deserialize)]
struct Batch {
    objects: Vec<Object>,
}

#[derive(Deserialize)]
struct Object {
    actions: Option<Actions>,
}

#[derive(Deserialize)]
struct Actions {
    upload: Option<Action>,
    verify: Option<Action>,
}

#[derive(Deserialize)]
struct Action {
    href: String,
}

impl Plan {
    /// Makes a pull request with the changes, against the version's branch or, for a new version, `main`.
    ///
    /// # Errors
    /// `H0202` if there is no such repository, `H0204` if the hub does not take the request, `H0416` if it would
    /// break callers.
    pub fn propose(&self, client: &Client) -> Result<Proposed> {
        self.refuse_breaks()?;
        if !self.repository_exists {
            let message = format!("{} does not exist, so nobody can be asked to merge into it", self.repo);
            return Err(Error::new(Code::RepoNotFound, message));
        }
        if self.changes.is_empty() && self.head.is_some() {
            let message = format!("{} {} is there already, byte for byte", self.repo, self.version);
            return Err(Error::new(Code::Unchanged, message));
        }
        let base = if self.head.is_some() { self.version.branch() } else { "main".to_owned() };
        let summary = format!("{} {}", self.name, self.version);
        let mut header = json!({"summary": summary, "description": ""});
        // The changes are against this state; on another they would make a mixture of two packages.
        if let Some(head) = &self.head {
            header["parentCommit"] = json!(head);
        }
        let mut lines = vec![json!({"key": "header", "value": header})];
        let sent: Vec<_> = self.changes.added.iter().chain(&self.changes.changed).collect();
        for part in sent.chunks(MAX_FILES) {
            for answer in self.ask(client, &base, part)? {
                let Ok(path) = RepoPath::parse(&answer.path) else { continue };
                let Some(bytes) = self.files.get(&path) else { continue };
                lines.push(match answer.upload_mode.as_str() {
                    "lfs" => self.send_large(client, &base, &path, bytes)?,
                    _ => json!({"key": "file", "value": {
                        "path": path, "content": STANDARD.encode(bytes), "encoding": "base64"
                    }}),
                });
            }
        }
        if lines.len() != sent.len() + 1 {
            return Err(Error::new(
                Code::Protocol,
                "the hub does not say of every file how it is to be sent",
            ));
        }
        lines
            .extend(self.changes.removed.iter().map(|p| json!({"key": "deletedFile", "value": {"path": p}})));
        let body: String = lines.iter().map(|line| format!("{line}\n")).collect();
        let url = self.endpoint(client, "commit", &base);
        let made: Made =
            client.transport.post(url, &self.repo.to_string(), "application/x-ndjson", body.into_bytes())?;
        let Some(url) = made.pull_request_url else {
            return Err(Error::new(Code::Protocol, "the hub took the files and names no pull request"));
        };
        Ok(Proposed {
            repo: self.repo.clone(),
            version: self.version,
            pull_request: printable(&url),
            uploaded: sent.len(),
            removed: self.changes.removed.len(),
        })
    }

    fn endpoint(&self, client: &Client, what: &str, base: &str) -> Url {
        let mut url = client.api(&self.repo, &[what, base]);
        url.set_query(Some("create_pr=1"));
        url
    }

    /// Asks how these files are to be sent.
    fn ask(&self, client: &Client, base: &str, paths: &[&RepoPath]) -> Result<Vec<Answer>> {
        let files: Vec<Value> = paths
            .iter()
            .map(|path| {
                let bytes = &self.files[*path];
                json!({"path": path, "size": bytes.len(), "sample": STANDARD.encode(&bytes[..bytes.len().min(512)])})
            })
            .collect();
        let body = json!({"files": files}).to_string().into_bytes();
        let url = self.endpoint(client, "preupload", base);
        let answers: Answers =
            client.transport.post(url, &self.repo.to_string(), "application/json", body)?;
        Ok(answers.files)
    }

    /// Sends one file by LFS; returns its line of the commit.
    fn send_large(&self, client: &Client, base: &str, path: &RepoPath, bytes: &[u8]) -> Result<Value> {
        let oid = hex::encode(Sha256::digest(bytes));
        let ask = json!({
            "operation": "upload", "transfers": ["basic"], "hash_algo": "sha256", "ref": {"name": base},
            "objects": [{"oid": oid, "size": bytes.len()}],
        });
        let git = format!("{}.git", self.repo.name());
        let parts = ["kernels", self.repo.owner(), &git, "info", "lfs", "objects", "batch"];
        let url = client.endpoint().url(parts);
        let content_type = "application/vnd.git-lfs+json";
        let batch: Batch =
            client.transport.post(url, &path.to_string(), content_type, ask.to_string().into_bytes())?;
        let actions = batch.objects.into_iter().next().and_then(|object| object.actions);
        if let Some(Actions { upload: Some(upload), verify }) = actions {
            client.transport.put(client.transport.link(&upload.href)?, &path.to_string(), bytes.to_vec())?;
            if let Some(verify) = verify {
                let body = json!({"oid": oid, "size": bytes.len()}).to_string().into_bytes();
                let verify = client.transport.link(&verify.href)?;
                client.transport.post_for_status(verify, &path.to_string(), content_type, body)?;
            }
        }
        Ok(
            json!({"key": "lfsFile", "value": {"path": path, "algo": "sha256", "oid": oid, "size": bytes.len()}}),
        )
    }
}
