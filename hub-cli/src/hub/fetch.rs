//! Brings one revision of a kernel into the cache: list, download, check, and only then show it.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

use rayon::prelude::*;

use crate::error::{Code, Error, Result};
use crate::package::Variant;
use crate::package::signing::{Signature, Standing, signed_variant};

use super::cache::{Cache, RepoCache, hash_file};
use super::client::{Client, missing_revision};
use super::download::{Source, bring_all};
use super::listing::RemoteFile;
use super::oid::{CommitId, Oid};
use super::path::RepoPath;
use super::repo::{RepoId, Revision, Version};

/// The most bytes of one revision.
pub(super) const MAX_TOTAL: u64 = 64 << 30;

/// What to fetch.
#[derive(Clone, Debug)]
pub struct Wanted {
    /// The repository.
    pub repo: RepoId,
    /// The state of it.
    pub revision: Revision,
    /// The variants, such as `torch-tpu`; everything in the revision if empty.
    pub variants: Vec<String>,
}

/// A revision that lies in the cache, checked.
#[derive(Clone, Debug)]
pub struct Fetched {
    /// The repository.
    pub repo: RepoId,
    /// The commit that the revision meant.
    pub commit: CommitId,
    /// The folder with the files as the repository has them.
    pub snapshot: PathBuf,
    /// The variants, sorted by name, with their files in the cache.
    pub variants: Vec<Variant>,
    /// What is known of the signature of each variant.
    pub standings: Vec<Standing>,
    /// Contents that came over the network, and their bytes; files with equal contents count once.
    pub downloaded: (usize, u64),
    /// Contents that the cache had already.
    pub reused: usize,
}

impl Fetched {
    /// The variants with their files where the repository has them, below [`Fetched::snapshot`], and not where
    /// the cache keeps their contents.
    pub fn variants_in_snapshot(&self) -> Vec<Variant> {
        let mut variants = self.variants.clone();
        for variant in &mut variants {
            let folder = self.snapshot.join("build").join(&variant.name);
            variant.files.iter_mut().for_each(|(path, file)| *file = path.under(&folder));
        }
        variants
    }
}

/// Is told how a download goes.
pub trait Progress: Send {
    /// So many bytes will be downloaded.
    fn start(&mut self, bytes: u64);
    /// So many bytes more have arrived.
    fn advance(&mut self, bytes: u64);
}

/// A progress that nobody watches.
#[derive(Clone, Copy, Debug)]
pub struct Silent;

impl Progress for Silent {
    fn start(&mut self, _: u64) {}
    fn advance(&mut self, _: u64) {}
}

/// Fetches `wanted` from `client`'s hub into `cache`.
///
/// # Errors
/// `H02xx` for the network and what does not exist, `H03xx` for what arrived and is not what was
/// announced. Nothing of a revision that fails is left in the cache's snapshots.
pub fn fetch(
    client: &Client,
    cache: &Cache,
    wanted: &Wanted,
    progress: &mut dyn Progress,
) -> Result<Fetched> {
    let repo = &wanted.repo;
    let commit = client.resolve(repo, &wanted.revision)?;
    let files = select(client.files(repo, &commit)?, wanted)?;

    let cached = cache.lock(repo)?;
    let contents = distinct_contents(&files)?;
    let missing: Vec<_> = contents.par_iter().copied().filter(|file| !cached.has(file)).collect();
    let bytes = missing.iter().map(|file| file.size).sum();
    progress.start(bytes);
    bring_all(Source { client, repo, commit: &commit }, &cached, &missing, progress)?;

    let (snapshot, variants, standings) = settle(cache, &cached, wanted, &commit, &files)?;
    let downloaded = (missing.len(), bytes);
    Ok(Fetched {
        repo: repo.clone(),
        commit,
        snapshot,
        variants,
        standings,
        downloaded,
        reused: contents.len() - missing.len(),
    })
}

