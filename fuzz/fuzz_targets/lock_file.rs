//! Any bytes as a kernels.lock: what is read is what is written.
#![no_main]

use hub_cli::hub::LockFile;

libfuzzer_sys::fuzz_target!(|json: &[u8]| {
    if let Ok(lock) = LockFile::parse(json, "kernels.lock") {
        assert_eq!(LockFile::parse(lock.to_json().as_bytes(), "kernels.lock").ok(), Some(lock));
    }
});
