//! Any bytes as a line of a commit: what is accepted stays inside the repository and is no bytecode.
#![no_main]

use hub_cli::server::CommitRecord;

libfuzzer_sys::fuzz_target!(|line: &[u8]| {
    if let Ok(CommitRecord::File { path, .. } | CommitRecord::Large { path, .. }) = CommitRecord::parse(line) {
        let root = std::path::Path::new("/base");
        assert!(path.under(root).strip_prefix(root).is_ok_and(|inside| inside.components().count() > 0));
        assert!(!path.as_str().ends_with(".pyc"));
    }
});
