//! Any bytes as a sigstore bundle and as a trusted root: what is accepted is proven.
#![no_main]

use std::sync::LazyLock;

use hub_cli::package::signing::{Sigstore, SigstoreTrust};

/// What the bundles of the corpus sign.
const METADATA: &str = include_str!("../corpus/sigstore/metadata.json");
const GOOD: &[u8] = include_bytes!("../corpus/sigstore/good");
const ROOT: &str = include_str!("../corpus/sigstore/root");

fn trust(root: &str) -> hub_cli::Result<SigstoreTrust> {
    let issuer = "https://token.actions.githubusercontent.com";
    SigstoreTrust::new("https://github.com/acme/kernels/*", issuer, root.to_owned(), "root")
}

static TRUST: LazyLock<SigstoreTrust> = LazyLock::new(|| trust(ROOT).expect("the corpus has a trusted root"));

libfuzzer_sys::fuzz_target!(|json: &[u8]| {
    if let Ok(found) = Sigstore::check(json, METADATA.as_bytes(), "bundle", &[&*TRUST]) {
        assert!(found.verified.is_some());
        assert!(Sigstore::check(json, METADATA.as_bytes(), "bundle", &[]).is_ok());
    }
    if let Some(trust) = std::str::from_utf8(json).ok().and_then(|root| trust(root).ok()) {
        let _proven_or_not = Sigstore::check(GOOD, METADATA.as_bytes(), "bundle", &[&trust]);
    }
});
