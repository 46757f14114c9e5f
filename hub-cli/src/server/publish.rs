//! Endpoints that change a branch: the question how to send files, and the commit.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use axum::Json;
use axum::body::{Body, Bytes};
use axum::extract::{Path, Query, State};
use axum::response::IntoResponse;
use serde::Deserialize;
use serde_json::{Value, json};

use crate::error::{Code, Error};

use super::access::Caller;
use super::config::Config;
use super::respond::{Answer, Refusal};
use super::routes::{RepoAndOne, blocking};
use super::store::{NewCommit, PullStatus, RefKind, RefName, Repo, StoredFile};
use super::upload::{Lines, Upload, publishable};
use super::{App, repos::parse};

#[derive(Deserialize)]
struct Preupload {
    files: Vec<PreuploadFile>,
}

#[derive(Deserialize)]
struct PreuploadFile {
    path: String,
    #[serde(default)]
    size: u64,
}

/// `POST /api/kernels/{owner}/{name}/preupload/{revision}`: which files are sent inline with the commit,
/// and which before it through LFS.
///
/// The id of a file that the revision holds already is part of the answer, so that clients can skip it.
pub(super) async fn preupload(
    State(app): State<App>,
    Path((owner, name, revision)): RepoAndOne,
    caller: Caller,
    body: Bytes,
) -> Answer {
    let request: Preupload = parse(&body)?;
    blocking(move || {
        let repo = app.readable(&owner, &name, &caller)?;
        let tree = repo.tree(&repo.resolve(&revision)?)?;
        let mut files = Vec::new();
        for PreuploadFile { path, size } in request.files {
            let known = tree.files.get(&publishable(&path)?);
            let large = is_large(&app.config, size);
            let mode = if large { "lfs" } else { "regular" };
            let mut file = json!({"path": path, "uploadMode": mode, "shouldIgnore": false});
            if let Some(StoredFile { oid, sha256, lfs, .. }) = known.filter(|known| known.lfs == large) {
                file["oid"] = json!(if *lfs { sha256 } else { oid });
            }
            files.push(file);
        }
        Ok(Json(json!({"files": files})).into_response())
    })
    .await
}

/// Whether a file of `size` bytes goes through LFS. A client with Xet would then insist on Xet, which this
/// hub does not speak, so only files too large to be inlined do unless the operator wants it.
fn is_large(config: &Config, size: u64) -> bool {
    size > 0 && size >= config.lfs_from.unwrap_or(config.max_file as u64 + 1)
}

/// `POST /api/kernels/{owner}/{name}/commit/{revision}`
pub(super) async fn commit(
    State(app): State<App>,
    Path((owner, name, revision)): RepoAndOne,
    Query(query): Query<HashMap<String, String>>,
    caller: Caller,
    body: Body,
) -> Answer {
    let target = if query.get("create_pr").is_some_and(|v| matches!(v.as_str(), "1" | "true")) {
        Target::NewPull(revision.strip_prefix("refs/heads/").unwrap_or(&revision).to_owned())
    } else {
        Target::Ref(RefName::of_revision(&revision)?)
    };
    let target = Arc::new(target);
    let room = {
        let (app, owner, name, caller, target) =
            (app.clone(), owner.clone(), name.clone(), caller.clone(), target.clone());
        blocking(move || {
            let repo = app.readable(&owner, &name, &caller)?;
            target.check(&repo, &caller)?;
            app.room(repo.id().owner())
        })
        .await?
    };

    // Base64 makes three bytes four; the rest is for path and JSON.
    let max_line = app.config.max_file / 3 * 4 + (64 << 10);
    let mut lines = Lines::new(body, max_line, app.config.max_upload);
    let upload = Arc::new(Mutex::new(Upload::new(app.config.max_file, room)));
    while let Some(line) = lines.next().await? {
        let (app, owner, name, caller, upload) =
            (app.clone(), owner.clone(), name.clone(), caller.clone(), upload.clone());
        blocking(move || {
            let repo = app.readable(&owner, &name, &caller)?;
            upload.lock().unwrap_or_else(PoisonError::into_inner).take(&line, &repo)
        })
        .await?;
    }

    blocking(move || {
        let repo = app.readable(&owner, &name, &caller)?;
        let mut upload = upload.lock().unwrap_or_else(PoisonError::into_inner);
        let header = upload.header.take().ok_or_else(|| Refusal::bad_request("the commit is empty"))?;
        let new = NewCommit {
            changes: std::mem::take(&mut upload.changes),
            title: header.title,
            description: header.description,
            author: caller.name().to_owned(),
            parent: header.parent,
        };
        Ok(Json(target.commit(&repo, &new, &caller.address)?).into_response())
    })
    .await
}

/// Where a commit goes.
enum Target {
    Ref(RefName),
    /// A new pull request for this branch.
    NewPull(String),
}

impl Target {
    /// Whether the caller may commit here at all; asked before the body is read.
    fn check(&self, repo: &Repo<'_>, caller: &Caller) -> Answer<()> {
        let allowed = match self {
            Self::NewPull(base) => {
                repo.existing_ref(&RefName::new(RefKind::Branch, base)?)?;
                caller.may_propose(repo.id())
            }
            Self::Ref(name) => {
                repo.existing_ref(name)?;
                match name.kind() {
                    RefKind::Branch => caller.may_write(repo.id()),
                    RefKind::Tag => {
                        return Err(Refusal::bad_request("a tag does not move: commit to a branch"));
                    }
                    RefKind::Pull => {
                        caller.may_write(repo.id()) || {
                            let author = name.name().parse().ok().map(|n| repo.pull(n)).transpose()?;
                            caller.may_propose(repo.id())
                                && author.is_some_and(|pull| pull.author == caller.name())
                        }
                    }
                }
            }
        };
        if allowed {
            return Ok(());
        }
        Err(Error::new(Code::NotAllowed, format!("{} may not commit to {}", caller.name(), repo.id())).into())
    }

    /// Makes the commit and describes it.
    fn commit(&self, repo: &Repo<'_>, new: &NewCommit, address: &str) -> Answer<Value> {
        let (commit, pull) = match self {
            Self::Ref(name) => (repo.commit_to(name, new)?, None),
            Self::NewPull(base) => {
                let (pull, commit) = repo.propose(base, PullStatus::Open, new)?;
                (commit, Some(pull))
            }
        };
        let page = format!("{address}/kernels/{}", repo.id());
        let mut answer = json!({
            "success": true, "commitOid": commit, "commitUrl": format!("{page}/commit/{commit}"), "hookOutput": "",
        });
        if let Some(pull) = pull {
            // The name that the Hub uses, and the one that hf-hub 1.0.0 looks for.
            for name in ["pullRequestUrl", "prUrl"] {
                answer[name] = json!(format!("{page}/discussions/{}", pull.number));
            }
        }
        Ok(answer)
    }
}
