//! Any bytes as a signature: what is read is what is written.
#![no_main]

use hub_cli::package::signing::Signature;

libfuzzer_sys::fuzz_target!(|json: &[u8]| {
    if let Ok(signature) = Signature::parse(json, "signature") {
        assert_eq!(Signature::parse(signature.to_json().as_bytes(), "signature").ok(), Some(signature));
    }
});
