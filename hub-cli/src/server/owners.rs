//! Endpoints about the caller, and about the users and organisations that repositories belong to.

use axum::Json;
use axum::extract::{Path, State};
use axum::response::IntoResponse;
use serde_json::json;

use crate::error::{Code, Error};

use super::App;
use super::access::Caller;
use super::access::accounts::Scope;
use super::respond::{Answer, Refusal};
use super::routes::blocking;

/// `GET /api/organizations/{owner}/overview`: whether Python clients may trust this publisher.
pub(super) async fn organization(
    State(app): State<App>,
    Path(owner): Path<String>,
    caller: Caller,
) -> Answer {
    blocking(move || {
        let trusted = app.access.trusts(&owner);
        let accounts = app.access.accounts();
        let recorded = accounts.owners.get(&owner).is_some_and(|o| !o.members.is_empty());
        let mut repos = app.store.repos_of(&owner)?;
        repos.retain(|repo| caller.may_read(repo.id(), repo.info().private));
        if !trusted && !recorded && repos.is_empty() {
            return Err(
                Error::new(Code::RepoNotFound, format!("nobody named {owner:?} has published here")).into()
            );
        }
        let overview = json!({
            "name": owner, "fullname": owner, "avatarUrl": "", "type": "org", "isEnterprise": false,
            "trustedKernelPublisher": trusted, "numKernels": repos.len(),
        });
        Ok(Json(overview).into_response())
    })
    .await
}

/// `GET /api/whoami-v2`
pub(super) async fn whoami(caller: Caller) -> Answer {
    if !caller.is_known() {
        return Err(Refusal::no_token("Invalid credentials in Authorization header"));
    }
    let role = if caller.scope() == Some(Scope::Write) { "write" } else { "read" };
    let organizations: Vec<_> = caller
        .organizations()
        .into_iter()
        .map(|name| json!({"type": "org", "id": name, "name": name, "fullname": name, "avatarUrl": "", "isEnterprise": false}))
        .collect();
    let name = caller.name();
    let user = json!({
        "type": "user", "id": name, "name": name, "fullname": name, "isPro": false, "avatarUrl": "",
        "orgs": organizations,
        "auth": {"type": "access_token", "accessToken": {"displayName": "hub", "role": role}},
    });
    Ok(Json(user).into_response())
}
