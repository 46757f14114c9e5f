//! A hub that lies: each lie has its code, and leaves nothing behind.

use axum::http::header;
use hub_cli::Code;
use hub_cli::hub::{
    Allowed, Cache, Client, Endpoint, KernelDependency, Patience, Pin, RepoPath, Silent, Token, Version,
};
use hub_cli::hub::{fetch, lock};
use serde_json::json;

use crate::fake_hub::{Attack, COMMIT, Fake, INIT, Reply, Server, attack, defeated};
use crate::support::{client, repo, run, wanted};

/// One lie: what it is, how the hub tells it, and what it is refused as.
struct Lie(String, Box<dyn Fn(&mut Fake)>, Code);

fn lie(name: impl Into<String>, tell: impl Fn(&mut Fake) + 'static, code: Code) -> Lie {
    Lie(name.into(), Box::new(tell), code)
}

/// Lies about the names of files.
fn names() -> Vec<Lie> {
    let paths = [
        "build/torch-cpu/../../../../../PWNED",
        "../PWNED",
        "build/..",
        "/tmp/PWNED",
        "build/torch-cpu//x",
        "build/torch-cpu/./x",
        "build/torch-cpu/",
        "build\\..\\..\\PWNED",
        "C:/PWNED",
        "build/torch-cpu/C:x",
        ".git/hooks/post-checkout",
        "build/.GIT/config",
        "build/torch-cpu/\u{0}",
        "build/torch-cpu/\u{1b}[2J",
        "",
    ];
    let mut lies: Vec<_> = paths
        .into_iter()
        .map(|path| lie(format!("the path {path:?}"), move |fake| fake.put(path, b"pwned"), Code::Path))
        .collect();
    let long = format!("build/torch-cpu/{}", "x/".repeat(600) + "x");
    lies.push(lie("a path without end", move |fake| fake.put(&long, b""), Code::Path));
    lies
}

/// Lies about ids: of files, of LFS, of ETags, of commits.
fn ids() -> Vec<Lie> {
    let mut lies = Vec::new();
    for id in ["../../../PWNED", "", "0123", "/tmp/PWNED", "CE013625030BA8DBA906F756967F9E9CA394464A"] {
        lies.push(lie(
            format!("the id {id:?}"),
            move |fake| fake.entry(INIT)["oid"] = json!(id),
            Code::ObjectId,
        ));
        let large = move |fake: &mut Fake| {
            fake.entry(INIT)["lfs"] = json!({"oid": id, "size": 3, "pointerSize": 100});
        };
        lies.push(lie(format!("the LFS id {id:?}"), large, Code::ObjectId));
        let etag = move |fake: &mut Fake| header_of(fake, "etag", &format!("\"{id}\""));
        lies.push(lie(format!("the ETag {id:?}"), etag, Code::ObjectId));
        let commit = move |fake: &mut Fake| fake.refs = branches(id);
        lies.push(lie(format!("the commit {id:?}"), commit, Code::Protocol));
    }
    lies
}

fn branches(commit: &str) -> Reply {
    Reply::new(json!({"branches": [{"name": "v1", "targetCommit": commit}]}).to_string())
}

fn header_of(fake: &mut Fake, name: &'static str, value: &str) {
    *fake.file(INIT) = fake.files[INIT].clone().with(name, value);
}

