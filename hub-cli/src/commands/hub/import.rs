//! `hub import`: kernels of another hub come to a hub of one's own, under the same commit ids.

use std::path::PathBuf;

use serde_json::{Value, json};

use crate::cli::hub::Import;
use crate::error::{Code, Error, Result};
use crate::hub::oid::CommitId;
use crate::hub::{Client, Fetched, RemoteFile, RepoId, Version, Wanted, fetch};
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
    let client = source.client()?;
    // All of it is here and checked before anything of it is kept.
    let arrived = repos
        .iter()
        .map(|id| Ok((id, client.is_private(id)?, bring(&client, source, id, &args.versions, output)?)))
        .collect::<Result<Vec<_>>>()?;
    let store = Store::open_or_attach(&args.hub.root)?;
    let mut imported = Vec::new();
    for (id, private, versions) in arrived {
        imported.extend(keep(&store, &client, id, args.private || private, versions)?);
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

/// A version that lies in the cache, checked.
struct Arrived {
    commit: CommitId,
    /// The version's branch, and the tags that lead to the same commit.
    names: Vec<RefName>,
    /// Its files, and where each lies.
    files: Vec<(RemoteFile, PathBuf)>,
}

/// Fetches the wanted versions of one repository, all without any, as `get` does.
fn bring(
    client: &Client,
    settings: &HubSettings,
    id: &RepoId,
    wanted: &[u32],
    output: &Output,
) -> Result<Vec<Arrived>> {
    let heads = client.heads(id)?;
    let versions = match wanted {
        [] => heads.versions().into_keys().collect(),
        some => some.iter().copied().map(Version).collect::<Vec<_>>(),
    };
    if versions.is_empty() {
        return Err(Error::new(Code::RevisionNotFound, format!("{id} has no versions to import")));
    }
    let mut arrived = Vec::new();
    for version in versions {
        let wanted = Wanted { repo: id.clone(), revision: version.into(), variants: vec![] };
        let Fetched { commit, snapshot, .. } =
            fetch(client, &settings.cache, &wanted, &mut output.progress())?;
        let files = client.files(id, &commit)?.into_iter().filter(|file| !file.path.is_bytecode());
        let placed = |file: RemoteFile| {
            let at = file.path.under(&snapshot);
            (file, at)
        };
        let files = files.map(placed).collect();
        let mut names = vec![RefName::new(RefKind::Branch, &version.branch())?];
        for (tag, _) in heads.tags.iter().filter(|(_, tagged)| **tagged == commit) {
            names.push(RefName::new(RefKind::Tag, tag)?);
        }
        arrived.push(Arrived { commit, names, files });
    }
    Ok(arrived)
}

/// Keeps versions that have arrived, and the card; a repository that is not there yet is made.
fn keep(
    store: &Store,
    client: &Client,
    id: &RepoId,
    private: bool,
    versions: Vec<Arrived>,
) -> Result<Vec<Value>> {
    match store.create(id, private, id.owner()) {
        Err(e) if e.code() != Code::Exists => return Err(e),
        _ => {}
    }
    let repo = store.repo(id)?;
    let mut rows = Vec::new();
    for Arrived { commit, names, files } in versions {
        let mut tree = Tree::default();
        for (file, at) in files {
            tree.files.insert(file.path, repo.import_file(&file.oid, &at)?);
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
