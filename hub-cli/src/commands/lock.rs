//! `lock`: the kernels of a project and the commits that they are pinned to.

use serde_json::json;

use crate::cli::Lock;
use crate::error::{Code, Error, Result};
use crate::hub::{
    Allowed, LockFile, Revision, add_project_dependency, lock, parse_spec, project_dependencies,
};
use crate::output::Output;
use crate::settings::HubSettings;

pub(super) fn run(args: &Lock, hub: &HubSettings, output: &Output) -> Result<()> {
    if hub.offline {
        return Err(Error::new(Code::Offline, "where versions stand is known to the hub only")
            .help("unset HF_HUB_OFFLINE"));
    }
    let allowed = Allowed::parse(&args.allow)?;
    let (project, path) = (args.project.join("pyproject.toml"), args.project.join("kernels.lock"));
    for added in &args.add {
        match parse_spec(added)? {
            (repo, Some(Revision::Version(version))) => add_project_dependency(&project, &repo, version)?,
            _ => {
                let message = format!("{added:?} names no version");
                return Err(Error::new(Code::Arguments, message).help("write it as OWNER/NAME@v1"));
            }
        }
    }
    let old = if path.exists() { LockFile::read(&path)? } else { LockFile::default() };
    let new = lock(&hub.client()?, &project_dependencies(&project)?, &allowed)?;
    let differences = differences(&old, &new);
    if args.check && (!differences.is_empty() || !path.exists()) {
        return Err(Error::new(Code::Drift, format!("{} is not up to date", path.display()))
            .report(differences.join("\n"))
            .help("run `kernels-cli lock`, and look at what changes"));
    }
    if old != new || !path.exists() {
        new.write(&path)?;
    }
    let locks: Vec<_> = new
        .locks
        .iter()
        .map(|(dependency, commit)| json!({"dependency": dependency, "commit": commit}))
        .collect();
    output.summary(json!({"path": path, "locks": locks, "changes": differences}), || {
        let mut text = format!("{}\n", path.display());
        for (dependency, commit) in &new.locks {
            text += &format!("  {dependency}  {commit}\n");
        }
        text + &differences.join("\n")
    });
    Ok(())
}

/// How two lock files differ, a line for each kernel.
fn differences(old: &LockFile, new: &LockFile) -> Vec<String> {
    let mut lines = Vec::new();
    for (dependency, commit) in &new.locks {
        match old.locks.get(dependency) {
            Some(before) if before == commit => {}
            Some(before) => lines.push(format!("  ~ {dependency}  {before} -> {commit}")),
            None => lines.push(format!("  + {dependency}  {commit}")),
        }
    }
    let gone = old.locks.keys().filter(|dependency| !new.locks.contains_key(dependency));
    lines.extend(gone.map(|dependency| format!("  - {dependency}")));
    lines
}
