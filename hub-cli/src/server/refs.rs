//! Endpoints for branches and tags.

use std::collections::HashMap;

use axum::Json;
use axum::body::Bytes;
use axum::extract::{Path, Query, State};
use axum::http::StatusCode;
use axum::response::IntoResponse;
use serde::{Deserialize, Serialize};

use crate::hub::oid::CommitId;

use super::access::Caller;
use super::respond::Answer;
use super::routes::{RepoAndOne, RepoOnly, blocking};
use super::store::{RefKind, RefName, Repo};
use super::{App, repos::parse};

/// The refs of a repository. A kernel has one for each version, and every publish and get asks for them.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Refs {
    branches: Vec<Named>,
    tags: Vec<Named>,
    /// Always empty; Python clients read the key.
    converts: [Named; 0],
    /// For those who ask.
    #[serde(skip_serializing_if = "Option::is_none")]
    pull_requests: Option<Vec<Named>>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Named {
    name: String,
    #[serde(rename = "ref")]
    full_name: String,
    target_commit: CommitId,
}

/// `GET /api/kernels/{owner}/{name}/refs`
pub(super) async fn list(
    State(app): State<App>,
    Path((owner, name)): RepoOnly,
    Query(query): Query<HashMap<String, String>>,
    caller: Caller,
) -> Answer {
    blocking(move || {
        let repo = app.readable(&owner, &name, &caller)?;
        let with_pulls = query.get("include_prs").is_some_and(|value| matches!(value.as_str(), "1" | "true"));
        let refs = Refs {
            branches: named(&repo, RefKind::Branch)?,
            tags: named(&repo, RefKind::Tag)?,
            converts: [],
            pull_requests: with_pulls.then(|| named(&repo, RefKind::Pull)).transpose()?,
        };
        Ok(Json(refs).into_response())
    })
    .await
}

fn named(repo: &Repo<'_>, kind: RefKind) -> Answer<Vec<Named>> {
    let named = |(name, target_commit)| {
        let full_name = format!("{}{name}", kind.prefix());
        Named { name, full_name, target_commit }
    };
    Ok(repo.refs(kind)?.into_iter().map(named).collect())
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
    caller: Caller,
    body: Bytes,
) -> Answer {
    let request: NewBranch = if body.is_empty() { NewBranch::default() } else { parse(&body)? };
    blocking(move || {
        let repo = app.writable(&owner, &name, &caller)?;
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
    caller: Caller,
) -> Answer {
    blocking(move || {
        app.writable(&owner, &name, &caller)?.delete_ref(RefKind::Branch, &branch)?;
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
    caller: Caller,
    body: Bytes,
) -> Answer {
    let request: NewTag = parse(&body)?;
    blocking(move || {
        let repo = app.writable(&owner, &name, &caller)?;
        repo.create_ref(RefKind::Tag, &request.tag, &repo.resolve(&revision)?)?;
        Ok(StatusCode::OK.into_response())
    })
    .await
}

/// `DELETE /api/kernels/{owner}/{name}/tag/{tag}`
pub(super) async fn delete_tag(
    State(app): State<App>,
    Path((owner, name, tag)): RepoAndOne,
    caller: Caller,
) -> Answer {
    blocking(move || {
        app.writable(&owner, &name, &caller)?.delete_ref(RefKind::Tag, &tag)?;
        Ok(StatusCode::OK.into_response())
    })
    .await
}

#[derive(Deserialize)]
struct Squash {
    #[serde(default)]
    message: Option<String>,
}

/// `POST /api/kernels/{owner}/{name}/super-squash/{branch}`: the branch's files as one commit without a past.
pub(super) async fn squash(
    State(app): State<App>,
    Path((owner, name, branch)): RepoAndOne,
    caller: Caller,
    body: Bytes,
) -> Answer {
    let request: Squash = parse(&body)?;
    blocking(move || {
        let repo = app.writable(&owner, &name, &caller)?;
        let title = request.message.unwrap_or_else(|| format!("Super-squash branch {branch:?}"));
        repo.squash(&RefName::of_revision(&branch)?, title.trim(), caller.name())?;
        Ok(StatusCode::OK.into_response())
    })
    .await
}
