//! A hub that lies: each lie has its code, and leaves nothing behind.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};

use axum::Router;
use axum::body::Body;
use axum::extract::Request;
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::{IntoResponse, Response};
use hub_cli::hub::{Cache, Endpoint, Fetched, Oid, Patience, RepoPath, Silent, Token, Version, fetch};
use hub_cli::package::{Digest, Metadata};
use hub_cli::{Code, Error, Result};
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio_util::io::ReaderStream;

use crate::support::{client, contents, toy_package, wanted};

const COMMIT: &str = "0123456789abcdef0123456789abcdef01234567";
const INIT: &str = "build/torch-cpu/__init__.py";

/// What a fake hub answers: JSON endpoints by path, files by path in the repository.
#[derive(Clone)]
struct Fake {
    refs: Reply,
    tree: Vec<Value>,
    files: BTreeMap<String, Reply>,
    /// The `Link` header of every listing.
    link: Option<String>,
    /// So many requests are answered with 503 first.
    busy: usize,
}

#[derive(Clone, Default)]
struct Reply {
    status: Option<u16>,
    headers: Vec<(&'static str, String)>,
    body: Vec<u8>,
    endless: bool,
}

impl Reply {
    fn new(body: impl Into<Vec<u8>>) -> Self {
        Self { body: body.into(), ..Self::default() }
    }

    fn status(status: u16, body: &str) -> Self {
        Self { status: Some(status), ..Self::new(body) }
    }

    fn with(mut self, name: &'static str, value: impl Into<String>) -> Self {
        self.headers.push((name, value.into()));
        self
    }
}

impl IntoResponse for Reply {
    fn into_response(self) -> Response {
        let body = match self.endless {
            true => Body::from_stream(ReaderStream::new(tokio::io::repeat(b' '))),
            // A stream, so that a wrong Content-Length is sent as it is.
            false => Body::from_stream(ReaderStream::new(std::io::Cursor::new(self.body))),
        };
        let mut response = Response::new(body);
        *response.status_mut() = StatusCode::from_u16(self.status.unwrap_or(200)).unwrap();
        for (name, value) in self.headers {
            response.headers_mut().insert(name, value.parse().unwrap());
        }
        response
    }
}

impl Fake {
    /// A hub that tells the truth about the toy package, version 1.
    fn honest() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let package = toy_package(folder.path(), 1, "one");
        let refs = json!({"branches": [{"name": "v1", "ref": "refs/heads/v1", "targetCommit": COMMIT}], "tags": [], "converts": []});
        let mut fake = Self {
            refs: Reply::new(refs.to_string()),
            tree: vec![],
            files: BTreeMap::new(),
            link: None,
            busy: 0,
        };
        for variant in &package.variants {
            for (path, file) in &variant.files {
                fake.put(&format!("build/{}/{path}", variant.name), &fs_err::read(file).unwrap());
            }
        }
        fake
    }

    /// Adds a file, or replaces it, with a listing that agrees.
    fn put(&mut self, path: &str, content: &[u8]) {
        self.tree.retain(|entry| entry["path"] != path);
        self.tree
            .push(json!({"type": "file", "path": path, "oid": Oid::of_blob(content), "size": content.len()}));
        self.files.insert(path.to_owned(), Reply::new(content));
    }

    fn entry(&mut self, path: &str) -> &mut Value {
        self.tree.iter_mut().find(|entry| entry["path"] == path).unwrap()
    }

    fn file(&mut self, path: &str) -> &mut Reply {
        self.files.get_mut(path).unwrap()
    }

    /// Changes one file of the CPU variant and makes its metadata and digest agree.
    fn rebuild(&mut self, change: impl Fn(&mut BTreeMap<RepoPath, Vec<u8>>, &mut Metadata)) {
        let prefix = "build/torch-cpu/";
        let mut files: BTreeMap<RepoPath, Vec<u8>> = self
            .files
            .iter()
            .filter_map(|(path, reply)| {
                Some((RepoPath::parse(path.strip_prefix(prefix)?).unwrap(), reply.body.clone()))
            })
            .collect();
        let metadata = RepoPath::parse("metadata.json").unwrap();
        let mut data = Metadata::parse(&files[&metadata], "metadata.json").unwrap();
        change(&mut files, &mut data);
        data.digest = Some(Digest::of(&files));
        files.insert(metadata, data.to_json().into_bytes());
        for (path, content) in files {
            self.put(&format!("{prefix}{path}"), &content);
        }
    }

