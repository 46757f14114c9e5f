//! A hub that answers whatever a test wants, and what fetching from it comes to.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, OnceLock};

use axum::Router;
use axum::body::Body;
use axum::extract::Request;
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse, Response};
use hub_cli::hub::{Cache, Fetched, Oid, RepoPath, Silent, Version, fetch};
use hub_cli::package::{Digest, Metadata};
use hub_cli::{Error, Result};
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio_util::io::ReaderStream;

use crate::support::{client, contents, toy_package, wanted};

pub(crate) const COMMIT: &str = "0123456789abcdef0123456789abcdef01234567";
pub(crate) const INIT: &str = "build/torch-cpu/__init__.py";

/// What a fake hub answers: JSON endpoints by path, files by path in the repository.
#[derive(Clone)]
pub(crate) struct Fake {
    pub(crate) refs: Reply,
    pub(crate) tree: Vec<Value>,
    pub(crate) files: BTreeMap<String, Reply>,
    /// The `Link` header of every listing.
    pub(crate) link: Option<String>,
    /// So many requests are answered with 503 first.
    pub(crate) busy: usize,
    /// What the hub says of owners.
    pub(crate) overview: Reply,
}

#[derive(Clone, Default)]
pub(crate) struct Reply {
    pub(crate) status: Option<u16>,
    pub(crate) headers: Vec<(&'static str, String)>,
    pub(crate) body: Vec<u8>,
    pub(crate) endless: bool,
}

impl Reply {
    pub(crate) fn new(body: impl Into<Vec<u8>>) -> Self {
        Self { body: body.into(), ..Self::default() }
    }

    pub(crate) fn status(status: u16, body: &str) -> Self {
        Self { status: Some(status), ..Self::new(body) }
    }

    pub(crate) fn with(mut self, name: &'static str, value: impl Into<String>) -> Self {
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
    pub(crate) fn honest() -> Self {
        static HONEST: OnceLock<Fake> = OnceLock::new();
        HONEST.get_or_init(Self::build).clone()
    }

    fn build() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let package = toy_package(folder.path(), 1, "one");
        let refs = json!({"branches": [{"name": "v1", "ref": "refs/heads/v1", "targetCommit": COMMIT}], "tags": [], "converts": []});
        let mut fake = Self {
            refs: Reply::new(refs.to_string()),
            tree: vec![],
            files: BTreeMap::new(),
            link: None,
            busy: 0,
            overview: Reply::status(404, ""),
        };
        for variant in &package.variants {
            for (path, file) in &variant.files {
                fake.put(&format!("build/{}/{path}", variant.name), &fs_err::read(file).unwrap());
            }
        }
        fake
    }

    /// Adds a file, or replaces it, with a listing that agrees.
    pub(crate) fn put(&mut self, path: &str, content: &[u8]) {
        self.tree.retain(|entry| entry["path"] != path);
        self.tree
            .push(json!({"type": "file", "path": path, "oid": Oid::of_blob(content), "size": content.len()}));
        self.files.insert(path.to_owned(), Reply::new(content));
    }

    pub(crate) fn entry(&mut self, path: &str) -> &mut Value {
        self.tree.iter_mut().find(|entry| entry["path"] == path).unwrap()
    }

    pub(crate) fn file(&mut self, path: &str) -> &mut Reply {
        self.files.get_mut(path).unwrap()
    }

    /// Changes one file of the CPU variant and makes its metadata and digest agree.
    pub(crate) fn rebuild(&mut self, change: impl Fn(&mut BTreeMap<RepoPath, Vec<u8>>, &mut Metadata)) {
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
        if path.starts_with("/api/organizations/") {
            return self.overview.clone();
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

    pub(crate) fn start(self) -> Server {
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

pub(crate) struct Server {
    address: SocketAddr,
    pub(crate) seen: Arc<Mutex<Vec<HeaderMap>>>,
}

impl Server {
    pub(crate) fn endpoint(&self) -> String {
        format!("http://{}", self.address)
    }
}

/// Serves `app` until the test program ends.
pub(crate) fn serve(app: Router) -> SocketAddr {
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
pub(crate) struct Attack {
    pub(crate) folder: TempDir,
    pub(crate) result: Result<Fetched>,
}

pub(crate) fn attack(change: impl FnOnce(&mut Fake)) -> Attack {
    let mut fake = Fake::honest();
    change(&mut fake);
    let server = fake.start();
    let folder = tempfile::tempdir().unwrap();
    let cache = Cache::new(folder.path().join("cache"));
    let result = fetch(&client(&server.endpoint()), &cache, &wanted(Version(1)), &mut Silent);
    Attack { folder, result }
}

/// The error of an attack, after a look at what it left.
pub(crate) fn defeated(change: impl FnOnce(&mut Fake)) -> Error {
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
