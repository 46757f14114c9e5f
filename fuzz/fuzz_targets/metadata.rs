//! Any bytes as a metadata.json: what is read is what is written.
#![no_main]

use hub_cli::package::Metadata;

libfuzzer_sys::fuzz_target!(|json: &[u8]| {
    if let Ok(metadata) = Metadata::parse(json, "metadata.json") {
        assert_eq!(Metadata::parse(metadata.to_json().as_bytes(), "metadata.json").ok(), Some(metadata));
    }
});