/// Makes contents that are in the cache a revision that can be used: checks the package, its identity and its
/// signatures, then links the files and records the ref.
pub(super) fn settle(
    cache: &Cache,
    cached: &RepoCache,
    wanted: &Wanted,
    commit: &CommitId,
    files: &[RemoteFile],
) -> Result<(PathBuf, Vec<Variant>, Vec<Standing>)> {
    let variants = Variant::check_all(files.iter().map(|file| (file.path.clone(), cached.blob(&file.oid))))?;
    if variants.is_empty() {
        let message = format!("{} at {commit} holds no build variant: it is not a kernel", wanted.repo);
        return Err(Error::new(Code::NoVariant, message));
    }
    check_identity(wanted, &variants)?;
    let signatures = read_signatures(files.iter().map(|file| (&file.path, cached.blob(&file.oid))))?;
    let standings = vouch(cache, &wanted.repo, &variants, &signatures)?;
    let snapshot = cached.link(commit, files)?;
    match &wanted.revision {
        Revision::Version(version) => cached.write_ref(&version.branch(), commit)?,
        Revision::Branch(name) => cached.write_ref(name, commit)?,
        Revision::Commit(_) => {}
    }
    Ok((snapshot, variants, standings))
}

/// Opens `wanted` from `cache` alone, checking every byte again.
///
/// # Errors
/// `H0211` if it is not there, `H0307` if it is damaged.
pub fn open_cached(cache: &Cache, wanted: &Wanted) -> Result<Fetched> {
    let repo = &wanted.repo;
    let commit = match &wanted.revision {
        Revision::Commit(commit) => Some(commit.clone()),
        Revision::Version(version) => cache.read_ref(repo, &version.branch()),
        Revision::Branch(name) => cache.read_ref(repo, name),
    };
    let commit = commit.ok_or_else(|| {
        let versions = cache.ref_names(repo);
        let known = versions.iter().filter_map(|name| Version::from_branch(name));
        let absent = missing_revision(repo, &wanted.revision, known);
        let help = absent.help_text().unwrap_or_default().replace("it has ", "the cache has ");
        Error::new(Code::Offline, format!("{repo} {} is not in the cache", wanted.revision)).help(help)
    })?;
    let (snapshot, files) = cache.snapshot(repo, &commit)?;
    files.par_iter().find_map_first(|(path, blob)| check_blob(path, blob).err()).map_or(Ok(()), Err)?;
    let only_wanted = |path: &RepoPath| wanted.variants.is_empty() || in_variants(path, &wanted.variants);
    let reused = files.iter().map(|(_, blob)| blob).collect::<BTreeSet<_>>().len();
    let signatures = read_signatures(files.iter().map(|(path, blob)| (path, blob.clone())))?;
    let variants = Variant::check_all(files.into_iter().filter(|(path, _)| only_wanted(path)))?;
    require(wanted, &variants)?;
    check_identity(wanted, &variants)?;
    let standings = vouch(cache, repo, &variants, &signatures)?;
    Ok(Fetched { repo: repo.clone(), commit, snapshot, variants, standings, downloaded: (0, 0), reused })
}

/// The signatures among the files of a repository, by variant.
fn read_signatures<'a>(
    files: impl Iterator<Item = (&'a RepoPath, PathBuf)>,
) -> Result<BTreeMap<String, Signature>> {
    let mut signatures = BTreeMap::new();
    for (path, file) in files {
        let Some(variant) = signed_variant(path) else { continue };
        let json = fs_err::read(&file).map_err(|e| Error::io(&file, e))?;
        signatures.insert(variant.to_owned(), Signature::parse(&json, path.as_str())?);
    }
    Ok(signatures)
}

/// What the user's keys say of the variants.
fn vouch(
    cache: &Cache,
    repo: &RepoId,
    variants: &[Variant],
    signatures: &BTreeMap<String, Signature>,
) -> Result<Vec<Standing>> {
    cache.trust().standings(repo.owner(), variants, |variant| Ok(signatures.get(variant).cloned()))
}

