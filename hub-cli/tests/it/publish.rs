//! Publishing through hf-hub to our own hub: what is sent, skipped, removed, and refused.

use hf_hub::repository::RepoTreeEntry;
use hf_hub::{HFClient, RepoTypeKernel};
use hub_cli::hub::{Cache, Oid, Revision, Version, open_cached, publish};
use hub_cli::{Code, Result};

use crate::support::{Bench, repo, toy_package, wanted};

#[test]
fn versions_live_on_branches_and_the_card_on_main() -> Result<()> {
    let bench = Bench::new();
    let one = bench.publish(1, "one")?;
    let two = bench.publish(2, "two")?;
    assert!(one.card && !two.card);

    let heads = bench.client().heads(&repo())?;
    assert_eq!(heads.branches["v1"], one.commit);
    assert_eq!(heads.branches["v2"], two.commit);
    assert_eq!(heads.versions().into_keys().collect::<Vec<_>>(), [Version(1), Version(2)]);
    let main = bench.client().files(&repo(), &heads.branches["main"])?;
    assert_eq!(main.iter().map(|f| f.path.as_str()).collect::<Vec<_>>(), ["README.md"]);
    Ok(())
}

#[test]
fn the_same_bytes_make_no_new_commit() -> Result<()> {
    let bench = Bench::new();
    let first = bench.publish(1, "one")?;
    let again = bench.publish(1, "one")?;
    assert_eq!(again.commit, first.commit);
    assert_eq!((again.uploaded, again.removed, again.bytes), (0, 0, 0));
    assert_eq!(again.unchanged, first.uploaded);
    Ok(())
}

#[test]
fn only_what_changed_is_sent_and_what_is_gone_is_removed() -> Result<()> {
    let bench = Bench::new();
    let source = bench.folder.path().join("source");
    toy_package(&source, 1, "one");
    fs_err::write(source.join("python/_extra.py"), "x = 1\n").unwrap();
    let build =
        || hub_cli::package::build::build(&source, None, &crate::support::Toys, None).unwrap().package;
    let send = |package: &hub_cli::package::LocalPackage| {
        publish(&bench.client(), None, package, &repo(), Version(1), false)
    };
    send(&build())?;

    fs_err::remove_file(source.join("python/_extra.py")).unwrap();
    let package = build();
    let second = send(&package)?;
    // The extra file of each variant goes; the metadata changes with the digest.
    assert_eq!((second.removed, second.uploaded), (3, 3));
    let files = bench.client().files(&repo(), &second.commit)?;
    assert!(files.iter().all(|f| !f.path.as_str().contains("_extra")));
    Ok(())
}

#[test]
fn a_package_is_published_as_the_version_it_states() {
    let bench = Bench::new();
    let package = toy_package(&bench.folder.path().join("source"), 1, "one");
    let error = publish(&bench.client(), None, &package, &repo(), Version(2), false).unwrap_err();
    assert_eq!(error.code(), Code::Version);
    assert_eq!(bench.client().heads(&repo()).unwrap_err().code(), Code::RepoNotFound);
}

#[test]
fn a_hub_keeps_what_was_published_when_it_starts_again() -> Result<()> {
    let bench = Bench::new();
    let one = bench.publish(1, "one")?;
    let Bench { folder, hub } = bench;
    drop(hub);
    let hub = hub_cli::server::Hub::start(hub_cli::server::Config::new(folder.path().join("hub")))?;
    let bench = Bench { folder, hub };
    assert_eq!(bench.client().resolve(&repo(), &Revision::Version(Version(1)))?, one.commit);
    bench.get(Version(1))?;
    Ok(())
}

#[test]
fn one_folder_is_served_once() {
    let bench = Bench::new();
    let again = hub_cli::server::Hub::start(hub_cli::server::Config::new(bench.folder.path().join("hub")));
    assert_eq!(again.unwrap_err().code(), Code::RootInUse);
    let foreign = tempfile::tempdir().unwrap();
    fs_err::write(foreign.path().join("thesis.tex"), "").unwrap();
    let other = hub_cli::server::Hub::start(hub_cli::server::Config::new(foreign.path()));
    assert_eq!(other.unwrap_err().code(), Code::Root);
}

#[test]
fn hf_hub_reads_and_writes_our_hub() -> Result<()> {
    for page_size in [1000, 1] {
        let bench = Bench::with(|config| config.page_size = page_size);
        let published = bench.publish(1, "one")?;
        let folder = bench.folder.path();
        let builder =
            HFClient::builder().endpoint(bench.hub.endpoint()).token("any").cache_dir(folder.join("theirs"));
        let hub = builder.build_sync().unwrap();
        assert_eq!(hub.whoami().send().unwrap().username, "local");

        let kernel = hub.kernel("acme", "toy-kernel");
        let refs = kernel.list_refs().send().unwrap();
        assert_eq!(refs.branches.iter().map(|b| b.name.as_str()).collect::<Vec<_>>(), ["main", "v1"]);
        let ours = bench.client().files(&repo(), &published.commit)?;
        let tree = kernel.list_tree().revision("v1").recursive(true).send().unwrap();
        let files = tree.iter().filter(|entry| matches!(entry, RepoTreeEntry::File { .. })).count();
        assert_eq!(files, ours.len());
        assert_eq!(kernel.list_commits().revision("v1").send().unwrap().len(), 2);
        let snapshot = kernel.snapshot_download().revision("v1").send().unwrap();
        for file in &ours {
            let theirs = fs_err::read(file.path.under(&snapshot)).unwrap();
            assert_eq!(Oid::of_blob(&theirs), file.oid, "{}", file.path);
        }
        // What hf-hub put into its cache is complete and sound by our rules.
        open_cached(&Cache::new(folder.join("theirs")), &wanted(Version(1)))?;

        fs_err::create_dir(folder.join("upload")).unwrap();
        fs_err::write(folder.join("upload/notes.md"), "notes").unwrap();
        kernel.upload_folder().folder_path(folder.join("upload")).revision("main").send().unwrap();
        kernel.create_tag().tag("first").revision("v1").send().unwrap();
        let heads = bench.client().heads(&repo())?;
        assert_eq!(heads.tags["first"], published.commit);
        let main = bench.client().files(&repo(), &heads.branches["main"])?;
        assert!(main.iter().any(|f| f.path.as_str() == "notes.md"));
        kernel.delete_file().path_in_repo("notes.md").send().unwrap();
        hub.delete_repository().repo_id("acme/toy-kernel").repo_type(RepoTypeKernel).send().unwrap();
        assert_eq!(bench.client().heads(&repo()).unwrap_err().code(), Code::RepoNotFound);
    }
    Ok(())
}