/// Lies about the contents of files.
fn bodies() -> Vec<Lie> {
    vec![
        lie("a file that is cut", |fake| fake.file(INIT).body.truncate(10), Code::Size),
        lie("a file that is announced shorter", |fake| header_of(fake, "content-length", "10"), Code::Size),
        lie(
            "a file that is announced longer, and is",
            |fake| {
                fake.file(INIT).body = vec![b' '; 1_000_000];
                header_of(fake, "content-length", "1000000");
            },
            Code::Size,
        ),
        lie(
            "a connection that breaks",
            |fake| {
                let size = fake.files[INIT].body.len().to_string();
                fake.file(INIT).body.truncate(10);
                header_of(fake, "content-length", &size);
            },
            Code::Unreachable,
        ),
        lie("a flipped bit", |fake| fake.file(INIT).body[20] ^= 1, Code::Content),
        lie("a file with more behind it", |fake| fake.file(INIT).body.extend(b"import os\n"), Code::Size),
        lie("a file without end", |fake| fake.file(INIT).endless = true, Code::Size),
        lie("a size beyond all", |fake| fake.entry(INIT)["size"] = json!(u64::MAX), Code::TooLarge),
        lie("a size below zero", |fake| fake.entry(INIT)["size"] = json!(-1), Code::Protocol),
        lie("a size that is a fraction", |fake| fake.entry(INIT)["size"] = json!(1.5), Code::Protocol),
        lie("a size that is text", |fake| fake.entry(INIT)["size"] = json!("6"), Code::Protocol),
        lie(
            "a page of the hotel",
            |fake| *fake.file(INIT) = Reply::new("<html>Login to the hotel network</html>"),
            Code::Size,
        ),
        lie(
            "a file of a million bytes in forty",
            |fake| header_of(fake, "content-encoding", "gzip"),
            Code::Protocol,
        ),
        lie("an unknown encoding", |fake| header_of(fake, "content-encoding", "zstd, br"), Code::Protocol),
        lie(
            "a compressed list",
            |fake| fake.refs = fake.refs.clone().with("content-encoding", "gzip"),
            Code::Protocol,
        ),
        lie(
            "a part that nobody asked for",
            |fake| {
                fake.file(INIT).status = Some(206);
                header_of(fake, "content-range", "bytes 5-9/10");
            },
            Code::Contradiction,
        ),
        lie(
            "a part of another whole",
            |fake| {
                fake.file(INIT).status = Some(206);
                header_of(fake, "content-range", "bytes 0-9/18446744073709551615");
            },
            Code::Contradiction,
        ),
        // Each has the very size that was listed.
        lie("not found, as a file", |fake| fake.file(INIT).status = Some(404), Code::RepoNotFound),
        lie("an error of the server, as a file", |fake| fake.file(INIT).status = Some(500), Code::Status),
        lie("a refusal, as a file", |fake| fake.file(INIT).status = Some(401), Code::NotAllowed),
        lie("a teapot, as a file", |fake| fake.file(INIT).status = Some(418), Code::Status),
        lie("no content, as a file", |fake| fake.file(INIT).status = Some(204), Code::Size),
        lie(
            "a file that is named as missing",
            |fake| *fake.file(INIT) = Reply::status(404, "").with("x-error-code", "EntryNotFound"),
            Code::FileNotFound,
        ),
    ]
}

/// A hub that contradicts itself.
fn contradictions() -> Vec<Lie> {
    vec![
        lie("another ETag", |fake| header_of(fake, "etag", &format!("\"{COMMIT}\"")), Code::Contradiction),
        lie("another linked ETag", |fake| header_of(fake, "x-linked-etag", COMMIT), Code::Contradiction),
        lie("another commit", |fake| header_of(fake, "x-repo-commit", &"f".repeat(40)), Code::Contradiction),
        lie("a file listed twice", |fake| fake.tree.push(fake.tree[0].clone()), Code::Listing),
        lie(
            "two names that differ by case",
            |fake| fake.put("build/torch-cpu/__INIT__.py", b""),
            Code::Listing,
        ),
        lie("a file that is a folder too", |fake| fake.put("build", b"a file"), Code::Listing),
        lie(
            "one content of two sizes",
            |fake| {
                let mut other = fake.entry(INIT).clone();
                other["path"] = json!("build/torch-cpu/other.py");
                other["size"] = json!(1);
                fake.tree.push(other);
            },
            Code::Listing,
        ),
        lie(
            "a page that is its own next page",
            |fake| fake.link = Some("<?cursor=1>; rel=\"next\"".into()),
            Code::Listing,
        ),
        lie(
            "a next page on another host",
            |fake| fake.link = Some("<http://127.0.0.1:1/evil>; rel=\"next\"".into()),
            Code::Redirect,
        ),
        lie(
            "a next page in a file",
            |fake| fake.link = Some("<file:///etc/passwd>; rel=\"next\"".into()),
            Code::Redirect,
        ),
    ]
}

/// Answers that are not the protocol.
fn answers() -> Vec<Lie> {
    let mut lies = Vec::new();
    for (body, code) in [
        ("<html></html>", Code::Protocol),
        ("{\"branches\": 1}", Code::Protocol),
        ("{\"branches\": [{\"name\": 1}]}", Code::Protocol),
        ("{\"error\": \"with status 200\"}", Code::Protocol),
        ("[]", Code::Protocol),
        ("", Code::Protocol),
        ("\u{feff}{}", Code::Protocol),
        ("{\"branches\": []}", Code::RevisionNotFound),
    ] {
        lies.push(lie(format!("the refs {body:?}"), move |fake| fake.refs = Reply::new(body), code));
    }
    lies.push(lie("refs without end", |fake| fake.refs.endless = true, Code::TooLarge));
    lies.push(lie(
        "refs a million deep",
        |fake| fake.refs = Reply::new("[".repeat(1_000_000)),
        Code::Protocol,
    ));
    let deep = |fake: &mut Fake| {
        let inner = format!("{}{}", "{\"a\":".repeat(50_000), "}".repeat(50_000));
        fake.refs = Reply::new(format!("{{\"branches\": [], \"tags\": {inner}}}"));
    };
    lies.push(lie("tags fifty thousand deep", deep, Code::Protocol));
    lies.push(lie(
        "a link among the files",
        |fake| fake.entry(INIT)["type"] = json!("symlink"),
        Code::Protocol,
    ));
    lies.push(lie(
        "a submodule among the files",
        |fake| fake.entry(INIT)["type"] = json!("commit"),
        Code::Protocol,
    ));
    lies.push(lie("no files", |fake| fake.tree.clear(), Code::NoVariant));
    lies
}

