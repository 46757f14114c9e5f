//! `publish --create-pr` against our own hub: a version changes when its owner merges, and not before.

use hub_cli::hub::{Plan, Version};
use hub_cli::package::LocalPackage;
use reqwest::Method;
use serde_json::{Value, json};

use crate::raw::{REPO, code};
use crate::support::{Bench, Ran, repo, run, toy_package};

const INIT: &str = "build/torch-cpu/__init__.py";

impl Bench {
    /// Builds the toy package with this content, and these other files in every variant.
    fn source(&self, content: &str, version: u32, extra: &[&str]) -> String {
        let folder = self.folder.path().join("proposal");
        let _ = fs_err::remove_dir_all(&folder);
        fs_err::create_dir_all(folder.join("python")).unwrap();
        for name in extra {
            fs_err::write(folder.join("python").join(name), format!("x = {name:?}\n")).unwrap();
        }
        toy_package(&folder, version, content);
        folder.to_str().unwrap().to_owned()
    }

    fn publish_with(&self, more: &[&str], source: &str, version: &str) -> Ran {
        let fixed = ["publish", source, "acme/toy-kernel", "--version", version];
        self.cli(&[&fixed, more].concat())
    }

    /// The number of the pull request that proposes this.
    fn propose_package(&self, source: &str, version: &str) -> u64 {
        let made = self.publish_with(&["--create-pr", "--json"], source, version);
        assert_eq!(made.code, 0, "{made:?}");
        number(&made.json())
    }

    fn merge_pull(&self, number: u64) -> reqwest::blocking::Response {
        self.post(&format!("{REPO}/discussions/{number}/merge"), json!({}))
    }

    fn file_at(&self, revision: &str, path: &str) -> Option<String> {
        let answer =
            self.send(Method::GET, &format!("/kernels/acme/toy-kernel/resolve/{revision}/{path}"), "");
        answer.status().is_success().then(|| answer.text().unwrap())
    }

    fn pull_refs(&self) -> Vec<Value> {
        let refs: Value = self.send(Method::GET, &format!("{REPO}/refs?include_prs=1"), "").json().unwrap();
        refs["pullRequests"].as_array().unwrap().clone()
    }
}

fn number(made: &Value) -> u64 {
    made["pull_request"].as_str().unwrap().rsplit_once("/discussions/").unwrap().1.parse().unwrap()
}

#[test]
fn a_version_changes_when_the_proposal_is_merged() {
    // Inline, and with every file through LFS.
    for lfs_from in [None, Some(1)] {
        let bench = Bench::with(|config| config.lfs_from = lfs_from);
        let source = bench.source("one", 1, &["_old.py"]);
        assert_eq!(bench.publish_with(&[], &source, "1").code, 0);
        let before = bench.client().heads(&repo()).unwrap();

        let source = bench.source("two", 1, &["_new.py"]);
        let made = bench.publish_with(&["--create-pr", "--json"], &source, "1");
        assert_eq!(made.code, 0, "{made:?}");
        // Three variants: the entry point and the metadata change, one file comes and one goes.
        assert_eq!((made.json()["uploaded"].as_u64(), made.json()["removed"].as_u64()), (Some(9), Some(3)));
        assert_eq!(bench.client().heads(&repo()).unwrap(), before, "no branch moved");
        assert!(bench.file_at("v1", INIT).unwrap().contains("\"one\""));
        let number = number(&made.json());
        assert_eq!(bench.pull_refs()[0]["ref"], format!("refs/pr/{number}"));
        let proposed = format!("refs%2Fpr%2F{number}");
        assert!(bench.file_at(&proposed, INIT).unwrap().contains("\"two\""));
        assert_eq!(bench.file_at(&proposed, "build/torch-cpu/_old.py"), None);
        let old = bench.get(Version(1)).unwrap();
        assert!(old.snapshot.join("build/torch-cpu/_old.py").exists());

        assert_eq!(bench.merge_pull(number).status(), 200);
        let after = bench.client().heads(&repo()).unwrap();
        assert_ne!(after.branches["v1"], before.branches["v1"]);
        assert_eq!(after.branches["main"], before.branches["main"]);
        // Every byte is checked on the way.
        let got = bench.cli(&["get", "acme/toy-kernel@v1", "--json"]).json();
        assert_eq!(got["commit"], after.branches["v1"].as_str());
        let snapshot = std::path::Path::new(got["path"].as_str().unwrap());
        assert!(fs_err::read_to_string(snapshot.join(INIT)).unwrap().contains("\"two\""));
        assert!(snapshot.join("build/torch-tpu/_new.py").exists());
        assert!(!snapshot.join("build/torch-tpu/_old.py").exists());
        // What was merged is there now: there is nothing more to propose.
        let again = bench.publish_with(&["--create-pr"], &source, "1");
        assert!(again.code == 1 && again.err.contains("error[H0214]"), "{again:?}");
        let again = bench.publish_with(&["--json"], &source, "1");
        assert_eq!(again.json()["commit"], after.branches["v1"].as_str());
    }
}

