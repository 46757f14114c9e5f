//! Any bytes as the entry point of a package: its names and parameters are read without running it.
#![no_main]

use hub_cli::hub::RepoPath;
use hub_cli::package::Interface;

libfuzzer_sys::fuzz_target!(|source: &[u8]| {
    let path = RepoPath::parse("__init__.py").expect("a plain name");
    let interface = Interface::of(&[(path, source.to_vec())].into_iter().collect());
    assert!(interface.compare(&interface).is_empty());
});
