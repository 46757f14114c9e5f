//! Any bytes as a Mosaic module: printed, and made a kernel, if they are one.
#![no_main]

use kernel_ir::mosaic::read;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    let _text = read::mlir(bytes);
    let _kernel = read::kernel(bytes, None);
});
