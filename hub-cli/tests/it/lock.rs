//! Pinning: the lock file that Python writes too, fetching what it says, and every way in which it can be out of date.

use std::path::Path;

use hub_cli::Result;
use hub_cli::hub::{LockFile, RepoId, Version, publish};
use hub_cli::package::LocalPackage;
use serde_json::json;

use crate::support::{Bench, Ran, repo, toy_package};

/// A hub with three kernels: the toy, one that depends on it, and one that depends on that.
fn hub(trusted: bool) -> Bench {
    let bench = Bench::with(|config| {
        if trusted {
            config.trusted.insert("acme".into());
        }
    });
    bench.publish(1, "one").unwrap();
    bench.publish(2, "two").unwrap();
    publish_depending(&bench, "acme/middle", json!([{"repo-id": "acme/toy-kernel", "version": 1}]));
    publish_depending(&bench, "acme/top", json!([{"repo-id": "acme/middle", "version": 1}]));
    bench
}

fn publish_depending(bench: &Bench, repo: &str, depends: serde_json::Value) {
    let source = tempfile::tempdir_in(&bench.folder).unwrap();
    toy_package(source.path(), 1, repo);
    // One variant depends on others; a lock file holds for all of them.
    let file = source.path().join("build/torch-tpu/metadata.json");
    let mut metadata: serde_json::Value = serde_json::from_slice(&fs_err::read(&file).unwrap()).unwrap();
    metadata["kernel-depends"] = depends;
    fs_err::write(file, metadata.to_string()).unwrap();
    let package = LocalPackage::open(source.path()).unwrap();
    publish(&bench.client(), None, &package, &repo.parse().unwrap(), Version(1), false).unwrap();
}

/// A project that depends on these.
fn project(bench: &Bench, dependencies: &str) -> String {
    let folder = bench.folder.path().join("project");
    fs_err::create_dir_all(&folder).unwrap();
    let text = format!("[project]\nname = \"app\"\n\n[tool.kernels.dependencies]\n{dependencies}\n");
    fs_err::write(folder.join("pyproject.toml"), text).unwrap();
    folder.to_str().unwrap().to_owned()
}

fn failed(ran: &Ran, code: &str, words: &str) {
    assert_eq!(ran.code, 1, "{ran:?}");
    assert!(
        ran.err.contains(&format!("error[{code}]")) && ran.err.contains(words),
        "{code} {words}: {ran:?}"
    );
}

#[test]
fn everything_that_a_project_comes_to_need_is_locked() -> Result<()> {
    let bench = hub(false);
    let project = project(&bench, "\"acme/top\" = 1");
    let done = bench.cli(&["lock", &project, "--allow", "acme", "--json"]);
    assert_eq!(done.code, 0, "{done:?}");
    let lock = LockFile::read(&Path::new(&project).join("kernels.lock"))?;
    let names: Vec<_> = lock.locks.keys().map(ToString::to_string).collect();
    assert_eq!(names, ["acme/middle@v1", "acme/top@v1", "acme/toy-kernel@v1"]);
    for (dependency, commit) in &lock.locks {
        assert_eq!(bench.client().resolve(&dependency.repo, &dependency.revision()?)?, *commit);
    }
    let check = bench.cli(&["lock", &project, "--allow", "acme", "--check"]);
    assert_eq!(check.code, 0, "{check:?}");

    // A branch moves: the pin stays, and the check says so.
    bench.publish(1, "newer")?;
    let file = format!("{project}/kernels.lock");
    let got = bench.cli(&["get", "--locked", "--lock-file", &file, "--json"]);
    let got = got.json();
    let toy = &got["kernels"][2];
    assert_eq!((toy["repo"].as_str(), toy["revision"].as_str()), (Some("acme/toy-kernel"), Some("v1")));
    assert_eq!(toy["commit"], lock.locks.values().last().unwrap().as_str());
    failed(&bench.cli(&["lock", &project, "--allow", "acme", "--check"]), "H0310", "~ acme/toy-kernel@v1");
    // What was fetched serves without a hub, by lock file and by version.
    for args in [&["get", "--locked", "--lock-file", &file][..], &["get", "acme/toy-kernel@v1"]] {
        let offline = bench.cli(&[args, &["--offline"]].concat());
        assert_eq!(offline.code, 0, "{offline:?}");
    }
    Ok(())
}

