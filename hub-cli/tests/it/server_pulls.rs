//! Pull requests: opened with a commit or without, changed, merged, in conflict, closed.

use reqwest::Method;
use serde_json::{Value, json};

use crate::raw::{REPO, code, file, title};
use crate::support::Bench;

impl Bench {
    fn propose(&self, lines: &[Value]) -> u64 {
        let body: String = lines.iter().map(|line| format!("{line}\n")).collect();
        let path = format!("{REPO}/commit/main?create_pr=1");
        let answer: Value = self.send(Method::POST, &path, body).json().unwrap();
        let url = answer["pullRequestUrl"].as_str().unwrap();
        url.rsplit_once("/discussions/").unwrap().1.parse().unwrap()
    }

    fn pull(&self, number: u64) -> Value {
        self.send(Method::GET, &format!("{REPO}/discussions/{number}"), "").json().unwrap()
    }

    fn merge(&self, number: u64) -> reqwest::blocking::Response {
        self.post(&format!("{REPO}/discussions/{number}/merge"), json!({}))
    }

    fn names(&self, revision: &str) -> Vec<String> {
        let path = format!("{REPO}/tree/{revision}?recursive=true");
        let entries: Vec<Value> = self.send(Method::GET, &path, "").json().unwrap();
        entries.iter().map(|entry| entry["path"].as_str().unwrap().to_owned()).collect()
    }
}

#[test]
fn a_pull_request_is_merged_as_it_is_if_its_branch_stayed() {
    let bench = Bench::new();
    bench.create();
    let number = bench.propose(&[title(None), file("a", b"1")]);
    assert_eq!((bench.names("main").len(), bench.names("refs%2Fpr%2F1")), (0, vec!["a".to_owned()]));
    assert_eq!(bench.pull(number)["status"], "open");
    let head = bench.pull(number)["changes"]["head"].clone();
    assert_eq!(bench.merge(number).status(), 200);
    assert_eq!(bench.pull(number)["status"], "merged");
    assert_eq!(json!(bench.head()), head);
    assert_eq!(code(bench.merge(number)), (409, "H0510".into()));
}

#[test]
fn what_both_sides_changed_is_a_conflict_and_all_else_is_merged() {
    let bench = Bench::new();
    bench.create();
    bench.commit(&[title(None), file("shared", b"0"), file("old", b"0")]);
    let clean = bench.propose(&[
        title(None),
        file("new", b"1"),
        json!({"key": "deletedFile", "value": {"path": "old"}}),
    ]);
    let clash = bench.propose(&[title(None), file("shared", b"1")]);
    bench.commit(&[title(None), file("shared", b"2"), file("other", b"2")]);
    assert_eq!(bench.merge(clean).status(), 200);
    assert_eq!(bench.names("main"), ["new", "other", "shared"]);
    let refused = bench.merge(clash);
    assert_eq!(refused.status(), 409);
    assert!(refused.text().unwrap().contains("shared"));
    assert_eq!(bench.pull(clash)["status"], "open");
}

#[test]
fn drafts_fill_up_later_and_can_be_closed() {
    let bench = Bench::new();
    bench.create();
    let opened: Value = bench
        .post(
            &format!("{REPO}/discussions"),
            json!({"title": "Draft", "description": "d", "pullRequest": true}),
        )
        .json()
        .unwrap();
    assert_eq!((opened["num"].as_u64(), opened["status"].as_str()), (Some(1), Some("draft")));
    let body = format!("{}\n{}\n", title(None), file("a", b"1"));
    assert_eq!(bench.send(Method::POST, &format!("{REPO}/commit/refs%2Fpr%2F1"), body).status(), 200);
    assert_eq!(bench.names("refs%2Fpr%2F1"), ["a"]);
    let status = format!("{REPO}/discussions/1/status");
    assert_eq!(bench.post(&status, json!({"status": "closed"})).status(), 200);
    assert_eq!(code(bench.merge(1)), (409, "H0510".into()));
    let listed: Value =
        bench.send(Method::GET, &format!("{REPO}/discussions?status=closed&p=0"), "").json().unwrap();
    assert_eq!((listed["count"].as_u64(), &listed["discussions"][0]["title"]), (Some(1), &json!("Draft")));
    assert_eq!(code(bench.post(&status, json!({"status": "merged"}))).0, 400);
    let discussion = json!({"title": "Talk", "pullRequest": false});
    assert_eq!(code(bench.post(&format!("{REPO}/discussions"), discussion)), (404, "H0508".into()));
    assert_eq!(code(bench.send(Method::GET, &format!("{REPO}/discussions/9"), "")), (404, "H0203".into()));
}

#[test]
fn numbers_of_pull_requests_are_given_once() {
    let bench = Bench::new();
    bench.create();
    let mut numbers: Vec<u64> = std::thread::scope(|scope| {
        let racers: Vec<_> = (0..6_u8)
            .map(|n| {
                let bench = &bench;
                scope.spawn(move || bench.propose(&[title(None), file("a", &[n])]))
            })
            .collect();
        racers.into_iter().map(|racer| racer.join().unwrap()).collect()
    });
    numbers.sort_unstable();
    assert_eq!(numbers, [1, 2, 3, 4, 5, 6]);
}
