//! Puts a built package on a hub as one version: one commit on the branch `vN`, the card on `main`.
//!
//! Writes go through the official crate `hf-hub`; what is there already is read with our own client.

use std::collections::{BTreeMap, BTreeSet};

use fs_err as fs;
use hf_hub::repository::{AddSource, CommitOperation};
use hf_hub::{HFClient, HFClientSync, HFError, RepoTypeKernel};

use crate::error::{Code, Error, Result};
use crate::package::LocalPackage;

use super::client::Client;
use super::endpoint::Token;
use super::listing::RemoteFile;
use super::oid::CommitId;
use super::path::RepoPath;
use super::repo::{RepoId, Version};

/// What a publication changed.
#[derive(Clone, Debug, serde::Serialize)]
pub struct Published {
    /// The repository.
    pub repo: RepoId,
    /// The version.
    pub version: Version,
    /// The branch's newest commit, which holds the package.
    pub commit: CommitId,
    /// Files that were sent.
    pub uploaded: usize,
    /// Files that were there already with the same content.
    pub unchanged: usize,
    /// Files of an earlier form of this version that were removed.
    pub removed: usize,
    /// Bytes that were sent.
    pub bytes: u64,
    /// Whether the card on `main` was written.
    pub card: bool,
}

/// Files to put into a revision, by path in the repository.
type Upload = BTreeMap<RepoPath, Vec<u8>>;

/// Publishes `package` as `version` of `repo`.
///
/// # Errors
/// `H0408` if the package states another version, `H0204` and `H0212` if the hub does not allow it,
/// `H0209` if somebody else published at the same time.
pub fn publish(
    client: &Client,
    token: Option<&Token>,
    package: &LocalPackage,
    repo: &RepoId,
    version: Version,
    private: bool,
) -> Result<Published> {
    check_version(package, version)?;
    let files = read_files(package)?;

    let writer = Writer::new(client, token, repo)?;
    writer.create_repository(private)?;
    let branch = version.branch();
    let is_new = !client.heads(repo)?.branches.contains_key(&branch);
    if is_new {
        writer.create_branch(&branch)?;
    }
    let head = client.resolve(repo, &version.into())?;
    let there = client.files(repo, &head)?;
    let title = format!("{} {version}", package.variants[0].metadata.name);
    let (commit, report) =
        writer.commit(&branch, &head, &files, &there, |path| is_stale(path, package, is_new), &title)?;

    let card = match &package.card {
        Some(card) => {
            let main = client.resolve(repo, &super::Revision::Branch("main".to_owned()))?;
            let text = fs::read(card).map_err(|e| Error::io(card, e))?;
            let readme = Upload::from([(RepoPath::parse("README.md")?, text)]);
            let there = client.files(repo, &main)?;
            writer.commit("main", &main, &readme, &there, |_| false, "Update the card")?.1.sent > 0
        }
        None => false,
    };
    confirm(client, repo, &commit, &files)?;
    Ok(Published {
        repo: repo.clone(),
        version,
        commit,
        uploaded: report.sent,
        unchanged: files.len() - report.sent,
        removed: report.removed,
        bytes: report.bytes,
        card,
    })
}

fn check_version(package: &LocalPackage, version: Version) -> Result<()> {
    let stated = package.variants.iter().find(|v| v.metadata.version != version.0);
    let Some(variant) = stated else { return Ok(()) };
    let states = variant.metadata.version;
    Err(Error::new(Code::Version, format!("the package is version {states}, and not {}", version.0)).help(
        format!(
            "set `version = {}` in build.toml and build again, or publish it with --version {states}",
            version.0
        ),
    ))
}

fn read_files(package: &LocalPackage) -> Result<Upload> {
    let mut files = Upload::new();
    for variant in &package.variants {
        if variant.metadata.digest.is_none() {
            return Err(Error::new(Code::Digest, format!("{} has no digest", variant.name))
                .help("build it with `kernels-cli build`"));
        }
        let folder = RepoPath::parse(&format!("build/{}", variant.name))?;
        for (path, file) in &variant.files {
            files.insert(path.in_folder(&folder), fs::read(file).map_err(|e| Error::io(file, e))?);
        }
    }
    Ok(files)
}

/// Whether a file of the branch belongs to an earlier form of the package. A new branch starts from
/// `main` or another version, so nothing it holds under `build/` is this version's.
fn is_stale(path: &RepoPath, package: &LocalPackage, is_new: bool) -> bool {
    match crate::package::split_variant(path) {
        Some((variant, _)) => is_new || package.variants.iter().any(|v| v.name == variant),
        None => false,
    }
}

/// Reads back what the hub holds now: the ids must be those of the files that were sent.
fn confirm(client: &Client, repo: &RepoId, commit: &CommitId, files: &Upload) -> Result<()> {
    let there = client.files(repo, commit)?;
    match changed(files, &there).first() {
        None => Ok(()),
        Some(path) => {
            Err(Error::new(Code::Content, format!("{path} on the hub is not the file that was published")))
        }
    }
}

