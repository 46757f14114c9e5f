//! Endpoints for pull requests, which the protocol calls discussions. There are no others here.

use std::collections::HashMap;

use axum::Json;
use axum::body::Bytes;
use axum::extract::{Path, Query, State};
use axum::response::IntoResponse;
use serde::Deserialize;
use serde_json::{Value, json};

use crate::error::{Code, Error};

use super::access::Caller;
use super::respond::{Answer, Refusal};
use super::routes::{RepoAndOne, RepoOnly, blocking};
use super::store::{NewCommit, Pull, PullStatus, Repo};
use super::time::iso8601;
use super::{App, repos::parse};

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct NewPull {
    title: String,
    #[serde(default)]
    description: String,
    #[serde(default)]
    pull_request: bool,
}

/// `POST /api/kernels/{owner}/{name}/discussions`: opens a pull request without commits, as a draft.
pub(super) async fn create(
    State(app): State<App>,
    Path((owner, name)): RepoOnly,
    caller: Caller,
    body: Bytes,
) -> Answer {
    let request: NewPull = parse(&body)?;
    if !request.pull_request {
        return Err(Refusal::unsupported("this hub has pull requests, and no other discussions"));
    }
    if request.title.trim().is_empty() {
        return Err(Refusal::bad_request("the pull request has no title"));
    }
    blocking(move || {
        let repo = app.readable(&owner, &name, &caller)?;
        if !caller.may_propose(repo.id()) {
            return Err(app.not_allowed(repo.id(), &caller).into());
        }
        let new = NewCommit {
            changes: Vec::new(),
            title: request.title.trim().to_owned(),
            description: request.description,
            author: caller.name().to_owned(),
            parent: None,
        };
        let (pull, _) = repo.propose("main", PullStatus::Draft, &new)?;
        Ok(Json(describe(&repo, &pull, true)?).into_response())
    })
    .await
}

/// `GET /api/kernels/{owner}/{name}/discussions`: a page of them, newest first.
pub(super) async fn list(
    State(app): State<App>,
    Path((owner, name)): RepoOnly,
    Query(query): Query<HashMap<String, String>>,
    caller: Caller,
) -> Answer {
    blocking(move || {
        let repo = app.readable(&owner, &name, &caller)?;
        let asked = |name: &str| query.get(name).map(String::as_str);
        let mut pulls = repo.pulls()?;
        pulls.retain(|pull| {
            asked("type").is_none_or(|kind| matches!(kind, "all" | "pull_request"))
                && asked("author").is_none_or(|author| author == pull.author)
                && match asked("status") {
                    Some("open") => matches!(pull.status, PullStatus::Open | PullStatus::Draft),
                    Some("closed") => matches!(pull.status, PullStatus::Closed | PullStatus::Merged),
                    _ => true,
                }
        });
        let page: usize = asked("p").and_then(|page| page.parse().ok()).unwrap_or(0);
        let start = page.saturating_mul(app.config.page_size);
        let shown = pulls.iter().skip(start).take(app.config.page_size);
        let shown = shown.map(|pull| describe(&repo, pull, false)).collect::<Answer<Vec<_>>>()?;
        Ok(Json(json!({"discussions": shown, "count": pulls.len(), "start": start})).into_response())
    })
    .await
}

/// `GET /api/kernels/{owner}/{name}/discussions/{number}`
pub(super) async fn show(
    State(app): State<App>,
    Path((owner, name, number)): RepoAndOne,
    caller: Caller,
) -> Answer {
    blocking(move || {
        let repo = app.readable(&owner, &name, &caller)?;
        Ok(Json(describe(&repo, &find(&repo, &number)?, true)?).into_response())
    })
    .await
}

/// `POST /api/kernels/{owner}/{name}/discussions/{number}/merge`
pub(super) async fn merge(
    State(app): State<App>,
    Path((owner, name, number)): RepoAndOne,
    caller: Caller,
) -> Answer {
    blocking(move || {
        let repo = app.writable(&owner, &name, &caller)?;
        let merged = repo.merge_pull(&find(&repo, &number)?, caller.name())?;
        Ok(Json(describe(&repo, &merged, true)?).into_response())
    })
    .await
}

#[derive(Deserialize)]
struct NewStatus {
    status: PullStatus,
}

/// `POST /api/kernels/{owner}/{name}/discussions/{number}/status`
pub(super) async fn set_status(
    State(app): State<App>,
    Path((owner, name, number)): RepoAndOne,
    caller: Caller,
    body: Bytes,
) -> Answer {
    let request: NewStatus = parse(&body)?;
    if request.status == PullStatus::Merged {
        return Err(Refusal::bad_request("a pull request is merged at /merge"));
    }
    blocking(move || {
        let repo = app.readable(&owner, &name, &caller)?;
        let pull = find(&repo, &number)?;
        if !caller.may_write(repo.id()) && pull.author != caller.name() {
            return Err(app.not_allowed(repo.id(), &caller).into());
        }
        if pull.status == PullStatus::Merged {
            let message = format!("pull request {number} is merged already");
            return Err(Error::new(Code::Conflict, message).into());
        }
        let changed = repo.set_pull_status(&pull, request.status)?;
        let event = json!({
            "id": format!("{:040x}", changed.number), "type": "status-change",
            "createdAt": iso8601(changed.created), "author": {"name": caller.name()},
            "data": {"status": changed.status},
        });
        Ok(Json(json!({"newStatus": event})).into_response())
    })
    .await
}

fn find(repo: &Repo<'_>, number: &str) -> Answer<Pull> {
    let number = number
        .parse()
        .map_err(|_| Refusal::bad_request(format!("{number:?} is not the number of a pull request")))?;
    Ok(repo.pull(number)?)
}

/// A pull request as the protocol describes it; `whole` adds what its own page shows.
fn describe(repo: &Repo<'_>, pull: &Pull, whole: bool) -> Answer<Value> {
    let mut value = json!({
        "num": pull.number, "title": pull.title, "status": pull.status, "isPullRequest": true,
        "createdAt": iso8601(pull.created), "author": {"name": pull.author},
        "repo": {"name": repo.id(), "type": "kernel"},
    });
    if whole {
        let head = repo.existing_ref(&pull.git_ref()?)?;
        let comment = json!({
            "id": format!("{:040x}", pull.number), "type": "comment",
            "createdAt": iso8601(pull.created), "author": {"name": pull.author},
            "data": {"edited": false, "hidden": false, "history": [], "latest": {
                "raw": pull.description, "html": "", "updatedAt": iso8601(pull.created),
                "author": {"name": pull.author},
            }},
        });
        value["events"] = json!([comment]);
        value["changes"] = json!({"base": format!("refs/heads/{}", pull.base), "head": head, "mergeCommitId": pull.merge_commit});
        value["filesWithConflicts"] = json!([]);
        value["diff"] = json!("");
    }
    Ok(value)
}