/// Redirects that lead astray.
fn redirects() -> Vec<Lie> {
    let myself = format!("/kernels/acme/toy-kernel/resolve/{COMMIT}/{INIT}");
    let targets = [
        myself,
        "file:///etc/passwd".into(),
        "ftp://127.0.0.1/x".into(),
        "http://".into(),
        "gopher:x".into(),
    ];
    let mut lies: Vec<_> = targets
        .into_iter()
        .map(|target| {
            let name = format!("a redirect to {target}");
            let tell =
                move |fake: &mut Fake| *fake.file(INIT) = Reply::status(302, "").with("location", &target);
            lie(name, tell, Code::Redirect)
        })
        .collect();
    lies.push(lie("a redirect to nowhere", |fake| *fake.file(INIT) = Reply::status(302, ""), Code::Redirect));
    lies.push(lie(
        "a redirect of the refs to themselves",
        |fake| fake.refs = Reply::status(307, "").with("location", "/api/kernels/acme/toy-kernel/refs"),
        Code::Redirect,
    ));
    lies
}

/// Packages that are not what they say, in a repository that is.
fn packages() -> Vec<Lie> {
    let module = RepoPath::parse("mosaic/toy-bf16.mlirbc").unwrap();
    let index = RepoPath::parse("index.json").unwrap();
    let escaping = move |fake: &mut Fake| {
        fake.rebuild(|files, _| {
            let text = String::from_utf8(files[&index].clone()).unwrap();
            let text = text.replace("mosaic/toy-bf16.mlirbc", "../../../etc/passwd");
            files.insert(index.clone(), text.into_bytes());
        });
    };
    vec![
        lie(
            "an entry point of somebody else's",
            |fake| fake.put(INIT, b"__all__ = []\nimport os\n"),
            Code::Digest,
        ),
        lie("a file that no digest knows", |fake| fake.put("build/torch-cpu/extra.py", b""), Code::Digest),
        lie("a file that is not there", |fake| fake.tree.retain(|entry| entry["path"] != INIT), Code::Digest),
        lie(
            "another module under the same name",
            move |fake| fake.rebuild(|files, _| files.get_mut(&module).unwrap()[5] ^= 1),
            Code::Module,
        ),
        lie("an index that leaves its variant", escaping, Code::Index),
        lie("another version", |fake| fake.rebuild(|_, metadata| metadata.version = 7), Code::Identity),
        lie(
            "the name of a module of Python's",
            |fake| fake.rebuild(|_, data| data.id = "json".into()),
            Code::Name,
        ),
        lie(
            "a metadata.json that is none",
            |fake| fake.put("build/torch-cpu/metadata.json", b"\xff"),
            Code::Metadata,
        ),
        lie("a signature that is none", |fake| fake.put("signatures/torch-cpu.json", b"{}"), Code::Signature),
        lie(
            "a signature of somebody's of something",
            |fake| {
                let key = "ed25519:PUAXw+hDiVqStwqnTRt+vJyYLM8uxJaMwM1V8Sr0Zgw=";
                let json = json!({"schema": 1, "key": key, "signature": "AAAA"});
                fake.put("signatures/torch-cpu.json", json.to_string().as_bytes());
            },
            Code::Signature,
        ),
    ]
}

#[test]
fn every_lie_is_refused_with_its_code_and_leaves_nothing() {
    let groups = [names(), ids(), bodies(), contradictions(), answers(), redirects(), packages()];
    let lies: Vec<_> = groups.into_iter().flatten().collect();
    assert!(lies.len() >= 90, "{} lies", lies.len());
    for Lie(name, tell, code) in lies {
        let error = defeated(|fake| tell(fake));
        assert_eq!(error.code(), code, "{name}: {error}");
        assert!(!error.render().contains("\u{1b}[2J"), "{name} reaches the terminal");
    }
}