#[test]
fn a_proposal_that_was_overtaken_is_not_merged_over_what_came_between() {
    let bench = Bench::new();
    let source = bench.source("one", 1, &[]);
    assert_eq!(bench.publish_with(&[], &source, "1").code, 0);
    let number = bench.propose_package(&bench.source("proposed", 1, &[]), "1");
    let source = bench.source("published", 1, &[]);
    assert_eq!(bench.publish_with(&[], &source, "1").code, 0);
    let head = bench.client().heads(&repo()).unwrap();
    assert_eq!(code(bench.merge_pull(number)), (409, "H0510".into()));
    assert_eq!(bench.client().heads(&repo()).unwrap(), head);
    assert!(bench.file_at("v1", INIT).unwrap().contains("\"published\""));
    // Proposed again, it is for what is there now.
    let number = bench.propose_package(&bench.source("proposed", 1, &[]), "1");
    assert_eq!(bench.merge_pull(number).status(), 200);
    assert!(bench.file_at("v1", INIT).unwrap().contains("\"proposed\""));
}

#[test]
fn a_proposal_is_the_package_whatever_came_since_it_was_planned() {
    let bench = Bench::new();
    let source = bench.source("one", 1, &[]);
    assert_eq!(bench.publish_with(&[], &source, "1").code, 0);
    let package = LocalPackage::open(bench.source("ours", 1, &[]).as_ref()).unwrap();
    let plan = Plan::make(&bench.client(), &package, &repo(), Version(1)).unwrap();
    let source = bench.source("theirs", 1, &["_theirs.py"]);
    assert_eq!(bench.publish_with(&[], &source, "1").code, 0);
    bench.source("ours", 1, &[]);
    plan.propose(&bench.client()).unwrap();
    assert!(bench.file_at("refs%2Fpr%2F1", INIT).unwrap().contains("\"ours\""));
    assert_eq!(bench.file_at("refs%2Fpr%2F1", "build/torch-cpu/_theirs.py"), None);
}

#[test]
fn a_new_version_is_proposed_for_main_and_becomes_one_by_its_branch() {
    let bench = Bench::new();
    let source = bench.source("one", 1, &[]);
    assert_eq!(bench.publish_with(&[], &source, "1").code, 0);
    let source = bench.source("two", 2, &[]);
    let made = bench.publish_with(&["--create-pr"], &source, "2");
    assert!(made.code == 0 && made.out.contains("make the branch v2"), "{made:?}");
    assert_eq!(bench.merge_pull(1).status(), 200);
    let branch = bench.post(&format!("{REPO}/branch/v2"), json!({"startingPoint": "main"}));
    assert_eq!(branch.status(), 200);
    let got = bench.get(Version(2)).unwrap();
    assert!(fs_err::read_to_string(got.snapshot.join(INIT)).unwrap().contains("\"two\""));
    assert!(bench.file_at("v1", INIT).unwrap().contains("\"one\""));
}

#[test]
fn a_stranger_may_propose_and_not_merge() {
    let bench = Bench::new();
    let source = bench.source("one", 1, &[]);
    assert_eq!(bench.publish_with(&[], &source, "1").code, 0);
    let root = bench.folder.path().join("hub");
    let token = |user: &str| {
        let ran = run(
            &[],
            &["hub", "token", "create", "--root", root.to_str().unwrap(), "--user", user, "--scope", "write"],
        );
        ran.out.trim().to_owned()
    };
    let (owner, stranger) = (token("acme"), token("mallory"));
    let source = bench.source("two", 1, &[]);
    let publish = |more: &[&str]| {
        let variables = [("HF_ENDPOINT", bench.hub.endpoint()), ("HF_TOKEN", stranger.clone())];
        let fixed = ["publish", &source, "acme/toy-kernel", "--version", "1"];
        run(&variables, &[&fixed, more].concat())
    };
    let refused = publish(&[]);
    assert!(refused.err.contains("error[H0204]"), "{refused:?}");
    let made = publish(&["--create-pr", "--json"]);
    assert_eq!(made.code, 0, "{made:?}");
    let merge = format!("{REPO}/discussions/{}/merge", number(&made.json()));
    let with = |token: &str| {
        bench.send_as(&[("authorization", &format!("Bearer {token}"))], Method::POST, &merge, "{}")
    };
    assert_eq!(code(with(&stranger)), (403, "H0204".into()));
    assert_eq!(with(&owner).status(), 200);
    assert!(bench.file_at("v1", INIT).unwrap().contains("\"two\""));
}

#[test]
fn what_cannot_be_proposed_is_refused_before_anything_is_sent() {
    let bench = Bench::new();
    let source = bench.source("one", 1, &[]);
    let refused = |source: &str, code: &str| {
        let ran = bench.publish_with(&["--create-pr"], source, "1");
        assert!(ran.code == 1 && ran.err.contains(&format!("error[{code}]")), "{code}: {ran:?}");
    };
    refused(&source, "H0202");
    assert_eq!(bench.publish_with(&[], &source, "1").code, 0);
    refused(&source, "H0214");
    // A function that callers use is gone.
    let folder = std::path::Path::new(&source);
    fs_err::write(folder.join("python/__init__.py"), "__all__ = []\n").unwrap();
    hub_cli::package::build::build(folder, None, &crate::support::Toys, None).unwrap();
    refused(&source, "H0416");
    assert!(bench.pull_refs().is_empty());
    for other in ["--dry-run", "--private"] {
        assert_eq!(bench.publish_with(&["--create-pr", other], &source, "1").code, 2);
    }
}
