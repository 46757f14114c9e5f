//! Kernels of another hub on a hub of one's own, under the ids that they have there.

use hub_cli::Result;
use hub_cli::hub::{Plan, Version, publish};
use reqwest::Method;
use serde_json::json;

use crate::raw::REPO;
use crate::support::{Bench, Ran, repo, run, toy_package};

/// Runs `hub import` on the folder of `to`, while that is served, with `from` as the source.
fn import(from: &Bench, to: &Bench, more: &[&str]) -> Ran {
    let root = to.folder.path().join("hub").display().to_string();
    let args = [&["hub", "import", "acme/toy-kernel", "--root", &root, "--json"], more].concat();
    from.cli(&args)
}

fn fsck(bench: &Bench) -> Ran {
    bench.cli(&["hub", "fsck", "--root", &bench.folder.path().join("hub").display().to_string()])
}

#[test]
fn what_was_locked_on_one_hub_holds_on_the_other() -> Result<()> {
    let (from, to) = (Bench::new(), Bench::new());
    from.publish(1, "one")?;
    from.publish(2, "two")?;
    assert_eq!(from.post(&format!("{REPO}/tag/v1"), json!({"tag": "stable"})).status(), 200);
    let project = from.folder.path().join("project");
    fs_err::create_dir(&project).unwrap();
    let text = "[tool.kernels.dependencies]\n\"acme/toy-kernel\" = 1\n";
    fs_err::write(project.join("pyproject.toml"), text).unwrap();
    let project = project.display().to_string();
    assert_eq!(from.cli(&["lock", &project, "--allow", "acme"]).code, 0);

    let done = import(&from, &to, &[]);
    assert_eq!(done.code, 0, "{done:?}");
    assert_eq!(done.json()["refs"].as_array().unwrap().len(), 3, "two versions and a tag: {done:?}");
    let (there, here) = (from.client().heads(&repo())?, to.client().heads(&repo())?);
    assert_eq!((&there.tags, there.versions()), (&here.tags, here.versions()));
    for commit in there.versions().into_values() {
        assert_eq!(from.client().files(&repo(), commit)?, to.client().files(&repo(), commit)?);
    }
    let cards = (from.client().card(&repo())?, to.client().card(&repo())?);
    assert!(cards.0.is_some() && cards.0 == cards.1);
    let locked = ["get", "--locked", "--lock-file", &format!("{project}/kernels.lock"), "--json"];
    let got = to.cli(&locked);
    assert_eq!(got.code, 0, "{got:?}");
    assert_eq!(got.json()["kernels"][0]["commit"], json!(there.branches["v1"]));
    assert_eq!(fsck(&to).code, 0, "{:?}", fsck(&to));

    let again = import(&from, &to, &[]).json();
    assert!(again["refs"].as_array().unwrap().iter().all(|row| row["new"] == false), "{again}");
    Ok(())
}

#[test]
fn new_commits_come_and_those_made_here_stay() -> Result<()> {
    let (from, to) = (Bench::new(), Bench::new());
    from.publish(1, "one")?;
    assert_eq!(import(&from, &to, &["--version", "1", "--private"]).code, 0);
    assert_eq!(to.send(Method::GET, REPO, "").json::<serde_json::Value>().unwrap()["private"], true);
    let missing = import(&from, &to, &["--version", "7"]);
    assert!(missing.code == 1 && missing.err.contains("H0203"), "{missing:?}");

    // The version grows over there.
    let package = toy_package(&from.folder.path().join("newer"), 1, "newer");
    Plan::make(&from.client(), &package, &repo(), Version(1))?.publish(&from.client(), None, false)?;
    assert_eq!(import(&from, &to, &[]).code, 0);
    let head = || to.client().resolve(&repo(), &Version(1).into());
    assert_eq!(head()?, from.client().resolve(&repo(), &Version(1).into())?);

    // And here: that is a commit of this hub, on top of the imported one.
    let package = toy_package(&to.folder.path().join("own"), 1, "our own");
    let published = publish(&to.client(), None, &package, &repo(), Version(1), false)?;
    let refused = import(&from, &to, &[]);
    assert!(refused.code == 1 && refused.err.contains("H0510"), "{refused:?}");
    assert!(refused.err.contains(published.commit.as_str()), "{refused:?}");
    assert_eq!((head()?, fsck(&to).code), (published.commit, 0));
    Ok(())
}

#[test]
fn a_private_kernel_stays_private() -> Result<()> {
    let (from, to) = (Bench::new(), Bench::new());
    let package = toy_package(&from.folder.path().join("secret"), 1, "secret");
    publish(&from.client(), None, &package, &repo(), Version(1), true)?;
    assert!(from.client().is_private(&repo())?);
    assert_eq!(import(&from, &to, &[]).code, 0);
    assert!(to.client().is_private(&repo())?);
    let other = Bench::new();
    let copied = from.cli(&["mirror", "acme/toy-kernel", "--to", &other.hub.endpoint()]);
    assert!(copied.code == 0 && other.client().is_private(&repo())?, "{copied:?}");
    Ok(())
}

#[test]
fn what_get_refuses_is_not_imported() -> Result<()> {
    let (from, to) = (Bench::new(), Bench::new());
    let published = from.publish(1, "one")?;
    // A branch for version 2 whose packages say that they are version 1.
    let branch = json!({"startingPoint": published.commit});
    assert_eq!(from.post(&format!("{REPO}/branch/v2"), branch).status(), 200);
    let refused = import(&from, &to, &[]);
    assert!(refused.code == 1 && refused.err.contains("H0306"), "{refused:?}");
    assert!(to.client().heads(&repo()).is_err(), "no repository was made");
    Ok(())
}

#[test]
fn an_import_needs_a_network_and_a_hub() {
    let bench = Bench::new();
    let root = bench.folder.path().join("elsewhere").display().to_string();
    let import = ["hub", "import", "acme/none", "--root", &root];
    let offline = run(&[("HF_HUB_OFFLINE", "1".into())], &import);
    assert!(offline.code == 1 && offline.err.contains("H0211"), "{offline:?}");
    let none = bench.cli(&import);
    assert!(none.code == 1 && none.err.contains("H0202"), "{none:?}");
    assert!(!bench.folder.path().join("elsewhere").exists(), "nothing came, so nothing is made");
}
