//! Users, organisations and tokens, from `hub token create` to the refusal of a request.

use std::io::Read;

use reqwest::Method;
use serde_json::{Value, json};

use crate::raw::{Process, code, file, title};
use crate::support::{Bench, Ran, run};

/// `kernels-cli hub ARGS --root ROOT`.
fn hub(root: &std::path::Path, args: &[&str]) -> Ran {
    let mut all = vec!["hub"];
    all.extend(args);
    all.extend(["--root", root.to_str().unwrap()]);
    let ran = run(&[], &all);
    assert_eq!(ran.code, 0, "{ran:?}");
    ran
}

fn token(root: &std::path::Path, args: &[&str]) -> String {
    let mut all = vec!["token", "create"];
    all.extend(args);
    hub(root, &all).out.trim().to_owned()
}

fn bearer(token: &str) -> String {
    format!("Bearer {token}")
}

/// A hub with the repositories `acme/public` and `acme/secret` of an organisation, and tokens of several kinds.
struct Team {
    bench: Bench,
    /// Of a member of `acme`.
    member: String,
    reader: String,
    narrow: String,
    /// Of a user who is no member.
    stranger: String,
    expired: String,
    revoked: String,
}

impl Team {
    fn new() -> Self {
        let bench = Bench::new();
        for (name, private) in [("public", false), ("secret", true)] {
            let create = json!({"type": "kernel", "organization": "acme", "name": name, "private": private});
            assert_eq!(bench.post("/api/repos/create", create).status(), 200);
            let lines = format!("{}\n{}\n", title(None), file("f", b"content"));
            assert_eq!(
                bench.send(Method::POST, &format!("/api/kernels/acme/{name}/commit/main"), lines).status(),
                200
            );
        }
        let root = bench.folder.path().join("hub");
        hub(&root, &["owner", "acme", "--member", "alice"]);
        let write = ["--user", "alice", "--scope", "write"];
        let with = |more: &[&str]| token(&root, &[&write[..], more].concat());
        let (member, narrow) = (with(&[]), with(&["--repo", "acme/public"]));
        let (expired, revoked) = (with(&["--days", "0"]), with(&[]));
        let reader = token(&root, &["--user", "alice"]);
        let stranger = token(&root, &["--user", "mallory", "--scope", "write"]);
        let listed = hub(&root, &["token", "ls", "--json"]).json();
        let id = listed["tokens"][3]["id"].as_str().unwrap().to_owned();
        hub(&root, &["token", "revoke", &id]);
        Self { bench, member, reader, narrow, stranger, expired, revoked }
    }
}

