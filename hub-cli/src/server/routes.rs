//! The table of endpoints, and what every request passes through.
//!
//! Matching works on the raw path, so a revision with `/` arrives as one `%2F`-escaped segment and is
//! decoded after it was found.

use axum::Router;
use axum::extract::{DefaultBodyLimit, Path};
use axum::http::{StatusCode, Uri};
use axum::middleware::from_fn_with_state;
use axum::routing::{delete, get, post, put};
use tower_http::timeout::{RequestBodyTimeoutLayer, TimeoutLayer};

use crate::error::{Code, Error, Result};
use crate::hub::repo::RepoId;

use super::access::{Caller, guard};
use super::respond::{Answer, Refusal};
use super::store::{Repo, missing_repo};
use super::{App, files, large, listing, observe, owners, pages, publish, pulls, refs, repos};

/// The largest JSON body; a preupload request holds a kilobyte a file.
const MAX_JSON: usize = 64 << 20;

pub(super) fn router(app: App) -> Router {
    let repo = Router::new()
        .route("/", get(repos::info))
        .route("/revision/{revision}", get(repos::info_at))
        .route("/settings", put(repos::settings))
        .route("/auth-check", get(repos::may_read))
        .route("/auth-check/write", get(repos::may_write))
        .route("/refs", get(refs::list))
        .route("/branch/{name}", post(refs::create_branch).delete(refs::delete_branch))
        .route("/tag/{name}", post(refs::create_tag).delete(refs::delete_tag))
        .route("/super-squash/{branch}", post(refs::squash))
        .route("/tree/{revision}", get(listing::tree))
        .route("/tree/{revision}/{*folder}", get(listing::tree_below))
        .route("/paths-info/{revision}", post(listing::paths_info))
        .route("/commits/{revision}", get(listing::commits))
        .route("/preupload/{revision}", post(publish::preupload))
        .route("/commit/{revision}", post(publish::commit))
        .route("/discussions", get(pulls::list).post(pulls::create))
        .route("/discussions/{number}", get(pulls::show))
        .route("/discussions/{number}/merge", post(pulls::merge))
        .route("/discussions/{number}/status", post(pulls::set_status))
        .route("/xet-read-token/{revision}", get(large::no_xet))
        .route("/xet-write-token/{revision}", get(large::no_xet));
    Router::new()
        .nest("/api/kernels/{owner}/{name}", repo)
        .route("/api/kernels", get(repos::list))
        .route("/kernels/{owner}/{name}/resolve/{revision}/{*path}", get(files::resolve))
        .route("/kernels/{owner}/{name}/info/lfs/objects/batch", post(large::batch))
        .route("/kernels/{owner}/{name}/info/lfs/verify", post(large::verify))
        .route("/large/{owner}/{name}/{oid}", put(large::put).post(large::complete))
        .route("/api/repos/create", post(repos::create))
        .route("/api/repos/delete", delete(repos::delete))
        .route("/api/repos/move", post(repos::rename))
        .route("/api/organizations/{owner}/overview", get(owners::organization))
        .route("/api/whoami-v2", get(owners::whoami))
        .route("/api/validate-yaml", post(repos::validate_yaml))
        .route("/api/agent-harnesses", get(repos::agent_harnesses))
        .route("/", get(pages::list))
        .route("/kernels/{owner}/{name}", get(pages::kernel))
        .route("/kernels/{owner}/{name}/tree/{revision}", get(pages::files))
        .route("/kernels/{owner}/{name}/commit/{revision}", get(pages::files))
        .route("/kernels/{owner}/{name}/discussions/{number}", get(pages::pull))
        .route("/metrics", get(observe::metrics))
        .route("/healthz", get(observe::healthz))
        .fallback(unknown)
        .layer(DefaultBodyLimit::max(MAX_JSON))
        .layer(from_fn_with_state(app.clone(), guard))
        .layer(from_fn_with_state(app.clone(), observe::observe))
        .layer(RequestBodyTimeoutLayer::new(app.config.idle))
        .layer(TimeoutLayer::with_status_code(StatusCode::REQUEST_TIMEOUT, app.config.longest))
        .with_state(app)
}

async fn unknown(uri: Uri) -> Refusal {
    Refusal::unsupported(format!("this hub has no {}", uri.path()))
}

/// `{owner}/{name}` of a path.
pub(super) type RepoOnly = Path<(String, String)>;
/// `{owner}/{name}` and one more segment.
pub(super) type RepoAndOne = Path<(String, String, String)>;
/// `{owner}/{name}`, a revision, and a path.
pub(super) type RepoAndPath = Path<(String, String, String, String)>;

impl App {
    /// The repository `owner/name`, if the caller may see it.
    pub(super) fn readable(&self, owner: &str, name: &str, caller: &Caller) -> Result<Repo<'_>> {
        let repo = self.store.repo(&RepoId::new(owner, name)?)?;
        if caller.may_read(repo.id(), repo.info().private) {
            return Ok(repo);
        }
        // Whether a private repository exists is private too.
        Err(missing_repo(repo.id()))
    }

    /// The repository `owner/name`, if the caller may change it.
    pub(super) fn writable(&self, owner: &str, name: &str, caller: &Caller) -> Result<Repo<'_>> {
        let repo = self.readable(owner, name, caller)?;
        self.check_writer(repo.id(), caller)?;
        Ok(repo)
    }

    /// Whether the caller may change `repo`, or make it.
    pub(super) fn check_writer(&self, repo: &RepoId, caller: &Caller) -> Result<()> {
        if caller.may_write(repo) { Ok(()) } else { Err(self.not_allowed(repo, caller)) }
    }

    /// The refusal of a known caller.
    pub(super) fn not_allowed(&self, repo: &RepoId, caller: &Caller) -> Error {
        Error::new(Code::NotAllowed, format!("the token of {} may not write to {repo}", caller.name()))
    }

    /// How many bytes `owner` may still store; `None` without a quota.
    pub(super) fn room(&self, owner: &str) -> Answer<Option<u64>> {
        let accounts = self.access.accounts();
        let quota = accounts.owners.get(owner).and_then(|o| o.quota).or(self.config.quota);
        let Some(quota) = quota else { return Ok(None) };
        let mut used = 0;
        for repo in self.store.repos_of(owner)? {
            used += repo.usage()?;
        }
        Ok(Some(quota.saturating_sub(used)))
    }
}

/// Runs `work`, which reads or writes files, where it does not hold up other requests.
pub(super) async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> Answer<T> + Send + 'static,
) -> Answer<T> {
    match tokio::task::spawn_blocking(work).await {
        Ok(result) => result,
        Err(_) => Err(Refusal::panicked()),
    }
}
