//! Looking after the cache: what it holds, whether it is sound, and what can go.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use fs_err as fs;

use crate::error::{Error, Result};
use crate::hub::oid::{CommitId, Oid};
use crate::hub::repo::RepoId;

use super::{Cache, hash_file};

/// A blob that is younger may be about to be linked by another program, such as Python's client.
pub const RECENT: Duration = Duration::from_secs(3600);

/// One repository in the cache.
#[derive(Clone, Debug, serde::Serialize)]
pub struct CachedRepo {
    /// The repository.
    pub repo: RepoId,
    /// The commits that its branches and tags stood at when they were last fetched.
    pub refs: BTreeMap<String, CommitId>,
    /// The commits that files are there of, and how many.
    pub snapshots: BTreeMap<CommitId, usize>,
    /// Bytes of all contents.
    pub bytes: u64,
}

/// What is wrong with a cache.
#[derive(Clone, Debug, Default, serde::Serialize)]
pub struct CacheReport {
    /// How many contents were read.
    pub checked: usize,
    /// Contents that are not what their name says.
    pub damaged: Vec<PathBuf>,
    /// Links of snapshots that lead nowhere.
    pub dangling: Vec<PathBuf>,
}

/// What a collection removed, or would.
#[derive(Clone, Debug, Default, serde::Serialize)]
pub struct Collected {
    /// Snapshots that no ref and no lock file names.
    pub snapshots: Vec<PathBuf>,
    /// Contents that no snapshot has, and unfinished downloads.
    pub contents: Vec<PathBuf>,
    /// Their bytes.
    pub bytes: u64,
}

impl Cache {
    /// The kernels in the cache, by repository.
    ///
    /// # Errors
    /// `H0109` if a folder cannot be read.
    pub fn list(&self) -> Result<Vec<CachedRepo>> {
        let mut found = Vec::new();
        for (repo, folder) in self.repositories()? {
            let refs = self.ref_names(&repo).into_iter();
            let refs = refs.filter_map(|name| Some((name.clone(), self.read_ref(&repo, &name)?))).collect();
            let mut snapshots = BTreeMap::new();
            for (commit, path) in snapshots_of(&folder)? {
                snapshots.insert(commit, links(&path)?.len());
            }
            let bytes = blobs(&folder)?.iter().map(|blob| size(blob)).sum();
            found.push(CachedRepo { repo, refs, snapshots, bytes });
        }
        Ok(found)
    }

    /// Reads every content and follows every link.
    ///
    /// # Errors
    /// `H0109` if something cannot be read at all.
    pub fn verify(&self) -> Result<CacheReport> {
        let mut report = CacheReport::default();
        for (_, folder) in self.repositories()? {
            for blob in blobs(&folder)? {
                // Python keeps unfinished downloads among the contents.
                let Some(oid) = name_of(&blob).and_then(|name| Oid::parse(name).ok()) else { continue };
                report.checked += 1;
                if !hash_file(&blob, &oid).is_ok_and(|(_, actual)| actual == oid) {
                    report.damaged.push(blob);
                }
            }
            for (_, snapshot) in snapshots_of(&folder)? {
                report.dangling.extend(links(&snapshot)?.into_iter().filter(|link| !link.exists()));
            }
        }
        Ok(report)
    }

    /// Removes what `report` found; the next `get` fetches it again.
    ///
    /// # Errors
    /// `H0109`.
    pub fn mend(&self, report: &CacheReport) -> Result<()> {
        let mut all = report.damaged.iter().chain(&report.dangling);
        all.try_for_each(|path| fs::remove_file(path).map_err(|e| Error::io(path, e)))
    }

