//! What modules look like, how fast they are made, and that equal kernels give equal bytes.

use std::time::{Duration, Instant};

use kernel_ir::ir::DType;

use crate::kernels::matmul;

#[test]
fn a_matmul_reads_like_mosaic() {
    let module = matmul(DType::Bf16, 256, 256, 512).mosaic().unwrap();
    insta::assert_snapshot!(module.text().unwrap());
}

#[test]
fn an_index_entry_says_how_to_call() {
    let module = matmul(DType::Bf16, 256, 256, 512).mosaic().unwrap();
    let entry = module.entry("mosaic/matmul.mlirbc", Default::default(), Default::default(), &[]);
    let json = serde_json::to_string_pretty(&serde_json::json!({
        "operands": entry.operands, "results": entry.results, "vmem_bytes": entry.vmem_bytes,
        "custom_call_config": entry.custom_call_config, "backend_config": entry.backend_config,
    }));
    insta::assert_snapshot!(json.unwrap());
}

#[test]
fn equal_kernels_give_equal_bytes_in_a_few_milliseconds() {
    let first = matmul(DType::F32, 256, 256, 512).mosaic().unwrap();
    // In another thread, so with a context of its own.
    let start = Instant::now();
    let make = || matmul(DType::F32, 256, 256, 512).mosaic().unwrap();
    let second = std::thread::spawn(make).join().unwrap();
    let took = start.elapsed();
    assert_eq!(first.bytecode, second.bytecode);
    // It takes 2 ms with the making of the context; a busy machine may take ten times that.
    assert!(took < Duration::from_millis(20), "{took:?}");
}
