//! Hubs that misbehave towards a publisher: what is claimed is read back, and no claim is believed.

use std::sync::{Arc, Mutex};

use axum::Router;
use axum::extract::Request;
use axum::http::header;
use hub_cli::hub::{Version, publish};
use hub_cli::{Code, Error};
use serde_json::{Value, json};

use crate::fake_hub::{COMMIT, Reply, serve};
use crate::support::{client, repo, toy_package};

/// A hub that has the repository and the branch `v1`, both empty; tests change single answers.
fn answer(method: &str, path: &str) -> Reply {
    let heads = json!({
        "branches": [{"name": "main", "targetCommit": COMMIT}, {"name": "v1", "targetCommit": COMMIT}],
        "tags": [], "converts": [],
    });
    match (method, path.rsplit('/').nth(1).unwrap_or_default()) {
        ("GET", "toy-kernel") if path.ends_with("/refs") => Reply::new(heads.to_string()),
        ("GET", "tree") => Reply::new("[]"),
        ("POST", "preupload") => Reply::new(json!({"files": []}).to_string()),
        ("POST", "commit") => Reply::new(json!({"commitOid": "f".repeat(40), "commitUrl": "x"}).to_string()),
        _ => Reply::status(404, ""),
    }
}

/// Publishes to a hub whose answers `change` may replace; the error, and the paths that were asked for.
fn refused(change: impl Fn(&str, &str) -> Option<Reply> + Send + Sync + 'static) -> (Error, Vec<String>) {
    let asked = Arc::new(Mutex::new(Vec::new()));
    let log = asked.clone();
    let change = Arc::new(change);
    let app = Router::new().fallback(move |request: Request| {
        let (method, path) = (request.method().to_string(), request.uri().path().to_owned());
        let type_of = request.headers().get(header::CONTENT_TYPE).is_some();
        log.lock().unwrap().push(format!("{method} {path} {type_of}"));
        std::future::ready(change(&method, &path).unwrap_or_else(|| answer(&method, &path)))
    });
    let endpoint = format!("http://{}", serve(app));
    let folder = tempfile::tempdir().unwrap();
    let package = toy_package(folder.path(), 1, "one");
    let error =
        publish(&client(&endpoint), None, &package, &repo(), Version(1), false).expect_err("it was believed");
    let asked = asked.lock().unwrap().clone();
    (error, asked)
}

#[test]
fn a_claim_of_success_is_read_back() {
    // The hub says that it took the commit, and has nothing.
    let (error, _) = refused(|_, _| None);
    assert_eq!(error.code(), Code::Content, "{error}");
    for oid in ["", "../../x", "main"] {
        let (error, _) = refused(move |_, path| {
            let body = json!({"commitOid": oid, "commitUrl": "x"}).to_string();
            path.contains("/commit/").then(|| Reply::new(body))
        });
        assert_eq!(error.code(), Code::Protocol, "{oid:?}: {error}");
    }
}

#[test]
fn refusals_say_what_to_do() {
    for (status, said, code, help) in [
        (403, "no write access", Code::NotAllowed, "HF_TOKEN"),
        (401, "who are you", Code::NotAllowed, "HF_TOKEN"),
        (412, "stale", Code::Moved, "run the command again"),
        (422, "bad", Code::Status, "no version"),
    ] {
        let (error, _) = refused(move |_, path| {
            path.contains("/commit/").then(|| Reply::status(status, &json!({"error": said}).to_string()))
        });
        assert_eq!(error.code(), code, "{status}: {error}");
        if let Some(text) = error.help_text() {
            assert!(text.contains(help), "{status}: {text}");
        }
    }
    // huggingface.co gives the right to create kernel repositories on request.
    let said =
        "Kernel repository creation is restricted. Request access in your user or organizations settings.";
    let (error, asked) = refused(move |_, path| {
        let gone =
            path.ends_with("/refs").then(|| Reply::status(404, "").with("x-error-code", "RepoNotFound"));
        let create = path.ends_with("/repos/create");
        gone.or_else(|| create.then(|| Reply::status(403, &json!({"error": said}).to_string())))
    });
    assert_eq!(error.code(), Code::CreationGated, "{error}");
    assert!(error.help_text().unwrap().contains("kernels-cli serve"), "{error:?}");
    assert!(!asked.iter().any(|path| path.contains("/commit/")), "{asked:?}");
}

#[test]
fn an_interface_that_cannot_be_read_is_no_interface() {
    // The version that is there has an index.json that is none, of a size that is listed.
    let (error, asked) = refused(|method, path| {
        let tree: Vec<Value> = vec![json!({
            "type": "file", "path": "build/torch-cpu/index.json", "oid": "9e26dfeeb6e641a33dae4961196235bdb965b21b", "size": 2,
        })];
        match (method, path) {
            ("GET", path) if path.contains("/tree/") => Some(Reply::new(Value::from(tree).to_string())),
            ("GET", path) if path.ends_with("index.json") => Some(Reply::new("{}")),
            _ => None,
        }
    });
    assert_eq!(error.code(), Code::Content, "{error}");
    assert!(asked.iter().any(|path| path.contains("/commit/")), "it was published, and read back: {asked:?}");
}
