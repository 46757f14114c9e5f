//! Large files: what LFS clients send, and what they may not.

use reqwest::Method;
use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use crate::raw::{REPO, code, title};
use crate::support::Bench;

const BATCH: &str = "/kernels/acme/toy-kernel.git/info/lfs/objects/batch";
const VERIFY: &str = "/kernels/acme/toy-kernel.git/info/lfs/verify";

/// A hub that wants files from 100 bytes on through LFS, in parts of 1000.
fn bench() -> Bench {
    let bench = Bench::with(|config| {
        config.lfs_from = Some(100);
        config.part_size = 1000;
        config.max_large = 100_000;
    });
    bench.create();
    bench
}

fn sha256(content: &[u8]) -> String {
    hex::encode(Sha256::digest(content))
}

fn content(size: usize) -> Vec<u8> {
    (0..size).map(|n| (n * 31 % 251) as u8).collect()
}

impl Bench {
    fn batch(&self, oid: &str, size: usize) -> Value {
        let request = json!({
            "operation": "upload", "transfers": ["basic", "multipart"], "hash_algo": "sha256",
            "objects": [{"oid": oid, "size": size}],
        });
        let mut answer: Value = self.post(BATCH, request).json().unwrap();
        answer["objects"][0].take()
    }

    fn put(&self, link: &str, content: &[u8]) -> reqwest::blocking::Response {
        reqwest::blocking::Client::new().put(link).body(content.to_vec()).send().unwrap()
    }

    /// The link for the only piece of a content.
    fn link(&self, content: &[u8]) -> String {
        let answer = self.batch(&sha256(content), content.len());
        answer["actions"]["upload"]["href"].as_str().unwrap().to_owned()
    }

    fn commit_large(&self, path: &str, oid: &str, size: usize) -> reqwest::blocking::Response {
        let line =
            json!({"key": "lfsFile", "value": {"path": path, "algo": "sha256", "oid": oid, "size": size}});
        self.commit(&[title(None), line])
    }
}

#[test]
fn a_large_file_travels_whole_or_in_parts() {
    let bench = bench();
    for (name, size) in [("whole", 900), ("parts", 2500)] {
        let content = content(size);
        let oid = sha256(&content);
        let answer = bench.batch(&oid, size);
        let upload = &answer["actions"]["upload"];
        let href = upload["href"].as_str().unwrap();
        if name == "whole" {
            assert_eq!(bench.put(href, &content).status(), 200);
        } else {
            assert_eq!(upload["header"]["chunk_size"], "1000");
            for (n, part) in content.chunks(1000).enumerate() {
                let link = upload["header"][format!("{:05}", n + 1)].as_str().unwrap();
                let sent = bench.put(link, part);
                assert_eq!(sent.headers()["etag"], format!("\"{}\"", sha256(part)));
            }
            let parts: Vec<_> = (1..=3).map(|n| json!({"partNumber": n, "etag": "x"})).collect();
            let done = json!({"oid": oid, "parts": parts}).to_string();
            for _ in 0..2 {
                let completed =
                    reqwest::blocking::Client::new().post(href).body(done.clone()).send().unwrap();
                assert_eq!(completed.status(), 200, "also when it is repeated");
            }
        }
        assert_eq!(bench.post(VERIFY, json!({"oid": oid, "size": size})).status(), 200);
        assert_eq!(bench.batch(&oid, size).get("actions"), None, "it is here already");
        assert_eq!(bench.commit_large(name, &oid, size).status(), 200);

        let path = format!("/kernels/acme/toy-kernel/resolve/main/{name}");
        let head = bench.send(Method::HEAD, &path, "");
        assert_eq!(head.headers()["etag"], format!("\"{oid}\""));
        assert_eq!(head.headers()["x-linked-size"], size.to_string());
        assert_eq!(head.headers()["content-length"], size.to_string());
        assert_eq!(bench.send(Method::GET, &path, "").bytes().unwrap(), content);
        let tree: Vec<Value> = bench.send(Method::GET, &format!("{REPO}/tree/main"), "").json().unwrap();
        let entry = tree.iter().find(|entry| entry["path"] == name).unwrap();
        assert_eq!((&entry["lfs"]["oid"], entry["size"].as_u64()), (&json!(oid), Some(size as u64)));
        // `git hash-object` of the pointer that git-lfs would write.
        let pointer = format!("version https://git-lfs.github.com/spec/v1\noid sha256:{oid}\nsize {size}\n");
        assert_eq!(entry["oid"], hub_cli::hub::Oid::of_blob(pointer.as_bytes()).as_str());
        assert_eq!(entry["lfs"]["pointerSize"], pointer.len());
        // Our own client reads it too, and checks it by its SHA-256.
        let repo = crate::support::repo();
        let files = bench.client().files(&repo, &bench.head()).unwrap();
        let file = files.iter().find(|file| file.path.as_str() == name).unwrap();
        bench.client().download(&repo, &bench.head(), file, &mut std::io::sink()).unwrap();
    }
}