#[test]
fn tokens_do_what_their_owner_scope_and_repositories_allow() {
    let team = Team::new();
    let bench = &team.bench;
    let commit = |name: &str| (Method::POST, format!("/api/kernels/acme/{name}/commit/main"));
    let read = |name: &str| (Method::GET, format!("/api/kernels/acme/{name}/refs"));
    let download = |name: &str| (Method::GET, format!("/kernels/acme/{name}/resolve/main/f"));
    let propose = |name: &str| (Method::POST, format!("/api/kernels/acme/{name}/commit/main?create_pr=1"));
    let settings = |name: &str| (Method::PUT, format!("/api/kernels/acme/{name}/settings"));
    let batch = |name: &str| (Method::POST, format!("/kernels/acme/{name}.git/info/lfs/objects/batch"));
    let lines = format!("{}\n{}\n", title(None), file("g", b"more"));
    for (who, token, (method, path), status) in [
        ("nobody", None, read("public"), 200),
        ("nobody", None, read("secret"), 404),
        ("nobody", None, download("public"), 200),
        ("nobody", None, download("secret"), 404),
        ("nobody", None, commit("public"), 401),
        ("nobody", None, propose("public"), 401),
        ("a wrong token", Some("hub_wrong"), commit("public"), 401),
        ("a wrong token", Some("hub_wrong"), read("secret"), 404),
        ("reader", Some(team.reader.as_str()), read("secret"), 200),
        ("reader", Some(&team.reader), download("secret"), 200),
        ("reader", Some(&team.reader), commit("secret"), 401),
        ("reader", Some(&team.reader), settings("secret"), 401),
        ("member", Some(&team.member), read("secret"), 200),
        ("member", Some(&team.member), commit("secret"), 200),
        ("member", Some(&team.member), settings("secret"), 200),
        ("narrow", Some(&team.narrow), commit("public"), 200),
        ("narrow", Some(&team.narrow), read("secret"), 404),
        ("narrow", Some(&team.narrow), commit("secret"), 404),
        ("stranger", Some(&team.stranger), read("secret"), 404),
        ("stranger", Some(&team.stranger), commit("secret"), 404),
        ("stranger", Some(&team.stranger), commit("public"), 403),
        ("stranger", Some(&team.stranger), settings("public"), 403),
        ("stranger", Some(&team.stranger), propose("secret"), 404),
        ("stranger", Some(&team.stranger), propose("public"), 200),
        ("stranger", Some(&team.stranger), batch("secret"), 404),
        ("expired", Some(&team.expired), commit("public"), 401),
        ("revoked", Some(&team.revoked), commit("public"), 401),
    ] {
        let header = token.map(bearer).unwrap_or_default();
        let headers = if token.is_some() { vec![("authorization", header.as_str())] } else { vec![] };
        let body = match path.split('/').next_back().unwrap() {
            "settings" => json!({"private": path.contains("secret")}).to_string(),
            "batch" => json!({"operation": "upload", "objects": []}).to_string(),
            _ => lines.clone(),
        };
        let shown = format!("{who}: {method} {path}");
        assert_eq!(bench.send_as(&headers, method, &path, body).status().as_u16(), status, "{shown}");
    }
}

#[test]
fn who_may_not_make_move_or_delete() {
    let team = Team::new();
    let stranger = bearer(&team.stranger);
    let headers = [("authorization", stranger.as_str())];
    let send =
        |method, path: &str, body: Value| code(team.bench.send_as(&headers, method, path, body.to_string()));
    let named = |name: &str| json!({"type": "kernel", "organization": "acme", "name": name});
    assert_eq!(send(Method::POST, "/api/repos/create", named("new")), (403, "H0204".into()));
    assert_eq!(send(Method::DELETE, "/api/repos/delete", named("public")), (403, "H0204".into()));
    assert_eq!(send(Method::DELETE, "/api/repos/delete", named("secret")), (404, "H0202".into()));
    let moved = |from: &str, to: &str| json!({"type": "kernel", "fromRepo": from, "toRepo": to});
    assert_eq!(
        send(Method::POST, "/api/repos/move", moved("acme/public", "mallory/mine")),
        (403, "H0204".into())
    );
    let own = json!({"type": "kernel", "name": "own"});
    assert_eq!(
        team.bench.send_as(&headers, Method::POST, "/api/repos/create", own.to_string()).status(),
        200
    );
    assert_eq!(
        send(Method::POST, "/api/repos/move", moved("mallory/own", "acme/own")),
        (403, "H0204".into())
    );
    assert_eq!(team.bench.send(Method::GET, "/api/kernels/mallory/own/refs", "").status(), 200);
}

