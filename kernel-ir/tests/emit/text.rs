//! What modules look like, how fast they are made, and that equal kernels give equal bytes.

use std::time::{Duration, Instant};

use kernel_ir::ir::DType;

use crate::cases::together;
use crate::elementwise;
use crate::kernels::matmul;

#[test]
fn a_matmul_reads_like_mosaic() {
    let module = matmul(DType::Bf16, 256, 256, 512).mosaic().unwrap();
    insta::assert_snapshot!(module.text().unwrap());
}

/// One kernel of these elementwise cases, as text.
fn elementwise(names: &[&str]) -> String {
    let cases = elementwise::tiles();
    let cases: Vec<_> = cases.iter().filter(|c| names.contains(&c.name.as_str())).collect();
    assert_eq!(cases.len(), names.len());
    together("k", &cases).mosaic().unwrap().text().unwrap()
}

#[test]
fn comparisons_are_ordered() {
    insta::assert_snapshot!(elementwise(&["Eq_f32", "Ne_f32", "Lt_f32", "Le_f32", "Gt_f32", "Ge_f32"]));
}

#[test]
fn integers_are_signed() {
    insta::assert_snapshot!(elementwise(&[
        "Lt_i32", "Ge_i32", "Div_i32", "Rem_i32", "Max_i32", "Shr_i32", "Abs_i32"
    ]));
}

#[test]
fn narrow_types_compute_in_wide_ones() {
    insta::assert_snapshot!(elementwise(&[
        "Exp_bf16",
        "select_bf16",
        "Add_i8",
        "cast_bf16_i8",
        "cast_f32_bool"
    ]));
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
