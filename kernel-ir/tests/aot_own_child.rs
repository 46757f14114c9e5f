//! A program that calls `child_main_if_requested` is its own child: no worker program is needed beside it.

use kernel_ir::aot::{Compiler, Generation, Job, Options};

/// Not a test function: the harness's `main` would come before ours.
fn main() {
    kernel_ir::aot::child_main_if_requested();
    let file = tempfile::NamedTempFile::new().expect("a temporary file");
    std::fs::write(file.path(), "not an ELF file at all").expect("it is written");
    let options = Options { libtpu: Some(file.path().into()), ..Options::default() };
    let compiler = Compiler::with_options(options).expect("this program is the worker");
    let job = Job { kernel: "k".into(), generation: Generation::V4, stablehlo: String::new() };
    let error = compiler.compile(&job).expect_err("the library does not load");
    // The reason comes from the dynamic loader, in the child.
    assert_eq!(error.code(), "K0509");
    assert!(error.to_string().contains("file too short") || error.to_string().contains("ELF"), "{error}");
}
