//! Endpoints that list: files, folders, chosen paths, and commits, a page at a time.

use std::collections::BTreeMap;

use axum::Json;
use axum::body::Bytes;
use axum::extract::{Path, Query, State};
use axum::http::{HeaderMap, HeaderValue, header};
use axum::response::IntoResponse;
use percent_encoding::percent_decode_str;
use serde::{Deserialize, Serialize};
use serde_json::json;

use crate::error::{Code, Error};
use crate::hub::oid::Oid;
use crate::hub::path::RepoPath;

use super::access::Caller;
use super::respond::{Answer, Refusal};
use super::routes::{RepoAndOne, RepoAndPath, blocking};
use super::store::{Commit, Tree};
use super::time::iso8601;
use super::{App, repos::parse};

/// The options of a listing.
#[derive(Deserialize)]
pub(super) struct Paging {
    #[serde(default)]
    recursive: bool,
    /// How many entries the pages before held.
    #[serde(default)]
    cursor: usize,
}

/// `GET /api/kernels/{owner}/{name}/tree/{revision}`
pub(super) async fn tree(
    State(app): State<App>,
    Path((owner, name, revision)): RepoAndOne,
    Query(paging): Query<Paging>,
    caller: Caller,
) -> Answer {
    tree_below(State(app), Path((owner, name, revision, String::new())), Query(paging), caller).await
}

/// `GET /api/kernels/{owner}/{name}/tree/{revision}/{folder}`
pub(super) async fn tree_below(
    State(app): State<App>,
    Path((owner, name, revision, folder)): RepoAndPath,
    Query(paging): Query<Paging>,
    caller: Caller,
) -> Answer {
    blocking(move || {
        let repo = app.readable(&owner, &name, &caller)?;
        let commit = repo.resolve(&revision)?;
        let tree = repo.tree(&commit)?;
        let prefix = match folder.trim_end_matches('/') {
            "" => String::new(),
            folder => format!("{}/", RepoPath::parse(folder)?),
        };
        let entries: Vec<_> = entries(&tree)
            .into_iter()
            .filter(|(path, _)| {
                path.strip_prefix(&prefix).is_some_and(|rest| paging.recursive || !rest.contains('/'))
            })
            .map(|(_, entry)| entry)
            .collect();
        if entries.is_empty() && !prefix.is_empty() {
            return Err(Error::new(
                Code::FileNotFound,
                format!("{} has no folder {folder:?} at {revision}", repo.id()),
            )
            .into());
        }
        // The next page is of the same commit, whatever happens to the branch meanwhile.
        let base = format!("{}/api/kernels/{}/tree/{commit}/{prefix}", caller.address, repo.id());
        let next = format!("{}?recursive={}&", base.trim_end_matches('/'), paging.recursive);
        Ok(page(&app, &entries, paging.cursor, &next))
    })
    .await
}

/// A file or folder as the protocol describes it.
#[derive(Serialize)]
#[serde(tag = "type", rename_all = "lowercase")]
enum Entry<'a> {
    File {
        oid: &'a Oid,
        size: u64,
        path: &'a RepoPath,
        #[serde(skip_serializing_if = "Option::is_none")]
        lfs: Option<Lfs<'a>>,
    },
    Directory {
        oid: Oid,
        size: u64,
        path: String,
    },
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Lfs<'a> {
    oid: &'a Oid,
    size: u64,
    pointer_size: usize,
}

/// Every file and folder of `tree`, by path.
fn entries(tree: &Tree) -> BTreeMap<String, Entry<'_>> {
    let files = tree.files.iter().map(|(path, file)| {
        let lfs = || Lfs { oid: &file.sha256, size: file.size, pointer_size: file.pointer_size() };
        let entry = Entry::File { oid: &file.oid, size: file.size, path, lfs: file.lfs.then(lfs) };
        (path.to_string(), entry)
    });
    let folders =
        tree.folders().into_iter().map(|(path, oid)| (path.clone(), Entry::Directory { oid, size: 0, path }));
    files.chain(folders).collect()
}

/// The entries from `cursor` on, with a link to the next page if there is more.
fn page(app: &App, entries: &[impl Serialize], cursor: usize, next: &str) -> axum::response::Response {
    let end = cursor.saturating_add(app.config.page_size).min(entries.len());
    let mut response = Json(entries.get(cursor..end).unwrap_or_default()).into_response();
    if end < entries.len()
        && let Ok(link) = HeaderValue::from_str(&format!("<{next}cursor={end}>; rel=\"next\""))
    {
        response.headers_mut().insert(header::LINK, link);
    }
    response
}

#[derive(Deserialize)]
struct Paths {
    paths: Vec<String>,
}

/// `POST /api/kernels/{owner}/{name}/paths-info/{revision}`
pub(super) async fn paths_info(
    State(app): State<App>,
    Path((owner, name, revision)): RepoAndOne,
    caller: Caller,
    headers: HeaderMap,
    body: Bytes,
) -> Answer {
    let is_form = headers
        .get(header::CONTENT_TYPE)
        .is_some_and(|t| t.as_bytes().starts_with(b"application/x-www-form-urlencoded"));
    let paths = if is_form { form_values(&body, "paths")? } else { parse::<Paths>(&body)?.paths };
    blocking(move || {
        let repo = app.readable(&owner, &name, &caller)?;
        let tree = repo.tree(&repo.resolve(&revision)?)?;
        let mut all = entries(&tree);
        let found: Vec<_> = paths.iter().filter_map(|path| all.remove(path.trim_end_matches('/'))).collect();
        Ok(Json(found).into_response())
    })
    .await
}

/// The values of `key` in an urlencoded form.
fn form_values(body: &[u8], key: &str) -> Answer<Vec<String>> {
    let not_text = || Refusal::bad_request("the form is not UTF-8");
    let text = std::str::from_utf8(body).map_err(|_| not_text())?;
    let values = text
        .split('&')
        .filter_map(|pair| pair.split_once('='))
        .filter(|(k, _)| *k == key)
        .map(|(_, v)| v.replace('+', " "));
    values
        .map(|v| percent_decode_str(&v).decode_utf8().map(|v| v.into_owned()).map_err(|_| not_text()))
        .collect()
}

/// `GET /api/kernels/{owner}/{name}/commits/{revision}`
pub(super) async fn commits(
    State(app): State<App>,
    Path((owner, name, revision)): RepoAndOne,
    Query(paging): Query<Paging>,
    caller: Caller,
) -> Answer {
    blocking(move || {
        let repo = app.readable(&owner, &name, &caller)?;
        let head = repo.resolve(&revision)?;
        let describe = |commit: Commit| {
            json!({
                "id": commit.id, "title": commit.title, "message": commit.description,
                "date": iso8601(commit.date), "authors": [{"user": commit.author}],
            })
        };
        let commits: Vec<_> = repo.log(&head)?.into_iter().map(describe).collect();
        let next = format!("{}/api/kernels/{}/commits/{head}?", caller.address, repo.id());
        Ok(page(&app, &commits, paging.cursor, &next))
    })
    .await
}

#[cfg(test)]
mod tests {
    use super::form_values;

    #[test]
    fn forms_decode_repeated_keys() {
        let body = b"paths=build%2Fa+b&expand=false&paths=%C3%A9";
        assert_eq!(form_values(body, "paths").unwrap(), ["build/a b", "é"]);
        assert!(form_values(b"paths=%FF", "paths").is_err());
    }
}
