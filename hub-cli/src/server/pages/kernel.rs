//! The pages of one kernel: its versions with their ops, the files of a revision, a pull request.

use std::collections::{BTreeMap, BTreeSet};

use axum::extract::{Path, State};
use axum::response::Response;
use kernel_ir::mosaic::call::Index;
use maud::{Markup, html};

use crate::hub::oid::CommitId;
use crate::hub::repo::Version;
use crate::output::{count, size};

use super::super::App;
use super::super::access::Caller;
use super::super::respond::{Answer, Refusal};
use super::super::routes::{RepoAndOne, RepoOnly, blocking};
use super::super::store::{RefKind, Repo};
use super::super::time::iso8601;
use super::layout::{failure, page};

/// The largest index.json that a page reads, in bytes.
const MAX_INDEX: u64 = 8 << 20;
/// How many versions a page shows in full.
const SHOWN: usize = 20;

/// What the page says about one version.
struct Shown {
    version: Version,
    commit: CommitId,
    date: String,
    bytes: u64,
    files: usize,
    /// Variants by name, with their sizes in bytes.
    variants: BTreeMap<String, u64>,
    ops: Vec<Op>,
}

/// One op of a version: what it takes and gives, and where it runs.
struct Op {
    name: String,
    doc: String,
    signature: String,
    modules: usize,
    bytes: u64,
    generations: BTreeSet<String>,
}

impl Shown {
    fn of(repo: &Repo<'_>, version: Version, commit: CommitId) -> Answer<Self> {
        let tree = repo.tree(&commit)?;
        let mut variants = BTreeMap::new();
        let mut index = None;
        for (path, file) in &tree.files {
            let Some(inside) = path.as_str().strip_prefix("build/") else { continue };
            let Some((variant, name)) = inside.split_once('/') else { continue };
            *variants.entry(variant.to_owned()).or_default() += file.size;
            if name == "index.json" && file.size <= MAX_INDEX {
                index = Some(file);
            }
        }
        // A package that is not ours, or whose index is damaged, has no ops to show.
        let ops = match index {
            Some(file) => Index::parse(&repo.read_object(file)?).map(|index| ops(&index)).unwrap_or_default(),
            None => Vec::new(),
        };
        Ok(Self {
            version,
            date: iso8601(repo.commit(&commit)?.date)[..10].to_owned(),
            commit,
            bytes: tree.files.values().map(|file| file.size).sum(),
            files: tree.files.len(),
            variants,
            ops,
        })
    }

    fn markup(&self, id: &str) -> Markup {
        html! {
            h2 id=(self.version) { "Version " (self.version) }
            p .quiet {
                (self.date) ", " a href={ "/kernels/" (id) "/tree/" (self.version) } { (count(self.files, "file")) }
                ", " (size(self.bytes)) ", commit " code { (self.commit) }
            }
            p { @for (variant, bytes) in &self.variants { span .tag { (variant) " " (size(*bytes)) } " " } }
            @if !self.ops.is_empty() {
                table .ops {
                    thead { tr { th { "Op" } th { "Generations" } th .number { "Size" } } }
                    tbody { @for op in &self.ops { tr {
                        td { code { (op.name) (op.signature) } div .quiet { (op.doc) } }
                        td { @for generation in &op.generations { span .tag { (generation) } " " } }
                        td .number { (count(op.modules, "module")) ", " (size(op.bytes)) }
                    } } }
                }
            }
        }
    }
}

fn ops(index: &Index) -> Vec<Op> {
    index
        .ops
        .iter()
        .map(|(name, op)| {
            let list = |arguments: &[kernel_ir::mosaic::call::ArgumentInterface]| {
                let shown: Vec<_> = arguments
                    .iter()
                    .map(|a| {
                        let dims: Vec<_> = a.shape.iter().map(|dim| dim.to_string()).collect();
                        format!("{}: {}[{}]", a.name, a.dtype, dims.join(", "))
                    })
                    .collect();
                shown.join(", ")
            };
            Op {
                name: name.to_string(),
                doc: op.doc.lines().next().unwrap_or_default().to_owned(),
                signature: format!("({}) -> ({})", list(&op.arguments), list(&op.results)),
                modules: op.modules.len(),
                bytes: op.modules.iter().map(|module| module.bytes).sum(),
                generations: op.modules.iter().flat_map(|module| module.generations.clone()).collect(),
            }
        })
        .collect()
}

