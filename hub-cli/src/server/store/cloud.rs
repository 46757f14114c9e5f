//! A backend in an object store: S3 and what speaks its protocol, Google Cloud Storage, Azure.
//!
//! Several servers may share one. What changes (refs, names, pull requests, accounts) changes by conditional
//! put; a removed record is one with the content [`REMOVED`], since stores delete unconditionally. Contents
//! of files never change, so each server keeps those that it has read in a folder of its own.

use std::fs::File;
use std::io::{Read, Seek, Write};
use std::path::PathBuf;
use std::time::{Duration, SystemTime};

use futures_util::TryStreamExt;
use object_store::path::Path;
use object_store::{
    Error as StoreError, ObjectMeta, ObjectStore, ObjectStoreExt, PutMode, PutOptions, PutPayload,
    UpdateVersion, WriteMultipart,
};
use tempfile::NamedTempFile;
use tokio::runtime::Runtime;

use crate::atomic;
use crate::error::{Code, Error, Result};

use super::backend::{Backend, Entry};

/// The content of a record that was removed.
const REMOVED: &[u8] = b"\0removed";
/// Files from this size on are sent in parts of this size.
const PART: usize = 8 << 20;
/// How old a record may be to count as young without being written again.
const YOUNG: Duration = Duration::from_secs(12 * 3600);

/// The store, the folder in it, and the server's own folders.
#[derive(Debug)]
pub(super) struct Cloud {
    store: Box<dyn ObjectStore>,
    prefix: Path,
    /// Always there until it is dropped.
    runtime: Option<Runtime>,
    /// Contents that were read.
    cache: PathBuf,
    incoming: PathBuf,
}

impl Cloud {
    /// The folder that `url` names, such as `s3://bucket/folder`, with credentials and settings from the
    /// environment (`AWS_..`, `GOOGLE_..`, `AZURE_..`). `root` is for what this server keeps.
    ///
    /// # Errors
    /// `H0501` if that is no object store.
    pub(super) fn open(url: &str, root: &std::path::Path) -> Result<Self> {
        let bad = |why: String| Error::new(Code::Root, format!("{url} is not an object store: {why}"));
        let parsed = url::Url::parse(url).map_err(|e| bad(e.to_string()))?;
        let settings = std::env::vars().map(|(name, value)| (name.to_ascii_lowercase(), value));
        let (store, prefix) =
            object_store::parse_url_opts(&parsed, settings).map_err(|e| bad(e.to_string()))?;
        Self::with(store, prefix, root)
    }

    fn with(store: Box<dyn ObjectStore>, prefix: Path, root: &std::path::Path) -> Result<Self> {
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(1)
            .thread_name("object-store")
            .enable_all()
            .build()
            .map_err(|e| Error::io(root, e))?;
        let (cache, incoming) = (root.join("cache"), root.join("incoming"));
        atomic::make_folder(&cache)?;
        Ok(Self { store, prefix, runtime: Some(runtime), cache, incoming })
    }

    fn wait<T>(&self, work: impl Future<Output = T>) -> T {
        self.runtime.as_ref().expect("the runtime is there until this is dropped").block_on(work)
    }

    fn path(&self, key: &str) -> Result<Path> {
        let path =
            if self.prefix.as_ref().is_empty() { key.to_owned() } else { format!("{}/{key}", self.prefix) };
        Path::parse(path).map_err(|e| Error::new(Code::Stored, format!("{key:?} is no key: {e}")))
    }

    /// The key of a path in the store.
    fn key(&self, path: &Path) -> Option<String> {
        let rest = path.as_ref().strip_prefix(self.prefix.as_ref())?;
        Some(rest.trim_start_matches('/').to_owned())
    }

    /// The record under `key` with the version for a conditional put; `None` if nothing was ever there.
    fn get(&self, key: &str) -> Result<Option<(Vec<u8>, UpdateVersion)>> {
        let path = self.path(key)?;
        let got = self.wait(async {
            let got = self.store.get(&path).await?;
            let version = UpdateVersion { e_tag: got.meta.e_tag.clone(), version: got.meta.version.clone() };
            Ok((got.bytes().await?.to_vec(), version))
        });
        present(key, got)
    }

    fn head(&self, key: &str) -> Result<Option<ObjectMeta>> {
        let path = self.path(key)?;
        present(key, self.wait(self.store.head(&path)))
    }

