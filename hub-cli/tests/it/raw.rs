//! Requests as bytes and JSON, without a client's good manners, and the program as a server.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use hub_cli::hub::{CommitId, Revision};
use reqwest::Method;
use reqwest::blocking::{Client, Response};
use serde_json::{Value, json};

use crate::support::{Bench, repo};

/// Where the repository of the tests is.
pub(crate) const REPO: &str = "/api/kernels/acme/toy-kernel";

impl Bench {
    pub(crate) fn send(
        &self,
        method: Method,
        path: &str,
        body: impl Into<reqwest::blocking::Body>,
    ) -> Response {
        self.send_as(&[], method, path, body)
    }

    pub(crate) fn send_as(
        &self,
        headers: &[(&str, &str)],
        method: Method,
        path: &str,
        body: impl Into<reqwest::blocking::Body>,
    ) -> Response {
        let mut request = Client::new().request(method, format!("{}{path}", self.hub.endpoint())).body(body);
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        request.send().unwrap()
    }

    pub(crate) fn post(&self, path: &str, body: Value) -> Response {
        self.send(Method::POST, path, body.to_string())
    }

    pub(crate) fn create(&self) {
        let created = self.post(
            "/api/repos/create",
            json!({"type": "kernel", "organization": "acme", "name": "toy-kernel"}),
        );
        assert_eq!(created.status(), 200);
    }

    /// Commits these lines to `main`.
    pub(crate) fn commit(&self, lines: &[Value]) -> Response {
        let body: String = lines.iter().map(|line| format!("{line}\n")).collect();
        self.send(Method::POST, &format!("{REPO}/commit/main"), body)
    }

    pub(crate) fn head(&self) -> CommitId {
        self.client().resolve(&repo(), &Revision::Branch("main".into())).unwrap()
    }
}

pub(crate) fn title(parent: Option<&str>) -> Value {
    let mut value = json!({"summary": "a commit"});
    if let Some(parent) = parent {
        value["parentCommit"] = json!(parent);
    }
    json!({"key": "header", "value": value})
}

pub(crate) fn file(path: &str, content: &[u8]) -> Value {
    json!({"key": "file", "value": {"path": path, "content": STANDARD.encode(content), "encoding": "base64"}})
}

/// The code that a refusal carries.
pub(crate) fn code(response: Response) -> (u16, String) {
    let status = response.status().as_u16();
    assert!(
        response.headers().contains_key("x-error-code") && response.headers().contains_key("x-error-message")
    );
    let body: Value = response.json().unwrap();
    (status, body["code"].as_str().unwrap().to_owned())
}

/// What a hub answers to these bytes on a connection of their own; empty if it hangs up.
pub(crate) fn answer_to(endpoint: &str, request: &[u8]) -> String {
    let mut stream = TcpStream::connect(endpoint.trim_start_matches("http://")).unwrap();
    stream.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
    // The hub may hang up before all is sent.
    let _ = stream.write_all(request);
    let mut answer = Vec::new();
    let _ = stream.read_to_end(&mut answer);
    String::from_utf8_lossy(&answer).into_owned()
}

/// The program as a server; it is killed when dropped.
pub(crate) struct Process {
    pub(crate) child: Child,
    pub(crate) endpoint: String,
}

impl Process {
    /// Starts it on a free port; `flags` go to `serve`.
    pub(crate) fn start(root: &Path, flags: &[&str]) -> Self {
        Self::start_at(root, 0, flags)
    }

    pub(crate) fn start_at(root: &Path, port: u16, flags: &[&str]) -> Self {
        let logs = flags.contains(&"--log");
        let mut child = Command::new(env!("CARGO_BIN_EXE_kernels-cli"))
            .args(["serve", "--json", "--port", &port.to_string(), "--root"])
            .arg(root)
            .args(flags)
            .args(if logs { &[][..] } else { &["--log", "off"] })
            .stdout(Stdio::piped())
            .stderr(if logs { Stdio::piped() } else { Stdio::null() })
            .spawn()
            .unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
        let ready: Value = serde_json::from_str(&line).unwrap();
        Self { child, endpoint: ready["endpoint"].as_str().unwrap().to_owned() }
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }
}
