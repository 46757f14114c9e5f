//! The table of endpoints, and what every request passes through.
//!
//! Matching works on the raw path, so a revision with `/` arrives as one `%2F`-escaped segment and is
//! decoded after it was found.

use axum::Router;
use axum::extract::{DefaultBodyLimit, Path};
use axum::http::{HeaderMap, Uri, header};
use axum::middleware::from_fn_with_state;
use axum::routing::{delete, get, post};

use crate::error::Result;
use crate::hub::repo::RepoId;

use super::respond::{Answer, Refusal};
use super::store::{Repo, missing_repo};
use super::{App, access, files, listing, publish, refs, repos};

/// The largest JSON body; a preupload request holds a kilobyte a file.
const MAX_JSON: usize = 64 << 20;

pub(super) fn router(app: App) -> Router {
    let repo = Router::new()
        .route("/", get(repos::info))
        .route("/revision/{revision}", get(repos::info_at))
        .route("/refs", get(refs::list))
        .route("/branch/{name}", post(refs::create_branch).delete(refs::delete_branch))
        .route("/tag/{name}", post(refs::create_tag).delete(refs::delete_tag))
        .route("/tree/{revision}", get(listing::tree))
        .route("/tree/{revision}/{*folder}", get(listing::tree_below))
        .route("/paths-info/{revision}", post(listing::paths_info))
        .route("/commits/{revision}", get(listing::commits))
        .route("/preupload/{revision}", post(publish::preupload))
        .route("/commit/{revision}", post(publish::commit));
    Router::new()
        .nest("/api/kernels/{owner}/{name}", repo)
        .route("/api/kernels", get(repos::list))
        .route("/kernels/{owner}/{name}/resolve/{revision}/{*path}", get(files::resolve))
        .route("/api/repos/create", post(repos::create))
        .route("/api/repos/delete", delete(repos::delete))
        .route("/api/repos/move", post(repos::rename))
        .route("/api/organizations/{owner}/overview", get(repos::owner))
        .route("/api/whoami-v2", get(repos::whoami))
        .route("/api/validate-yaml", post(repos::validate_yaml))
        .route("/api/agent-harnesses", get(repos::agent_harnesses))
        .fallback(unknown)
        .layer(DefaultBodyLimit::max(MAX_JSON))
        .layer(from_fn_with_state(app.clone(), access::guard))
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
    /// The repository `owner/name`, if the sender of `headers` may see it.
    pub(super) fn readable(&self, owner: &str, name: &str, headers: &HeaderMap) -> Result<Repo<'_>> {
        let repo = self.store.repo(&RepoId::new(owner, name)?)?;
        if repo.info()?.private && !self.access.may_write(headers) {
            // Whether a private repository exists is private too.
            return Err(missing_repo(repo.id()));
        }
        Ok(repo)
    }

    /// This hub's address as the client wrote it.
    pub(super) fn endpoint(&self, headers: &HeaderMap) -> String {
        let plain = |host: &&str| host.bytes().all(|b| b.is_ascii_alphanumeric() || b"-._:[]".contains(&b));
        match headers.get(header::HOST).and_then(|h| h.to_str().ok()).filter(plain) {
            Some(host) => format!("http://{host}"),
            None => format!("http://{}", self.address),
        }
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
