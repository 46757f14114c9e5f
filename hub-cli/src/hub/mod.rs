//! A client of hubs: what is asked for, how it is fetched and checked, and where it is kept.

mod bundle;
mod cache;
mod client;
mod dependency;
mod download;
mod endpoint;
mod export;
mod fetch;
mod listing;
mod lock;
mod locked;
mod locking;
pub(crate) mod oid;
pub(crate) mod path;
mod publish;
mod refusal;
pub(crate) mod repo;
mod transport;

pub use bundle::{Bundled, bundle, unbundle};
pub use cache::{Cache, CacheReport, CachedRepo, Collected, RECENT};
pub use client::{Client, Found, Heads};
pub use dependency::{KernelDependency, Pin};
pub use endpoint::{Endpoint, Token};
pub use fetch::{Fetched, Progress, Silent, Wanted, fetch, open_cached};
pub use listing::RemoteFile;
pub use lock::{LockFile, add_project_dependency, project_dependencies};
pub use locked::{check_against_project, fetch_locked};
pub use locking::{Allowed, lock};
pub use oid::{CommitId, Oid};
pub use path::RepoPath;
pub use publish::{Changes, Mirrored, Plan, Proposed, Published, mirror, publish};
pub(crate) use refusal::printable;
pub use repo::{RepoId, Revision, Version, parse_spec};
pub use transport::Patience;