    fn upload(&self, key: &str, file: &mut File) -> Result<()> {
        let path = self.path(key)?;
        let io = |e: std::io::Error| Error::new(Code::Io, format!("{key}: {e}"));
        file.rewind().map_err(io)?;
        let mut first = Vec::new();
        file.take(PART as u64).read_to_end(&mut first).map_err(io)?;
        if first.len() < PART {
            return self.wait(self.store.put(&path, first.into())).map(|_| ()).map_err(|e| failed(key, &e));
        }
        self.wait(async {
            let upload = self.store.put_multipart(&path).await.map_err(|e| failed(key, &e))?;
            let mut writer = WriteMultipart::new_with_chunk_size(upload, PART);
            let mut block = first;
            while !block.is_empty() {
                writer.wait_for_capacity(4).await.map_err(|e| failed(key, &e))?;
                writer.write(&block);
                block.clear();
                file.take(PART as u64).read_to_end(&mut block).map_err(io)?;
            }
            writer.finish().await.map(|_| ()).map_err(|e| failed(key, &e))
        })
    }
}

impl Drop for Cloud {
    fn drop(&mut self) {
        // The last owner may be a task, where waiting is not allowed.
        if let Some(runtime) = self.runtime.take() {
            runtime.shutdown_background();
        }
    }
}

impl Backend for Cloud {
    fn read(&self, key: &str) -> Result<Option<Vec<u8>>> {
        Ok(self.get(key)?.map(|(bytes, _)| bytes).filter(|bytes| bytes != REMOVED))
    }

    fn open(&self, key: &str) -> Result<Option<File>> {
        let kept = self.cache.join(key);
        if let Ok(file) = File::open(&kept) {
            return Ok(Some(file));
        }
        let path = self.path(key)?;
        let Some(got) = present(key, self.wait(self.store.get(&path)))? else { return Ok(None) };
        let mut file = self.scratch()?;
        self.wait(async {
            let mut pieces = got.into_stream();
            while let Some(piece) = pieces.try_next().await.map_err(|e| failed(key, &e))? {
                file.write_all(&piece).map_err(|e| Error::io(&kept, e))?;
            }
            Ok::<_, Error>(())
        })?;
        if key.contains("/objects/") {
            atomic::make_folder(kept.parent().unwrap_or(&self.cache))?;
            file.persist(&kept).map_err(|e| Error::io(&kept, e.error))?;
            return File::open(&kept).map(Some).map_err(|e| Error::io(&kept, e));
        }
        let mut file = file.into_file();
        file.rewind().map_err(|e| Error::io(&kept, e))?;
        Ok(Some(file))
    }

    fn stamp(&self, key: &str) -> Result<Option<String>> {
        Ok(self.head(key)?.map(|meta| format!("{:?} {:?}", meta.e_tag, meta.last_modified)))
    }

    fn size(&self, key: &str) -> Result<Option<u64>> {
        Ok(self.head(key)?.map(|meta| meta.size))
    }

    fn put(&self, key: &str, mut file: NamedTempFile) -> Result<()> {
        self.upload(key, file.as_file_mut())
    }

    fn swap(&self, key: &str, expected: Option<&[u8]>, new: Option<&[u8]>) -> Result<bool> {
        let found = self.get(key)?;
        if found.as_ref().map(|(bytes, _)| bytes.as_slice()).filter(|bytes| *bytes != REMOVED) != expected {
            return Ok(false);
        }
        let mode = match (found, new) {
            (None, None) => return Ok(true),
            (None, Some(_)) => PutMode::Create,
            (Some((_, version)), _) => PutMode::Update(version),
        };
        let payload = PutPayload::from(new.unwrap_or(REMOVED).to_vec());
        let path = self.path(key)?;
        match self.wait(self.store.put_opts(&path, payload, PutOptions::from(mode))) {
            Ok(_) => Ok(true),
            // Somebody else was faster.
            Err(StoreError::AlreadyExists { .. } | StoreError::Precondition { .. }) => Ok(false),
            Err(e) => Err(failed(key, &e)),
        }
    }

    fn names(&self, folder: &str) -> Result<Vec<String>> {
        let path = self.path(folder)?;
        let listed =
            self.wait(self.store.list_with_delimiter(Some(&path))).map_err(|e| failed(folder, &e))?;
        let paths = listed.common_prefixes.iter().chain(listed.objects.iter().map(|meta| &meta.location));
        let mut names: Vec<_> = paths.filter_map(|path| path.filename().map(str::to_owned)).collect();
        names.sort();
        names.dedup();
        Ok(names)
    }

    fn walk(&self, folder: &str) -> Result<Vec<Entry>> {
        let path = self.path(folder)?;
        let listed: Vec<ObjectMeta> =
            self.wait(self.store.list(Some(&path)).try_collect()).map_err(|e| failed(folder, &e))?;
        let entry = |meta: ObjectMeta| {
            let key = self.key(&meta.location)?;
            Some(Entry { key, size: meta.size, modified: meta.last_modified.into() })
        };
        Ok(listed.into_iter().filter_map(entry).collect())
    }