/// The files of `upload` that `there` does not hold with the same content.
fn changed<'a>(upload: &'a Upload, there: &[RemoteFile]) -> Vec<&'a RepoPath> {
    let there: BTreeMap<_, _> = there.iter().map(|file| (&file.path, &file.oid)).collect();
    let same = |path: &RepoPath, bytes: &[u8]| {
        there.get(path).is_some_and(|oid| {
            let mut hasher = oid.hasher(bytes.len() as u64);
            hasher.update(bytes);
            hasher.finish() == **oid
        })
    };
    upload.iter().filter(|(path, bytes)| !same(path, bytes)).map(|(path, _)| path).collect()
}

/// What one commit did.
#[derive(Default)]
struct Report {
    sent: usize,
    removed: usize,
    bytes: u64,
}

/// The write side of one repository, through `hf-hub`.
struct Writer<'a> {
    hub: HFClientSync,
    repo: &'a RepoId,
}

impl<'a> Writer<'a> {
    fn new(client: &Client, token: Option<&Token>, repo: &'a RepoId) -> Result<Self> {
        let agent = concat!("kernels-cli/", env!("CARGO_PKG_VERSION"));
        let mut builder = HFClient::builder()
            .endpoint(client.endpoint().to_string())
            .user_agent(agent)
            .cache_enabled(false);
        if let Some(token) = token {
            builder = builder.token(token.reveal());
        }
        let hub = builder.build_sync().map_err(|e| failed(repo, e))?;
        Ok(Self { hub, repo })
    }

    fn create_repository(&self, private: bool) -> Result<()> {
        let id = self.repo.to_string();
        let create = self
            .hub
            .create_repository()
            .repo_id(&id)
            .repo_type(RepoTypeKernel)
            .private(private)
            .exist_ok(true);
        match create.send() {
            Ok(_) => Ok(()),
            Err(HFError::Forbidden { context }) => {
                let said = context.server_message.clone().unwrap_or_default();
                // huggingface.co gives the right to create kernel repositories on request.
                let code = if said.contains("restricted") { Code::CreationGated } else { Code::NotAllowed };
                let said = super::transport::printable(&said);
                Err(Error::new(code, format!("the hub does not let you create {}: {said}", self.repo)))
            }
            Err(e) => Err(failed(self.repo, e)),
        }
    }

    fn create_branch(&self, branch: &str) -> Result<()> {
        match self.kernel().create_branch().branch(branch).send() {
            // Somebody else made it just now, which is as good.
            Ok(()) | Err(HFError::Conflict { .. }) => Ok(()),
            Err(e) => Err(failed(self.repo, e)),
        }
    }

    /// Commits the difference between `upload` and `there` to `branch`, if there is one.
    fn commit(
        &self,
        branch: &str,
        head: &CommitId,
        upload: &Upload,
        there: &[RemoteFile],
        is_stale: impl Fn(&RepoPath) -> bool,
        title: &str,
    ) -> Result<(CommitId, Report)> {
        let mut report = Report::default();
        let mut operations = Vec::new();
        for path in changed(upload, there) {
            let bytes = &upload[path];
            report.sent += 1;
            report.bytes += bytes.len() as u64;
            operations.push(CommitOperation::Add {
                path_in_repo: path.to_string(),
                source: AddSource::Bytes(bytes.clone().into()),
            });
        }
        let kept: BTreeSet<_> = upload.keys().collect();
        for file in there.iter().filter(|file| is_stale(&file.path) && !kept.contains(&file.path)) {
            report.removed += 1;
            operations.push(CommitOperation::Delete { path_in_repo: file.path.to_string() });
        }
        if operations.is_empty() {
            return Ok((head.clone(), report));
        }
        let kernel = self.kernel();
        let commit = kernel
            .create_commit()
            .operations(operations)
            .commit_message(title)
            .revision(branch)
            .parent_commit(head.as_str());
        let info = commit.send().map_err(|e| failed(self.repo, e))?;
        let oid = info.commit_oid.unwrap_or_default();
        let id = oid.parse().map_err(|e: Error| {
            Error::new(Code::Protocol, "the hub names no commit for the upload").because(e)
        })?;
        Ok((id, report))
    }

    fn kernel(&self) -> hf_hub::HFRepositorySync<RepoTypeKernel> {
        self.hub.kernel(self.repo.owner(), self.repo.name())
    }
}

/// An error of `hf-hub` as one of ours.
fn failed(repo: &RepoId, error: HFError) -> Error {
    let (code, what) = match &error {
        HFError::AuthRequired { .. } | HFError::Forbidden { .. } => {
            (Code::NotAllowed, "the hub does not allow this")
        }
        HFError::RepoNotFound { .. } => (Code::RepoNotFound, "the hub has no such repository"),
        HFError::RevisionNotFound { .. } => (Code::RevisionNotFound, "the hub has no such branch"),
        HFError::Http { context } if context.status.as_u16() == 412 => {
            (Code::Moved, "the branch moved meanwhile")
        }
        HFError::Conflict { .. } => (Code::Moved, "the branch moved meanwhile"),
        HFError::Request { .. } => (Code::Unreachable, "the hub cannot be reached"),
        HFError::Json(_) => (Code::Protocol, "the answer is not what the protocol says"),
        _ => (Code::Status, "the hub refused"),
    };
    let said = super::transport::printable(&error.to_string());
    let error = Error::new(code, format!("{repo}: {what} ({said})")).because(error);
    match code {
        Code::NotAllowed => error.help("set HF_TOKEN to a token that may write there"),
        Code::Moved => error.help("nothing was written: run the command again"),
        _ => error,
    }
}