/// `GET /kernels/{owner}/{name}`
pub(in super::super) async fn kernel(
    State(app): State<App>,
    Path((owner, name)): RepoOnly,
    caller: Caller,
) -> Response {
    let found = blocking(move || {
        let repo = app.readable(&owner, &name, &caller)?;
        let mut heads: Vec<_> = repo
            .refs(RefKind::Branch)?
            .into_iter()
            .filter_map(|(branch, commit)| Some((Version::from_branch(&branch)?, commit)))
            .collect();
        heads.sort_by_key(|(version, _)| std::cmp::Reverse(*version));
        let older = heads.len().saturating_sub(SHOWN);
        let shown = heads
            .into_iter()
            .take(SHOWN)
            .map(|(version, commit)| Shown::of(&repo, version, commit))
            .collect::<Answer<Vec<_>>>()?;
        let trusted = app.access.trusts(repo.id().owner());
        Ok((repo.id().to_string(), shown, older, repo.pulls()?, trusted, caller.address.clone()))
    })
    .await;
    let (id, versions, older, pulls, trusted, address) = match found {
        Ok(found) => found,
        Err(refusal) => return failure(&refusal),
    };
    page(
        &id,
        &html! {
            @if let Some(newest) = versions.first() {
                p { "In Python, with " code { "HF_ENDPOINT=" (address) } ":" }
                pre id="snippet" {
                    "from kernels import get_kernel\n\n"
                    "kernel = get_kernel(\"" (id) "\", version=" (newest.version.0)
                    @if !trusted { ", trust_remote_code=[\"" (id) "\"]" }
                    ")"
                }
                p { "On the command line:" }
                pre id="command" {
                    "HF_ENDPOINT=" (address) " kernels-cli get " (id) "@" (newest.version)
                }
            } @else {
                p { "No version has been published." }
            }
            @for version in &versions { (version.markup(&id)) }
            @if older > 0 { p .quiet { "and " (count(older, "older version")) } }
            @if !pulls.is_empty() {
                h2 { "Pull requests" }
                table { tbody { @for pull in &pulls { tr {
                    td { a href={ "/kernels/" (id) "/discussions/" (pull.number) } { "#" (pull.number) " " (pull.title) } }
                    td { (format!("{:?}", pull.status).to_lowercase()) }
                    td { (pull.author) }
                } } } }
            }
        },
    )
}

/// `GET /kernels/{owner}/{name}/tree/{revision}`, and `/commit/{revision}`, where the address of a new commit leads
pub(in super::super) async fn files(
    State(app): State<App>,
    Path((owner, name, revision)): RepoAndOne,
    caller: Caller,
) -> Response {
    let found = blocking(move || {
        let repo = app.readable(&owner, &name, &caller)?;
        let id = repo.resolve(&revision)?;
        let (commit, tree) = (repo.commit(&id)?, repo.tree(&id)?);
        Ok((repo.id().to_string(), commit, tree))
    })
    .await;
    let (id, commit, tree) = match found {
        Ok(found) => found,
        Err(refusal) => return failure(&refusal),
    };
    page(
        &format!("{id}: {}", commit.title),
        &html! {
            p { a href={ "/kernels/" (id) } { (id) } ", " (commit.author) ", " (iso8601(commit.date)) }
            p .quiet { "commit " code { (commit.id) } }
            table id="files" {
                thead { tr { th { "File" } th .number { "Size" } } }
                tbody { @for (path, file) in &tree.files { tr {
                    td { a href={ "/kernels/" (id) "/resolve/" (commit.id) "/" (path) } { (path) } }
                    td .number { (size(file.size)) }
                } } }
            }
        },
    )
}

/// `GET /kernels/{owner}/{name}/discussions/{number}`
pub(in super::super) async fn pull(
    State(app): State<App>,
    Path((owner, name, number)): RepoAndOne,
    caller: Caller,
) -> Response {
    let found = blocking(move || {
        let repo = app.readable(&owner, &name, &caller)?;
        let number = number.parse().map_err(|_| Refusal::bad_request("this is not a number"))?;
        let pull = repo.pull(number)?;
        let log = repo.log(&repo.existing_ref(&pull.git_ref()?)?)?;
        Ok((repo.id().to_string(), pull, log))
    })
    .await;
    let (id, pull, log) = match found {
        Ok(found) => found,
        Err(refusal) => return failure(&refusal),
    };
    page(
        &format!("#{} {}", pull.number, pull.title),
        &html! {
            p {
                a href={ "/kernels/" (id) } { (id) } ", " (pull.author) " proposes this for " code { (pull.base) } " "
                span .tag { (format!("{:?}", pull.status).to_lowercase()) }
            }
            p { (pull.description) }
            table { tbody { @for commit in log.iter().take(SHOWN) { tr {
                td { a href={ "/kernels/" (id) "/commit/" (commit.id) } { (commit.title) } }
                td { (commit.author) }
                td { (iso8601(commit.date)) }
            } } } }
        },
    )
}
