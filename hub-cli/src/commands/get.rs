//! `get`: a kernel comes into the cache, checked; or all that a lock file pins.

use serde_json::json;

use crate::cli::Get;
use crate::error::{Code, Error, Result};
use crate::hub::{
    Fetched, KernelDependency, LockFile, Pin, Revision, Version, Wanted, check_against_project, fetch,
    fetch_locked, open_cached, parse_spec,
};
use crate::output::{Output, count, size};
use crate::settings::HubSettings;

pub(super) fn run(args: &Get, hub: &HubSettings, output: &Output) -> Result<()> {
    if args.locked {
        return run_locked(args, hub, output);
    }
    let wanted = wanted(args)?;
    let fetched = match hub.offline {
        true => open_cached(&hub.cache, &wanted)?,
        false => fetch(&hub.client()?, &hub.cache, &wanted, &mut output.progress())?,
    };
    finish(args, &wanted.revision.to_string(), &fetched, output)
}

fn run_locked(args: &Get, hub: &HubSettings, output: &Output) -> Result<()> {
    let lock = LockFile::read(&args.lock_file)?;
    check_against_project(&lock, &args.lock_file)?;
    let client = if hub.offline { None } else { Some(hub.client()?) };
    let get = |dependency: &KernelDependency| {
        fetch_locked(client.as_ref(), &hub.cache, &lock, dependency, &args.variants, &mut output.progress())
    };
    if args.repo.is_some() {
        let dependency = named(args, &lock)?;
        return finish(args, &dependency.revision()?.to_string(), &get(&dependency)?, output);
    }
    let mut all = Vec::new();
    for dependency in lock.locks.keys() {
        all.push((dependency.revision()?.to_string(), get(dependency)?));
    }
    let json: Vec<_> = all.iter().map(|(revision, fetched)| as_json(revision, fetched)).collect();
    output.result(json!({"kernels": json}), || {
        all.iter().map(|(revision, fetched)| as_text(revision, fetched) + "\n").collect()
    });
    Ok(())
}

/// The locked kernel that the arguments name; its version can be left out if one alone is locked.
fn named(args: &Get, lock: &LockFile) -> Result<KernelDependency> {
    let (repo, revision) = spec(args)?;
    if let Some(revision) = revision {
        let pin = match revision {
            Revision::Version(version) => Pin::Version(version),
            other => Pin::Revision(other.to_string()),
        };
        return Ok(KernelDependency { repo, pin });
    }
    let mut locked = lock.of(&repo).map(|(dependency, _)| dependency);
    match (locked.next(), locked.next()) {
        (Some(one), None) => Ok(one.clone()),
        (None, _) => {
            Err(Error::new(Code::Drift, format!("{repo} is not locked")).help("run `kernels-cli lock`"))
        }
        (Some(one), Some(two)) => {
            let message = format!("which version of {repo}? {one} and {two} are locked");
            Err(Error::new(Code::Arguments, message).help("write one of them"))
        }
    }
}

fn finish(args: &Get, revision: &str, fetched: &Fetched, output: &Output) -> Result<()> {
    let mut json = as_json(revision, fetched);
    if let Some(folder) = &args.to {
        fetched.export(folder)?;
        json["to"] = json!(folder);
    }
    output.result(json, || match &args.to {
        Some(folder) => format!("{}\n{}", as_text(revision, fetched), folder.display()),
        None => as_text(revision, fetched),
    });
    Ok(())
}

/// The repository and the revision, which is given at most once.
fn spec(args: &Get) -> Result<(crate::hub::RepoId, Option<Revision>)> {
    let (repo, short) = parse_spec(args.repo.as_deref().unwrap_or_default())?;
    let long = match (args.version, &args.revision) {
        (Some(version), _) => Some(Revision::Version(Version(version))),
        (None, Some(revision)) => Some(revision.parse()?),
        (None, None) => None,
    };
    match (short, long) {
        (Some(short), Some(long)) => {
            Err(Error::new(Code::Arguments, format!("the arguments ask for both {short} and {long}")))
        }
        (short, long) => Ok((repo, short.or(long))),
    }
}

/// What the arguments ask for; the revision is given exactly once.
fn wanted(args: &Get) -> Result<Wanted> {
    let (repo, revision) = spec(args)?;
    let Some(revision) = revision else {
        return Err(Error::new(Code::Arguments, format!("which version of {repo}?")).help(format!(
            "pass --version N, or write {repo}@vN; `kernels-cli versions {repo}` lists them"
        )));
    };
    Ok(Wanted { repo, revision, variants: args.variants.clone() })
}

fn as_json(revision: &str, fetched: &Fetched) -> serde_json::Value {
    let variants: Vec<_> = fetched
        .variants
        .iter()
        .map(|variant| {
            let ops: Vec<_> = variant.index.iter().flat_map(|index| index.ops.names()).collect();
            json!({
                "name": variant.name, "id": variant.metadata.id, "version": variant.metadata.version,
                "path": fetched.snapshot.join("build").join(&variant.name),
                "files": variant.files.len(), "ops": ops, "digest": variant.metadata.digest.is_some(),
                "depends": variant.metadata.kernel_depends,
            })
        })
        .collect();
    json!({
        "repo": fetched.repo, "revision": revision, "commit": fetched.commit, "path": fetched.snapshot,
        "variants": variants,
        "downloaded": {"files": fetched.downloaded.0, "bytes": fetched.downloaded.1}, "reused": fetched.reused,
    })
}

fn as_text(revision: &str, fetched: &Fetched) -> String {
    let (files, bytes) = fetched.downloaded;
    let mut text = format!("{} {} at {}\n", fetched.repo, revision, fetched.commit);
    for variant in &fetched.variants {
        let digest = if variant.metadata.digest.is_some() { "digest ok" } else { "no digest" };
        text += &format!("  {:<16} {:>9}  {digest}\n", variant.name, count(variant.files.len(), "file"));
        for needed in &variant.metadata.kernel_depends {
            text += &format!("    depends on {needed}\n");
        }
    }
    text += &format!(
        "  downloaded {} ({}), {} in the cache\n",
        count(files, "file"),
        size(bytes),
        fetched.reused
    );
    text + &fetched.snapshot.display().to_string()
}
