//! Publishing to our own hub: what is sent, skipped, removed, and refused.

use hub_cli::hub::{Plan, Revision, Version, publish};
use hub_cli::{Code, Result};

use crate::support::{Bench, Ran, repo, toy_package, write_source};

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
fn a_version_appears_whole_and_leaves_no_other_branch() -> Result<()> {
    let bench = Bench::new();
    let one = bench.publish(1, "one")?;
    let heads = bench.client().heads(&repo())?;
    assert_eq!(heads.branches.keys().map(String::as_str).collect::<Vec<_>>(), ["main", "v1"]);
    // Whoever lost the answer to an earlier attempt tries again, also where that one stopped half way.
    let package = toy_package(&bench.folder.path().join("two"), 2, "two");
    let plan = Plan::make(&bench.client(), &package, &repo(), Version(2))?;
    let first = plan.publish(&bench.client(), None, false)?;
    let again = plan.publish(&bench.client(), None, false)?;
    assert_eq!((first.commit, one.unchanged), (again.commit, 0));
    assert_eq!(bench.client().heads(&repo())?.branches.len(), 3);
    Ok(())
}

#[test]
fn two_publishers_of_one_version_do_not_mix() -> Result<()> {
    let bench = Bench::new();
    bench.publish(1, "one")?;
    let plan = |name: &str| {
        let package = toy_package(&bench.folder.path().join(name), 2, name);
        Plan::make(&bench.client(), &package, &repo(), Version(2))
    };
    let (ours, theirs) = (plan("ours")?, plan("theirs")?);
    theirs.publish(&bench.client(), None, false)?;
    assert_eq!(ours.publish(&bench.client(), None, false).unwrap_err().code(), Code::Moved);
    let got = bench.get(Version(2))?;
    let init = fs_err::read_to_string(got.snapshot.join("build/torch-cpu/__init__.py")).unwrap();
    assert!(init.contains("\"theirs\""));
    assert_eq!(bench.client().heads(&repo())?.branches.len(), 3, "the other's branch is gone");
    // The same on a branch that exists.
    let (ours, theirs) = (plan("ours")?, plan("newer")?);
    theirs.publish(&bench.client(), None, false)?;
    assert_eq!(ours.publish(&bench.client(), None, false).unwrap_err().code(), Code::Moved);
    Ok(())
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

/// Publishes the source in `folder` with the program.
fn cli(bench: &Bench, folder: &std::path::Path, more: &[&str]) -> Ran {
    let fixed = ["publish", folder.to_str().unwrap(), "acme/toy-kernel", "--version", "1"];
    bench.cli(&[&fixed, more].concat())
}

#[test]
fn a_dry_run_shows_the_difference_and_changes_nothing() {
    let bench = Bench::new();
    let source = bench.folder.path().join("source");
    toy_package(&source, 1, "one");
    let dry = cli(&bench, &source, &["--dry-run"]);
    assert!(
        dry.out.contains("a new repository") && dry.out.contains("+ build/torch-cpu/__init__.py"),
        "{dry:?}"
    );
    assert_eq!(bench.client().heads(&repo()).unwrap_err().code(), Code::RepoNotFound);

    let published = cli(&bench, &source, &["--json"]);
    assert_eq!(published.code, 0, "{published:?}");
    if let Some(imported) = published.json()["imported"].as_array() {
        assert!(imported.iter().all(|variant| variant["needs"].is_null()), "{imported:?}");
    }
    let head = bench.client().heads(&repo()).unwrap();
    toy_package(&source, 1, "two");
    let dry = cli(&bench, &source, &["--dry-run", "--json"]).json();
    assert_eq!(dry["changes"]["changed"].as_array().unwrap().len(), 6, "{dry}");
    assert!(dry["changes"]["unchanged"].as_u64().unwrap() > 10);
    fs_err::write(source.join("build/torch-cpu/__init__.py"), "x = 1\n").unwrap();
    let damaged = cli(&bench, &source, &["--dry-run"]);
    assert!(damaged.err.contains("error[H0304]"), "{damaged:?}");
    assert_eq!(bench.client().heads(&repo()).unwrap(), head);
}

#[test]
fn what_nobody_could_build_again_is_not_published() {
    let bench = Bench::new();
    let source = bench.folder.path().join("source");
    let build = |dirty: bool| {
        toy_package(&source, 1, "one");
        for variant in ["torch-cpu", "torch-tpu", "torch-universal"] {
            let file = source.join("build").join(variant).join("metadata.json");
            let mut metadata: serde_json::Value =
                serde_json::from_slice(&fs_err::read(&file).unwrap()).unwrap();
            metadata["provenance"]["kernel"] = serde_json::json!({"commit": "a".repeat(40), "dirty": dirty});
            fs_err::write(file, metadata.to_string()).unwrap();
        }
    };
    build(true);
    let refused = cli(&bench, &source, &[]);
    assert!(refused.err.contains("error[H0415]") && refused.err.contains("aaaaaaaaaaaa"), "{refused:?}");
    assert_eq!(cli(&bench, &source, &["--allow-dirty"]).code, 0);
    build(false);
    assert_eq!(cli(&bench, &source, &[]).code, 0);

    // Modules that libtpu never saw.
    let mut index = crate::support::toy_index();
    index["ops"]["toy"]["modules"][0]["generations"] = serde_json::json!([]);
    hub_cli::package::build::build(&source, None, &crate::support::Ops(index), None).unwrap();
    let refused = cli(&bench, &source, &["--dry-run"]);
    assert!(refused.err.contains("error[H0414]") && refused.err.contains("toy-bf16.mlirbc"), "{refused:?}");
}

#[test]
fn what_python_cannot_import_is_not_published() {
    let Some(_) = hub_cli::package::Python::find(None) else { return };
    let bench = Bench::new();
    let source = bench.folder.path().join("source");
    for (init, words) in [
        ("raise SystemExit(\"no\")\n__all__ = []\n", "no"),
        ("__all__ = [\"gone\"]\n", "__all__ names gone"),
        ("__all__ = []\nfrom . import _absent\n", "_absent"),
    ] {
        write_source(&source, 1, "one");
        fs_err::write(source.join("python/__init__.py"), init).unwrap();
        hub_cli::package::build::build(&source, None, &crate::support::Toys, None).unwrap();
        let refused = cli(&bench, &source, &[]);
        assert!(refused.err.contains("error[H0417]") && refused.err.contains(words), "{refused:?}");
    }
    write_source(&source, 1, "one");
    fs_err::write(source.join("python/__init__.py"), "import a_module_of_others\n__all__ = []\n").unwrap();
    hub_cli::package::build::build(&source, None, &crate::support::Toys, None).unwrap();
    let published = cli(&bench, &source, &["--json"]).json();
    assert_eq!(published["imported"][0]["needs"], "a_module_of_others");
}