    fn answer(&self, path: &str) -> Reply {
        if path.ends_with("/refs") {
            return self.refs.clone();
        }
        if path.contains("/tree/") {
            let reply = Reply::new(Value::from(self.tree.clone()).to_string());
            return match &self.link {
                Some(link) => reply.with("link", link),
                None => reply,
            };
        }
        let file = path.split_once(&format!("/resolve/{COMMIT}/")).and_then(|(_, file)| self.files.get(file));
        file.cloned().unwrap_or_else(|| Reply::status(404, "<html>nothing here</html>"))
    }

    fn start(self) -> Server {
        let seen = Arc::new(Mutex::new(Vec::new()));
        let (log, busy, fake) = (seen.clone(), Arc::new(Mutex::new(self.busy)), Arc::new(self));
        let handler = move |request: Request| {
            log.lock().unwrap().push(request.headers().clone());
            let mut busy = busy.lock().unwrap();
            let reply =
                if *busy > 0 { Reply::status(503, "busy") } else { fake.answer(request.uri().path()) };
            *busy = busy.saturating_sub(1);
            std::future::ready(reply)
        };
        Server { address: serve(Router::new().fallback(handler)), seen }
    }
}

struct Server {
    address: SocketAddr,
    seen: Arc<Mutex<Vec<HeaderMap>>>,
}

impl Server {
    fn endpoint(&self) -> String {
        format!("http://{}", self.address)
    }
}

/// Serves `app` until the test program ends.
fn serve(app: Router) -> SocketAddr {
    let (send, receive) = std::sync::mpsc::channel();
    std::thread::spawn(move || {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
            send.send(listener.local_addr().unwrap()).unwrap();
            axum::serve(listener, app).await.unwrap();
        });
    });
    receive.recv().unwrap()
}

/// A folder with a cache in it, fetched into from a fake hub.
struct Attack {
    folder: TempDir,
    result: Result<Fetched>,
}

fn attack(change: impl FnOnce(&mut Fake)) -> Attack {
    let mut fake = Fake::honest();
    change(&mut fake);
    let server = fake.start();
    let folder = tempfile::tempdir().unwrap();
    let cache = Cache::new(folder.path().join("cache"));
    let result = fetch(&client(&server.endpoint()), &cache, &wanted(Version(1)), &mut Silent);
    Attack { folder, result }
}

/// The error of an attack, after a look at what it left.
fn defeated(change: impl FnOnce(&mut Fake)) -> Error {
    let Attack { folder, result } = attack(change);
    let error = result.expect_err("the lie was believed");
    for (path, content) in contents(folder.path()) {
        let text = path.to_str().unwrap();
        let is_lock = text.starts_with("cache/.locks/") || text == "cache/CACHEDIR.TAG";
        // A content may stay if it is what its name says.
        let is_blob = path.file_name().and_then(|n| n.to_str()).is_some_and(|name| {
            text.starts_with("cache/kernels--acme--toy-kernel/blobs/")
                && Oid::of_blob(&content).as_str() == name
        });
        assert!(is_lock || is_blob, "{text} was left behind by: {error}");
    }
    error
}

#[test]
fn an_honest_hub_is_believed() {
    let Attack { folder, result } = attack(|_| {});
    assert_eq!(result.unwrap().variants.len(), 3);
    assert!(folder.path().join("cache/kernels--acme--toy-kernel/refs/v1").is_file());
}

#[test]
fn paths_that_leave_the_cache_are_refused() {
    for path in [
        "build/torch-cpu/../../../../../PWNED",
        "../PWNED",
        "/tmp/PWNED",
        "build/torch-cpu//x",
        "build\\..\\..\\PWNED",
        "C:/PWNED",
        ".git/hooks/post-checkout",
        "build/torch-cpu/\u{0}",
        "",
    ] {
        let error = defeated(|fake| fake.put(path, b"pwned"));
        assert_eq!(error.code(), Code::Path, "{path:?}: {error}");
    }
}

