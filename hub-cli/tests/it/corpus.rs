//! The corpora of the fuzz targets, and what becomes of them when bytes are changed: never a panic, and what is read
//! is what is written.

use std::path::Path;

use hub_cli::hub::{Cache, LockFile, RepoPath, unbundle};
use hub_cli::package::signing::{Signature, Sigstore, SigstoreTrust};
use hub_cli::package::{Interface, Metadata};
use kernel_ir::mosaic::call::Index;

/// Bytes that mean something to one of the readers.
const MARKS: &[u8] = b"\"{}[],:\\/.0-9\0\xff";

/// Every file of a corpus, and each with a few hundred changes.
fn each(corpus: &str, mut check: impl FnMut(&[u8])) {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../fuzz/corpus").join(corpus);
    let mut seed = 1_u64;
    let mut random = |below: usize| {
        seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (seed >> 33) as usize % below.max(1)
    };
    let mut files = 0;
    for entry in fs_err::read_dir(folder).unwrap() {
        let bytes = fs_err::read(entry.unwrap().path()).unwrap();
        check(&bytes);
        files += 1;
        for _ in 0..300 {
            let mut changed = bytes.clone();
            for _ in 0..=random(3) {
                let at = random(changed.len());
                match random(5) {
                    0 => changed.truncate(at),
                    1 if at < changed.len() => changed[at] = random(256) as u8,
                    2 if at < changed.len() => drop(changed.remove(at)),
                    3 => changed.insert(at, MARKS[random(MARKS.len())]),
                    _ => {
                        let to = at + random(changed.len() - at);
                        changed.extend_from_within(at..to);
                    }
                }
            }
            check(&changed);
        }
    }
    assert!(files >= 3, "the corpus {corpus} has {files} files");
}

#[test]
fn metadata_survives() {
    each("metadata", |json| {
        if let Ok(metadata) = Metadata::parse(json, "metadata.json") {
            let again = Metadata::parse(metadata.to_json().as_bytes(), "metadata.json").unwrap();
            assert_eq!(again, metadata);
        }
    });
}

#[test]
fn index_json_survives() {
    each("index_json", |json| {
        if let Ok(index) = Index::parse(json) {
            let text = index.to_json().unwrap();
            assert_eq!(Index::parse(text.as_bytes()).unwrap(), index);
            let interface = Interface { ops: Some(index), ..Interface::default() };
            assert!(
                interface.compare(&interface).is_empty(),
                "an interface is compatible with itself: {text}"
            );
        }
    });
}

/// What the target `sigstore` checks.
#[test]
fn what_sigstore_proves_survives_no_change_of_the_bundle() {
    let corpus = Path::new(env!("CARGO_MANIFEST_DIR")).join("../fuzz/corpus/sigstore");
    let read = |name: &str| fs_err::read_to_string(corpus.join(name)).unwrap();
    let trust = |root: &str| {
        let issuer = "https://token.actions.githubusercontent.com";
        SigstoreTrust::new("https://github.com/acme/kernels/*", issuer, root.to_owned(), "root")
    };
    let (metadata, trusted, good) = (read("metadata.json"), trust(&read("root")).unwrap(), read("good"));
    let check = |json: &[u8], trust: &SigstoreTrust| {
        Sigstore::check(json, metadata.as_bytes(), "bundle", &[trust]).map(|found| found.verified.unwrap())
    };
    let logged = check(good.as_bytes(), &trusted).unwrap().logged;
    let mut proven = 0;
    each("sigstore", |json| {
        if let Ok(verified) = check(json, &trusted) {
            assert!(verified.logged.abs_diff(logged) < 60, "another time is proven: {verified:?}");
            proven += 1;
        }
        if let Some(trust) = std::str::from_utf8(json).ok().and_then(|root| trust(root).ok()) {
            let _proven_or_not = check(good.as_bytes(), &trust);
        }
    });
    assert!(proven >= 3, "the good ones are");
}

#[test]
fn lock_files_survive() {
    each("lock_file", |json| {
        if let Ok(lock) = LockFile::parse(json, "kernels.lock") {
            assert_eq!(LockFile::parse(lock.to_json().as_bytes(), "kernels.lock").unwrap(), lock);
        }
    });
}

#[test]
fn signatures_survive() {
    each("signature", |json| {
        if let Ok(signature) = Signature::parse(json, "signature") {
            assert_eq!(Signature::parse(signature.to_json().as_bytes(), "signature").unwrap(), signature);
        }
    });
}

#[test]
fn bundles_survive() {
    let folder = tempfile::tempdir().unwrap();
    let cache = Cache::new(folder.path().join("cache"));
    each("bundle", |bytes| {
        // No bundle of the corpus holds a kernel, so none may be let in.
        unbundle(&cache, bytes).map(|done| assert!(done.kernels.is_empty())).unwrap_or_default();
    });
    assert!(fs_err::read_dir(folder.path()).unwrap().all(|entry| entry.unwrap().file_name() == "cache"));
}

#[test]
fn python_sources_survive() {
    each("python", |bytes| {
        let path = RepoPath::parse("__init__.py").unwrap();
        let files = [(path, bytes.to_vec())].into_iter().collect();
        let interface = Interface::of(&files);
        assert!(interface.compare(&interface).is_empty());
    });
}
