//! `diff`: how two versions differ, in files and for callers.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::json;

use crate::cli::Diff;
use crate::error::{Code, Error, Result};
use crate::hub::{Client, CommitId, RemoteFile, RepoId, RepoPath, parse_spec};
use crate::output::{Output, count, size};
use crate::package::{Comparison, Interface, split_variant};
use crate::settings::HubSettings;

/// The largest file that is read for what it says about an interface.
const MAX_FILE: u64 = 32 << 20;

pub(super) fn run(args: &Diff, hub: &HubSettings, output: &Output) -> Result<()> {
    if hub.offline {
        return Err(
            Error::new(Code::Offline, "versions are compared on their hub").help("unset HF_HUB_OFFLINE")
        );
    }
    let client = hub.client()?;
    let (old, new) = (State::read(&client, &args.old)?, State::read(&client, &args.new)?);
    let (mut added, mut changed, mut removed, mut same) = (vec![], vec![], vec![], 0_usize);
    for (path, file) in &new.files {
        match old.files.get(path) {
            None => added.push(file),
            Some(before) if (&before.oid, before.size) == (&file.oid, file.size) => same += 1,
            Some(_) => changed.push(file),
        }
    }
    removed.extend(old.files.iter().filter(|(path, _)| !new.files.contains_key(*path)).map(|(_, file)| file));
    let interface = compare(&client, &old, &new)?;

    let paths = |files: &[&RemoteFile]| files.iter().map(|file| file.path.clone()).collect::<Vec<_>>();
    let json = json!({
        "old": {"repo": old.repo, "commit": old.commit}, "new": {"repo": new.repo, "commit": new.commit},
        "added": paths(&added), "changed": paths(&changed), "removed": paths(&removed), "same": same,
        "interface": interface,
    });
    output.result(json, || {
        let mut text = String::new();
        for (mark, files) in [("+", &added), ("~", &changed), ("-", &removed)] {
            for file in files {
                text += &format!("{mark} {:<60} {:>9}\n", file.path.as_str(), size(file.size));
            }
        }
        text += &format!("{} the same\n", count(same, "file"));
        for what in &interface.breaking {
            text += &format!("callers break: {what}\n");
        }
        for what in &interface.added {
            text += &format!("callers gain {what}\n");
        }
        if interface.is_empty() {
            text += "nothing changes for callers\n";
        }
        text
    });
    Ok(())
}

/// One side of the comparison.
struct State {
    repo: RepoId,
    commit: CommitId,
    files: BTreeMap<RepoPath, RemoteFile>,
}

impl State {
    fn read(client: &Client, spec: &str) -> Result<Self> {
        let (repo, Some(revision)) = parse_spec(spec)? else {
            return Err(Error::new(Code::Arguments, format!("which version of {spec}?"))
                .help(format!("write {spec}@v1")));
        };
        let commit = client.resolve(&repo, &revision)?;
        let files = client.files(&repo, &commit)?.into_iter().map(|file| (file.path.clone(), file)).collect();
        Ok(Self { repo, commit, files })
    }

    fn variants(&self) -> BTreeSet<String> {
        self.files.keys().filter_map(|path| Some(split_variant(path)?.0)).collect()
    }

    fn interface(&self, client: &Client, variant: &str) -> Result<Interface> {
        let folder = format!("build/{variant}");
        let mut told = BTreeMap::new();
        for file in self.files.values() {
            if let Some(path) = file.path.strip_folder(&folder).filter(Interface::is_told_by) {
                told.insert(path, client.read(&self.repo, &self.commit, file, MAX_FILE)?);
            }
        }
        Ok(Interface::of(&told))
    }
}

fn compare(client: &Client, old: &State, new: &State) -> Result<Comparison> {
    let (before, after) = (old.variants(), new.variants());
    let mut found = Comparison::default();
    found.breaking.extend(before.difference(&after).map(|name| format!("the variant {name} is gone")));
    found.added.extend(after.difference(&before).map(|name| format!("the variant {name}")));
    for variant in before.intersection(&after) {
        found.merge(old.interface(client, variant)?.compare(&new.interface(client, variant)?));
    }
    Ok(found)
}
