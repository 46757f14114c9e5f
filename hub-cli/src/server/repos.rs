//! Endpoints about whole repositories.

use axum::Json;
use axum::body::Bytes;
use axum::extract::{Path, Query, State};
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use serde::Deserialize;
use serde_json::{Value, json};

use crate::error::Code;
use crate::hub::repo::{RepoId, Version};

use super::App;
use super::access::Caller;
use super::respond::{Answer, Refusal};
use super::routes::{RepoAndOne, RepoOnly, blocking};
use super::store::{RefKind, Repo};
use super::time::iso8601;

/// `GET /api/kernels/{owner}/{name}`
pub(super) async fn info(State(app): State<App>, Path((owner, name)): RepoOnly, caller: Caller) -> Answer {
    info_at(State(app), Path((owner, name, "main".into())), caller).await
}

/// `GET /api/kernels/{owner}/{name}/revision/{revision}`
pub(super) async fn info_at(
    State(app): State<App>,
    Path((owner, name, revision)): RepoAndOne,
    caller: Caller,
) -> Answer {
    blocking(move || {
        Ok(Json(describe(&app, &app.readable(&owner, &name, &caller)?, &revision)?).into_response())
    })
    .await
}

fn describe(app: &App, repo: &Repo<'_>, revision: &str) -> Answer<Value> {
    let (commit, info) = (repo.resolve(revision)?, repo.info());
    let tree = repo.tree(&commit)?;
    let siblings: Vec<_> = tree
        .files
        .iter()
        .map(|(path, file)| json!({"rfilename": path, "size": file.size, "blobId": file.oid}))
        .collect();
    Ok(json!({
        "_id": repo.id(), "id": repo.id(), "author": repo.id().owner(), "sha": commit,
        "createdAt": iso8601(info.created), "lastModified": iso8601(repo.commit(&commit)?.date),
        "private": info.private, "gated": false, "disabled": false, "downloads": 0, "likes": 0,
        "trustedPublisher": app.access.trusts(repo.id().owner()),
        "siblings": siblings,
    }))
}

/// The filters of a listing.
#[derive(Deserialize)]
pub(super) struct Filter {
    author: Option<String>,
    search: Option<String>,
    limit: Option<usize>,
}

