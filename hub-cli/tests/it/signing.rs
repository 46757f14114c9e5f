//! Who vouches for a package: keys, signatures, what a user trusts, and what `verify` says.

use std::path::{Path, PathBuf};

use hub_cli::Result;
use serde_json::Value;

use crate::support::{Bench, Ran, contents, run, toy_package};

/// A hub, a package, and a user with keys.
pub(crate) struct Signed {
    bench: Bench,
    pub(crate) source: PathBuf,
}

impl Signed {
    pub(crate) fn new() -> Self {
        let bench = Bench::new();
        let source = bench.folder.path().join("source");
        toy_package(&source, 1, "one");
        Self { bench, source }
    }

    pub(crate) fn path(&self, name: &str) -> String {
        self.bench.folder.path().join(name).to_str().unwrap().to_owned()
    }

    pub(crate) fn cli(&self, args: &[&str]) -> Ran {
        run(
            &[
                ("HF_ENDPOINT", self.bench.hub.endpoint()),
                ("HF_HOME", self.path("home")),
                ("TESSERA_CONFIG", self.path("config")),
            ],
            args,
        )
    }

    pub(crate) fn done(&self, args: &[&str]) -> Ran {
        let ran = self.cli(args);
        assert_eq!(ran.code, 0, "{ran:?}");
        ran
    }

    pub(crate) fn refused(&self, args: &[&str], code: &str, words: &str) {
        let ran = self.cli(args);
        assert_eq!(ran.code, 1, "{ran:?}");
        assert!(ran.err.contains(&format!("error[{code}]")) && ran.err.contains(words), "{words}: {ran:?}");
    }

    /// A new key; its file and its public half.
    fn key(&self, name: &str) -> (String, String) {
        let file = self.path(name);
        let public = self.done(&["keygen", &file]).out.trim().to_owned();
        assert_eq!(self.done(&["keygen", &file, "--show"]).out.trim(), public);
        (file, public)
    }

    pub(crate) fn publish(&self, more: &[&str]) -> Ran {
        let fixed = ["publish", self.source.to_str().unwrap(), "acme/toy-kernel", "--version", "1"];
        self.cli(&[&fixed, more].concat())
    }
}

pub(crate) const KERNEL: &str = "acme/toy-kernel@v1";

#[test]
fn a_trusted_owner_must_sign() -> Result<()> {
    let user = Signed::new();
    let (file, public) = user.key("acme.key");
    let (_, other) = user.key("other.key");
    assert_eq!(user.publish(&[]).code, 0);
    user.done(&["get", KERNEL]);

    // From now on acme's packages must be signed.
    user.done(&["trust", "add", "acme", &public]);
    user.refused(&["get", KERNEL], "H0311", "is not signed, and you trust keys of acme");
    user.refused(&["get", KERNEL, "--offline"], "H0311", "is not signed");
    user.refused(&["verify", KERNEL], "H0311", "is not signed");
    let unsigned = user.publish(&["--dry-run"]);
    assert!(unsigned.err.contains("error[H0311]"), "nor is one published: {unsigned:?}");

    assert_eq!(user.publish(&["--sign", &file]).code, 0);
    let again = user.publish(&["--sign", &file, "--json"]).json();
    assert_eq!(again["uploaded"], 0, "the same signature of the same bytes");
    user.done(&["get", KERNEL, "--variant", "torch-cpu"]);
    let said = user.done(&["verify", KERNEL, "--require-signature", "--json"]).json();
    assert_eq!(said["variants"][0]["signature"], serde_json::json!({"key": public, "trusted": true}));

    // A key of somebody else's.
    user.done(&["trust", "rm", "acme"]);
    user.done(&["trust", "add", "acme", &other]);
    user.refused(&["get", KERNEL], "H0311", "which you do not trust for acme");
    user.done(&["trust", "add", "acme", &public]);
    user.done(&["get", KERNEL]);
    assert_eq!(user.done(&["trust", "ls"]).out.lines().count(), 2);
    user.done(&["trust", "rm", "acme", &public]);
    user.refused(&["trust", "rm", "acme", &public], "H0113", "no such key");
    user.refused(&["trust", "add", "acme", "ed25519:AAAA"], "H0113", "");
    Ok(())
}

