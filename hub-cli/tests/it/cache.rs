//! Looking after the cache: what it lists, how it is checked and mended, and what may be removed.

use std::collections::BTreeSet;
use std::time::Duration;

use hub_cli::Result;
use hub_cli::hub::{Version, open_cached};

use crate::support::{Bench, contents, wanted};

#[test]
fn the_cache_is_listed_checked_and_mended() -> Result<()> {
    let bench = Bench::new();
    let fetched = bench.get_published()?;
    let cache = bench.cache_folder();
    let cli = |args: &[&str]| bench.cli(&[args, &["--cache-dir", cache.to_str().unwrap()]].concat());
    let list = cli(&["cache", "ls", "--json"]).json();
    assert_eq!(list["repos"][0]["repo"], "acme/toy-kernel");
    assert_eq!(list["repos"][0]["refs"]["v1"], fetched.commit.as_str());
    assert!(cli(&["cache", "ls"]).out.contains(&format!("{}", fetched.commit)));
    assert_eq!(cli(&["cache", "verify", "--json"]).json()["checked"], fetched.downloaded.0);

    let blob = fs_err::canonicalize(fetched.snapshot.join("build/torch-cpu/__init__.py")).unwrap();
    fs_err::write(&blob, "import os\n").unwrap();
    let damaged = cli(&["cache", "verify"]);
    assert!(
        damaged.err.contains("error[H0307]") && damaged.err.contains(blob.to_str().unwrap()),
        "{damaged:?}"
    );
    assert_eq!(cli(&["cache", "verify", "--remove"]).code, 0);
    assert!(!blob.exists());
    // Its links lead nowhere now.
    assert!(cli(&["cache", "verify"]).err.contains("3 files of the cache are damaged"));
    assert_eq!(cli(&["cache", "verify", "--remove"]).code, 0);
    bench.get(Version(1))?;
    assert_eq!(cli(&["cache", "verify"]).code, 0);
    Ok(())
}

#[test]
fn only_what_nothing_names_is_removed() -> Result<()> {
    let bench = Bench::new();
    bench.publish(1, "old")?;
    let old = bench.get(Version(1))?.commit;
    bench.publish(1, "new")?;
    let new = bench.get(Version(1))?;
    let cache = bench.cache();
    let root = bench.cache_folder().join("kernels--acme--toy-kernel");
    fs_err::create_dir_all(root.join("incoming")).unwrap();
    fs_err::write(root.join("incoming").join("a".repeat(40)), "half").unwrap();
    fs_err::write(root.join("blobs").join("b".repeat(40)), "nobody's").unwrap();

    // Young contents may be about to be linked; a dry run removes nothing.
    let before = contents(&root);
    let dry = cache.collect(Some(&BTreeSet::new()), Duration::ZERO, true)?;
    assert_eq!((dry.snapshots.len(), contents(&root)), (1, before));
    let young = cache.collect(None, Duration::from_secs(3600), false)?;
    assert_eq!((young.contents.len(), young.snapshots.len()), (1, 0), "the unfinished download alone");
    let mine = cache.collect(None, Duration::ZERO, false)?;
    assert_eq!((mine.contents.len(), mine.bytes), (1, 8));
    // A lock file still names the old commit.
    let kept = cache.collect(Some(&BTreeSet::from([old.clone()])), Duration::ZERO, false)?;
    assert!(kept.snapshots.is_empty() && kept.contents.is_empty(), "{kept:?}");
    open_cached(&cache, &wanted(old.clone()))?;

    let gone = cache.collect(Some(&BTreeSet::new()), Duration::ZERO, false)?;
    assert_eq!(gone.snapshots, [root.join("snapshots").join(old.as_str())]);
    // The entry point is all that the two differ in, and the metadata of each variant with it.
    assert_eq!(gone.contents.len(), 4, "{gone:?}");
    assert_eq!(open_cached(&cache, &wanted(Version(1)))?.commit, new.commit);
    assert!(open_cached(&cache, &wanted(old)).is_err());
    Ok(())
}
