//! `cache`: what is in it, whether it is sound, and what can go.

use std::collections::BTreeSet;
use std::path::PathBuf;

use serde_json::json;

use crate::cli::{Cache as Args, CacheCommand};
use crate::error::{Code, Error, Result};
use crate::hub::{LockFile, RECENT};
use crate::output::{Output, count, size};
use crate::settings::HubSettings;

pub(super) fn run(args: &Args, hub: &HubSettings, output: &Output) -> Result<()> {
    match &args.command {
        CacheCommand::Ls => list(hub, output),
        CacheCommand::Verify { remove } => verify(*remove, hub, output),
        CacheCommand::Gc { dry_run, unreferenced, lock_files } => {
            let keep = if *unreferenced { Some(commits(lock_files)?) } else { None };
            collect(keep.as_ref(), *dry_run, hub, output)
        }
    }
}

fn list(hub: &HubSettings, output: &Output) -> Result<()> {
    let repos = hub.cache.list()?;
    let json = json!({"path": hub.cache.root(), "repos": repos});
    output.result(json, || {
        let mut text = String::new();
        for cached in &repos {
            text += &format!("{}  {}\n", cached.repo, size(cached.bytes));
            for (commit, files) in &cached.snapshots {
                let names: Vec<_> = cached
                    .refs
                    .iter()
                    .filter(|(_, at)| *at == commit)
                    .map(|(name, _)| name.as_str())
                    .collect();
                text += &format!("  {commit}  {:>10}  {}\n", count(*files, "file"), names.join(" "));
            }
        }
        text + &format!("{} in {}", count(repos.len(), "kernel"), hub.cache.root().display())
    });
    Ok(())
}

fn verify(remove: bool, hub: &HubSettings, output: &Output) -> Result<()> {
    let report = hub.cache.verify()?;
    let bad: Vec<&PathBuf> = report.damaged.iter().chain(&report.dangling).collect();
    if bad.is_empty() || remove {
        hub.cache.mend(&report)?;
        let json = json!({"checked": report.checked, "removed": bad});
        output.result(json, || {
            format!(
                "{} checked, {} removed",
                count(report.checked, "content"),
                count(bad.len(), "damaged file")
            )
        });
        return Ok(());
    }
    let names: Vec<_> = bad.iter().map(|path| format!("  {}", path.display())).collect();
    let message = format!(
        "{} of the cache {} damaged",
        count(bad.len(), "file"),
        if bad.len() == 1 { "is" } else { "are" }
    );
    Err(Error::new(Code::CacheDamaged, message)
        .report(names.join("\n"))
        .help("`kernels-cli cache verify --remove` removes them; the next `get` fetches them again"))
}

/// The commits that lock files name.
fn commits(lock_files: &[PathBuf]) -> Result<BTreeSet<crate::hub::CommitId>> {
    let mut commits = BTreeSet::new();
    for file in lock_files {
        commits.extend(LockFile::read(file)?.locks.into_values());
    }
    Ok(commits)
}

fn collect(
    keep: Option<&BTreeSet<crate::hub::CommitId>>,
    dry_run: bool,
    hub: &HubSettings,
    output: &Output,
) -> Result<()> {
    let gone = hub.cache.collect(keep, RECENT, dry_run)?;
    let mut json = json!(gone);
    json["dry_run"] = json!(dry_run);
    output.result(json, || {
        let verb = if dry_run { "would remove" } else { "removed" };
        let snapshots = count(gone.snapshots.len(), "snapshot");
        format!("{verb} {snapshots} and {} ({})", count(gone.contents.len(), "content"), size(gone.bytes))
    });
    Ok(())
}
