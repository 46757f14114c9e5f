//! `bundle` and `unbundle`: kernels in one file, for a machine without a network.

use serde_json::json;

use crate::cli::{Bundle, Unbundle};
use crate::error::{Code, Error, Result};
use crate::hub::{
    Bundled, Client, Fetched, KernelDependency, LockFile, Pin, Revision, Wanted, bundle,
    check_against_project, fetch, fetch_locked, open_cached, parse_spec, unbundle,
};
use crate::output::{Output, count, size};
use crate::settings::HubSettings;

pub(super) fn pack(args: &Bundle, hub: &HubSettings, output: &Output) -> Result<()> {
    let client = if hub.offline { None } else { Some(hub.client()?) };
    let kernels = match args.kernels.is_empty() {
        true => locked(args, client.as_ref(), hub, output)?,
        false => named(args, client.as_ref(), hub, output)?,
    };
    let done = bundle(&hub.cache, &kernels, &args.file)?;
    output.summary(as_json(&done, &args.file), || as_text(&done, &format!("{}", args.file.display())));
    Ok(())
}

pub(super) fn unpack(args: &Unbundle, hub: &HubSettings, output: &Output) -> Result<()> {
    let file = fs_err::File::open(&args.file).map_err(|e| Error::io(&args.file, e))?;
    let done = unbundle(&hub.cache, std::io::BufReader::new(file))?;
    output.summary(as_json(&done, hub.cache.root()), || {
        as_text(&done, &hub.cache.root().display().to_string())
    });
    Ok(())
}

/// All that the lock file pins.
fn locked(
    args: &Bundle,
    client: Option<&Client>,
    hub: &HubSettings,
    output: &Output,
) -> Result<Vec<(KernelDependency, Fetched)>> {
    let lock = LockFile::read(&args.lock_file)?;
    check_against_project(&lock, &args.lock_file)?;
    let get = |dependency: &KernelDependency| {
        let fetched =
            fetch_locked(client, &hub.cache, &lock, dependency, &args.variants, &mut output.progress())?;
        Ok((dependency.clone(), fetched))
    };
    lock.locks.keys().map(get).collect()
}

/// The kernels of the command line.
fn named(
    args: &Bundle,
    client: Option<&Client>,
    hub: &HubSettings,
    output: &Output,
) -> Result<Vec<(KernelDependency, Fetched)>> {
    let get = |spec: &String| {
        let (repo, Some(revision)) = parse_spec(spec)? else {
            return Err(Error::new(Code::Arguments, format!("which version of {spec}?"))
                .help(format!("write {spec}@v1")));
        };
        let pin = match &revision {
            Revision::Version(version) => Pin::Version(*version),
            other => Pin::Revision(other.to_string()),
        };
        let wanted = Wanted { repo: repo.clone(), revision, variants: args.variants.clone() };
        let fetched = match client {
            Some(client) => fetch(client, &hub.cache, &wanted, &mut output.progress())?,
            None => open_cached(&hub.cache, &wanted)?,
        };
        Ok((KernelDependency { repo, pin }, fetched))
    };
    args.kernels.iter().map(get).collect()
}

fn as_json(done: &Bundled, path: &std::path::Path) -> serde_json::Value {
    let kernels: Vec<_> = done
        .kernels
        .iter()
        .map(|(dependency, commit)| json!({"dependency": dependency, "commit": commit}))
        .collect();
    json!({"path": path, "kernels": kernels, "contents": done.contents, "bytes": done.bytes})
}

fn as_text(done: &Bundled, path: &str) -> String {
    let lines = done.kernels.iter().map(|(dependency, commit)| format!("{dependency}  {commit}\n"));
    let contents = count(done.contents, "content");
    format!("{}  {contents} ({})\n{path}", lines.collect::<String>(), size(done.bytes))
}