#[test]
fn preupload_says_which_files_go_which_way() {
    let bench = bench();
    let ask = |size: usize| -> Value {
        let answer: Value = bench
            .post(&format!("{REPO}/preupload/main"), json!({"files": [{"path": "f", "size": size}]}))
            .json()
            .unwrap();
        answer["files"][0].clone()
    };
    assert_eq!((&ask(0)["uploadMode"], &ask(99)["uploadMode"]), (&json!("regular"), &json!("regular")));
    assert_eq!(ask(100)["uploadMode"], "lfs");
    let content = content(100);
    bench.put(&bench.link(&content), &content);
    bench.commit_large("f", &sha256(&content), 100);
    assert_eq!(ask(100)["oid"], sha256(&content), "clients skip what is there");
    assert_eq!(ask(5).get("oid"), None);
}

#[test]
fn conditional_and_partial_requests() {
    let bench = Bench::new();
    bench.create();
    let content = content(1000);
    bench.commit(&[title(None), crate::raw::file("f", &content)]);
    let path = "/kernels/acme/toy-kernel/resolve/main/f";
    let etag = bench.send(Method::HEAD, path, "").headers()["etag"].to_str().unwrap().to_owned();
    let get = |headers: &[(&str, &str)]| bench.send_as(headers, Method::GET, path, "");
    for (headers, status, expected) in [
        (&[("if-none-match", etag.as_str())][..], 304, &content[..0]),
        (&[("if-none-match", "\"other\"")], 200, &content[..]),
        (&[("range", "bytes=10-19")], 206, &content[10..20]),
        (&[("range", "bytes=-5")], 206, &content[995..]),
        (&[("range", "bytes=2000-")], 416, &content[..0]),
        (&[("range", "bytes=0-1,5-6")], 200, &content[..]),
        (&[("range", "bytes=10-19"), ("if-range", etag.as_str())], 206, &content[10..20]),
        (&[("range", "bytes=10-19"), ("if-range", "\"other\"")], 200, &content[..]),
    ] {
        let answer = get(headers);
        assert_eq!(answer.status(), status, "{headers:?}");
        assert_eq!(answer.headers()["etag"], etag);
        assert_eq!(answer.bytes().unwrap(), expected, "{headers:?}");
    }
}

