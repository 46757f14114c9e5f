//! Copies versions from one hub to another, file by file, checked on the way.

use std::collections::{BTreeMap, BTreeSet};

use crate::error::{Code, Error, Result};
use crate::hub::client::Client;
use crate::hub::endpoint::Token;
use crate::hub::repo::{RepoId, Revision, Version};
use crate::package::Comparison;

use super::plan::Upload;
use super::writer::Writer;
use super::{Changes, Plan, Published};

/// A version that was copied.
#[derive(Clone, Debug, serde::Serialize)]
pub struct Mirrored {
    /// What changed on the other hub.
    #[serde(flatten)]
    pub published: Published,
    /// The tags that lead to the version on both hubs now.
    pub tags: Vec<String>,
}

/// Makes `version` of `to` on the hub `target` what it is of `from` on the hub `source`, with the card and the tags
/// that lead to it. The commits have other ids there: a lock file pins one hub's.
///
/// # Errors
/// `H0202` and `H0203` if there is no such version, those of [`Plan::publish`] for the other hub; `H0507` if a tag
/// leads elsewhere there.
pub fn mirror(
    (source, from): (&Client, &RepoId),
    (target, token, to): (&Client, Option<&Token>, &RepoId),
    version: Version,
    private: bool,
) -> Result<Mirrored> {
    let commit = source.resolve(from, &version.into())?;
    let mut files = Upload::new();
    for file in source.files(from, &commit)? {
        if !file.path.is_bytecode() {
            let content = source.read(from, &commit, &file, crate::package::MAX_FILE)?;
            files.insert(file.path, content);
        }
    }
    let plan =
        Plan::of_files(target, to, version, files, source.card(from)?.map(|card| Upload::from([card])))?;
    let published = plan.publish(target, token, private)?;

    let leads_here = source.heads(from)?.tags.into_iter().filter(|(_, tagged)| *tagged == commit);
    let tags: Vec<_> = leads_here.map(|(tag, _)| tag).collect();
    let there = if tags.is_empty() { BTreeMap::new() } else { target.heads(to)?.tags };
    let writer = Writer::new(target, token, to)?;
    for tag in &tags {
        match there.get(tag) {
            Some(tagged) if *tagged == published.commit => {}
            Some(tagged) => {
                let message =
                    format!("the tag {tag:?} of {to} leads to {tagged} there, and to {version} of {from}");
                return Err(Error::new(Code::Exists, message)
                    .help("the version was copied; delete the tag there and copy it again to move the tag"));
            }
            None => writer.create_tag(tag, &published.commit)?,
        }
    }
    Ok(Mirrored { published, tags })
}

impl Plan {
    /// A plan that makes a version hold exactly `files`.
    fn of_files(
        client: &Client,
        repo: &RepoId,
        version: Version,
        files: Upload,
        card: Option<Upload>,
    ) -> Result<Self> {
        let (repository_exists, heads) = super::plan::heads(client, repo)?;
        let head = heads.branches.get(&version.branch()).cloned();
        let mut plan = Self {
            repo: repo.clone(),
            repository_exists,
            version,
            head,
            changes: Changes::default(),
            interface: Comparison::default(),
            next_version: version,
            name: repo.name().to_owned(),
            files,
            card,
            variants: BTreeSet::new(),
            whole: true,
        };
        let there = match plan.head.is_some() {
            true => client.files(repo, &client.resolve(repo, &Revision::Version(version))?)?,
            false => vec![],
        };
        plan.changes = Changes::between(&plan.files, &there, |path| plan.is_stale(path));
        Ok(plan)
    }
}
