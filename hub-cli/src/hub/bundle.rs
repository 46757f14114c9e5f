//! Kernels in one file, for a machine without a network: a tar with `bundle.json` first, then each content once.
//!
//! ```text
//! bundle.json    {"schema": 1, "kernels": [{"dependency": .., "commit": .., "files": [{"path", "oid", "size"}]}]}
//! blobs/OID      the contents, by id
//! ```
//! What comes out of a bundle is checked as what comes from a hub: names, sizes, ids, digests, signatures.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{Read, Write};
use std::path::{Path, PathBuf};

use fs_err as fs;
use serde::{Deserialize, Serialize};
use tar::{Archive, Builder, EntryType, Header};

use crate::error::{Code, Error, Result};

use super::cache::{Cache, RepoCache};
use super::dependency::KernelDependency;
use super::download::Arrival;
use super::fetch::{Fetched, MAX_TOTAL, Wanted, settle};
use super::listing::{Listing, MAX_FILE, RemoteFile};
use super::oid::{CommitId, Oid};
use super::path::RepoPath;

const INDEX: &str = "bundle.json";
/// The largest index of a bundle, in bytes.
const MAX_INDEX: u64 = 64 << 20;
/// The most kernels of a bundle.
const MAX_KERNELS: usize = 1024;

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Index {
    schema: u32,
    kernels: Vec<Kernel>,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Kernel {
    dependency: KernelDependency,
    commit: CommitId,
    files: Vec<Member>,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Member {
    path: RepoPath,
    oid: Oid,
    size: u64,
}

/// What was packed or unpacked.
#[derive(Clone, Debug, serde::Serialize)]
pub struct Bundled {
    /// Kernels with their commits.
    pub kernels: Vec<(KernelDependency, CommitId)>,
    /// How many contents.
    pub contents: usize,
    /// Their bytes.
    pub bytes: u64,
}

fn invalid(why: impl std::fmt::Display) -> Error {
    Error::new(Code::Bundle, format!("this is not a bundle of kernels: {why}"))
}

/// Packs kernels that lie in `cache` into `file`, which appears whole or not at all. The same kernels make the
/// same bytes.
///
/// # Errors
/// `H0109` if the file cannot be written.
pub fn bundle(cache: &Cache, kernels: &[(KernelDependency, Fetched)], file: &Path) -> Result<Bundled> {
    let mut index = Index { schema: 1, kernels: vec![] };
    let mut contents: BTreeMap<Oid, (u64, PathBuf)> = BTreeMap::new();
    for (dependency, fetched) in kernels {
        let mut files = Vec::new();
        for (path, blob) in cache.snapshot(&fetched.repo, &fetched.commit)?.1 {
            let size = fs::metadata(&blob).map_err(|e| Error::io(&blob, e))?.len();
            let oid = match blob.file_name().and_then(|name| Oid::parse(name.to_str()?).ok()) {
                Some(oid) => oid,
                None => Oid::of_blob(&fs::read(&blob).map_err(|e| Error::io(&blob, e))?),
            };
            contents.insert(oid.clone(), (size, blob));
            files.push(Member { path, oid, size });
        }
        index.kernels.push(Kernel { dependency: dependency.clone(), commit: fetched.commit.clone(), files });
    }
    let folder = match file.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        _ => Path::new("."),
    };
    let mut out = tempfile::NamedTempFile::new_in(folder).map_err(|e| Error::io(folder, e))?;
    let fail = |e| Error::io(file, e);
    let mut tar = Builder::new(std::io::BufWriter::new(out.as_file_mut()));
    let json = serde_json::to_vec_pretty(&index).expect("names and numbers");
    append(&mut tar, INDEX, json.len() as u64, &json[..]).map_err(fail)?;
    for (oid, (size, blob)) in &contents {
        let content = fs::File::open(blob).map_err(|e| Error::io(blob, e))?;
        append(&mut tar, &format!("blobs/{oid}"), *size, content).map_err(fail)?;
    }
    tar.into_inner().and_then(|mut writer| writer.flush()).map_err(fail)?;
    crate::atomic::place(out, file)?;
    Ok(summary(&index, contents.values().map(|(size, _)| *size)))
}

fn append(tar: &mut Builder<impl Write>, name: &str, size: u64, content: impl Read) -> std::io::Result<()> {
    let mut header = Header::new_ustar();
    header.set_entry_type(EntryType::Regular);
    header.set_mode(0o644);
    header.set_mtime(0);
    header.set_size(size);
    tar.append_data(&mut header, name, content)
}

fn summary(index: &Index, sizes: impl Iterator<Item = u64>) -> Bundled {
    let (contents, bytes) = sizes.fold((0, 0), |(count, bytes), size| (count + 1, bytes + size));
    let kernels = index.kernels.iter().map(|k| (k.dependency.clone(), k.commit.clone())).collect();
    Bundled { kernels, contents, bytes }
}

/// Unpacks the bundle that `from` reads into `cache`.
///
/// # Errors
/// `H0312` for what is no bundle, or one that does not hold what it lists; those of fetching for what it holds.
/// Nothing of a kernel that fails is left in the cache's snapshots.
pub fn unbundle(cache: &Cache, from: impl Read) -> Result<Bundled> {
    let mut archive = Archive::new(from);
    // Raw: extensions of tar, such as long names, would be read whole into memory, and we write none.
    let mut entries = archive.entries().map_err(invalid)?.raw(true);
    let first = entries.next().ok_or_else(|| invalid("it is empty"))?.map_err(invalid)?;
    if first.path_bytes() != INDEX.as_bytes() || first.size() > MAX_INDEX {
        return Err(invalid(format!("it does not begin with {INDEX}")));
    }
    let size = first.size();
    let mut json = Vec::new();
    first.take(size).read_to_end(&mut json).map_err(invalid)?;
    let index: Index = serde_json::from_slice(&json).map_err(invalid)?;
    let kernels = check_index(&index)?;

    let mut caches: Vec<RepoCache> = Vec::new();
    let mut repos: Vec<_> = index.kernels.iter().map(|kernel| &kernel.dependency.repo).collect();
    repos.sort();
    repos.dedup();
    for repo in &repos {
        // In one order, so that two of these do not wait for each other.
        caches.push(cache.lock(repo)?);
    }
    let cache_of =
        |repo| repos.binary_search(&repo).map(|at| &caches[at]).expect("every repository is locked");
    let mut expected: BTreeMap<&Oid, (&RemoteFile, BTreeSet<usize>)> = BTreeMap::new();
    for (kernel, files) in index.kernels.iter().zip(&kernels) {
        let at = repos.binary_search(&&kernel.dependency.repo).expect("every repository is locked");
        for file in files {
            let (first, places) = expected.entry(&file.oid).or_insert((file, BTreeSet::new()));
            if first.size != file.size {
                return Err(invalid(format!("{} has two sizes", file.oid)));
            }
            places.insert(at);
        }
    }
    let mut seen = BTreeSet::new();
    for entry in entries {
        let entry = entry.map_err(invalid)?;
        let name = String::from_utf8_lossy(&entry.path_bytes()).into_owned();
        let oid = name.strip_prefix("blobs/").and_then(|oid| Oid::parse(oid).ok());
        let listed = oid.as_ref().and_then(|oid| expected.get(oid));
        let Some((file, places)) = listed.filter(|_| entry.header().entry_type() == EntryType::Regular)
        else {
            return Err(invalid(format!("{name:?} is not listed in it")));
        };
        if entry.size() != file.size || !seen.insert(file.oid.clone()) {
            return Err(invalid(format!("{name} has another size than listed, or comes twice")));
        }
        take(entry, file, places.iter().map(|at| &caches[*at]))?;
    }
    for (oid, (file, places)) in &expected {
        if !seen.contains(*oid) && !places.iter().all(|at| caches[*at].has(file)) {
            return Err(invalid(format!("it does not hold {}", file.path)));
        }
    }
    for (at, cached) in caches.iter().enumerate() {
        let here = expected.iter().filter(|(oid, (_, places))| seen.contains(**oid) && places.contains(&at));
        cached.admit(here.map(|(oid, _)| *oid))?;
    }
    for (kernel, files) in index.kernels.iter().zip(&kernels) {
        let Kernel { dependency, commit, .. } = kernel;
        let wanted =
            Wanted { repo: dependency.repo.clone(), revision: dependency.revision()?, variants: vec![] };
        settle(cache, cache_of(&dependency.repo), &wanted, commit, files)?;
    }
    Ok(summary(&index, expected.values().map(|(file, _)| file.size)))
}

/// The files of each kernel, checked as a hub's listing is.
fn check_index(index: &Index) -> Result<Vec<Vec<RemoteFile>>> {
    if index.schema != 1 {
        return Err(invalid(format!("its schema is {}, and this program knows 1", index.schema)));
    }
    if index.kernels.len() > MAX_KERNELS {
        return Err(invalid(format!("it has more than {MAX_KERNELS} kernels")));
    }
    let (mut all, mut total) = (Vec::new(), 0_u64);
    for kernel in &index.kernels {
        let mut listing = Listing::default();
        for Member { path, oid, size } in &kernel.files {
            total = total.saturating_add(*size);
            listing.add(RemoteFile { path: path.clone(), oid: oid.clone(), size: *size })?;
        }
        all.push(listing.finish()?);
    }
    if total > MAX_TOTAL.saturating_mul(4) {
        return Err(invalid(format!("it lists {total} bytes")));
    }
    Ok(all)
}

/// Gathers one content, checked, for each of these parts of the cache.
fn take<'a>(from: impl Read, file: &RemoteFile, caches: impl Iterator<Item = &'a RepoCache>) -> Result<()> {
    debug_assert!(file.size <= MAX_FILE, "the listing was checked");
    let mut first: Option<PathBuf> = None;
    let mut from = Some(from);
    for cached in caches {
        let place = cached.part(&file.oid);
        let mut part = std::fs::File::create(&place).map_err(|e| Error::io(&place, e))?;
        match (&first, from.take()) {
            (None, Some(from)) => {
                let arrived = Arrival::new(file).take_all(from, &mut part);
                if let Err(e) = arrived {
                    // It names the reason already.
                    let _ = fs::remove_file(&place);
                    return Err(e);
                }
            }
            (Some(first), _) => {
                let mut content = fs::File::open(first).map_err(|e| Error::io(first, e))?;
                std::io::copy(&mut content, &mut part).map_err(|e| Error::io(&place, e))?;
            }
            (None, None) => unreachable!("the first place takes the content"),
        }
        first = Some(place);
    }
    Ok(())
}
