//! Sigstore bundles: proven from a trusted root, as Python's `sigstore` proves them, and refused where it refuses.

use std::path::Path;
use std::process::Command;

use serde_json::{Value, json};

use crate::signing::{KERNEL, Signed};

const IDENTITY: &str = "https://github.com/acme/kernels/.github/workflows/build.yaml@refs/heads/main";
const PATTERN: &str = "https://github.com/acme/kernels/*";
const ISSUER: &str = "https://token.actions.githubusercontent.com";

/// Each spoiled bundle of the script, and what we say of it.
const REFUSED: &[(&str, &str)] = &[
    ("other root", "was logged in a log that your trusted root does not know"),
    ("other authority", "has a certificate that no authority of your trusted root issued"),
    ("expired", "was signed when its certificate was not valid"),
    ("not yet valid", "was signed when its certificate was not valid"),
    ("wrong SET", "has a signed entry timestamp that is not the log's"),
    ("SET of another time", "has a signed entry timestamp that is not the log's"),
    ("unknown log", "was logged in a log that your trusted root does not know"),
    ("body of another digest", "has a log entry of another metadata.json"),
    ("body of another signature", "has a log entry of another signature"),
    ("body of another certificate", "has a log entry of another certificate"),
    ("wrong proof", "has a proof of inclusion that does not lead to its rootHash"),
    ("longer proof", "has a proof of inclusion that does not lead to its rootHash"),
    ("checkpoint of another key", "has a checkpoint that the log did not sign"),
    ("checkpoint of another tree", "has a checkpoint of another tree"),
    ("other identity", "is signed by https://github.com/evil/x@refs/heads/main"),
    ("other issuer", "(issuer https://evil.example), and you trust"),
    ("no log entry", "has 0 entries of a transparency log"),
    ("two log entries", "has 2 entries of a transparency log"),
    ("no SET", "has no time of signing that can be proven"),
    ("no proof", "has a log entry without a proof of inclusion"),
    ("other kind", "has a log entry of another kind"),
    ("not for code", "has a certificate that is not for signing code"),
    ("SCT of another key", "signed certificate timestamp is not the log's"),
    ("other file", "is the signature of another metadata.json"),
    ("truncated base64", "wrong base64"),
    ("truncated", "is not a sigstore bundle"),
    ("nested", "recursion limit exceeded"),
    ("large", "is larger than"),
    ("empty certificate", "has a certificate that cannot be read"),
];

/// What the script makes of the metadata.json of torch-cpu, unless Python or its `sigstore` is not there.
#[allow(clippy::print_stdout, reason = "a test that did not run says so")]
fn made(user: &Signed) -> Option<Value> {
    let python = crate::python::python()?;
    if !Command::new(&python).args(["-c", "import sigstore"]).output().unwrap().status.success() {
        println!("skipped: this Python has no `sigstore`");
        return None;
    }
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/clients/sigstore_bundle.py");
    let metadata = user.source.join("build/torch-cpu/metadata.json");
    let output = Command::new(python).arg(script).arg(metadata).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    Some(serde_json::from_slice(&output.stdout).unwrap())
}

/// Trusts `identity` for acme with the trusted root `root`.
fn trust(user: &Signed, root: &Value, identity: &str) {
    let file = user.path("trusted_root.json");
    fs_err::write(&file, root.to_string()).unwrap();
    user.done(&["trust", "sigstore", "acme", "--root", &file, "--identity", identity, "--issuer", ISSUER]);
}