    /// Removes contents that no snapshot has and that are older than `age`, and unfinished downloads. With
    /// `keep`, also snapshots that neither a ref nor one of these commits names.
    ///
    /// # Errors
    /// `H0109`.
    pub fn collect(
        &self,
        keep: Option<&BTreeSet<CommitId>>,
        age: Duration,
        dry_run: bool,
    ) -> Result<Collected> {
        let mut all = Collected::default();
        for (repo, folder) in self.repositories()? {
            // Nobody of ours writes meanwhile.
            let _lock = self.lock_only(&repo)?;
            let refs = self.ref_names(&repo);
            let named: BTreeSet<CommitId> =
                refs.iter().filter_map(|name| self.read_ref(&repo, name)).collect();
            let mut used = BTreeSet::new();
            for (commit, snapshot) in snapshots_of(&folder)? {
                if keep.is_some_and(|keep| !keep.contains(&commit) && !named.contains(&commit)) {
                    if !dry_run {
                        fs::remove_dir_all(&snapshot).map_err(|e| Error::io(&snapshot, e))?;
                        let tree = folder.join("trees").join(format!("{commit}.json"));
                        // Python's listing of the snapshot; it is not always there.
                        let _ = fs::remove_file(tree);
                    }
                    all.snapshots.push(snapshot);
                    continue;
                }
                used.extend(links(&snapshot)?.iter().filter_map(|link| fs::canonicalize(link).ok()));
            }
            let parts = files_in(&folder.join("incoming"))?;
            let unused = blobs(&folder)?.into_iter().filter(|blob| {
                fs::canonicalize(blob).is_ok_and(|real| !used.contains(&real)) && is_older(blob, age)
            });
            for path in unused.chain(parts) {
                all.bytes += size(&path);
                if !dry_run {
                    fs::remove_file(&path).map_err(|e| Error::io(&path, e))?;
                }
                all.contents.push(path);
            }
        }
        Ok(all)
    }

    fn repositories(&self) -> Result<Vec<(RepoId, PathBuf)>> {
        let mut found = Vec::new();
        for folder in entries(self.root())? {
            let Some(name) = name_of(&folder).and_then(|name| name.strip_prefix("kernels--")) else {
                continue;
            };
            let Some((owner, name)) = name.split_once("--") else { continue };
            if let Ok(repo) = RepoId::new(owner, name)
                && folder.is_dir()
            {
                found.push((repo, folder));
            }
        }
        found.sort();
        Ok(found)
    }
}

fn snapshots_of(folder: &Path) -> Result<Vec<(CommitId, PathBuf)>> {
    let all = entries(&folder.join("snapshots"))?.into_iter();
    Ok(all.filter_map(|path| Some((name_of(&path)?.parse().ok()?, path))).collect())
}

/// Everything below `folder` that is not a folder itself; links are not followed.
fn links(folder: &Path) -> Result<Vec<PathBuf>> {
    let mut found = Vec::new();
    let mut pending = vec![folder.to_path_buf()];
    while let Some(at) = pending.pop() {
        for path in entries(&at)? {
            if path.is_dir() && !path.is_symlink() { pending.push(path) } else { found.push(path) }
        }
    }
    Ok(found)
}

fn blobs(folder: &Path) -> Result<Vec<PathBuf>> {
    files_in(&folder.join("blobs"))
}

fn files_in(folder: &Path) -> Result<Vec<PathBuf>> {
    Ok(entries(folder)?.into_iter().filter(|path| path.is_file() && !path.is_symlink()).collect())
}

/// The sorted entries of a folder; none if it is not there.
fn entries(folder: &Path) -> Result<Vec<PathBuf>> {
    let entries = match fs::read_dir(folder) {
        Ok(entries) => entries,
        Err(e) if e.kind() == std::io::ErrorKind::NotFound => return Ok(vec![]),
        Err(e) => return Err(Error::io(folder, e)),
    };
    let mut paths = entries
        .map(|entry| entry.map(|e| e.path()).map_err(|e| Error::io(folder, e)))
        .collect::<Result<Vec<_>>>()?;
    paths.sort();
    Ok(paths)
}

fn name_of(path: &Path) -> Option<&str> {
    path.file_name()?.to_str()
}

fn size(path: &Path) -> u64 {
    fs::metadata(path).map_or(0, |meta| meta.len())
}

fn is_older(path: &Path, age: Duration) -> bool {
    let modified = fs::metadata(path).and_then(|meta| meta.modified());
    modified.is_ok_and(|time| SystemTime::now().duration_since(time).is_ok_and(|passed| passed >= age))
}
