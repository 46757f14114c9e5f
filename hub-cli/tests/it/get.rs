//! Fetching from our own hub: pins, the cache's layout, offline use, and repair.

use hub_cli::hub::{Revision, Silent, Version, Wanted, fetch, open_cached};
use hub_cli::settings::{Environment, HubSettings};
use hub_cli::{Code, Kernel, Result};
use kernel_ir::mosaic::call::TensorType;

use crate::support::{Bench, contents, no_commit, repo, wanted};

#[test]
fn a_version_a_branch_and_a_commit_give_the_same_bytes() -> Result<()> {
    let bench = Bench::new();
    let published = bench.publish(1, "one")?;
    bench.publish(2, "two")?;
    let by_version = bench.get(Version(1))?;
    assert_eq!(by_version.commit, published.commit);
    for revision in [Revision::Branch("v1".into()), Revision::Commit(published.commit.clone())] {
        let again = bench.get(revision)?;
        assert_eq!(
            (again.commit, again.snapshot, again.downloaded),
            (published.commit.clone(), by_version.snapshot.clone(), (0, 0))
        );
    }
    let init = fs_err::read_to_string(by_version.snapshot.join("build/torch-cpu/__init__.py")).unwrap();
    assert!(init.contains("\"one\""));
    Ok(())
}

#[test]
fn a_version_is_pinned_when_its_branch_moves() -> Result<()> {
    let bench = Bench::new();
    let old = bench.publish(1, "old")?.commit;
    let new = bench.publish(1, "new")?.commit;
    assert_ne!(old, new);
    assert_eq!(bench.get(Version(1))?.commit, new);
    let pinned = bench.get(Revision::Commit(old))?;
    assert!(
        fs_err::read_to_string(pinned.snapshot.join("build/torch-tpu/__init__.py"))
            .unwrap()
            .contains("\"old\"")
    );
    Ok(())
}

#[test]
fn the_cache_has_the_layout_that_python_reads() -> Result<()> {
    let bench = Bench::new();
    let fetched = bench.get_published()?;
    let root = bench.cache_folder().join("kernels--acme--toy-kernel");
    assert_eq!(fs_err::read_to_string(root.join("refs/v1")).unwrap(), fetched.commit.as_str());
    let file =
        root.join("snapshots").join(fetched.commit.as_str()).join("build/torch-tpu/mosaic/toy-bf16.mlirbc");
    let target = fs_err::read_link(&file).unwrap();
    assert!(target.starts_with("../../../../../blobs"), "{}", target.display());
    assert_eq!(fs_err::read(&file).unwrap(), b"ML\xefR toy module");
    let names: Vec<_> =
        fs_err::read_dir(&root).unwrap().map(|e| e.unwrap().file_name().into_string().unwrap()).collect();
    assert!(names.iter().all(|n| ["refs", "blobs", "snapshots"].contains(&n.as_str())), "{names:?}");
    Ok(())
}

#[test]
fn one_variant_can_be_fetched_and_the_rest_later() -> Result<()> {
    let bench = Bench::new();
    bench.publish(1, "one")?;
    let only = Wanted { variants: vec!["torch-tpu".into()], ..wanted(Version(1)) };
    let fetched = fetch(&bench.client(), &bench.cache(), &only, &mut Silent)?;
    assert_eq!(fetched.variants.len(), 1);
    assert!(!fetched.snapshot.join("build/torch-cpu").exists());
    let all = bench.get(Version(1))?;
    assert_eq!((all.variants.len(), &all.snapshot), (3, &fetched.snapshot));
    assert!(all.snapshot.join("build/torch-cpu/metadata.json").exists());

    let absent = Wanted { variants: vec!["torch-cuda".into()], ..wanted(Version(1)) };
    let error = fetch(&bench.client(), &bench.cache(), &absent, &mut Silent).unwrap_err();
    assert_eq!(error.code(), Code::NoVariant);
    assert!(error.help_text().unwrap().contains("torch-cpu, torch-tpu, torch-universal"));
    Ok(())
}

