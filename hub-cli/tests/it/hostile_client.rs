//! Clients that misbehave towards our hub: each is refused with its status, and nothing is stored.

use hub_cli::hub::{Version, publish};
use hub_cli::{Code, Result};
use reqwest::Method;
use serde_json::{Value, json};

use crate::raw::{REPO, code, file, title};
use crate::support::{Bench, contents, repo, toy_package};

#[test]
fn names_that_are_not_names_make_no_repository() {
    let bench = Bench::new();
    let before = contents(&bench.folder.path().join("hub"));
    for (owner, name) in [
        ("..", "x"),
        ("acme", "../../x"),
        ("acme", ".."),
        ("a/b", "c"),
        ("acme", "x.git"),
        ("", "x"),
        ("acme", "a\u{0}b"),
    ] {
        let refused =
            bench.post("/api/repos/create", json!({"type": "kernel", "organization": owner, "name": name}));
        assert_eq!(code(refused), (400, "H0101".into()), "{owner}/{name}");
    }
    assert_eq!(code(bench.post("/api/repos/create", json!({"type": "model", "name": "x"}))).0, 400);
    assert_eq!(code(bench.send(Method::POST, "/api/repos/create", "not json")).0, 400);
    assert_eq!(contents(&bench.folder.path().join("hub")), before);
    assert_eq!(bench.send(Method::GET, "/api/kernels/%2e%2e/%2e%2e/refs", "").status(), 404);
}

#[test]
fn uploads_that_break_the_rules_change_nothing() {
    let bench = Bench::with(|config| {
        config.max_file = 1000;
        config.max_upload = 200_000;
    });
    bench.create();
    let head = bench.head();
    let big = vec![b'x'; 1001];
    let put = |path: &str| vec![title(None), file(path, b"x")];
    for (lines, expected) in [
        (put("../x"), (400, "H0103")),
        (put("/etc/passwd"), (400, "H0103")),
        (put("a/../../x"), (400, "H0103")),
        (put("a\\b"), (400, "H0103")),
        (put(".git/config"), (400, "H0103")),
        (put("build/torch-cpu/x.pyc"), (400, "H0407")),
        (put("__pycache__/x.py"), (400, "H0407")),
        (vec![file("a", b"x")], (400, "H0506")),
        (vec![title(None), title(None)], (400, "H0506")),
        (vec![], (400, "H0506")),
        (vec![json!({"key": "header", "value": {"summary": " "}})], (400, "H0506")),
        (vec![json!({"key": "rewriteHistory", "value": {}})], (400, "H0506")),
        (
            vec![
                title(None),
                json!({"key": "file", "value": {"path": "a", "content": "???", "encoding": "base64"}}),
            ],
            (400, "H0506"),
        ),
        (
            vec![
                title(None),
                json!({"key": "file", "value": {"path": "a", "content": "x", "encoding": "rot13"}}),
            ],
            (400, "H0506"),
        ),
        (vec![title(None), json!({"key": "lfsFile", "value": {"path": "a", "oid": "b"}})], (400, "H0506")),
        (vec![title(None), json!({"key": "deletedFile", "value": {"path": "absent"}})], (404, "H0210")),
        (vec![title(None), file("a", b"x"), file("a/b", b"x")], (400, "H0506")),
        (vec![title(None), file("a", &big)], (413, "H0207")),
        (
            vec![title(None), json!({"key": "file", "value": {"path": "a", "content": "x".repeat(100_000)}})],
            (413, "H0207"),
        ),
        (vec![title(Some("../../x"))], (400, "H0506")),
        (vec![title(Some(&"f".repeat(40))), file("a", b"x")], (412, "H0209")),
    ] {
        let shown = lines.iter().map(Value::to_string).collect::<String>();
        let (status, named) = code(bench.commit(&lines));
        assert_eq!((status, named.as_str()), expected, "{:.200}", shown);
    }
    let many: Vec<_> =
        std::iter::once(title(None)).chain((0..200).map(|n| file(&n.to_string(), &[b'x'; 900]))).collect();
    assert_eq!(code(bench.commit(&many)).1, "H0207");
    assert_eq!(bench.head(), head);
    assert_eq!(
        code(bench.send(Method::POST, &format!("{REPO}/commit/absent"), title(None).to_string())),
        (404, "H0203".into())
    );
    assert_eq!(
        code(bench.send(Method::POST, &format!("{REPO}/commit/absent?create_pr=1"), title(None).to_string())),
        (404, "H0203".into())
    );
}

#[test]
fn reading_stays_inside_the_repository() {
    let bench = Bench::new();
    bench.create();
    for (path, status) in [
        ("/kernels/acme/toy-kernel/resolve/main/..%2F..%2Fhub.json", 400),
        ("/kernels/acme/toy-kernel/resolve/main/%2Fetc%2Fpasswd", 400),
        ("/kernels/acme/toy-kernel/resolve/..%2Fmain/x", 404),
        ("/kernels/acme/toy-kernel/resolve/main/absent", 404),
        ("/api/kernels/acme/toy-kernel/tree/main/..%2F..", 400),
        ("/api/kernels/acme/toy-kernel/tree/main/absent", 404),
        ("/api/kernels/acme/toy-kernel/tree/refs%2Fheads%2F..%2F..%2Frepo.json", 404),
        ("/api/kernels/acme/toy-kernel/tree/main?cursor=99999999999999999999", 400),
        ("/api/kernels/acme/toy-kernel/revision/%FF", 400),
        ("/hub.json", 404),
    ] {
        assert_eq!(bench.send(Method::GET, path, "").status().as_u16(), status, "{path}");
    }
}