#[test]
fn ids_that_leave_the_cache_are_refused() {
    for id in ["../../../PWNED", "", "0123", "/tmp/PWNED"] {
        let oid = defeated(|fake| fake.entry(INIT)["oid"] = json!(id));
        assert_eq!(oid.code(), Code::ObjectId, "{id:?}: {oid}");
        let lfs =
            defeated(|fake| fake.entry(INIT)["lfs"] = json!({"oid": id, "size": 3, "pointerSize": 100}));
        assert_eq!(lfs.code(), Code::ObjectId, "{id:?}: {lfs}");
        let etag =
            defeated(|fake| *fake.file(INIT) = fake.files[INIT].clone().with("etag", format!("\"{id}\"")));
        assert_eq!(etag.code(), Code::ObjectId, "{id:?}: {etag}");
        let commit = defeated(|fake| {
            fake.refs = Reply::new(json!({"branches": [{"name": "v1", "targetCommit": id}]}).to_string())
        });
        assert_eq!(commit.code(), Code::Protocol, "{id:?}: {commit}");
    }
}

#[test]
fn files_that_are_not_what_was_listed_are_refused() {
    let cut = defeated(|fake| fake.file(INIT).body.truncate(10));
    assert_eq!(cut.code(), Code::Size, "{cut}");
    let announced = defeated(|fake| *fake.file(INIT) = fake.files[INIT].clone().with("content-length", "10"));
    assert_eq!(announced.code(), Code::Size, "{announced}");
    let broken = defeated(|fake| {
        let size = fake.files[INIT].body.len().to_string();
        fake.file(INIT).body.truncate(10);
        *fake.file(INIT) = fake.files[INIT].clone().with("content-length", size);
    });
    assert_eq!(broken.code(), Code::Unreachable, "{broken}");
    let flipped = defeated(|fake| fake.file(INIT).body[20] ^= 1);
    assert_eq!(flipped.code(), Code::Content, "{flipped}");
    let longer = defeated(|fake| fake.file(INIT).body.extend(b"import os\n"));
    assert_eq!(longer.code(), Code::Size, "{longer}");
    let endless = defeated(|fake| fake.file(INIT).endless = true);
    assert_eq!(endless.code(), Code::Size, "{endless}");
    let huge = defeated(|fake| fake.entry(INIT)["size"] = json!(u64::MAX));
    assert_eq!(huge.code(), Code::TooLarge, "{huge}");
    let page = defeated(|fake| *fake.file(INIT) = Reply::new("<html>Login to the hotel network</html>"));
    assert_eq!(page.code(), Code::Size, "{page}");
}

#[test]
fn error_pages_are_not_files() {
    for (status, code) in
        [(404, Code::RepoNotFound), (500, Code::Status), (401, Code::NotAllowed), (418, Code::Status)]
    {
        // The page has the very size that was listed.
        let error = defeated(|fake| fake.file(INIT).status = Some(status));
        assert_eq!(error.code(), code, "{status}: {error}");
    }
    let named =
        defeated(|fake| *fake.file(INIT) = Reply::status(404, "").with("x-error-code", "EntryNotFound"));
    assert_eq!(named.code(), Code::FileNotFound, "{named}");
}

#[test]
fn a_hub_that_contradicts_itself_is_refused() {
    let etag =
        defeated(|fake| *fake.file(INIT) = fake.files[INIT].clone().with("etag", format!("\"{COMMIT}\"")));
    assert_eq!(etag.code(), Code::Contradiction, "{etag}");
    let commit =
        defeated(|fake| *fake.file(INIT) = fake.files[INIT].clone().with("x-repo-commit", "f".repeat(40)));
    assert_eq!(commit.code(), Code::Contradiction, "{commit}");
    let twice = defeated(|fake| fake.tree.push(fake.tree[0].clone()));
    assert_eq!(twice.code(), Code::Listing, "{twice}");
    let both = defeated(|fake| fake.put("build", b"a file"));
    assert_eq!(both.code(), Code::Listing, "{both}");
    let sizes = defeated(|fake| {
        let mut other = fake.entry(INIT).clone();
        other["path"] = json!("build/torch-cpu/other.py");
        other["size"] = json!(1);
        fake.tree.push(other);
    });
    assert_eq!(sizes.code(), Code::Listing, "{sizes}");
}

#[test]
fn answers_that_are_not_the_protocol_are_refused() {
    for (body, code) in [
        ("<html></html>", Code::Protocol),
        ("{\"branches\": 1}", Code::Protocol),
        ("[]", Code::Protocol),
        ("", Code::Protocol),
        ("{\"branches\": []}", Code::RevisionNotFound),
    ] {
        let error = defeated(|fake| fake.refs = Reply::new(body));
        assert_eq!(error.code(), code, "{body:?}: {error}");
    }
    let endless = defeated(|fake| fake.refs.endless = true);
    assert_eq!(endless.code(), Code::TooLarge, "{endless}");
    let deep = defeated(|fake| fake.refs = Reply::new("[".repeat(1_000_000)));
    assert_eq!(deep.code(), Code::Protocol, "{deep}");
    let link = defeated(|fake| fake.entry(INIT)["type"] = json!("symlink"));
    assert_eq!(link.code(), Code::Protocol, "{link}");
    let empty = defeated(|fake| fake.tree.clear());
    assert_eq!(empty.code(), Code::NoVariant, "{empty}");
}

