//! Any text as StableHLO: its Mosaic calls are found, and made kernels.
#![no_main]

use kernel_ir::mosaic::read::stablehlo;

libfuzzer_sys::fuzz_target!(|text: &str| {
    for call in stablehlo::calls(text).into_iter().flatten() {
        let _kernel = call.kernel();
    }
});
