//! Any text as StableHLO: its Mosaic calls are found, and their modules printed.
#![no_main]

use kernel_ir::mosaic::read::{self, stablehlo};

libfuzzer_sys::fuzz_target!(|text: &str| {
    for call in stablehlo::calls(text).into_iter().flatten() {
        let _text = read::mlir(&call.body);
    }
});
