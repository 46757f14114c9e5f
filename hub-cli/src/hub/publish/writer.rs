//! The write side of one repository, through the official crate `hf-hub`.

use hf_hub::repository::{AddSource, CommitOperation};
use hf_hub::{HFClient, HFClientSync, HFError, RepoTypeKernel};

use crate::error::{Code, Error, Result};
use crate::hub::client::Client;
use crate::hub::endpoint::Token;
use crate::hub::oid::CommitId;
use crate::hub::refusal::printable;
use crate::hub::repo::RepoId;

use super::plan::{Changes, Upload};

/// Writes to one repository.
pub(super) struct Writer<'a> {
    hub: HFClientSync,
    repo: &'a RepoId,
}

impl<'a> Writer<'a> {
    pub(super) fn new(client: &Client, token: Option<&Token>, repo: &'a RepoId) -> Result<Self> {
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

    pub(super) fn create_repository(&self, private: bool) -> Result<()> {
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
                let said = printable(&said);
                let error =
                    Error::new(code, format!("the hub does not let you create {}: {said}", self.repo));
                Err(match code {
                    Code::CreationGated => error.help(format!(
                        "ask for it at https://huggingface.co/settings/account, or in the settings of {}; until then \
                         publish to a hub of your own: `kernels-cli serve --root DIR`, and HF_ENDPOINT set to its address",
                        self.repo.owner()
                    )),
                    _ => error.help(format!(
                        "HF_TOKEN must be a token with write access to {}: `kernels-cli explain H0204` says more",
                        self.repo.owner()
                    )),
                })
            }
            Err(e) => Err(failed(self.repo, e)),
        }
    }

    /// Makes a branch at `start`, or at the head of `main`; whether it was not there yet.
    pub(super) fn create_branch(&self, branch: &str, start: Option<&CommitId>) -> Result<bool> {
        let kernel = self.kernel();
        let start = start.map(|commit| commit.as_str().to_owned());
        match kernel.create_branch().branch(branch).maybe_revision(start).send() {
            Ok(()) => Ok(true),
            Err(HFError::Conflict { .. }) => Ok(false),
            Err(e) => Err(failed(self.repo, e)),
        }
    }

    /// Removes a branch; one that is gone already is as good.
    pub(super) fn delete_branch(&self, branch: &str) -> Result<()> {
        match self.kernel().delete_branch().branch(branch).send() {
            Ok(()) => Ok(()),
            // hf-hub takes any 404 here for a missing repository; the hub's own code says what is missing.
            Err(HFError::RepoNotFound { context: Some(context), .. })
                if context.error_code.as_deref() == Some("RevisionNotFound") =>
            {
                Ok(())
            }
            Err(e) => Err(failed(self.repo, e)),
        }
    }

    /// Tags `commit`.
    pub(super) fn create_tag(&self, tag: &str, commit: &CommitId) -> Result<()> {
        let made = self.kernel().create_tag().tag(tag).revision(commit.as_str()).send();
        made.map_err(|e| failed(self.repo, e))
    }

    /// Commits `changes`, with contents from `upload`, to a branch that stands at `head`.
    pub(super) fn commit(
        &self,
        branch: &str,
        head: &CommitId,
        upload: &Upload,
        changes: &Changes,
        title: &str,
    ) -> Result<CommitId> {
        let added = changes.added.iter().chain(&changes.changed).map(|path| CommitOperation::Add {
            path_in_repo: path.to_string(),
            source: AddSource::Bytes(upload[path].clone().into()),
        });
        let removed =
            changes.removed.iter().map(|path| CommitOperation::Delete { path_in_repo: path.to_string() });
        let kernel = self.kernel();
        let commit = kernel
            .create_commit()
            .operations(added.chain(removed).collect::<Vec<_>>())
            .commit_message(title)
            .revision(branch)
            .parent_commit(head.as_str());
        let info = commit.send().map_err(|e| failed(self.repo, e))?;
        info.commit_oid.unwrap_or_default().parse().map_err(|e: Error| {
            Error::new(Code::Protocol, "the hub names no commit for the upload").because(e)
        })
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
    let said = printable(&error.to_string());
    let error = Error::new(code, format!("{repo}: {what} ({said})")).because(error);
    match code {
        Code::NotAllowed => error.help("set HF_TOKEN to a token that may write there"),
        Code::Moved => error.help("nothing was written: run the command again"),
        _ => error,
    }
}