/// One file for each content: variants share most of theirs.
fn distinct_contents(files: &[RemoteFile]) -> Result<Vec<&RemoteFile>> {
    let mut contents: BTreeMap<&Oid, &RemoteFile> = BTreeMap::new();
    for file in files {
        let first = contents.entry(&file.oid).or_insert(file);
        if first.size != file.size {
            let message = format!("{} and {} have the same id and different sizes", first.path, file.path);
            return Err(Error::new(Code::Listing, message));
        }
    }
    Ok(contents.into_values().collect())
}

/// A blob's name is the id of its content.
fn check_blob(path: &RepoPath, blob: &std::path::Path) -> Result<()> {
    let Some(oid) = blob.file_name().and_then(|name| Oid::parse(name.to_str()?).ok()) else { return Ok(()) };
    if hash_file(blob, &oid)?.1 != oid {
        return Err(Error::new(
            Code::CacheDamaged,
            format!("{path} in the cache is damaged: {}", blob.display()),
        )
        .help("unset HF_HUB_OFFLINE and run `kernels-cli get` again"));
    }
    Ok(())
}

/// The files to download: those of the wanted variants, or all; never Python bytecode.
fn select(files: Vec<RemoteFile>, wanted: &Wanted) -> Result<Vec<RemoteFile>> {
    let mut files: Vec<_> = files.into_iter().filter(|file| !file.path.is_bytecode()).collect();
    let names: BTreeSet<_> =
        files.iter().filter_map(|file| Some(crate::package::split_variant(&file.path)?.0)).collect();
    if names.is_empty() {
        let message =
            format!("{} at {} holds no build variant: it is not a kernel", wanted.repo, wanted.revision);
        return Err(Error::new(Code::NoVariant, message));
    }
    for variant in &wanted.variants {
        if !names.contains(variant) {
            let known: Vec<_> = names.iter().map(String::as_str).collect();
            return Err(Error::new(
                Code::NoVariant,
                format!("{} at {} has no variant {variant:?}", wanted.repo, wanted.revision),
            )
            .help(format!("it has {}", known.join(", "))));
        }
    }
    if !wanted.variants.is_empty() {
        files.retain(|file| in_variants(&file.path, &wanted.variants));
    }
    let total: u64 = files.iter().map(|file| file.size).sum();
    if total > MAX_TOTAL {
        return Err(Error::new(
            Code::TooLarge,
            format!("{} at {} has {total} bytes", wanted.repo, wanted.revision),
        )
        .help("choose one variant with --variant"));
    }
    Ok(files)
}

fn in_variants(path: &RepoPath, variants: &[String]) -> bool {
    let name = crate::package::split_variant(path).map(|(name, _)| name);
    let name = name.or_else(|| signed_variant(path).map(str::to_owned));
    name.is_some_and(|name| variants.contains(&name))
}

/// The cache may hold other variants than those that are wanted, or none.
fn require(wanted: &Wanted, variants: &[Variant]) -> Result<()> {
    let missing = wanted.variants.iter().find(|name| !variants.iter().any(|v| v.name == **name));
    let what = match missing {
        Some(name) => format!("the variant {name:?} of {}", wanted.repo),
        None if variants.is_empty() => format!("a variant of {}", wanted.repo),
        None => return Ok(()),
    };
    Err(Error::new(Code::Offline, format!("{what} at {} is not in the cache", wanted.revision)))
}

/// The version of a branch is the version that its packages state.
fn check_identity(wanted: &Wanted, variants: &[Variant]) -> Result<()> {
    let Revision::Version(version) = wanted.revision else { return Ok(()) };
    match variants.iter().find(|v| v.metadata.version != version.0) {
        None => Ok(()),
        Some(variant) => {
            let states = variant.metadata.version;
            let message = format!("{} {version}: {} states version {states}", wanted.repo, variant.name);
            Err(Error::new(Code::Identity, message))
        }
    }
}