#[test]
fn lies_about_large_files_store_nothing() {
    let bench = bench();
    let (good, oid) = (content(500), sha256(&content(500)));
    for (oid, size, status) in [
        ("../../x", 10, 400),
        (&"a".repeat(40), 10, 400),
        (&oid.to_uppercase(), 10, 400),
        ("", 10, 400),
        (oid.as_str(), 100_001, 413),
    ] {
        assert_eq!(bench.batch(oid, size)["error"]["code"], status, "{oid} {size}");
    }
    let objects: Vec<_> = (0..1001).map(|n| json!({"oid": format!("{n:064x}"), "size": 1})).collect();
    for (request, expected) in [
        (json!({"operation": "upload", "objects": objects}), 413),
        (json!({"operation": "download", "objects": []}), 404),
        (json!({"operation": "upload", "objects": [], "hash_algo": "sha1"}), 400),
        (json!({"operation": "upload", "objects": [{"oid": oid, "size": -1}]}), 400),
        (json!([]), 400),
    ] {
        assert_eq!(code(bench.post(BATCH, request)).0, expected);
    }
    assert_eq!(
        bench.post(&BATCH.replace(".git", ""), json!({"operation": "upload", "objects": []})).status(),
        404
    );

    let link = bench.link(&good);
    let other = content(501);
    for (content, expected) in
        [(&other[..], "H0301"), (&good[..499], "H0301"), (&other[1..], "H0302"), (&other[..0], "H0301")]
    {
        assert_eq!(code(bench.put(&link, content)), (400, expected.into()));
    }
    for (from, to) in [
        ("size=500", "size=501"),
        ("part=0", "part=1"),
        ("parts=0", "parts=2"),
        (oid.as_str(), &sha256(b"other")),
        ("toy-kernel", "other"),
        ("signature=", "signature=0"),
        ("expires=", "expires=9"),
    ] {
        let forged = link.replace(from, to);
        assert_eq!(code(bench.put(&forged, &good)), (403, "H0204".into()), "{from} -> {to}");
    }
    assert_eq!(bench.put(link.split('?').next().unwrap(), &good).status(), 400, "no permission at all");
    let ended =
        reqwest::blocking::Client::new().post(&link).body("{\"oid\": \"\", \"parts\": []}").send().unwrap();
    assert_eq!(code(ended).0, 400, "nothing to end");

    let parts = content(1500);
    let answer = bench.batch(&sha256(&parts), 1500);
    let upload = &answer["actions"]["upload"];
    let href = upload["href"].as_str().unwrap();
    assert_eq!(code(bench.put(href, &parts)).0, 400, "the link that ends an upload takes no content");
    assert_eq!(bench.put(upload["header"]["00001"].as_str().unwrap(), &parts[..1000]).status(), 200);
    for parts_named in [vec![1, 2], vec![1], vec![2, 1], vec![1, 1], vec![], vec![1, 2, 3]] {
        let parts_named: Vec<_> =
            parts_named.into_iter().map(|n| json!({"partNumber": n, "etag": "x"})).collect();
        let done = json!({"oid": sha256(&parts), "parts": parts_named}).to_string();
        let refused = reqwest::blocking::Client::new().post(href).body(done).send().unwrap();
        assert_eq!(code(refused), (400, "H0506".into()), "part 2 never came");
    }

    for (oid, size) in [(oid.as_str(), 500), (&sha256(&parts), 1500), ("../x", 1)] {
        assert_eq!(code(bench.commit_large("f", oid, size)), (400, "H0506".into()));
    }
    assert_eq!(code(bench.post(VERIFY, json!({"oid": oid, "size": 500}))), (404, "H0210".into()));
    assert_eq!(bench.put(&link, &good).status(), 200, "the honest upload still works");
    assert_eq!(code(bench.commit_large("f", &oid, 501)), (400, "H0506".into()), "another size than it has");
    bench.post("/api/repos/create", json!({"type": "kernel", "organization": "acme", "name": "thief"}));
    let theft = format!(
        "{}\n{}\n",
        title(None),
        json!({"key": "lfsFile", "value": {"path": "f", "oid": oid, "size": 500}})
    );
    let stolen = bench.send(Method::POST, "/api/kernels/acme/thief/commit/main", theft);
    assert_eq!(code(stolen), (400, "H0506".into()), "who knows an id does not have the content");
    assert_eq!(bench.commit_large("f", &oid, 500).status(), 200);
}

#[test]
fn xet_is_answered_with_what_to_do() {
    let bench = bench();
    for kind in ["xet-read-token", "xet-write-token"] {
        let refused = bench.send(Method::GET, &format!("{REPO}/{kind}/main"), "");
        let message = refused.headers()["x-error-message"].to_str().unwrap().to_owned();
        assert!(message.contains("HF_HUB_DISABLE_XET=1"), "{message}");
        assert_eq!(code(refused), (404, "H0508".into()));
    }
}