    fn touch(&self, key: &str) -> Result<bool> {
        let Some(meta) = self.head(key)? else { return Ok(false) };
        let young = SystemTime::now().checked_sub(YOUNG).unwrap_or(SystemTime::UNIX_EPOCH);
        if SystemTime::from(meta.last_modified) < young {
            // Stores do not change a date alone.
            let Some(mut file) = self.open(key)? else { return Ok(false) };
            self.upload(key, &mut file)?;
        }
        Ok(true)
    }

    fn remove_older(&self, key: &str, cutoff: SystemTime) -> Result<bool> {
        let Some(meta) = self.head(key)? else { return Ok(false) };
        if SystemTime::from(meta.last_modified) >= cutoff {
            return Ok(false);
        }
        let path = self.path(key)?;
        self.wait(self.store.delete(&path)).map(|()| true).map_err(|e| failed(key, &e))
    }

    fn scratch(&self) -> Result<NamedTempFile> {
        atomic::scratch(&self.incoming)
    }
}

/// `None` for what does not exist.
fn present<T>(key: &str, result: std::result::Result<T, StoreError>) -> Result<Option<T>> {
    match result {
        Ok(value) => Ok(Some(value)),
        Err(StoreError::NotFound { .. }) => Ok(None),
        Err(e) => Err(failed(key, &e)),
    }
}

fn failed(key: &str, error: &StoreError) -> Error {
    Error::new(Code::Stored, format!("the object store failed at {key}: {error}"))
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use object_store::memory::InMemory;

    use super::*;

    /// Two servers that share one store.
    fn two() -> (tempfile::TempDir, [Cloud; 2]) {
        let (folder, store) = (tempfile::tempdir().unwrap(), Arc::new(InMemory::new()));
        let server = |name: &str| {
            let root = folder.path().join(name);
            atomic::make_folder(&root.join("incoming")).unwrap();
            Cloud::with(Box::new(store.clone()), Path::from("hubs/one"), &root).unwrap()
        };
        let servers = [server("a"), server("b")];
        (folder, servers)
    }

    #[test]
    fn of_two_servers_that_swap_one_record_one_wins() {
        let (_folder, [a, b]) = two();
        assert!(a.swap("x/y", None, Some(b"0")).unwrap());
        assert!(!b.swap("x/y", None, Some(b"1")).unwrap());
        let won: Vec<bool> = std::thread::scope(|scope| {
            let racers: Vec<_> = (1..=8_u8)
                .map(|n| {
                    let server = if n % 2 == 0 { &a } else { &b };
                    scope.spawn(move || server.swap("x/y", Some(b"0"), Some(&[n])).unwrap())
                })
                .collect();
            racers.into_iter().map(|racer| racer.join().unwrap()).collect()
        });
        assert_eq!(won.iter().filter(|won| **won).count(), 1);
        let now = b.read("x/y").unwrap().unwrap();
        assert!(b.swap("x/y", Some(&now), None).unwrap());
        assert_eq!(a.read("x/y").unwrap(), None, "removed for both");
        assert!(a.swap("x/y", None, Some(b"again")).unwrap());
    }

    #[test]
    fn large_and_small_records_come_back_and_are_listed() {
        let (_folder, [a, b]) = two();
        let content: Vec<u8> = (0..PART * 2 + 17).map(|n| n as u8).collect();
        for (key, content) in [("repos/1/objects/ab/cd", &content[..]), ("repos/1/objects/ab/e", b"")] {
            let mut file = a.scratch().unwrap();
            file.write_all(content).unwrap();
            a.put(key, file).unwrap();
            for _ in 0..2 {
                let mut read = Vec::new();
                b.open(key).unwrap().unwrap().read_to_end(&mut read).unwrap();
                assert_eq!(read, content);
            }
            assert_eq!(b.size(key).unwrap(), Some(content.len() as u64));
        }
        assert_eq!(b.names("repos").unwrap(), ["1"]);
        assert_eq!(b.names("repos/1/objects/ab").unwrap(), ["cd", "e"]);
        let mut keys: Vec<_> = b.walk("repos").unwrap().into_iter().map(|entry| entry.key).collect();
        keys.sort();
        assert_eq!(keys, ["repos/1/objects/ab/cd", "repos/1/objects/ab/e"]);
        assert!(a.touch("repos/1/objects/ab/e").unwrap() && !a.touch("none").unwrap());
        assert!(
            !a.remove_older("repos/1/objects/ab/e", SystemTime::now() - Duration::from_secs(60)).unwrap()
        );
        assert!(a.remove_older("repos/1/objects/ab/e", SystemTime::now() + Duration::from_secs(60)).unwrap());
        assert_eq!(b.size("repos/1/objects/ab/e").unwrap(), None);
    }
}