#[test]
fn only_publishers_that_somebody_trusts_are_locked() {
    let bench = hub(false);
    let project = project(&bench, "\"acme/top\" = 1");
    failed(&bench.cli(&["lock", &project]), "H0213", "acme/top");
    // Trust does not extend to what a kernel depends on.
    let refused = bench.cli(&["lock", &project, "--allow", "acme/top"]);
    failed(&refused, "H0213", "acme/middle, which acme/top@v1 depends on");
    assert!(refused.err.contains("--allow acme/middle"), "{refused:?}");
    assert!(!Path::new(&project).join("kernels.lock").exists());
    let three = ["--allow", "acme/top", "--allow", "acme/middle", "--allow", "acme/toy-kernel"];
    assert_eq!(bench.cli(&[&["lock", &project][..], &three].concat()).code, 0);
    failed(&bench.cli(&["lock", &project, "--allow", "../x"]), "H0101", "");

    let trusting = hub(true);
    let project = self::project(&trusting, "\"acme/top\" = 1");
    assert_eq!(trusting.cli(&["lock", &project]).code, 0);
}

#[test]
fn a_circle_is_an_error() {
    let bench = hub(true);
    publish_depending(&bench, "acme/ring", json!([{"repo-id": "acme/ring", "version": 1}]));
    let project = project(&bench, "\"acme/ring\" = 1");
    failed(&bench.cli(&["lock", &project]), "H0310", "acme/ring@v1 -> acme/ring@v1");
}

#[test]
fn locked_means_that_nothing_else_is_fetched() -> Result<()> {
    let bench = hub(true);
    let project = project(&bench, "\"acme/top\" = 1");
    assert_eq!(bench.cli(&["lock", &project]).code, 0);
    let path = Path::new(&project).join("kernels.lock");
    let file = path.to_str().unwrap();
    let get = |more: &[&str]| bench.cli(&[&["get", "--locked", "--lock-file", file], more].concat());
    assert_eq!(get(&["acme/toy-kernel"]).code, 0);
    failed(&get(&["acme/toy-kernel@v2"]), "H0310", "the lock file has acme/toy-kernel@v1");
    failed(&get(&["acme/other"]), "H0310", "acme/other is not locked");

    let good = LockFile::read(&path)?;
    let toy: RepoId = repo();
    let tampered = |change: &dyn Fn(&mut LockFile)| {
        let mut lock = good.clone();
        change(&mut lock);
        lock.write(&path).unwrap();
        get(&[])
    };
    // A dependency that is not locked any more.
    failed(
        &tampered(&|lock| lock.locks.retain(|d, _| d.repo != toy)),
        "H0310",
        "depends on acme/toy-kernel@v1",
    );
    // A commit of another version, and one that is nowhere.
    let two = bench.client().resolve(&toy, &Version(2).into())?;
    let repin = |lock: &mut LockFile, commit: &str| {
        let (_, pinned) = lock.locks.iter_mut().find(|(d, _)| d.repo == toy).unwrap();
        *pinned = commit.parse().unwrap();
    };
    failed(&tampered(&|lock| repin(lock, two.as_str())), "H0310", "states version 2");
    failed(&tampered(&|lock| repin(lock, &"f".repeat(40))), "H0203", "");
    // A lock file that is not one.
    fs_err::write(&path, "[{}]").unwrap();
    failed(&get(&[]), "H0110", "kernels.lock is not valid");
    // The project came to want more than is locked.
    good.write(&path)?;
    self::project(&bench, "\"acme/top\" = 1\n\"acme/toy-kernel\" = 2");
    failed(&get(&[]), "H0310", "acme/toy-kernel@v2 is not locked");
    Ok(())
}

#[test]
fn a_kernel_is_added_to_the_project() {
    let bench = hub(true);
    let project = project(&bench, "");
    assert_eq!(bench.cli(&["lock", &project, "--add", "acme/toy-kernel@v2"]).code, 0);
    let text = fs_err::read_to_string(Path::new(&project).join("pyproject.toml")).unwrap();
    assert!(text.contains("[tool.kernels.dependencies]\n\"acme/toy-kernel\" = 2\n"), "{text}");
    assert_eq!(bench.cli(&["lock", &project, "--add", "acme/toy-kernel"]).code, 2);
    failed(&bench.cli(&["lock", &project, "--add", "acme/none@v1"]), "H0202", "acme/none");
}

#[test]
fn a_kernel_is_copied_into_a_folder() {
    let bench = hub(true);
    let target = bench.folder.path().join("vendor/toy");
    let to = target.to_str().unwrap();
    let got = bench.cli(&["get", "acme/toy-kernel@v1", "--to", to, "--variant", "torch-cpu", "--json"]);
    assert_eq!(got.json()["to"], to);
    let init = target.join("build/torch-cpu/__init__.py");
    assert!(init.is_file() && !init.is_symlink() && !target.join("build/torch-tpu").exists());
    LocalPackage::open(&target).unwrap();
    failed(&bench.cli(&["get", "acme/toy-kernel@v1", "--to", to]), "H0112", to);
    assert!(!target.join("build/torch-tpu").exists());
}