#[test]
fn refs_cannot_be_abused() {
    let bench = Bench::new();
    bench.create();
    for name in ["..%2Fx", "refs%2Fheads%2Fx", "a%20b", "x.lock", "%2Fa", &"a".repeat(201), &"f".repeat(40)] {
        assert_eq!(code(bench.post(&format!("{REPO}/branch/{name}"), json!({}))).0, 400, "{name}");
    }
    assert_eq!(bench.post(&format!("{REPO}/branch/feature%2Fx"), json!({})).status(), 200);
    assert_eq!(code(bench.post(&format!("{REPO}/branch/feature%2Fx"), json!({}))), (409, "H0507".into()));
    assert_eq!(
        code(bench.post(&format!("{REPO}/branch/y"), json!({"startingPoint": "absent"}))),
        (404, "H0203".into())
    );
    assert_eq!(code(bench.send(Method::DELETE, &format!("{REPO}/branch/main"), "")).0, 400);
    assert_eq!(bench.send(Method::DELETE, &format!("{REPO}/branch/feature%2Fx"), "").status(), 200);
    assert_eq!(code(bench.post(&format!("{REPO}/tag/main"), json!({"tag": "../x"}))).0, 400);
}

#[test]
fn a_repeated_commit_is_one_commit_and_a_stale_one_is_refused() {
    let bench = Bench::new();
    bench.create();
    let start = bench.head();
    let lines = [title(Some(start.as_str())), file("a", b"1")];
    let commit = |lines: &[Value]| {
        bench.commit(lines).json::<Value>().unwrap()["commitOid"].as_str().map(str::to_owned)
    };
    let first = commit(&lines).unwrap();
    assert_eq!(commit(&lines), Some(first.clone()), "a retry whose first answer was lost");
    assert_eq!(code(bench.commit(&[title(Some(start.as_str())), file("a", b"2")])), (412, "H0209".into()));
    assert_eq!(bench.head().as_str(), first);
    assert_eq!(commit(&[title(None), file("a", b"1")]), Some(first), "nothing changed");
}

#[test]
fn of_two_that_publish_at_once_one_wins() {
    let bench = Bench::new();
    bench.create();
    let start = bench.head();
    let statuses: Vec<u16> = std::thread::scope(|scope| {
        let racers: Vec<_> = (0..8)
            .map(|n: u8| {
                let (bench, start) = (&bench, start.as_str());
                scope.spawn(move || bench.commit(&[title(Some(start)), file("a", &[n])]).status().as_u16())
            })
            .collect();
        racers.into_iter().map(|racer| racer.join().unwrap()).collect()
    });
    assert_eq!(statuses.iter().filter(|s| **s == 200).count(), 1, "{statuses:?}");
    assert_eq!(statuses.iter().filter(|s| **s == 412).count(), 7, "{statuses:?}");
}

#[test]
fn a_token_guards_writes_and_private_repositories() -> Result<()> {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("token");
    let bench = Bench::with(|config| config.token_file = Some(path.clone()));
    let token = fs_err::read_to_string(&path).unwrap().trim().to_owned();
    let create =
        json!({"type": "kernel", "organization": "acme", "name": "toy-kernel", "private": true}).to_string();
    let bearer = format!("Bearer {token}");
    for headers in [&[][..], &[("authorization", "Bearer hub_wrong")], &[("authorization", &token)]] {
        assert_eq!(
            code(bench.send_as(headers, Method::POST, "/api/repos/create", create.clone())),
            (401, "H0204".into())
        );
    }
    let good = [("authorization", bearer.as_str())];
    assert_eq!(bench.send_as(&good, Method::POST, "/api/repos/create", create).status(), 200);

    let refs = format!("{REPO}/refs");
    assert_eq!(code(bench.send(Method::GET, &refs, "")), (404, "H0202".into()));
    assert_eq!(bench.send_as(&good, Method::GET, &refs, "").status(), 200);
    let list: Vec<Value> = bench.send(Method::GET, "/api/kernels", "").json().unwrap();
    assert_eq!(list, [json!(null); 0]);

    let package = toy_package(&folder.path().join("source"), 1, "one");
    let refused = publish(&bench.client(), None, &package, &repo(), Version(1), false).unwrap_err();
    assert_eq!(refused.code(), Code::NotAllowed);
    Ok(())
}

#[test]
fn web_pages_cannot_reach_a_hub_on_this_machine() {
    let bench = Bench::new();
    let create = json!({"type": "kernel", "organization": "acme", "name": "x"}).to_string();
    let page = [("origin", "https://evil.example")];
    assert_eq!(bench.send_as(&page, Method::POST, "/api/repos/create", create).status(), 401);
    let rebound = [("host", "evil.example:8000")];
    assert_eq!(bench.send_as(&rebound, Method::GET, "/api/kernels", "").status(), 401);
}

#[test]
fn a_hub_on_the_network_wants_a_token() {
    let folder = tempfile::tempdir().unwrap();
    let mut config = hub_cli::server::Config::new(folder.path());
    config.host = "0.0.0.0".parse().unwrap();
    assert_eq!(hub_cli::server::Hub::start(config).unwrap_err().code(), Code::OpenWrites);
}