#[test]
fn a_signature_of_other_bytes_is_refused_by_all() {
    let user = Signed::new();
    let (file, public) = user.key("acme.key");
    let source = user.source.to_str().unwrap();
    user.done(&["sign", source, "--key", &file]);
    let text = user.done(&["verify", source]).out;
    assert!(text.contains(&format!("valid, by {public}, which you do not know")), "{text}");
    user.refused(&["verify", source, "--require-signature"], "H0311", &public);
    assert_eq!(user.publish(&[]).code, 0);
    user.done(&["get", KERNEL]);

    // Changed after it was signed.
    let metadata = user.source.join("build/torch-cpu/metadata.json");
    let text = fs_err::read_to_string(&metadata).unwrap();
    fs_err::write(&metadata, text.replace("apache-2.0", "mit")).unwrap();
    let refused = user.publish(&[]);
    assert!(
        refused.err.contains("error[H0311]") && refused.err.contains("`kernels-cli sign`"),
        "{refused:?}"
    );
    for (damage, words) in [("{", "is not a signature"), ("{\"schema\": 2}", "is not a signature")] {
        fs_err::write(user.source.join("build/signatures/torch-cpu.json"), damage).unwrap();
        user.refused(&["verify", source], "H0311", words);
    }
    // Built again it is not signed, and a package like any other; the old signatures go from the hub.
    toy_package(&user.source, 1, "two");
    assert_eq!(fs_err::read_dir(user.source.join("build/signatures")).unwrap().count(), 0);
    assert_eq!(user.publish(&["--json"]).json()["removed"], 3);

    // A hub that serves a signature of another package.
    user.done(&["sign", source, "--key", &file]);
    let other = user.bench.folder.path().join("other");
    toy_package(&other, 1, "other");
    user.done(&["sign", other.to_str().unwrap(), "--key", &file]);
    assert_eq!(user.publish(&[]).code, 0);
    user.done(&["get", KERNEL]);
    let cache = Path::new(&user.path("home")).join("hub");
    let snapshot = user.done(&["get", KERNEL, "--json"]).json()["path"].as_str().unwrap().to_owned();
    let before = contents(&cache).len();
    let link = Path::new(&snapshot).join("signatures/torch-cpu.json");
    fs_err::remove_file(&link).unwrap();
    fs_err::copy(other.join("build/signatures/torch-cpu.json"), &link).unwrap();
    user.refused(&["verify", KERNEL], "H0311", "is not that of its metadata.json");
    assert_eq!(contents(&cache).len(), before);
}

#[test]
fn verify_says_what_there_is() {
    let user = Signed::new();
    let source = user.source.to_str().unwrap();
    let json = user.done(&["verify", source, "--json"]).json();
    let variant = &json["variants"][1];
    assert_eq!((variant["name"].as_str(), variant["ops"][0].as_str()), (Some("torch-tpu"), Some("toy")));
    assert_eq!((variant["modules"].as_u64(), variant["digest"].as_u64()), (Some(1), Some(11)));
    assert_eq!(variant["provenance"]["kernel-builder"]["version"], "kernels-cli 0.1.0");
    assert_eq!((&variant["signature"], &variant["sigstore"]), (&Value::Null, &Value::Null));
    user.refused(&["verify", source, "--require-signature"], "H0311", "is not signed");
    user.refused(&["verify", KERNEL], "H0211", "not in the cache");
    assert_eq!(user.cli(&["verify", "acme/toy-kernel"]).code, 2);
    fs_err::write(user.source.join("build/torch-cpu/_load.py"), "").unwrap();
    user.refused(&["verify", source], "H0304", "_load.py");
}

#[test]
fn python_agrees_on_signatures_and_bundles() {
    let Some(python) = crate::python::python() else { return };
    let user = Signed::new();
    let (file, public) = user.key("acme.key");
    let source = user.source.to_str().unwrap();
    user.done(&["sign", source, "--key", &file]);
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/clients/signature.py");
    let build = user.source.join("build");
    let output =
        std::process::Command::new(python).arg(script).args([&file, &public]).arg(&build).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let said: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(said["signed"].as_array().unwrap().len(), 3);

    // A bundle whose signature matches is shown, with what is not known of it; any other is refused.
    let place = build.join("torch-cpu/metadata.json.sigstore");
    fs_err::write(&place, said["bundles"]["torch-cpu"].to_string()).unwrap();
    let text = user.done(&["verify", source]).out;
    assert!(
        text.contains("acme/kernels/.github/workflows/build.yaml") && text.contains("NOT VERIFIED"),
        "{text}"
    );
    let mut forged = said["bundles"]["torch-cpu"].clone();
    forged["messageSignature"]["signature"] =
        said["bundles"]["torch-tpu"]["messageSignature"]["signature"].clone();
    for (bundle, words) in [
        (said["bundles"]["torch-tpu"].to_string(), "another metadata.json"),
        (forged.to_string(), "the key of its certificate"),
        ("{}".to_owned(), "is not a sigstore bundle"),
    ] {
        fs_err::write(&place, bundle).unwrap();
        user.refused(&["verify", source], "H0311", words);
    }
}
