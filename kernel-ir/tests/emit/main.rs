//! Mosaic modules, checked by the compiler that they are for: libtpu takes every operation in every element type, and
//! whole kernels at sizes that fit no block.
#![cfg(all(feature = "emit", feature = "aot"))]
#![allow(missing_docs, clippy::unwrap_used, reason = "tests")]

mod broken;
mod build;
mod cases;
mod compile;
mod elementwise;
mod foreign;
mod kernels;
mod layout;
mod memory;
mod text;

use kernel_ir::ir::DType;
use kernel_ir::target::Generation;

use cases::{Case, together};
use compile::{dims, refusals};

/// Compiles cases a few dozen at a time, and one at a time what was refused.
fn check(name: &str, cases: &[Case], generations: &[Generation]) {
    let cases: Vec<&Case> = cases.iter().collect();
    let mut refused = vec![];
    for part in cases.chunks(24) {
        let all = together(name, part);
        for generation in generations {
            if !refusals(std::slice::from_ref(&all), &[*generation], &dims(&[])).is_empty() {
                let alone: Vec<_> = part.iter().map(|case| together(&case.name, &[*case])).collect();
                refused.extend(refusals(&alone, &[*generation], &dims(&[])));
            }
        }
    }
    assert!(refused.is_empty(), "{}", refused.join("\n"));
}

#[test]
fn every_elementwise_operation_compiles_in_every_type() {
    check("elementwise", &elementwise::tiles(), &Generation::ALL);
}

#[test]
fn every_scalar_operation_compiles_in_every_type() {
    check("scalars", &elementwise::scalars(), &Generation::ALL);
}

#[test]
fn every_layout_operation_compiles_in_every_type() {
    // v4 cannot store rows of bytes that are no whole register.
    let flat = |c: &Case| c.name.starts_with("reshape_i8") && c.name.ends_with("_[256]");
    let (flat, other): (Vec<_>, Vec<_>) = layout::moves().into_iter().partition(flat);
    check("layout", &other, &Generation::ALL);
    check("layout_flat", &flat, &Generation::ALL[1..]);
}

#[test]
fn every_dot_compiles() {
    let (int, float): (Vec<_>, Vec<_>) = layout::dots().into_iter().partition(|c| c.name.contains("i8"));
    check("dots", &float, &Generation::ALL);
    check("int_dots", &int, &Generation::ALL[1..]);
}

#[test]
fn views_copies_and_control_flow_compile_in_every_type() {
    let kernels = [memory::views(), memory::control()].concat();
    let refused = refusals(&kernels, &Generation::ALL, &dims(&[("g", 3), ("m", 100), ("n", 300)]));
    assert!(refused.is_empty(), "{}", refused.join("\n"));
}

#[test]
fn operations_of_other_peoples_modules_compile() {
    // v4 looks nothing up along rows.
    let (rows, other): (Vec<_>, Vec<_>) = foreign::tiles().into_iter().partition(|c| c.name == "gather_0");
    check("foreign", &other, &Generation::ALL);
    check("foreign_rows", &rows, &Generation::ALL[1..]);
    let refused = refusals(&foreign::memory(), &Generation::ALL, &dims(&[]));
    assert!(refused.is_empty(), "{}", refused.join("\n"));
}

#[test]
fn copies_to_other_devices_compile() {
    let refused = refusals(&[foreign::ring()], &Generation::ALL, &dims(&[]));
    assert!(refused.is_empty(), "{}", refused.join("\n"));
}

#[test]
fn one_matmul_compiles_for_any_size() {
    for dtype in [DType::Bf16, DType::F32] {
        let kernel = kernels::matmul(dtype, 256, 256, 512);
        for (m, k, n) in [(1, 7, 1), (2, 512, 512), (1000, 700, 300)] {
            let dims = dims(&[("m", m), ("k", k), ("n", n)]);
            let refused = refusals(std::slice::from_ref(&kernel), &Generation::ALL, &dims);
            assert!(refused.is_empty(), "{}", refused.join("\n"));
        }
    }
}

#[test]
fn prefetched_arrays_may_have_any_length() {
    for n in [1, 8, 100, 128, 5000] {
        let dims = dims(&[("n", n), ("m", 64), ("l", 8 * n)]);
        let refused = refusals(&[kernels::lookup()], &Generation::ALL, &dims);
        assert!(refused.is_empty(), "{}", refused.join("\n"));
    }
}

#[test]
fn libtpu_complains_at_the_line_that_asked() {
    // v4 multiplies no integers. The dot is on line 13.
    let case = layout::dots().into_iter().find(|c| c.name == "dot_i8_i8_i32_Highest_10").unwrap();
    let refused = refusals(&[together("int_dot", &[&case])], &[Generation::V4], &dims(&[]));
    for text in &refused {
        assert!(text.contains("K0506") && text.contains("kernels/test.rs:"), "{text}");
    }
}
