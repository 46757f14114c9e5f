//! What a publication would change: files, and the interface that callers rely on.

use std::collections::{BTreeMap, BTreeSet};

use fs_err as fs;
use sha2::{Digest, Sha256};

use crate::error::{Code, Error, Result};
use crate::hub::client::{Client, Heads};
use crate::hub::listing::RemoteFile;
use crate::hub::oid::CommitId;
use crate::hub::path::RepoPath;
use crate::hub::repo::{RepoId, Version};
use crate::package::signing::{Signature, signed_variant};
use crate::package::{Comparison, Interface, LocalPackage, split_variant};

/// Files to put into a revision, by path in the repository.
pub(super) type Upload = BTreeMap<RepoPath, Vec<u8>>;

/// The largest file that is read for what it says about an interface.
const MAX_INTERFACE: u64 = 32 << 20;

/// What publishing a package would do to a hub.
#[derive(Clone, Debug)]
pub struct Plan {
    /// The repository.
    pub repo: RepoId,
    /// Whether it exists.
    pub repository_exists: bool,
    /// The version.
    pub version: Version,
    /// Where its branch stands, if it exists.
    pub head: Option<CommitId>,
    /// The files that change.
    pub changes: Changes,
    /// What callers of the version would notice.
    pub interface: Comparison,
    /// The first version that nobody uses yet.
    pub next_version: Version,
    pub(super) name: String,
    pub(super) files: Upload,
    pub(super) card: Option<Upload>,
    pub(super) variants: BTreeSet<String>,
    /// Whether the version is to hold nothing else, also outside of the variants.
    pub(super) whole: bool,
}

/// The difference between what is to be there and what is.
#[derive(Clone, Debug, Default, serde::Serialize)]
pub struct Changes {
    /// Files that are new.
    pub added: Vec<RepoPath>,
    /// Files with another content.
    pub changed: Vec<RepoPath>,
    /// Files of an earlier form of the package.
    pub removed: Vec<RepoPath>,
    /// How many files are there already as they should be.
    pub unchanged: usize,
    /// Bytes to send.
    pub bytes: u64,
}

impl Changes {
    /// Whether there is nothing to do.
    pub fn is_empty(&self) -> bool {
        self.added.is_empty() && self.changed.is_empty() && self.removed.is_empty()
    }

    pub(super) fn between(
        upload: &Upload,
        there: &[RemoteFile],
        is_stale: impl Fn(&RepoPath) -> bool,
    ) -> Self {
        let known: BTreeSet<_> = there.iter().map(|file| &file.path).collect();
        let mut changes = Self::default();
        for path in changed(upload, there) {
            changes.bytes += upload[path].len() as u64;
            let list = if known.contains(path) { &mut changes.changed } else { &mut changes.added };
            list.push(path.clone());
        }
        let stale = there.iter().filter(|file| is_stale(&file.path) && !upload.contains_key(&file.path));
        changes.removed = stale.map(|file| file.path.clone()).collect();
        changes.unchanged = upload.len() - changes.added.len() - changes.changed.len();
        changes
    }
}

impl Plan {
    /// Compares `package` with what `client`'s hub holds as `version` of `repo`.
    ///
    /// # Errors
    /// `H0408` if the package states another version, `H0304` if it has no digest; `H02xx` if the hub cannot be
    /// read.
    pub fn make(client: &Client, package: &LocalPackage, repo: &RepoId, version: Version) -> Result<Self> {
        check_version(package, version)?;
        let files = read_files(package)?;
        let card = match &package.card {
            Some(card) => {
                let text = fs::read(card).map_err(|e| Error::io(card, e))?;
                Some(Upload::from([(RepoPath::parse("README.md")?, text)]))
            }
            None => None,
        };
        let (repository_exists, heads) = heads(client, repo)?;
        let head = heads.branches.get(&version.branch()).cloned();
        let there = head.as_ref().map_or(Ok(vec![]), |commit| client.files(repo, commit))?;
        let next = heads.versions().into_keys().max().map_or(1, |newest| newest.0.saturating_add(1));
        let mut plan = Self {
            repo: repo.clone(),
            repository_exists,
            version,
            changes: Changes::default(),
            interface: Comparison::default(),
            next_version: Version(next.max(version.0.saturating_add(1))),
            name: package.variants[0].metadata.name.clone(),
            variants: package.variants.iter().map(|variant| variant.name.clone()).collect(),
            whole: false,
            files,
            card,
            head,
        };
        plan.changes = Changes::between(&plan.files, &there, |path| plan.is_stale(path));
        if let Some(commit) = plan.head.clone() {
            plan.interface = plan.compare(client, &commit, &there)?;
        }
        Ok(plan)
    }

