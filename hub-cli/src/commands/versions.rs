//! `versions`: what can be fetched.

use serde_json::json;

use crate::cli::Versions;
use crate::error::{Code, Error, Result};
use crate::hub::RepoId;
use crate::output::Output;
use crate::settings::HubSettings;

pub(super) fn run(args: &Versions, hub: &HubSettings, output: &Output) -> Result<()> {
    let repo: RepoId = args.repo.parse()?;
    if hub.offline {
        return Err(Error::new(Code::Offline, "the versions of a kernel are known to its hub only")
            .help("unset HF_HUB_OFFLINE"));
    }
    let heads = hub.client()?.heads(&repo)?;
    let versions = heads.versions();
    let list: Vec<_> = versions
        .iter()
        .map(|(v, commit)| json!({"version": v, "branch": v.branch(), "commit": commit}))
        .collect();
    output.result(json!({"repo": repo, "versions": list}), || {
        if versions.is_empty() {
            return format!("{repo} has no versions");
        }
        versions.iter().map(|(version, commit)| format!("{version:<6} {commit}\n")).collect()
    });
    Ok(())
}