/// `GET /api/kernels?author=&search=&limit=`
pub(super) async fn list(State(app): State<App>, Query(filter): Query<Filter>, caller: Caller) -> Answer {
    blocking(move || {
        let mut found = Vec::new();
        for repo in app.store.repos()? {
            let by_author = filter.author.as_deref().is_none_or(|a| a == repo.id().owner());
            let by_name = filter.search.as_deref().is_none_or(|s| repo.id().to_string().contains(s));
            if by_author && by_name && caller.may_read(repo.id(), repo.info().private) {
                let mut value = describe(&app, &repo, "main")?;
                let branches = repo.refs(RefKind::Branch)?;
                let mut versions: Vec<_> = branches.keys().filter_map(|b| Version::from_branch(b)).collect();
                versions.sort();
                value["versions"] = json!(versions);
                found.push(value);
            }
            if found.len() == filter.limit.unwrap_or(usize::MAX) {
                break;
            }
        }
        Ok(Json(found).into_response())
    })
    .await
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Create {
    name: String,
    organization: Option<String>,
    #[serde(rename = "type", default)]
    kind: Option<String>,
    private: Option<bool>,
    visibility: Option<String>,
}

impl Create {
    fn id(&self, caller: &Caller) -> Answer<RepoId> {
        if self.kind.as_deref() != Some("kernel") {
            return Err(Refusal::bad_request("this hub holds repositories of type `kernel` only"));
        }
        Ok(RepoId::new(self.organization.as_deref().unwrap_or(caller.name()), &self.name)?)
    }
}

/// `POST /api/repos/create`
pub(super) async fn create(State(app): State<App>, caller: Caller, body: Bytes) -> Answer {
    let request: Create = parse(&body)?;
    blocking(move || {
        let id = request.id(&caller)?;
        app.check_writer(&id, &caller)?;
        let private = request.private == Some(true) || request.visibility.as_deref() == Some("private");
        let url = format!("{}/kernels/{id}", caller.address);
        match app.store.create(&id, private, caller.name()) {
            Ok(()) => Ok(Json(json!({"url": url, "name": id})).into_response()),
            // Clients that accept an existing repository read its address from the refusal.
            Err(e) if e.code() == Code::Exists => {
                Ok((StatusCode::CONFLICT, Json(json!({"url": url, "error": e.to_string()}))).into_response())
            }
            Err(e) => Err(e.into()),
        }
    })
    .await
}

/// `DELETE /api/repos/delete`
pub(super) async fn delete(State(app): State<App>, caller: Caller, body: Bytes) -> Answer {
    let request: Create = parse(&body)?;
    blocking(move || {
        let id = request.id(&caller)?;
        app.store.delete(app.writable(id.owner(), id.name(), &caller)?.id())?;
        Ok(StatusCode::OK.into_response())
    })
    .await
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Rename {
    from_repo: String,
    to_repo: String,
    #[serde(rename = "type")]
    kind: String,
}

/// `POST /api/repos/move`
pub(super) async fn rename(State(app): State<App>, caller: Caller, body: Bytes) -> Answer {
    let request: Rename = parse(&body)?;
    if request.kind != "kernel" {
        return Err(Refusal::bad_request("this hub holds repositories of type `kernel` only"));
    }
    blocking(move || {
        let (from, to): (RepoId, RepoId) = (request.from_repo.parse()?, request.to_repo.parse()?);
        app.check_writer(&to, &caller)?;
        app.store.rename(app.writable(from.owner(), from.name(), &caller)?.id(), &to)?;
        Ok(Json(json!({"url": format!("{}/kernels/{to}", caller.address)})).into_response())
    })
    .await
}

#[derive(Deserialize)]
struct Settings {
    private: Option<bool>,
    visibility: Option<String>,
}

/// `PUT /api/kernels/{owner}/{name}/settings`
pub(super) async fn settings(
    State(app): State<App>,
    Path((owner, name)): RepoOnly,
    caller: Caller,
    body: Bytes,
) -> Answer {
    let request: Settings = parse(&body)?;
    let private = match (request.private, request.visibility.as_deref()) {
        (Some(private), _) => Some(private),
        (None, Some(visibility @ ("private" | "public"))) => Some(visibility == "private"),
        (None, Some(other)) => {
            return Err(Refusal::bad_request(format!("the visibility {other:?} is not known")));
        }
        (None, None) => None,
    };
    blocking(move || {
        let repo = app.writable(&owner, &name, &caller)?;
        if let Some(private) = private {
            repo.set_private(private)?;
        }
        Ok(Json(json!({"private": private.unwrap_or(repo.info().private)})).into_response())
    })
    .await
}

/// `GET /api/kernels/{owner}/{name}/auth-check`: 200 if the caller may read the repository.
pub(super) async fn may_read(
    State(app): State<App>,
    Path((owner, name)): RepoOnly,
    caller: Caller,
) -> Answer {
    blocking(move || {
        app.readable(&owner, &name, &caller)?;
        Ok(StatusCode::OK.into_response())
    })
    .await
}

/// `GET /api/kernels/{owner}/{name}/auth-check/write`: 200 if the caller may change the repository.
pub(super) async fn may_write(
    State(app): State<App>,
    Path((owner, name)): RepoOnly,
    caller: Caller,
) -> Answer {
    blocking(move || {
        app.writable(&owner, &name, &caller)?;
        Ok(StatusCode::OK.into_response())
    })
    .await
}

/// `POST /api/validate-yaml`: the card's front matter is not constrained here.
pub(super) async fn validate_yaml() -> Response {
    Json(json!({"errors": [], "warnings": []})).into_response()
}

/// `GET /api/agent-harnesses`: Python clients ask for it before anything else.
pub(super) async fn agent_harnesses() -> Response {
    Json(json!({"standardEnvVars": [], "harnesses": {}})).into_response()
}

/// Reads a JSON body.
pub(super) fn parse<'a, T: Deserialize<'a>>(body: &'a [u8]) -> Answer<T> {
    serde_json::from_slice(body)
        .map_err(|e| Refusal::bad_request(format!("the body is not the JSON expected here: {e}")))
}
