//! The first page: every kernel that the caller may see.

use axum::extract::{Query, State};
use axum::response::Response;
use maud::html;
use serde::Deserialize;

use crate::hub::repo::Version;
use crate::output::size;

use super::super::App;
use super::super::access::Caller;
use super::super::respond::Answer;
use super::super::routes::blocking;
use super::super::store::{RefKind, Repo};
use super::super::time::iso8601;
use super::layout::{failure, page};

#[derive(Deserialize)]
pub(in super::super) struct Filter {
    search: Option<String>,
}

/// One line of the list.
struct Row {
    id: String,
    versions: Vec<Version>,
    bytes: u64,
    changed: String,
    private: bool,
    trusted: bool,
}

impl Row {
    fn of(app: &App, repo: &Repo<'_>) -> Answer<Self> {
        let branches = repo.refs(RefKind::Branch)?;
        let mut versions: Vec<_> = branches.keys().filter_map(|b| Version::from_branch(b)).collect();
        versions.sort();
        let newest = versions.last().map_or_else(|| "main".into(), |v| v.branch());
        let (mut bytes, mut changed) = (0, 0);
        if let Some(head) = branches.get(&newest) {
            bytes = repo.tree(head)?.files.values().map(|file| file.size).sum();
            changed = repo.commit(head)?.date;
        }
        Ok(Self {
            id: repo.id().to_string(),
            versions,
            bytes,
            changed: iso8601(changed)[..10].to_owned(),
            private: repo.info().private,
            trusted: app.access.trusts(repo.id().owner()),
        })
    }
}

/// `GET /`
pub(in super::super) async fn list(
    State(app): State<App>,
    Query(filter): Query<Filter>,
    caller: Caller,
) -> Response {
    let rows = blocking(move || {
        let mut rows = Vec::new();
        for repo in app.store.repos()? {
            let wanted = filter.search.as_deref().is_none_or(|s| repo.id().to_string().contains(s));
            if wanted && caller.may_read(repo.id(), repo.info().private) {
                rows.push(Row::of(&app, &repo)?);
            }
        }
        Ok((rows, filter.search, caller.address.clone()))
    })
    .await;
    let (rows, search, address) = match rows {
        Ok(found) => found,
        Err(refusal) => return failure(&refusal),
    };
    page(
        "Kernels",
        &html! {
            form method="get" action="/" {
                input type="search" name="search" placeholder="owner or name" value=[&search] aria-label="Search";
                button { "Search" }
            }
            @if !rows.is_empty() {
                table id="kernels" {
                    thead { tr {
                        th { "Kernel" } th { "Versions" } th .number { "Newest version" } th { "Changed" }
                    } }
                    tbody { @for row in &rows { tr {
                        td {
                            a href={ "/kernels/" (row.id) } { (row.id) }
                            @if row.private { " " span .tag { "private" } }
                            @if row.trusted { " " span .tag { "trusted" } }
                        }
                        td { @for version in &row.versions { span .tag { (version) } " " } }
                        td .number { (size(row.bytes)) }
                        td .date { (row.changed) }
                    } } }
                }
            } @else if let Some(words) = search.as_deref().filter(|words| !words.is_empty()) {
                p { "No kernel that you may see has " code { (words) } " in its name. " a href="/" { "Show all" } }
            } @else {
                p { "There are no kernels here yet. Publish one:" }
                pre { "HF_ENDPOINT=" (address) " kernels-cli publish PACKAGE OWNER/NAME --version 1" }
            }
        },
    )
}