    /// Refuses a plan that breaks callers.
    ///
    /// # Errors
    /// `H0416`, with every caller that would break.
    pub fn refuse_breaks(&self) -> Result<()> {
        // Version 0 is where interfaces are tried out.
        if self.interface.breaking.is_empty() || self.version == Version(0) {
            return Ok(());
        }
        let message = format!("this would break callers of {} {}", self.repo, self.version);
        let report: Vec<_> = self.interface.breaking.iter().map(|what| format!("  - {what}")).collect();
        let next = self.next_version;
        Err(Error::new(Code::Breaks, message).report(report.join("\n")).help(format!(
            "publish it as {next}: set `version = {}` in build.toml, build again, and pass --version {}",
            next.0, next.0
        )))
    }

    /// What callers of the variants that are there would notice.
    fn compare(&self, client: &Client, commit: &CommitId, there: &[RemoteFile]) -> Result<Comparison> {
        let mut found = Comparison::default();
        for variant in &self.variants {
            let folder = format!("build/{variant}");
            let mut before = BTreeMap::new();
            for file in there {
                let Some(path) = file.path.strip_folder(&folder).filter(Interface::is_told_by) else {
                    continue;
                };
                let content = match self.files.get(&file.path).filter(|bytes| file.holds(bytes)) {
                    Some(same) => same.clone(),
                    None => client.read(&self.repo, commit, file, MAX_INTERFACE)?,
                };
                before.insert(path, content);
            }
            // A variant that is new has no callers.
            if before.is_empty() {
                continue;
            }
            let of_variant =
                |(path, bytes): (&RepoPath, &Vec<u8>)| Some((path.strip_folder(&folder)?, bytes.clone()));
            let after = self.files.iter().filter_map(of_variant).collect();
            found.merge(Interface::of(&before).compare(&Interface::of(&after)));
        }
        Ok(found)
    }

    /// Whether a file of the branch belongs to an earlier form of the package. A new branch starts from `main`,
    /// so nothing that it holds under `build/` is this version's.
    pub(super) fn is_stale(&self, path: &RepoPath) -> bool {
        let variant = split_variant(path).map(|(variant, _)| variant);
        let variant = variant.or_else(|| signed_variant(path).map(str::to_owned));
        self.whole || variant.is_some_and(|variant| self.head.is_none() || self.variants.contains(&variant))
    }

    /// A short name of exactly these files.
    pub(super) fn fingerprint(&self) -> String {
        let mut hasher = Sha256::new();
        for (path, bytes) in &self.files {
            hasher.update(format!("{path}\0{}\0", bytes.len()));
            hasher.update(bytes);
        }
        hex::encode(&hasher.finalize()[..8])
    }
}

/// Whether the repository exists, and its branches and tags.
pub(super) fn heads(client: &Client, repo: &RepoId) -> Result<(bool, Heads)> {
    match client.heads(repo) {
        Ok(heads) => Ok((true, heads)),
        Err(e) if e.code() == Code::RepoNotFound => Ok((false, Heads::default())),
        Err(e) => Err(e),
    }
}

fn check_version(package: &LocalPackage, version: Version) -> Result<()> {
    let stated = package.variants.iter().find(|v| v.metadata.version != version.0);
    let Some(variant) = stated else { return Ok(()) };
    let states = variant.metadata.version;
    Err(Error::new(Code::Version, format!("the package is version {states}, and not {}", version.0)).help(
        format!(
            "set `version = {}` in build.toml and build again, or publish it with --version {states}",
            version.0
        ),
    ))
}

fn read_files(package: &LocalPackage) -> Result<Upload> {
    let mut files = Upload::new();
    for variant in &package.variants {
        if variant.metadata.digest.is_none() {
            return Err(Error::new(Code::Digest, format!("{} has no digest", variant.name))
                .help("build it with `kernels-cli build`"));
        }
        let folder = RepoPath::parse(&format!("build/{}", variant.name))?;
        for (path, file) in &variant.files {
            files.insert(path.in_folder(&folder), fs::read(file).map_err(|e| Error::io(file, e))?);
        }
    }
    for (variant, signature) in &package.signatures {
        files.insert(Signature::path(variant)?, signature.to_json().into_bytes());
    }
    Ok(files)
}

/// The files of `upload` that `there` does not hold with the same content.
pub(super) fn changed<'a>(upload: &'a Upload, there: &[RemoteFile]) -> Vec<&'a RepoPath> {
    let there: BTreeMap<_, _> = there.iter().map(|file| (&file.path, file)).collect();
    let same = |path: &RepoPath, bytes: &[u8]| there.get(path).is_some_and(|file| file.holds(bytes));
    upload.iter().filter(|(path, bytes)| !same(path, bytes)).map(|(path, _)| path).collect()
}
