//! Many clients on one hub: 64 of them publish thousands of versions and read each back at once. Prints one line of JSON.

#![allow(
    clippy::unwrap_used,
    clippy::print_stdout,
    reason = "a benchmark fails where it unwraps, and prints its result"
)]

use std::collections::BTreeMap;
use std::io::BufRead;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Instant;

use hub_cli::hub::{
    Cache, Client, Endpoint, Patience, RepoId, RepoPath, Silent, Version, Wanted, fetch, publish,
};
use hub_cli::package::{Backend, Digest, LocalPackage, Metadata};

const CLIENTS: usize = 64;
/// So many that memory which grows with what was done shows beside memory that is merely warm.
const VERSIONS: usize = 4000;
/// How often memory is looked at on the way.
const SAMPLES: usize = 8;
/// So many clients share one repository; each of the others has its own.
const SHARING: usize = 16;

/// A hub in a process of its own.
struct Server(Child);

impl Drop for Server {
    fn drop(&mut self) {
        // It holds nothing that this benchmark wants to keep.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

impl Server {
    fn start(root: &Path) -> (Self, String) {
        let mut child = Command::new(env!("CARGO_BIN_EXE_kernels-cli"))
            .args(["serve", "--port", "0", "--json", "--root"])
            .arg(root)
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let mut line = String::new();
        std::io::BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
        let ready: serde_json::Value = serde_json::from_str(&line).unwrap();
        (Self(child), ready["endpoint"].as_str().unwrap().to_owned())
    }

    /// Resident memory in MB.
    fn memory(&self) -> f64 {
        let status = fs_err::read_to_string(format!("/proc/{}/status", self.0.id())).unwrap_or_default();
        let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
        line.and_then(|kb| kb.trim().trim_end_matches(" kB").parse::<f64>().ok()).unwrap_or(0.0) / 1e3
    }
}

/// A package of a few small files that differ from version to version.
fn package(folder: &Path, version: u32) -> LocalPackage {
    let variant = folder.join("torch-universal");
    fs_err::create_dir_all(&variant).unwrap();
    let mut files: BTreeMap<RepoPath, Vec<u8>> = BTreeMap::new();
    files.insert(
        RepoPath::parse("__init__.py").unwrap(),
        format!("__all__ = []\nVERSION = {version}\n").into(),
    );
    for part in 0..4 {
        let text = format!("# {version} {part}\n{}", "x = 1\n".repeat(500));
        files.insert(RepoPath::parse(&format!("_part{part}.py")).unwrap(), text.into());
    }
    let metadata = Metadata {
        name: "load".into(),
        id: format!("_load_cpu_{version}"),
        version,
        license: "apache-2.0".into(),
        upstream: None,
        source: None,
        python_depends: vec![],
        kernel_depends: vec![],
        backend: Backend { kind: "cpu".into() },
        provenance: None,
        digest: Some(Digest::of(&files)),
    };
    files.insert(RepoPath::parse("metadata.json").unwrap(), metadata.to_json().into());
    for (path, content) in &files {
        fs_err::write(path.under(&variant), content).unwrap();
    }
    LocalPackage::open(folder).unwrap()
}

fn main() {
    let folder = tempfile::tempdir().unwrap();
    let (server, endpoint) = Server::start(&folder.path().join("hub"));
    let (next, errors) = (AtomicUsize::new(0), AtomicUsize::new(0));
    let mut memory = vec![];
    let start = Instant::now();
    std::thread::scope(|scope| {
        for client_at in 0..CLIENTS {
            let (endpoint, folder, next, errors) = (&endpoint, folder.path(), &next, &errors);
            scope.spawn(move || {
                let patience = Patience { read: std::time::Duration::from_secs(300), ..Patience::default() };
                let client = Client::new(Endpoint::parse(endpoint).unwrap(), None, patience).unwrap();
                let own = if client_at < SHARING { "shared".to_owned() } else { format!("own-{client_at}") };
                let repo = RepoId::new("load", &own).unwrap();
                let cache = Cache::new(folder.join(format!("cache-{client_at}")));
                loop {
                    let at = next.fetch_add(1, Ordering::SeqCst);
                    if at >= VERSIONS {
                        return;
                    }
                    let version = at as u32 + 1;
                    let source = folder.join(format!("source-{at}"));
                    let package = package(&source, version);
                    let done = publish(&client, None, &package, &repo, Version(version), false).and_then(
                        |published| {
                            let wanted = Wanted {
                                repo: repo.clone(),
                                revision: Version(version).into(),
                                variants: vec![],
                            };
                            let fetched = fetch(&client, &cache, &wanted, &mut Silent)?;
                            assert_eq!(fetched.commit, published.commit);
                            Ok(())
                        },
                    );
                    if let Err(error) = done {
                        errors.fetch_add(1, Ordering::SeqCst);
                        println!("{{\"error\": {:?}}}", error.to_string());
                    }
                    let _ = fs_err::remove_dir_all(&source);
                }
            });
        }
        for sample in 1..=SAMPLES {
            while next.load(Ordering::SeqCst) < VERSIONS * sample / SAMPLES {
                std::thread::sleep(std::time::Duration::from_millis(20));
            }
            memory.push(server.memory());
        }
    });
    let seconds = start.elapsed().as_secs_f64();
    let result = serde_json::json!({
        "clients": CLIENTS, "versions": VERSIONS, "errors": errors.load(Ordering::SeqCst), "seconds": seconds,
        "server_mb": memory,
    });
    println!("{result}");
}