#[test]
fn a_publisher_is_not_trusted_by_accident() {
    let mut cases = vec![
        Reply::status(404, "{\"trustedKernelPublisher\": true}"),
        Reply::status(401, "{\"trustedKernelPublisher\": true}"),
        Reply::new("{}"),
        Reply::new("{\"trustedKernelPublisher\": false}"),
    ];
    let broken =
        [Reply::new("{\"trustedKernelPublisher\": \"yes\"}"), Reply::new("true"), Reply::status(500, "")];
    cases.extend(broken);
    let dependency = KernelDependency { repo: repo(), pin: Pin::Version(Version(1)) };
    for (at, overview) in cases.into_iter().enumerate() {
        let mut fake = Fake::honest();
        fake.overview = overview;
        let hub = fake.start();
        let error = lock(&client(&hub.endpoint()), std::slice::from_ref(&dependency), &Allowed::default());
        let expected = if at < 4 { vec![Code::Untrusted] } else { vec![Code::Protocol, Code::Status] };
        assert!(expected.contains(&error.unwrap_err().code()), "case {at}");
    }
    let mut fake = Fake::honest();
    fake.overview = Reply::new("{\"trustedKernelPublisher\": true}");
    let hub = fake.start();
    assert_eq!(lock(&client(&hub.endpoint()), &[dependency], &Allowed::default()).unwrap().locks.len(), 1);
}

#[test]
fn a_token_is_in_no_message() {
    let failures: [fn(&mut Fake); 5] = [
        |fake| fake.refs = Reply::status(401, "no"),
        |fake| fake.refs = Reply::status(500, "no"),
        |fake| fake.refs = Reply::new("no"),
        |fake| fake.refs = Reply::status(302, "").with("location", "file:///x"),
        |fake| fake.file(INIT).body.truncate(3),
    ];
    for fail in failures {
        let mut fake = Fake::honest();
        fail(&mut fake);
        let hub = fake.start();
        let folder = tempfile::tempdir().unwrap();
        let variables = [
            ("HF_ENDPOINT", hub.endpoint()),
            ("HF_HOME", folder.path().display().to_string()),
            ("HF_TOKEN", "hf_secret".to_owned()),
            ("RUST_LOG", "trace".to_owned()),
        ];
        for args in [&["get", "acme/toy-kernel@v1"][..], &["get", "acme/toy-kernel@v1", "--json"]] {
            let ran = run(&variables, args);
            assert_eq!(ran.code, 1, "{ran:?}");
            assert!(!ran.err.contains("hf_secret") && !ran.out.contains("hf_secret"), "{ran:?}");
        }
        let seen = hub.seen.lock().unwrap();
        assert!(seen.iter().all(|h| h.contains_key(header::AUTHORIZATION)), "it was sent to the hub itself");
    }
}

#[test]
fn an_honest_hub_is_believed() {
    let Attack { folder, result } = attack(|_| {});
    assert_eq!(result.unwrap().variants.len(), 3);
    assert!(folder.path().join("cache/kernels--acme--toy-kernel/refs/v1").is_file());
}

#[test]
fn a_hub_that_is_busy_is_asked_again() {
    assert_eq!(attack(|fake| fake.busy = 1).result.unwrap().variants.len(), 3);
    assert_eq!(defeated(|fake| fake.busy = 1000).code(), Code::Status);
    let nobody =
        fetch(&client("http://127.0.0.1:1"), &Cache::new("/nonexistent"), &wanted(Version(1)), &mut Silent);
    assert_eq!(nobody.unwrap_err().code(), Code::Unreachable);
}

#[test]
fn redirects_keep_the_token_at_home() {
    let mut store = Fake::honest();
    let files = store.files.clone();
    // A store of large files has ETags of its own.
    store.files.values_mut().for_each(|reply| reply.headers.push(("etag", "\"store-7\"".into())));
    let store = store.start();
    let mut hub = Fake::honest();
    for path in files.keys() {
        let location = format!("{}/kernels/acme/toy-kernel/resolve/{COMMIT}/{path}", store.endpoint());
        hub.files.insert(path.clone(), Reply::status(302, "").with("location", location));
    }
    let hub = hub.start();

    let folder = tempfile::tempdir().unwrap();
    let token = Token::parse("hf_secret").unwrap();
    let client =
        Client::new(Endpoint::parse(&hub.endpoint()).unwrap(), Some(token), Patience::default()).unwrap();
    fetch(&client, &Cache::new(folder.path()), &wanted(Version(1)), &mut Silent).unwrap();
    let sent = |server: &Server| {
        server.seen.lock().unwrap().iter().filter(|h| h.contains_key(header::AUTHORIZATION)).count()
    };
    assert!(sent(&hub) > 3);
    assert!(!store.seen.lock().unwrap().is_empty());
    assert_eq!(sent(&store), 0, "the token went to another host");
}

#[test]
fn a_stranger_cannot_write_to_the_terminal() {
    let error =
        defeated(|fake| fake.refs = Reply::status(403, "{\"error\": \"\\u001b[2J\\u001b]0;owned\\u0007\"}"));
    assert_eq!(error.code(), Code::NotAllowed);
    assert!(!error.to_string().contains('\u{1b}') && error.to_string().contains("owned"), "{error}");
}
