//! Endpoints about whole repositories, their owners and the caller.

use axum::Json;
use axum::body::Bytes;
use axum::extract::{Path, Query, State};
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse, Response};
use serde::Deserialize;
use serde_json::{Value, json};

use crate::error::{Code, Error};
use crate::hub::repo::{RepoId, Version};

use super::App;
use super::access::USER;
use super::respond::{Answer, Refusal};
use super::routes::{RepoAndOne, RepoOnly, blocking};
use super::store::{RefKind, Repo};
use super::time::iso8601;

/// `GET /api/kernels/{owner}/{name}`
pub(super) async fn info(
    State(app): State<App>,
    Path((owner, name)): RepoOnly,
    headers: HeaderMap,
) -> Answer {
    info_at(State(app), Path((owner, name, "main".into())), headers).await
}

/// `GET /api/kernels/{owner}/{name}/revision/{revision}`
pub(super) async fn info_at(
    State(app): State<App>,
    Path((owner, name, revision)): RepoAndOne,
    headers: HeaderMap,
) -> Answer {
    blocking(move || {
        Ok(Json(describe(&app, &app.readable(&owner, &name, &headers)?, &revision)?).into_response())
    })
    .await
}

fn describe(app: &App, repo: &Repo<'_>, revision: &str) -> Answer<Value> {
    let (commit, info) = (repo.resolve(revision)?, repo.info()?);
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
        "trustedPublisher": app.config.trusted.contains(repo.id().owner()),
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
pub(super) async fn list(State(app): State<App>, Query(filter): Query<Filter>, headers: HeaderMap) -> Answer {
    blocking(move || {
        let known = app.access.may_write(&headers);
        let mut found = Vec::new();
        for repo in app.store.repos()? {
            let by_author = filter.author.as_deref().is_none_or(|a| a == repo.id().owner());
            let by_name = filter.search.as_deref().is_none_or(|s| repo.id().to_string().contains(s));
            if by_author && by_name && (known || !repo.info()?.private) {
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
    fn id(&self) -> Answer<RepoId> {
        if self.kind.as_deref() != Some("kernel") {
            return Err(Refusal::bad_request("this hub holds repositories of type `kernel` only"));
        }
        Ok(RepoId::new(self.organization.as_deref().unwrap_or(USER), &self.name)?)
    }
}

/// `POST /api/repos/create`
pub(super) async fn create(State(app): State<App>, headers: HeaderMap, body: Bytes) -> Answer {
    let request: Create = parse(&body)?;
    blocking(move || {
        let id = request.id()?;
        let private = request.private == Some(true) || request.visibility.as_deref() == Some("private");
        let url = format!("{}/kernels/{id}", app.endpoint(&headers));
        match app.store.create(&id, private, USER) {
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
pub(super) async fn delete(State(app): State<App>, body: Bytes) -> Answer {
    let request: Create = parse(&body)?;
    blocking(move || {
        app.store.delete(&request.id()?)?;
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
pub(super) async fn rename(State(app): State<App>, headers: HeaderMap, body: Bytes) -> Answer {
    let request: Rename = parse(&body)?;
    if request.kind != "kernel" {
        return Err(Refusal::bad_request("this hub holds repositories of type `kernel` only"));
    }
    blocking(move || {
        let to: RepoId = request.to_repo.parse()?;
        app.store.rename(&request.from_repo.parse()?, &to)?;
        Ok(Json(json!({"url": format!("{}/kernels/{to}", app.endpoint(&headers))})).into_response())
    })
    .await
}

/// `GET /api/organizations/{owner}/overview`: whether Python clients may trust this publisher.
pub(super) async fn owner(State(app): State<App>, Path(owner): Path<String>) -> Answer {
    blocking(move || {
        let trusted = app.config.trusted.contains(&owner);
        if !trusted && !app.store.repos()?.iter().any(|r| r.id().owner() == owner) {
            return Err(
                Error::new(Code::RepoNotFound, format!("nobody named {owner:?} has published here")).into()
            );
        }
        let overview = json!({
            "name": owner, "fullname": owner, "avatarUrl": "", "type": "org", "isEnterprise": false,
            "trustedKernelPublisher": trusted,
        });
        Ok(Json(overview).into_response())
    })
    .await
}

/// `GET /api/whoami-v2`
pub(super) async fn whoami(State(app): State<App>, headers: HeaderMap) -> Answer {
    if !app.access.is_known(&headers) {
        return Err(Refusal::no_token("Invalid credentials in Authorization header"));
    }
    let user = json!({
        "type": "user", "id": USER, "name": USER, "fullname": USER, "isPro": false, "avatarUrl": "", "orgs": [],
        "auth": {"type": "access_token", "accessToken": {"displayName": "hub", "role": "write"}},
    });
    Ok(Json(user).into_response())
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
