//! What the tests share: a package made from a toy op, a hub, clients, and the program itself.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Duration;

use hub_cli::hub::{
    Cache, Client, CommitId, Endpoint, Fetched, Patience, Published, RepoId, Silent, Version, Wanted, fetch,
    publish,
};
use hub_cli::package::build::build;
use hub_cli::package::{LocalPackage, OpSource, PackagedOp};
use hub_cli::server::{Config, Hub};
use hub_cli::{Result, Revision};
use kernel_ir::diag::{Diagnostic, Report};
use kernel_ir::mosaic::call::Index;
use sha2::{Digest, Sha256};
use tempfile::TempDir;

/// The entry point of the toy package, which says of itself which content it has.
pub(crate) const INIT: &str =
    "\"\"\"A toy.\"\"\"\n\n__all__ = [\"greet\"]\n\n\ndef greet():\n    return \"CONTENT\"\n";

/// An op source with one op, `toy`, whose module is a few bytes that no compiler made.
pub(crate) struct Toys;

impl OpSource for Toys {
    fn op(&self, name: &str) -> Option<std::result::Result<PackagedOp, Report>> {
        match name {
            "toy" => Some(Ok(toy())),
            "broken" => {
                Some(Err(Diagnostic::error("K0110", "a stored tile does not fit the window `out`").into()))
            }
            _ => None,
        }
    }

    fn names(&self) -> Vec<String> {
        vec!["toy".into(), "broken".into()]
    }
}

const MODULE: &[u8] = b"ML\xefR toy module";

/// The toy op: `x[m, k] -> [m, k]`, for bfloat16 with k a multiple of 128.
fn toy() -> PackagedOp {
    packaged(&toy_index(), "toy")
}

/// The index.json of a package with the toy op alone.
pub(crate) fn toy_index() -> serde_json::Value {
    let body = MODULE;
    serde_json::json!({
        "schema": 1, "mosaic_version": 15, "ops": {"toy": {
            "doc": "Copies.", "dims": ["m", "k"],
            "arguments": [{"name": "x", "dtype": "T", "shape": ["m", "k"]}],
            "results": [{"name": "out", "dtype": "T", "shape": ["m", "k"]}],
            "modules": [{
                "file": "mosaic/toy-bf16.mlirbc", "sha256": hex::encode(Sha256::digest(body)), "bytes": body.len(),
                "kernel": "toy", "dtypes": {"T": "bfloat16"}, "tile": {"bm": 8},
                "demands": [["==", ["mod", "k", 128], 0]],
                "operands": [{"expr": ["ceildiv", "m", 8]}, {"argument": "x"}], "results": ["out"],
                "vmem_bytes": 4096,
                "custom_call_config": {"serialization_format": 1}, "backend_config": {}, "generations": ["v5e"],
            }],
        }},
    })
}

fn packaged(index: &serde_json::Value, op: &str) -> PackagedOp {
    let index = Index::parse(index.to_string().as_bytes()).unwrap();
    let interface = index.op(op).unwrap().clone();
    let files = interface.modules.iter().map(|module| (module.file.clone(), MODULE.to_vec())).collect();
    PackagedOp { interface, files }
}

/// An op source with the ops of an index.json, all of whose modules have the toy's bytes.
pub(crate) struct Ops(pub(crate) serde_json::Value);

impl OpSource for Ops {
    fn op(&self, name: &str) -> Option<std::result::Result<PackagedOp, Report>> {
        self.names().contains(&name.to_owned()).then(|| Ok(packaged(&self.0, name)))
    }

    fn names(&self) -> Vec<String> {
        self.0["ops"].as_object().unwrap().keys().cloned().collect()
    }
}

/// Writes the source of the toy package into `folder`.
pub(crate) fn write_source(folder: &Path, version: u32, content: &str) {
    fs_err::create_dir_all(folder.join("python")).unwrap();
    let toml = format!(
        "[general]\nname = \"toy-kernel\"\nversion = {version}\nedition = 5\nlicense = \"apache-2.0\"\n\
         backends = [\"tpu\", \"cpu\"]\n[torch-noarch]\n[tessera]\nops = [\"toy\"]\npython = \"python\"\n"
    );
    fs_err::write(folder.join("build.toml"), toml).unwrap();
    fs_err::write(folder.join("python/__init__.py"), INIT.replace("CONTENT", content)).unwrap();
    fs_err::write(folder.join("CARD.md"), "---\nlibrary_name: kernels\n---\n# toy-kernel\n").unwrap();
}

/// The toy package, built.
pub(crate) fn toy_package(folder: &Path, version: u32, content: &str) -> LocalPackage {
    write_source(folder, version, content);
    build(folder, None, &Toys, None).unwrap().package
}

