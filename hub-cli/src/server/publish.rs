//! Endpoints that change a branch: the question how to send files, and the commit.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use axum::Json;
use axum::body::{Body, Bytes};
use axum::extract::{Path, Query, State};
use axum::http::HeaderMap;
use axum::response::IntoResponse;
use serde::Deserialize;
use serde_json::{Value, json};

use super::access::USER;
use super::respond::{Answer, Refusal};
use super::routes::{RepoAndOne, blocking};
use super::upload::{Lines, Upload, publishable};
use super::{App, repos::parse};

#[derive(Deserialize)]
struct Preupload {
    files: Vec<PreuploadFile>,
}

#[derive(Deserialize)]
struct PreuploadFile {
    path: String,
}

/// `POST /api/kernels/{owner}/{name}/preupload/{revision}`: every file is sent inline with the commit.
///
/// The id of a file that the revision holds already is part of the answer, so that clients can skip it.
pub(super) async fn preupload(
    State(app): State<App>,
    Path((owner, name, revision)): RepoAndOne,
    Query(query): Query<HashMap<String, String>>,
    headers: HeaderMap,
    body: Bytes,
) -> Answer {
    refuse_pull_requests(&query)?;
    let request: Preupload = parse(&body)?;
    blocking(move || {
        let repo = app.readable(&owner, &name, &headers)?;
        let tree = repo.tree(&repo.resolve(&revision)?)?;
        let mut files = Vec::new();
        for PreuploadFile { path } in request.files {
            let mut file = json!({"path": path, "uploadMode": "regular", "shouldIgnore": false});
            if let Some(known) = tree.files.get(&publishable(&path)?) {
                file["oid"] = Value::String(known.oid.to_string());
            }
            files.push(file);
        }
        Ok(Json(json!({"files": files})).into_response())
    })
    .await
}

/// `POST /api/kernels/{owner}/{name}/commit/{revision}`
pub(super) async fn commit(
    State(app): State<App>,
    Path((owner, name, revision)): RepoAndOne,
    Query(query): Query<HashMap<String, String>>,
    headers: HeaderMap,
    body: Body,
) -> Answer {
    refuse_pull_requests(&query)?;
    let branch = revision.strip_prefix("refs/heads/").unwrap_or(&revision).to_owned();

    // Base64 makes three bytes four; the rest is for path and JSON.
    let max_line = app.config.max_file / 3 * 4 + (64 << 10);
    let mut lines = Lines::new(body, max_line, app.config.max_upload);
    let upload = Arc::new(Mutex::new(Upload::default()));
    while let Some(line) = lines.next().await? {
        let (app, owner, name, headers, upload) =
            (app.clone(), owner.clone(), name.clone(), headers.clone(), upload.clone());
        blocking(move || {
            let repo = app.readable(&owner, &name, &headers)?;
            upload.lock().unwrap_or_else(PoisonError::into_inner).take(&line, &repo, app.config.max_file)
        })
        .await?;
    }

    blocking(move || {
        let repo = app.readable(&owner, &name, &headers)?;
        let upload = std::mem::take(&mut *upload.lock().unwrap_or_else(PoisonError::into_inner));
        let header = upload.header.ok_or_else(|| Refusal::bad_request("the commit is empty"))?;
        let message = (header.summary.trim(), header.description.as_deref().unwrap_or("").trim());
        let commit =
            repo.commit_changes(&branch, header.parent_commit.as_ref(), upload.changes, message, USER)?;
        let url = format!("{}/kernels/{}/commit/{commit}", app.endpoint(&headers), repo.id());
        Ok(Json(json!({"success": true, "commitOid": commit, "commitUrl": url, "hookOutput": ""}))
            .into_response())
    })
    .await
}

fn refuse_pull_requests(query: &HashMap<String, String>) -> Answer<()> {
    match query.get("create_pr").map(String::as_str) {
        Some("1" | "true") => Err(Refusal::unsupported("this hub has no pull requests: commit to a branch")),
        _ => Ok(()),
    }
}