#[test]
fn the_cache_serves_without_a_hub() -> Result<()> {
    let bench = Bench::new();
    let online = bench.get_published()?;
    let offline = open_cached(&bench.cache(), &wanted(Version(1)))?;
    assert_eq!((offline.commit, offline.snapshot), (online.commit, online.snapshot));
    for absent in [Version(2).into(), Revision::Commit(no_commit()), Revision::Branch("main".into())] {
        assert_eq!(open_cached(&bench.cache(), &wanted(absent)).unwrap_err().code(), Code::Offline);
    }
    Ok(())
}

#[test]
fn a_damaged_cache_is_noticed_offline_and_mended_online() -> Result<()> {
    let bench = Bench::new();
    let fetched = bench.get_published()?;
    let file = fetched.snapshot.join("build/torch-cpu/__init__.py");
    let blob = fs_err::canonicalize(&file).unwrap();
    fs_err::write(&blob, "import os\n").unwrap();
    assert_eq!(open_cached(&bench.cache(), &wanted(Version(1))).unwrap_err().code(), Code::CacheDamaged);
    let mended = bench.get(Version(1))?;
    // The three variants share the file, and a content counts once.
    assert_eq!(mended.downloaded.0, 1);
    assert_eq!(mended.reused + 1, fetched.downloaded.0);
    assert_eq!(fetched.reused, 0);
    assert!(fs_err::read_to_string(&file).unwrap().contains("greet"));
    open_cached(&bench.cache(), &wanted(Version(1)))?;
    Ok(())
}

#[test]
fn a_small_page_size_changes_nothing() -> Result<()> {
    let bench = Bench::with(|config| config.page_size = 1);
    let fetched = bench.get_published()?;
    assert_eq!(fetched.variants.len(), 3);
    Ok(())
}

#[test]
fn rust_takes_the_module_that_serves_a_call() -> Result<()> {
    let bench = Bench::new();
    let online = bench.get_published()?;
    let mut settings = HubSettings::from_environment(&Environment::default())?;
    settings.cache = bench.cache();
    settings.offline = true;
    let kernel = Kernel::open(&settings, &wanted(Version(1)))?;
    assert_eq!((kernel.path(), kernel.metadata().version), (online.snapshot.as_path(), 1));

    let module = kernel.select("toy", &[TensorType::new("bfloat16", [7, 256])], Some("v5e"))?;
    assert_eq!(module.bytes, b"ML\xefR toy module");
    assert_eq!(module.entry.kernel, "toy");
    for (op, dtype, k, generation) in [
        ("toy", "bfloat16", 100, None),
        ("toy", "float32", 256, None),
        ("toy", "bfloat16", 256, Some("v4")),
        ("no", "bfloat16", 256, None),
    ] {
        let error = kernel.select(op, &[TensorType::new(dtype, [7, k])], generation).unwrap_err();
        assert_eq!(error.code(), Code::NoModule, "{error}");
    }
    Ok(())
}

#[test]
fn what_does_not_exist_is_named() {
    let bench = Bench::new();
    assert_eq!(bench.get(Version(1)).unwrap_err().code(), Code::RepoNotFound);
    bench.publish(1, "one").unwrap();
    let error = bench.get(Version(3)).unwrap_err();
    assert_eq!((error.code(), error.help_text()), (Code::RevisionNotFound, Some("it has v1")));
    assert!(error.to_string().contains(&repo().to_string()));
    assert_eq!(bench.get(Revision::Commit(no_commit())).unwrap_err().code(), Code::RevisionNotFound);
    assert_eq!(bench.get(Revision::Branch("main".into())).unwrap_err().code(), Code::NoVariant);
    assert!(contents(&bench.cache_folder()).keys().all(|p| !p.starts_with("kernels--acme--toy-kernel")));
}
