//! `info`: what a kernel offers, from its metadata and its index alone.

use std::collections::BTreeSet;

use kernel_ir::mosaic::call::Index;
use serde_json::{Value, json};

use crate::cli::Info;
use crate::error::{Code, Error, Result};
use crate::hub::{Client, CommitId, RemoteFile, RepoId, Revision, parse_spec};
use crate::output::{Output, count, size};
use crate::package::signing::signed_variant;
use crate::package::{Metadata, interface_signature, split_variant};
use crate::settings::HubSettings;

/// The largest file that is fetched, in bytes.
const MAX_FILE: u64 = 32 << 20;

pub(super) fn run(args: &Info, hub: &HubSettings, output: &Output) -> Result<()> {
    if hub.offline {
        return Err(Error::new(Code::Offline, "what a hub holds is known to it only")
            .help("`kernels-cli cache ls` and `kernels-cli verify` look at the cache"));
    }
    let (repo, revision) = parse_spec(&args.repo)?;
    let client = hub.client()?;
    let heads = client.heads(&repo)?;
    let versions: Vec<String> = heads.versions().into_keys().map(|v| v.to_string()).collect();
    let newest = || heads.versions().into_keys().next_back().map(Revision::Version);
    let Some(revision) = revision.or_else(newest) else {
        return Err(Error::new(Code::RevisionNotFound, format!("{repo} has no versions yet")));
    };
    let commit = client.resolve(&repo, &revision)?;
    let files = client.files(&repo, &commit)?;
    let variants = Shown::all(&client, &repo, &commit, &files)?;
    let signed: BTreeSet<_> = files.iter().filter_map(|file| signed_variant(&file.path)).collect();
    let trusted = client.trusts(repo.owner())?;

    let json = json!({
        "repo": repo, "revision": revision.to_string(), "commit": commit, "versions": versions,
        "trusted_publisher": trusted, "variants": variants.iter().map(|v| v.json(&signed)).collect::<Vec<_>>(),
        "ops": variants.iter().find_map(|v| v.index.as_ref()).map(ops),
    });
    output.result(json, || {
        let publisher = if trusted { "trusted by the hub" } else { "not trusted by the hub" };
        let mut text = format!("{repo} {revision} at {commit}\n");
        text += &format!("versions   {}\npublisher  {}, {publisher}\n", versions.join(" "), repo.owner());
        if let Some(first) = variants.first() {
            text += &format!("license    {}\n", first.metadata.license);
        }
        for variant in &variants {
            let mark = if signed.contains(variant.name.as_str()) { "signed" } else { "not signed" };
            let files = count(variant.files, "file");
            text += &format!("  {:<16} {files:>9} {:>9}  {mark}\n", variant.name, size(variant.bytes));
        }
        for (name, op) in
            variants.iter().find_map(|v| v.index.as_ref()).iter().flat_map(|index| index.ops.iter())
        {
            text += &format!("{}\n  {}\n", interface_signature(name, op), op.doc);
            for module in &op.modules {
                let dtypes: Vec<_> = module.dtypes.iter().map(|(_, dtype)| dtype.as_str()).collect();
                text += &format!("  {:<28} {}\n", dtypes.join(" "), module.generations.join(" "));
            }
        }
        text
    });
    Ok(())
}

/// One variant as the hub lists it.
struct Shown {
    name: String,
    metadata: Metadata,
    index: Option<Index>,
    files: usize,
    bytes: u64,
}

impl Shown {
    fn all(client: &Client, repo: &RepoId, commit: &CommitId, files: &[RemoteFile]) -> Result<Vec<Self>> {
        let named = files.iter().filter_map(|file| Some((split_variant(&file.path)?, file)));
        let names: BTreeSet<String> = named.clone().map(|((name, _), _)| name).collect();
        let mut variants = Vec::new();
        for name in names {
            let mine: Vec<_> = named.clone().filter(|((variant, _), _)| *variant == name).collect();
            let read = |wanted: &str| -> Result<Option<Vec<u8>>> {
                let found = mine.iter().find(|((_, path), _)| path.as_str() == wanted);
                found.map(|(_, file)| client.read(repo, commit, file, MAX_FILE)).transpose()
            };
            let Some(metadata) = read("metadata.json")? else { continue };
            // Only one index is shown: all variants carry the same.
            let index = match variants.iter().any(|shown: &Self| shown.index.is_some()) {
                true => None,
                false => read("index.json")?.and_then(|json| Index::parse(&json).ok()),
            };
            variants.push(Self {
                metadata: Metadata::parse(&metadata, &format!("{name}/metadata.json"))?,
                index,
                files: mine.len(),
                bytes: mine.iter().map(|(_, file)| file.size).sum(),
                name,
            });
        }
        Ok(variants)
    }

    fn json(&self, signed: &BTreeSet<&str>) -> Value {
        let metadata = &self.metadata;
        json!({
            "name": self.name, "id": metadata.id, "backend": metadata.backend.kind, "license": metadata.license,
            "files": self.files, "bytes": self.bytes, "signed": signed.contains(self.name.as_str()),
            "digest": metadata.digest.is_some(), "provenance": metadata.provenance, "depends": metadata.kernel_depends,
        })
    }
}

fn ops(index: &Index) -> Value {
    let op = |(name, op): (&str, &kernel_ir::mosaic::call::OpInterface)| {
        let modules = op.modules.iter().map(|module| {
            json!({
                "file": module.file, "bytes": module.bytes, "dtypes": module.dtypes, "generations": module.generations,
                "demands": module.demands.iter().map(ToString::to_string).collect::<Vec<_>>(),
            })
        });
        json!({
            "name": name, "doc": op.doc, "signature": interface_signature(name, op), "arguments": op.arguments,
            "results": op.results, "modules": modules.collect::<Vec<_>>(),
        })
    };
    index.ops.iter().map(op).collect()
}