pub(crate) fn repo() -> RepoId {
    "acme/toy-kernel".parse().unwrap()
}

/// A client that does not wait long.
pub(crate) fn client(endpoint: &str) -> Client {
    let patience = Patience {
        attempts: 2,
        pause: Duration::from_millis(1),
        connect: Duration::from_secs(5),
        read: Duration::from_secs(5),
    };
    Client::new(Endpoint::parse(endpoint).unwrap(), None, patience).unwrap()
}

/// A hub in a folder of its own, and a cache beside it.
pub(crate) struct Bench {
    pub(crate) folder: TempDir,
    pub(crate) hub: Hub,
}

impl Bench {
    pub(crate) fn new() -> Self {
        Self::with(|_| {})
    }

    pub(crate) fn with(change: impl FnOnce(&mut Config)) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let mut config = Config::new(folder.path().join("hub"));
        change(&mut config);
        Self { hub: Hub::start(config).unwrap(), folder }
    }

    pub(crate) fn client(&self) -> Client {
        client(&self.hub.endpoint())
    }

    pub(crate) fn cache_folder(&self) -> PathBuf {
        self.folder.path().join("cache")
    }

    pub(crate) fn cache(&self) -> Cache {
        Cache::new(self.cache_folder())
    }

    /// Builds and publishes the toy package.
    pub(crate) fn publish(&self, version: u32, content: &str) -> Result<Published> {
        let source = tempfile::tempdir_in(&self.folder).unwrap();
        let package = toy_package(source.path(), version, content);
        publish(&self.client(), None, &package, &repo(), Version(version), false)
    }

    pub(crate) fn get(&self, revision: impl Into<Revision>) -> Result<Fetched> {
        fetch(&self.client(), &self.cache(), &wanted(revision), &mut Silent)
    }

    /// Publishes version 1 and gets it.
    pub(crate) fn get_published(&self) -> Result<Fetched> {
        self.publish(1, "one")?;
        self.get(Version(1))
    }

    /// `kernels-cli` with this hub and this cache, and nothing of the caller's environment about hubs.
    pub(crate) fn cli(&self, args: &[&str]) -> Ran {
        run(
            &[
                ("HF_ENDPOINT", self.hub.endpoint()),
                ("HF_HOME", self.folder.path().join("home").display().to_string()),
            ],
            args,
        )
    }
}

pub(crate) fn wanted(revision: impl Into<Revision>) -> Wanted {
    Wanted { repo: repo(), revision: revision.into(), variants: vec![] }
}

/// What the program printed, and how it ended.
#[derive(Debug)]
pub(crate) struct Ran {
    pub(crate) code: i32,
    pub(crate) out: String,
    pub(crate) err: String,
}

impl Ran {
    pub(crate) fn json(&self) -> serde_json::Value {
        serde_json::from_str(&self.out).unwrap_or_else(|e| panic!("{e} in {self:?}"))
    }
}

/// Runs `kernels-cli` with these variables on top of an environment without any that speak of hubs.
pub(crate) fn run(variables: &[(&str, String)], args: &[&str]) -> Ran {
    let mut command = std::process::Command::new(env!("CARGO_BIN_EXE_kernels-cli"));
    for (name, _) in std::env::vars() {
        if name.starts_with("HF_")
            || name.starts_with("KERNELS_")
            || name.contains("PROXY")
            || name.contains("proxy")
        {
            command.env_remove(name);
        }
    }
    let output = command.envs(variables.iter().map(|(k, v)| (k, v))).args(args).output().unwrap();
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
    Ran { code: output.status.code().unwrap(), out: text(output.stdout), err: text(output.stderr) }
}

/// Every file and link below `folder`, with its content or target.
pub(crate) fn contents(folder: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let mut found = BTreeMap::new();
    let mut pending = vec![folder.to_path_buf()];
    while let Some(at) = pending.pop() {
        let Ok(entries) = fs_err::read_dir(&at) else { continue };
        for entry in entries.map(|e| e.unwrap()) {
            let (path, kind) = (entry.path(), entry.file_type().unwrap());
            let key = path.strip_prefix(folder).unwrap().to_path_buf();
            if kind.is_dir() {
                pending.push(path);
            } else if kind.is_symlink() {
                found.insert(key, fs_err::read_link(&path).unwrap().into_os_string().into_encoded_bytes());
            } else {
                found.insert(key, fs_err::read(&path).unwrap());
            }
        }
    }
    found
}

/// A commit id that exists nowhere.
pub(crate) fn no_commit() -> CommitId {
    "0123456789abcdef0123456789abcdef01234567".parse().unwrap()
}