#[test]
fn lists_and_people_show_what_the_caller_may_see() {
    let team = Team::new();
    let member = bearer(&team.member);
    let headers = [("authorization", member.as_str())];
    let names = |headers: &[(&str, &str)]| -> Vec<String> {
        let list: Vec<Value> = team.bench.send_as(headers, Method::GET, "/api/kernels", "").json().unwrap();
        list.iter().map(|repo| repo["id"].as_str().unwrap().to_owned()).collect()
    };
    assert_eq!(names(&[]), ["acme/public"]);
    assert_eq!(names(&headers), ["acme/public", "acme/secret"]);
    let me: Value = team.bench.send_as(&headers, Method::GET, "/api/whoami-v2", "").json().unwrap();
    assert_eq!((&me["name"], &me["orgs"][0]["name"]), (&json!("alice"), &json!("acme")));
    assert_eq!(me["auth"]["accessToken"]["role"], "write");
    assert_eq!(team.bench.send(Method::GET, "/api/whoami-v2", "").status(), 401);
    // The author of a commit is the token's user.
    let lines = format!("{}\n{}\n", title(None), file("g", b"more"));
    team.bench.send_as(&headers, Method::POST, "/api/kernels/acme/public/commit/main", lines);
    let log: Vec<Value> =
        team.bench.send(Method::GET, "/api/kernels/acme/public/commits/main", "").json().unwrap();
    assert_eq!(log[0]["authors"][0]["user"], "alice");
}

#[test]
fn trust_and_quotas_count_at_once() {
    let bench = Bench::new();
    bench.create();
    let root = bench.folder.path().join("hub");
    let trusted = || {
        let overview: Value = bench.send(Method::GET, "/api/organizations/acme/overview", "").json().unwrap();
        overview["trustedKernelPublisher"].as_bool().unwrap()
    };
    assert!(!trusted());
    hub(&root, &["owner", "acme", "--trust", "--quota", "1500"]);
    assert!(trusted());

    let put = |name: &str, byte: u8| bench.commit(&[title(None), file(name, &[byte; 1000])]);
    assert_eq!(put("a", b'a').status(), 200);
    assert_eq!(put("same", b'a').status(), 200, "a content that is here takes no room");
    assert_eq!(code(put("b", b'b')), (403, "H0509".into()));
    let request = json!({"operation": "upload", "objects": [{"oid": "c".repeat(64), "size": 1000}]});
    let batch: Value =
        bench.post("/kernels/acme/toy-kernel.git/info/lfs/objects/batch", request).json().unwrap();
    assert_eq!(batch["objects"][0]["error"]["code"], 403);
    hub(&root, &["owner", "acme", "--no-trust", "--no-quota"]);
    assert!(!trusted());
    assert_eq!(put("b", b'b').status(), 200);
}

#[test]
fn tokens_are_neither_kept_nor_logged() {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path().join("hub");
    let token = token(&root, &["--user", "alice", "--scope", "write"]);
    let mut process = Process::start(&root, &["--log", "json"]);
    let client = reqwest::blocking::Client::new();
    let create = json!({"type": "kernel", "name": "x"}).to_string();
    let url = format!("{}/api/repos/create", process.endpoint);
    assert_eq!(client.post(&url).bearer_auth(&token).body(create.clone()).send().unwrap().status(), 200);
    assert_eq!(client.post(&url).bearer_auth("hub_a_wrong_token").body(create).send().unwrap().status(), 401);
    let secret = format!("{}/healthz?signature=hub_in_a_query", process.endpoint);
    assert_eq!(client.get(secret).send().unwrap().status(), 200);
    process.child.kill().unwrap();
    let mut log = String::new();
    process.child.stderr.take().unwrap().read_to_string(&mut log).unwrap();
    let lines: Vec<Value> = log.lines().filter_map(|line| serde_json::from_str(line).ok()).collect();
    let first = lines.iter().find(|line| line["path"] == "/api/repos/create").unwrap();
    assert_eq!(
        (&first["user"], &first["status"], &first["method"]),
        (&json!("alice"), &json!(200), &json!("POST"))
    );
    for word in [token.as_str(), "hub_a_wrong_token", "hub_in_a_query"] {
        assert!(!log.contains(word), "{word} is in the log");
    }
    for (path, bytes) in crate::support::contents(&root) {
        let found = bytes.windows(token.len()).any(|window| window == token.as_bytes());
        assert!(!found, "the token is in {}", path.display());
    }
}