#[test]
fn listings_that_do_not_end_are_refused() {
    // The next page is the same page: its first file comes twice.
    let loops = defeated(|fake| fake.link = Some("<?cursor=1>; rel=\"next\"".into()));
    assert_eq!(loops.code(), Code::Listing, "{loops}");
    let elsewhere = defeated(|fake| fake.link = Some("<http://127.0.0.1:1/evil>; rel=\"next\"".into()));
    assert_eq!(elsewhere.code(), Code::Redirect, "{elsewhere}");
}

#[test]
fn packages_that_are_not_what_they_say_are_refused() {
    let changed = defeated(|fake| fake.put(INIT, b"__all__ = []\nimport os\n"));
    assert_eq!(changed.code(), Code::Digest, "{changed}");
    let added = defeated(|fake| fake.put("build/torch-cpu/extra.py", b""));
    assert_eq!(added.code(), Code::Digest, "{added}");
    let removed = defeated(|fake| fake.tree.retain(|entry| entry["path"] != INIT));
    assert_eq!(removed.code(), Code::Digest, "{removed}");
    let module = RepoPath::parse("mosaic/toy-bf16.mlirbc").unwrap();
    let swapped = defeated(|fake| fake.rebuild(|files, _| files.get_mut(&module).unwrap()[5] ^= 1));
    assert_eq!(swapped.code(), Code::Module, "{swapped}");
    let index = RepoPath::parse("index.json").unwrap();
    let escaping = defeated(|fake| {
        fake.rebuild(|files, _| {
            let text = String::from_utf8(files[&index].clone())
                .unwrap()
                .replace("mosaic/toy-bf16.mlirbc", "../../../etc/passwd");
            files.insert(index.clone(), text.into_bytes());
        });
    });
    assert_eq!(escaping.code(), Code::Index, "{escaping}");
    let version = defeated(|fake| fake.rebuild(|_, metadata| metadata.version = 7));
    assert_eq!(version.code(), Code::Identity, "{version}");
    let id = defeated(|fake| fake.rebuild(|_, metadata| metadata.id = "json".into()));
    assert_eq!(id.code(), Code::Name, "{id}");
    let garbage = defeated(|fake| fake.put("build/torch-cpu/metadata.json", b"\xff"));
    assert_eq!(garbage.code(), Code::Metadata, "{garbage}");
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
    let client = hub_cli::hub::Client::new(
        Endpoint::parse(&hub.endpoint()).unwrap(),
        Some(token),
        Patience::default(),
    )
    .unwrap();
    fetch(&client, &Cache::new(folder.path()), &wanted(Version(1)), &mut Silent).unwrap();
    let sent = |server: &Server| {
        server.seen.lock().unwrap().iter().filter(|h| h.contains_key(header::AUTHORIZATION)).count()
    };
    assert!(sent(&hub) > 3);
    assert!(!store.seen.lock().unwrap().is_empty());
    assert_eq!(sent(&store), 0, "the token went to another host");
}

#[test]
fn redirects_that_lead_astray_are_refused() {
    let myself = format!("/kernels/acme/toy-kernel/resolve/{COMMIT}/{INIT}");
    for location in [myself.as_str(), "file:///etc/passwd", "ftp://127.0.0.1/x", "http://"] {
        let error = defeated(|fake| *fake.file(INIT) = Reply::status(302, "").with("location", location));
        assert_eq!(error.code(), Code::Redirect, "{location}: {error}");
    }
    let nowhere = defeated(|fake| *fake.file(INIT) = Reply::status(302, ""));
    assert_eq!(nowhere.code(), Code::Redirect, "{nowhere}");
}

#[test]
fn a_stranger_cannot_write_to_the_terminal() {
    let error =
        defeated(|fake| fake.refs = Reply::status(403, "{\"error\": \"\\u001b[2J\\u001b]0;owned\\u0007\"}"));
    assert_eq!(error.code(), Code::NotAllowed);
    assert!(!error.to_string().contains('\u{1b}') && error.to_string().contains("owned"), "{error}");
}
