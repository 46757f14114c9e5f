//! Endpoints for branches and tags.

use axum::Json;
use axum::body::Bytes;
use axum::extract::{Path, State};
use axum::http::{HeaderMap, StatusCode};
use axum::response::IntoResponse;
use serde::Deserialize;
use serde_json::{Value, json};

use super::respond::Answer;
use super::routes::{RepoAndOne, RepoOnly, blocking};
use super::store::{RefKind, Repo};
use super::{App, repos::parse};

/// `GET /api/kernels/{owner}/{name}/refs`
pub(super) async fn list(
    State(app): State<App>,
    Path((owner, name)): RepoOnly,
    headers: HeaderMap,
) -> Answer {
    blocking(move || {
        let repo = app.readable(&owner, &name, &headers)?;
        let branches = named(&repo, RefKind::Branch, "refs/heads/")?;
        let tags = named(&repo, RefKind::Tag, "refs/tags/")?;
        // Python clients read all four keys.
        Ok(Json(json!({"branches": branches, "tags": tags, "converts": [], "pullRequests": []}))
            .into_response())
    })
    .await
}

fn named(repo: &Repo<'_>, kind: RefKind, prefix: &str) -> Answer<Vec<Value>> {
    let refs = repo.refs(kind)?;
    Ok(refs
        .into_iter()
        .map(|(name, commit)| json!({"name": name, "ref": format!("{prefix}{name}"), "targetCommit": commit}))
        .collect())
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct NewBranch {
    starting_point: Option<String>,
}

/// `POST /api/kernels/{owner}/{name}/branch/{name}`
pub(super) async fn create_branch(
    State(app): State<App>,
    Path((owner, name, branch)): RepoAndOne,
    headers: HeaderMap,
    body: Bytes,
) -> Answer {
    let request: NewBranch = if body.is_empty() { NewBranch::default() } else { parse(&body)? };
    blocking(move || {
        let repo = app.readable(&owner, &name, &headers)?;
        let start = repo.resolve(request.starting_point.as_deref().unwrap_or("main"))?;
        repo.create_ref(RefKind::Branch, &branch, &start)?;
        Ok(StatusCode::OK.into_response())
    })
    .await
}

/// `DELETE /api/kernels/{owner}/{name}/branch/{name}`
pub(super) async fn delete_branch(
    State(app): State<App>,
    Path((owner, name, branch)): RepoAndOne,
    headers: HeaderMap,
) -> Answer {
    blocking(move || {
        app.readable(&owner, &name, &headers)?.delete_ref(RefKind::Branch, &branch)?;
        Ok(StatusCode::OK.into_response())
    })
    .await
}

#[derive(Deserialize)]
struct NewTag {
    tag: String,
}

/// `POST /api/kernels/{owner}/{name}/tag/{revision}`
pub(super) async fn create_tag(
    State(app): State<App>,
    Path((owner, name, revision)): RepoAndOne,
    headers: HeaderMap,
    body: Bytes,
) -> Answer {
    let request: NewTag = parse(&body)?;
    blocking(move || {
        let repo = app.readable(&owner, &name, &headers)?;
        repo.create_ref(RefKind::Tag, &request.tag, &repo.resolve(&revision)?)?;
        Ok(StatusCode::OK.into_response())
    })
    .await
}

/// `DELETE /api/kernels/{owner}/{name}/tag/{tag}`
pub(super) async fn delete_tag(
    State(app): State<App>,
    Path((owner, name, tag)): RepoAndOne,
    headers: HeaderMap,
) -> Answer {
    blocking(move || {
        app.readable(&owner, &name, &headers)?.delete_ref(RefKind::Tag, &tag)?;
        Ok(StatusCode::OK.into_response())
    })
    .await
}
