//! Bytes that are hardly HTTP, requests that never end, and paths that try to lead elsewhere: each is
//! refused, in time, and changes nothing.

use std::time::{Duration, Instant};

use reqwest::Method;
use serde_json::json;

use crate::raw::{REPO, answer_to, code, title};
use crate::support::{Bench, contents};

#[test]
fn what_is_hardly_http_is_refused() {
    let bench = Bench::new();
    bench.create();
    let before = contents(&bench.folder.path().join("hub"));
    let host = "Host: 127.0.0.1\r\nConnection: close\r\n";
    let get = |path: &str| format!("GET {path} HTTP/1.1\r\n{host}\r\n");
    let many: String = (0..200).map(|n| format!("X-{n}: y\r\n")).collect();
    let chunked = format!("POST {REPO}/commit/main HTTP/1.1\r\n{host}Transfer-Encoding: chunked\r\n\r\n");
    for (what, request, statuses) in [
        ("no HTTP at all", "hello\r\n\r\n".to_owned(), &["400", ""][..]),
        ("binary", "\u{0}\u{1}\u{2}\u{3}\r\n\r\n".to_owned(), &["400", ""]),
        ("TLS to a plain port", "\u{16}\u{3}\u{1}\u{2}\u{0}\u{1}\u{0}".to_owned() + "\r\n\r\n", &["400", ""]),
        ("another version", format!("GET / HTTP/9.9\r\n{host}\r\n"), &["400", "505", ""]),
        (
            "a huge header",
            format!("GET / HTTP/1.1\r\n{host}X: {}\r\n\r\n", "y".repeat(1 << 20)),
            &["431", "400", ""],
        ),
        (
            "a huge token",
            format!("GET / HTTP/1.1\r\n{host}Authorization: Bearer {}\r\n\r\n", "y".repeat(1 << 20)),
            &["431", "400", ""],
        ),
        ("many headers", format!("GET / HTTP/1.1\r\n{host}{many}\r\n"), &["431", "400", ""]),
        ("a huge path", get(&format!("/{}", "y".repeat(1 << 20))), &["414", "431", "400", ""]),
        ("a zero byte in a header", format!("GET / HTTP/1.1\r\n{host}X: a\0b\r\n\r\n"), &["400", ""]),
        ("a space in a header's name", format!("GET / HTTP/1.1\r\n{host}X y: z\r\n\r\n"), &["400", ""]),
        ("a negative length", format!("POST / HTTP/1.1\r\n{host}Content-Length: -1\r\n\r\n"), &["400", ""]),
        (
            "two lengths",
            format!("POST / HTTP/1.1\r\n{host}Content-Length: 1\r\nContent-Length: 2\r\n\r\nab"),
            &["400", ""],
        ),
        ("a bad chunk", format!("{chunked}zz\r\nhello\r\n0\r\n\r\n"), &["400", ""]),
        ("a huge chunk size", format!("{chunked}ffffffffffffffffff\r\nx"), &["400", ""]),
        ("an unknown method", format!("BREW / HTTP/1.1\r\n{host}\r\n"), &["405"]),
        ("TRACE", format!("TRACE {REPO} HTTP/1.1\r\n{host}\r\n"), &["405"]),
        ("CONNECT", format!("CONNECT evil.example:443 HTTP/1.1\r\n{host}\r\n"), &["400", "404", "405", ""]),
        (
            "a foreign host",
            "GET / HTTP/1.1\r\nHost: evil.example\r\nConnection: close\r\n\r\n".to_owned(),
            &["401"],
        ),
        ("dots in a path", get("/../../etc/passwd"), &["404"]),
        (
            "dots below a route",
            get("/kernels/acme/toy-kernel/resolve/main/../../../../hub.json"),
            &["400", "404"],
        ),
        ("escaped dots", get("/kernels/acme/toy-kernel/resolve/main/%2e%2e/%2e%2e/hub.json"), &["400"]),
        (
            "doubly escaped dots",
            get("/kernels/acme/toy-kernel/resolve/main/%252e%252e%252fhub.json"),
            &["404"],
        ),
        ("a backslash", get("/kernels/acme/toy-kernel/resolve/main/..%5c..%5chub.json"), &["400"]),
        ("a zero byte in a path", get("/kernels/acme/toy-kernel/resolve/main/a%00b"), &["400"]),
        ("a path that is no text", get("/kernels/acme/toy-kernel/resolve/main/%ff%fe"), &["400"]),
        ("an owner with dots", get("/api/kernels/%2e%2e/toy-kernel/refs"), &["400", "404"]),
        ("an owner with a slash", get("/api/kernels/acme%2Ftoy-kernel/x/refs"), &["400"]),
        ("a name with a slash", get("/api/kernels/acme/toy-kernel%2F..%2Ftoy-kernel/refs"), &["400"]),
        ("an owner of a page", get("/kernels/%2e%2e/%2e%2e"), &["400", "404"]),
        ("an organisation with dots", get("/api/organizations/..%2F..%2Fx/overview"), &["404"]),
        (
            "a revision with dots",
            get("/api/kernels/acme/toy-kernel/revision/refs%2Fheads%2F..%2F..%2Fx"),
            &["404"],
        ),
        (
            "a tree below a file's parent",
            get("/api/kernels/acme/toy-kernel/tree/main/..%2F..%2Fobjects"),
            &["400"],
        ),
        (
            "a cursor that overflows",
            get("/api/kernels/acme/toy-kernel/tree/main?cursor=18446744073709551616"),
            &["400"],
        ),
        ("a link for dots", get("/large/../../x"), &["405"]),
    ] {
        let answer = answer_to(&bench.hub.endpoint(), request.as_bytes());
        let status = answer.split(' ').nth(1).unwrap_or_default();
        assert!(statuses.contains(&status), "{what}: {answer:.300}");
    }
    assert_eq!(contents(&bench.folder.path().join("hub")), before);
    assert_eq!(bench.send(Method::GET, "/healthz", "").status(), 200);
}