#[test]
fn bundles_are_verified_as_python_verifies_them() {
    let user = Signed::new();
    let Some(said) = made(&user) else { return };
    let source = user.source.to_str().unwrap();
    // The other variants would need bundles of their own.
    for variant in ["torch-tpu", "torch-universal"] {
        fs_err::remove_dir_all(user.source.join("build").join(variant)).unwrap();
    }
    let place = user.source.join("build/torch-cpu/metadata.json.sigstore");
    let verify = ["verify", source, "--owner", "acme"];
    let bundles = said["bundles"].as_array().unwrap();
    let (good, bad): (Vec<_>, Vec<_>) =
        bundles.iter().partition(|b| b["what"].as_str().unwrap().starts_with("good"));
    assert_eq!((bad.len(), good.len()), (REFUSED.len(), 9));

    // Nobody is trusted yet.
    fs_err::write(&place, good[0]["bundle"].as_str().unwrap()).unwrap();
    let text = user.done(&verify).out;
    assert!(text.contains("NOT VERIFIED") && text.contains("`kernels-cli trust sigstore`"), "{text}");
    user.refused(
        &[&verify[..], &["--require-signature"]].concat(),
        "H0311",
        "sigstore bundle is not verified",
    );

    trust(&user, &said["root"], PATTERN);
    for bundle in good {
        fs_err::write(&place, bundle["bundle"].as_str().unwrap()).unwrap();
        let text = user.done(&[&verify[..], &["--require-signature"]].concat()).out;
        assert!(text.contains(&format!("verified, by {IDENTITY} (issuer {ISSUER}), logged 2")), "{text}");
        assert!(!text.contains("NOT VERIFIED"), "{text}");
    }
    for bundle in bad {
        let what = bundle["what"].as_str().unwrap();
        assert!(bundle["python"].is_string(), "Python accepts: {what}");
        let (_, words) = REFUSED.iter().find(|(name, _)| *name == what).expect(what);
        fs_err::write(&place, bundle["bundle"].as_str().unwrap()).unwrap();
        user.refused(&verify, "H0311", words);
        // Nobody said whose the folder is, so it need not be acme's; it is not called verified.
        let anybody = user.cli(&["verify", source, "--json"]);
        assert!(
            anybody.code == 1 || anybody.json()["variants"][0]["sigstore"]["verified"].is_null(),
            "{what}: {anybody:?}"
        );
    }
    fs_err::remove_file(&place).unwrap();
    user.refused(&verify, "H0311", "torch-cpu has no metadata.json.sigstore");
}

#[test]
fn what_is_trusted_decides_whose_bundle_verifies() {
    let user = Signed::new();
    let Some(said) = made(&user) else { return };
    for variant in ["torch-tpu", "torch-universal"] {
        fs_err::remove_dir_all(user.source.join("build").join(variant)).unwrap();
    }
    let place = user.source.join("build/torch-cpu/metadata.json.sigstore");
    fs_err::write(&place, said["bundles"][0]["bundle"].as_str().unwrap()).unwrap();
    assert_eq!(user.publish(&[]).code, 0);
    user.done(&["get", KERNEL]);

    // The roots of another instance, and another identity, prove nothing; one of several is enough.
    trust(&user, &said["other_root"], IDENTITY);
    user.refused(&["verify", KERNEL], "H0311", "in a log that your trusted root does not know");
    trust(&user, &said["root"], "https://github.com/acme/other/*");
    user.refused(&["verify", KERNEL], "H0311", "in a log that your trusted root does not know");
    user.done(&["trust", "rm", "acme", IDENTITY]);
    user.refused(&["verify", KERNEL], "H0311", "and you trust https://github.com/acme/other/*");
    trust(&user, &said["root"], IDENTITY);
    let found = user.done(&["verify", KERNEL, "--require-signature", "--json"]).json();
    let sigstore = &found["variants"][0]["sigstore"];
    assert_eq!(sigstore["claims"], json!([IDENTITY]));
    assert_eq!(sigstore["issuer"], ISSUER);
    assert_eq!(sigstore["verified"]["trusted"], IDENTITY);
    assert_eq!(sigstore["unchecked"], Value::Null);
    let listed = user.done(&["trust", "ls"]).out;
    assert!(listed.contains(&format!("acme  sigstore {IDENTITY} (issuer {ISSUER})")), "{listed}");
    assert_eq!(user.cli(&["verify", KERNEL, "--owner", "other"]).code, 2);

    // A person.
    fs_err::write(&place, said["person"].as_str().unwrap()).unwrap();
    let verify = ["verify", user.source.to_str().unwrap(), "--owner", "acme"];
    user.refused(&verify, "H0311", "is signed by build@acme.example");
    trust(&user, &said["root"], "build@acme.example");
    user.done(&verify);

    user.done(&["trust", "rm", "acme"]);
    user.refused(&["trust", "rm", "acme"], "H0113", "no such key or identity");
    assert!(user.done(&verify).out.contains("NOT VERIFIED"));
}

