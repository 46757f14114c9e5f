//! `get`: a kernel comes into the cache, checked.

use serde_json::json;

use crate::cli::Get;
use crate::error::{Code, Error, Result};
use crate::hub::{Fetched, Revision, Version, Wanted, fetch, open_cached, parse_spec};
use crate::output::{Output, count, size};
use crate::settings::HubSettings;

pub(super) fn run(args: &Get, hub: &HubSettings, output: &Output) -> Result<()> {
    let wanted = wanted(args)?;
    let fetched = if hub.offline {
        open_cached(&hub.cache, &wanted)?
    } else {
        fetch(&hub.client()?, &hub.cache, &wanted, &mut output.progress())?
    };
    output.result(as_json(&wanted, &fetched), || as_text(&wanted, &fetched));
    Ok(())
}

/// What the arguments ask for; the revision is given exactly once.
fn wanted(args: &Get) -> Result<Wanted> {
    let (repo, short) = parse_spec(&args.repo)?;
    let long = match (args.version, &args.revision) {
        (Some(version), _) => Some(Revision::Version(Version(version))),
        (None, Some(revision)) => Some(revision.parse()?),
        (None, None) => None,
    };
    let revision = match (short, long) {
        (Some(one), None) | (None, Some(one)) => one,
        (None, None) => {
            return Err(Error::new(Code::Arguments, format!("which version of {repo}?")).help(format!(
                "pass --version N, or write {repo}@vN; `kernels-cli versions {repo}` lists them"
            )));
        }
        (Some(short), Some(long)) => {
            return Err(Error::new(
                Code::Arguments,
                format!("the arguments ask for both {short} and {long}"),
            ));
        }
    };
    Ok(Wanted { repo, revision, variants: args.variants.clone() })
}

fn as_json(wanted: &Wanted, fetched: &Fetched) -> serde_json::Value {
    let variants: Vec<_> = fetched
        .variants
        .iter()
        .map(|variant| {
            let ops: Vec<_> = variant.index.iter().flat_map(|index| index.ops.names()).collect();
            json!({
                "name": variant.name, "id": variant.metadata.id, "version": variant.metadata.version,
                "path": fetched.snapshot.join("build").join(&variant.name),
                "files": variant.files.len(), "ops": ops, "digest": variant.metadata.digest.is_some(),
            })
        })
        .collect();
    json!({
        "repo": fetched.repo, "revision": wanted.revision.to_string(), "commit": fetched.commit, "path": fetched.snapshot,
        "variants": variants,
        "downloaded": {"files": fetched.downloaded.0, "bytes": fetched.downloaded.1}, "reused": fetched.reused,
    })
}

fn as_text(wanted: &Wanted, fetched: &Fetched) -> String {
    let (files, bytes) = fetched.downloaded;
    let mut text = format!("{} {} at {}\n", fetched.repo, wanted.revision, fetched.commit);
    for variant in &fetched.variants {
        let digest = if variant.metadata.digest.is_some() { "digest ok" } else { "no digest" };
        text += &format!("  {:<16} {:>9}  {digest}\n", variant.name, count(variant.files.len(), "file"));
    }
    text += &format!(
        "  downloaded {} ({}), {} in the cache\n",
        count(files, "file"),
        size(bytes),
        fetched.reused
    );
    text + &fetched.snapshot.display().to_string()
}
