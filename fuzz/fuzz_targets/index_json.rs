//! Any bytes as an index.json: what is read is what is written, and breaks none of its own callers.
#![no_main]

use hub_cli::package::Interface;
use kernel_ir::mosaic::call::Index;

libfuzzer_sys::fuzz_target!(|json: &[u8]| {
    if let Ok(index) = Index::parse(json) {
        let interface = Interface { ops: Some(index), ..Interface::default() };
        assert!(interface.compare(&interface).is_empty());
    }
});