#[test]
fn a_wrong_trusted_root_is_refused_when_it_is_trusted() {
    let user = Signed::new();
    let Some(said) = made(&user) else { return };
    let file = user.path("trusted_root.json");
    let add = |identity: &str, issuer: &str, words: &str| {
        let args = ["trust", "sigstore", "acme", "--root", &file, "--identity", identity, "--issuer", issuer];
        user.refused(&args, "H0113", words);
    };
    let changed = |pointer: &str, value: Value| {
        let mut root = said["root"].clone();
        *root.pointer_mut(pointer).expect(pointer) = value;
        root.to_string()
    };
    for (text, words) in [
        ("{".to_owned(), "is not a trusted_root.json of sigstore"),
        ("[".repeat(100_000), "is not a trusted_root.json of sigstore"),
        (" ".repeat(2 << 20), "is larger than"),
        (said["bundles"][0]["bundle"].as_str().unwrap().to_owned(), "mediaType is"),
        (changed("/certificateAuthorities", json!([])), "it has no certificateAuthorities"),
        (changed("/tlogs", json!([])), "it has no tlogs"),
        (changed("/ctlogs", json!([])), "it has no ctlogs"),
        (
            changed("/tlogs/0/publicKey/keyDetails", json!("UNKNOWN")),
            "it has no tlogs with a key that can be used",
        ),
        (changed("/tlogs/0/publicKey/rawBytes", json!("AAAA")), "the key of a log cannot be read"),
        (changed("/tlogs/0/publicKey/rawBytes", json!("A")), "wrong base64"),
        (changed("/tlogs/0/publicKey/validFor/start", json!("today")), "is no time in UTC"),
        (changed("/certificateAuthorities/0/certChain/certificates", json!([])), "has no certificate"),
        (
            changed("/certificateAuthorities/0/certChain/certificates/0/rawBytes", json!("AAAA")),
            "a certificate of an authority cannot be read",
        ),
    ] {
        fs_err::write(&file, text).unwrap();
        add(IDENTITY, ISSUER, words);
    }
    fs_err::write(&file, said["root"].to_string()).unwrap();
    add("https://github.com/*", ISSUER, "it names a host and nobody there");
    add(IDENTITY, "github", "is not the URL of an issuer");
    assert_eq!(user.done(&["trust", "ls"]).out.trim(), "no keys or identities are trusted");

    // What its authority or its log may no longer say counts no more.
    for (end, words) in [
        ("/certificateAuthorities/0/validFor", "has no authority for that time"),
        ("/tlogs/0/publicKey/validFor", "was logged when your trusted root no longer trusted the log's key"),
        (
            "/ctlogs/0/publicKey/validFor",
            "certificate that was logged when your trusted root no longer trusted",
        ),
    ] {
        let root = changed(end, json!({"start": "2000-01-01T00:00:00Z", "end": "2001-01-01T00:00:00Z"}));
        trust(&user, &serde_json::from_str(&root).unwrap(), IDENTITY);
        let place = user.source.join("build/torch-cpu/metadata.json.sigstore");
        fs_err::write(&place, said["bundles"][0]["bundle"].as_str().unwrap()).unwrap();
        user.refused(&["verify", user.source.to_str().unwrap(), "--owner", "acme"], "H0311", words);
    }
}