#[test]
fn who_does_not_finish_is_not_waited_for() {
    let bench = Bench::with(|config| config.idle = Duration::from_millis(400));
    bench.create();
    let commit = format!("POST {REPO}/commit/main HTTP/1.1\r\nHost: localhost\r\nContent-Length: 100000\r\n");
    for (what, request) in [
        ("no byte", String::new()),
        ("half a head", "GET / HTTP/1.1\r\nHost: local".into()),
        ("a head without its end", commit.clone()),
        ("a body that stops", format!("{commit}\r\n{}\n", title(None))),
        ("a line that stops", format!("{commit}\r\n{}\n{{\"key\": \"file\"", title(None))),
    ] {
        let begun = Instant::now();
        let answer = answer_to(&bench.hub.endpoint(), request.as_bytes());
        assert!(begun.elapsed() < Duration::from_secs(10), "{what} was waited for");
        assert!(!answer.contains("200 OK"), "{what}: {answer}");
    }
    assert_eq!(
        bench
            .send(Method::GET, &format!("{REPO}/commits/main"), "")
            .text()
            .unwrap()
            .matches("\"id\"")
            .count(),
        1
    );
}

#[test]
fn json_that_is_too_deep_too_large_or_of_another_kind() {
    let bench = Bench::new();
    bench.create();
    let deep = "[".repeat(100_000);
    for (path, body) in [
        ("/api/repos/create", deep.clone()),
        ("/api/repos/create", "{\"type\": \"kernel\", \"name\": 7}".into()),
        ("/api/repos/create", "{\"type\": \"dataset\", \"name\": \"x\"}".into()),
        ("/api/repos/create", String::new()),
        (
            "/api/repos/move",
            json!({"type": "kernel", "fromRepo": "acme/toy-kernel", "toRepo": "../x"}).to_string(),
        ),
        (
            "/api/repos/move",
            json!({"type": "kernel", "fromRepo": "acme/toy-kernel", "toRepo": "acme/x.git"}).to_string(),
        ),
        ("/api/kernels/acme/toy-kernel/commit/main", deep.clone()),
        ("/api/kernels/acme/toy-kernel/commit/main", "\u{feff}{}".into()),
        (
            "/api/kernels/acme/toy-kernel/preupload/main",
            json!({"files": [{"path": "../x", "size": 1}]}).to_string(),
        ),
        (
            "/api/kernels/acme/toy-kernel/preupload/main",
            json!({"files": [{"path": "x", "size": -1}]}).to_string(),
        ),
        ("/api/kernels/acme/toy-kernel/preupload/main", deep.clone()),
        ("/api/kernels/acme/toy-kernel/tag/main", json!({"tag": "../../x"}).to_string()),
        ("/api/kernels/acme/toy-kernel/tag/main", json!({"tag": "é".repeat(100)}).to_string()),
        ("/api/kernels/acme/toy-kernel/branch/x", json!({"startingPoint": 7}).to_string()),
        ("/api/kernels/acme/toy-kernel/discussions", json!({"title": " ", "pullRequest": true}).to_string()),
        ("/api/kernels/acme/toy-kernel/super-squash/..%2Fx", "{}".into()),
        ("/api/kernels/acme/toy-kernel/paths-info/main", deep),
    ] {
        let (status, code) = code(bench.send(Method::POST, path, body.clone()));
        assert!((400..500).contains(&status) && code.starts_with('H'), "{path} {body:.60}: {status} {code}");
    }
    assert_eq!(bench.client().heads(&crate::support::repo()).unwrap().branches.len(), 1);
}
