//! `hub import`: kernels of another hub come to a hub of one's own, under the same commit ids.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use crate::cli::hub::Import;
use crate::error::{Code, Error, Result};
use crate::hub::oid::CommitId;
use crate::hub::{Client, Heads, RepoId, Revision, Wanted, fetch};
use crate::output::{Output, count};
use crate::server::store::{Change, NewCommit, RefKind, RefName, Store, Tree};
use crate::settings::HubSettings;

pub(super) fn run(args: &Import, source: &HubSettings, output: &Output) -> Result<()> {
    if source.offline {
        return Err(
            Error::new(Code::Offline, "nothing can be imported in offline mode").help("unset HF_HUB_OFFLINE")
        );
    }
    let repos = args.repos.iter().map(|repo| repo.parse()).collect::<Result<Vec<RepoId>>>()?;
    let store = Store::open_or_attach(&args.hub.root)?;
    let client = source.client()?;
    let mut imported = Vec::new();
    for repo in &repos {
        imported.extend(import(&store, (&client, source), repo, args, output)?);
    }
    let root = args.hub.root.display();
    output.summary(json!({"from": source.endpoint.to_string(), "refs": imported}), || {
        let line = |row: &Value| {
            let state = if row["new"] == true { "imported" } else { "was there" };
            format!("{} {} at {}: {state}\n", text(&row["repo"]), text(&row["ref"]), text(&row["commit"]))
        };
        imported.iter().map(line).collect::<String>()
            + &format!("{} -> {root}: {}", source.endpoint, count(imported.len(), "ref"))
    });
    Ok(())
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}

/// Brings the wanted versions of one repository with the tags that lead to them, and its card.
fn import(
    store: &Store,
    (client, settings): (&Client, &HubSettings),
    id: &RepoId,
    args: &Import,
    output: &Output,
) -> Result<Vec<Value>> {
    let heads = client.heads(id)?;
    let refs = wanted(&heads, id, &args.versions)?;
    match store.create(id, args.private || client.is_private(id)?, id.owner()) {
        Err(e) if e.code() != Code::Exists => return Err(e),
        _ => {}
    }
    let repo = store.repo(id)?;
    let mut rows = Vec::new();
    for (commit, names) in refs {
        let wanted =
            Wanted { repo: id.clone(), revision: Revision::Commit(commit.clone()), variants: vec![] };
        let fetched = fetch(client, &settings.cache, &wanted, &mut output.progress())?;
        let mut tree = Tree::default();
        for file in client.files(id, &commit)?.into_iter().filter(|file| !file.path.is_bytecode()) {
            let stored = repo.import_file(&file.oid, &file.path.under(&fetched.snapshot))?;
            tree.files.insert(file.path, stored);
        }
        for name in names {
            let new = repo.import(&name, &commit, &tree, &client.endpoint().to_string())?;
            rows.push(json!({"repo": id, "ref": name.name(), "commit": commit, "new": new}));
        }
    }
    // The card is a commit of this hub: nobody pins it.
    if let Some((path, content)) = client.card(id)? {
        let changes = vec![Change::Put(path, repo.put_object(&content, &mut None)?)];
        let author = id.owner().to_owned();
        let (title, description) = ("Import the card".to_owned(), String::new());
        let main = RefName::new(RefKind::Branch, "main")?;
        repo.commit_to(&main, &NewCommit { changes, title, description, author, parent: None })?;
    }
    Ok(rows)
}

/// The commits to bring, with the branches and tags that lead to each.
fn wanted(heads: &Heads, id: &RepoId, versions: &[u32]) -> Result<BTreeMap<CommitId, Vec<RefName>>> {
    let there = heads.versions();
    let missing = versions.iter().find(|wanted| !there.keys().any(|version| version.0 == **wanted));
    if let Some(version) = missing {
        return Err(Error::new(Code::RevisionNotFound, format!("{id} has no version v{version}")));
    }
    let mut refs: BTreeMap<CommitId, Vec<RefName>> = BTreeMap::new();
    for (version, commit) in there {
        if versions.is_empty() || versions.contains(&version.0) {
            let name = RefName::new(RefKind::Branch, &version.branch())?;
            refs.entry(commit.clone()).or_default().push(name);
        }
    }
    if refs.is_empty() {
        return Err(Error::new(Code::RevisionNotFound, format!("{id} has no versions to import")));
    }
    for (tag, commit) in &heads.tags {
        if let Some(names) = refs.get_mut(commit) {
            names.push(RefName::new(RefKind::Tag, tag)?);
        }
    }
    Ok(refs)
}
