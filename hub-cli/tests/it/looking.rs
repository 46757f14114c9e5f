//! Looking at a hub, comparing what is on it, and copying from one to another.

use hub_cli::Result;
use hub_cli::hub::{Plan, Version, publish};
use serde_json::json;

use crate::raw::REPO;
use crate::support::{Bench, repo, toy_package};

#[test]
fn info_shows_what_a_kernel_offers() -> Result<()> {
    let bench = Bench::new();
    bench.publish(1, "one")?;
    bench.publish(2, "two")?;
    let json = bench.cli(&["info", "acme/toy-kernel", "--json"]).json();
    assert_eq!((&json["revision"], &json["versions"]), (&json!("v2"), &json!(["v1", "v2"])));
    let variant = &json["variants"][0];
    assert_eq!(
        (&variant["name"], &variant["license"], &variant["signed"]),
        (&json!("torch-cpu"), &json!("apache-2.0"), &json!(false))
    );
    let op = &json["ops"][0];
    assert_eq!(op["signature"], "toy(x: T[m, k])");
    assert_eq!(op["modules"][0]["generations"], json!(["v5e"]));
    assert_eq!(op["modules"][0]["demands"], json!(["mod(k, 128) == 0"]));
    let text = bench.cli(&["info", "acme/toy-kernel@v1"]);
    assert!(text.out.contains("not trusted by the hub") && text.out.contains("toy(x: T[m, k])"), "{text:?}");
    assert!(bench.cli(&["info", "acme/none"]).err.contains("H0202"));
    assert!(bench.cli(&["info", "acme/toy-kernel@v9"]).err.contains("H0203"));
    Ok(())
}

#[test]
fn search_finds_kernels_by_name_and_owner() -> Result<()> {
    let bench = Bench::new();
    bench.publish(1, "one")?;
    let package = toy_package(&bench.folder.path().join("other"), 1, "other");
    publish(&bench.client(), None, &package, &"zeta/other".parse()?, Version(1), false)?;
    let found = |args: &[&str]| {
        let json = bench.cli(&[&["search", "--json"], args].concat()).json();
        let kernels = json["kernels"].as_array().unwrap().clone();
        kernels.iter().map(|k| k["repo"].as_str().unwrap().to_owned()).collect::<Vec<_>>()
    };
    assert_eq!(found(&["toy"]), ["acme/toy-kernel"]);
    assert_eq!(found(&["--author", "zeta"]), ["zeta/other"]);
    assert_eq!(found(&["nothing-like-it"]), [""; 0]);
    assert!(bench.cli(&["search", "toy"]).out.contains("1 kernel on"));
    Ok(())
}

#[test]
fn diff_shows_files_and_what_callers_notice() -> Result<()> {
    let bench = Bench::new();
    bench.publish(1, "one")?;
    let source = bench.folder.path().join("two");
    crate::support::write_source(&source, 2, "two");
    fs_err::write(source.join("python/__init__.py"), "from ._extra import wave\n\n__all__ = [\"wave\"]\n")
        .unwrap();
    fs_err::write(source.join("python/_extra.py"), "def wave(): ...\n").unwrap();
    let package = hub_cli::package::build::build(&source, None, &crate::support::Toys, None)?.package;
    publish(&bench.client(), None, &package, &repo(), Version(2), false)?;
    let json = bench.cli(&["diff", "acme/toy-kernel@v1", "acme/toy-kernel@v2", "--json"]).json();
    // The new file of each variant, and the card that was on `main` when the branch began.
    assert_eq!(json["added"].as_array().unwrap().len(), 4);
    assert_eq!(
        (json["changed"].as_array().unwrap().len(), json["removed"].as_array().unwrap().len()),
        (6, 0)
    );
    assert_eq!(json["interface"]["breaking"], json!(["Python loses `greet`: `kernel.greet` fails"]));
    let text = bench.cli(&["diff", "acme/toy-kernel@v1", "acme/toy-kernel@v1"]);
    assert!(text.out.contains("nothing changes for callers"), "{text:?}");
    assert_eq!(bench.cli(&["diff", "acme/toy-kernel@v1", "acme/toy-kernel"]).code, 2);
    Ok(())
}

#[test]
fn a_kernel_is_copied_to_another_hub() -> Result<()> {
    let (from, to) = (Bench::new(), Bench::new());
    from.publish(1, "one")?;
    from.publish(2, "two")?;
    let target = to.hub.endpoint();
    assert_eq!(from.post(&format!("{REPO}/tag/v2"), json!({"tag": "stable"})).status(), 200);
    let done = from.cli(&["mirror", "acme/toy-kernel", "--to", &target, "--json"]);
    assert_eq!(done.code, 0, "{done:?}");
    assert_eq!(done.json()["versions"].as_array().unwrap().len(), 2);
    for version in [Version(1), Version(2)] {
        let (ours, theirs) = (from.client(), to.client());
        let (a, b) = (ours.resolve(&repo(), &version.into())?, theirs.resolve(&repo(), &version.into())?);
        assert_eq!(ours.files(&repo(), &a)?, theirs.files(&repo(), &b)?);
    }
    assert_eq!(to.get(Version(2))?.variants.len(), 3);
    let heads = to.client().heads(&repo())?;
    assert_eq!(to.client().files(&repo(), &heads.branches["main"])?.len(), 1, "the card");
    assert_eq!(heads.tags["stable"], heads.branches["v2"]);
    // Again nothing is sent; what is removed here goes there too.
    let again = from.cli(&["mirror", "acme/toy-kernel", "--to", &target, "--version", "1", "--json"]).json();
    assert_eq!((again["versions"][0]["uploaded"].as_u64(), to.client().heads(&repo())?), (Some(0), heads));
    let source = from.folder.path().join("slim");
    let package = toy_package(&source, 1, "newer");
    Plan::make(&from.client(), &package, &repo(), Version(1))?.publish(&from.client(), None, false)?;
    let moved = from.cli(&["mirror", "acme/toy-kernel", "--to", &target, "--to-repo", "other/name"]);
    assert_eq!(moved.code, 0, "{moved:?}");
    // A tag that leads elsewhere there is not moved.
    assert_eq!(from.post(&format!("{REPO}/tag/v1"), json!({"tag": "fine"})).status(), 200);
    assert_eq!(to.post(&format!("{REPO}/tag/v2"), json!({"tag": "fine"})).status(), 200);
    let elsewhere = from.cli(&["mirror", "acme/toy-kernel", "--to", &target, "--version", "1"]);
    assert!(elsewhere.code == 1 && elsewhere.err.contains("H0507"), "{elsewhere:?}");
    assert!(from.cli(&["mirror", "acme/toy-kernel", "--to", &from.hub.endpoint()]).err.contains("H0108"));
    Ok(())
}
