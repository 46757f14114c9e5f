//! What is refused, with which words, and where.

use super::build::Make;
use crate::mosaic::read::module::{Attribute, ValueId};

const TILE: &str = "vector<8x128xf32>";
const VMEM: &str = "memref<8x128xf32, vmem>";

/// The refusal of a kernel of one operation on a loaded tile, `%x`, and a ref, `%ref`, whose result is stored.
fn one(f: impl FnOnce(&mut Make, ValueId, ValueId) -> ValueId) -> String {
    let mut m = Make::new();
    m.main(&[VMEM, VMEM], |m, args| {
        let x = m.load(args[0], TILE);
        let y = f(m, x, args[0]);
        m.store(args[1], y, 2);
    });
    m.refusal()
}

#[test]
fn an_unknown_operation_is_named_with_its_place() {
    // The function is the first operation, a constant the second, the load the third.
    let text = one(|m, x, _| m.op("tpu.scan", &[x], TILE, &[]));
    assert_eq!(text, "K0810 <k>:4:1 `tpu.scan` is not an operation that is understood");
}

#[test]
fn what_is_not_used_may_be_unknown() {
    let text = one(|m, x, _| {
        m.op("tpu.scan", &[x], TILE, &[]);
        x
    });
    assert!(text.starts_with("none"), "{text}");
}

#[test]
fn forms_that_have_no_counterpart_are_named() {
    let precision = one(|m, x, _| {
        let (numbers, precision) = (
            m.opaque("#tpu.dot_dimension_numbers<[1], [1], [0], [0], [0, 0, 1, 0], [], []>"),
            m.opaque("#tpu.contract_precision<tf32>"),
        );
        let zero = m.float("vector<8x8xf32>", 0.0);
        let attributes = [("dimension_numbers", numbers), ("precision", precision)];
        m.op("tpu.matmul", &[x, x, zero], "vector<8x8xf32>", &attributes)
    });
    assert_eq!(precision, "K0811 <k>:5:1 `tpu.matmul` has the `precision` tf32, which is not supported");

    let kind = one(|m, x, _| {
        let (kind, axes) = (m.opaque("#vector.kind<mul>"), m.ints(&[1]));
        let one = m.float("vector<8xf32>", 1.0);
        m.op(
            "vector.multi_reduction",
            &[x, one],
            "vector<8xf32>",
            &[("kind", kind), ("reduction_dims", axes)],
        )
    });
    assert_eq!(kind, "K0811 <k>:5:1 `vector.multi_reduction` has the `kind` mul, which is not supported");

    let element = one(|m, x, _| m.op("arith.truncf", &[x], "vector<8x128xf4E2M1FN>", &[]));
    assert_eq!(element, "K0811 <k>:4:1 `arith.truncf` has elements of type f4E2M1FN, which is not supported");

    let dense = one(|m, _, _| {
        let ty = m.ty("vector<2xi32>");
        let value = m.attr(Attribute::Dense { ty, splat: false, data: vec![1, 0, 0, 0, 2, 0, 0, 0] });
        m.op("arith.constant", &[], "vector<2xi32>", &[("value", value)])
    });
    let text = "K0811 <k>:4:1 `arith.constant` has a `value` with different elements, which is not supported";
    assert_eq!(dense, text);

    let strides = one(|m, x, _| {
        let (at, sizes, strides) = (m.list(&[0, 0]), m.list(&[4, 128]), m.list(&[2, 1]));
        let attributes = [("offsets", at), ("sizes", sizes), ("strides", strides)];
        m.op("vector.extract_strided_slice", &[x], "vector<4x128xf32>", &attributes)
    });
    let text = "K0811 <k>:4:1 `vector.extract_strided_slice` has `strides` of [2, 1], which is not supported";
    assert_eq!(strides, text);
}

#[test]
fn operands_that_do_not_fit_are_told() {
    let count = one(|m, x, _| m.op("arith.addf", &[x], TILE, &[]));
    assert_eq!(count, "K0812 <k>:4:1 `arith.addf` has 1 operands instead of 2");

    let types = one(|m, x, _| {
        let y = m.float("vector<8xf32>", 0.0);
        m.op("arith.addf", &[x, y], TILE, &[])
    });
    assert_eq!(types, "K0812 <k>:5:1 `arith.addf` takes a f32[8, 128] and a f32[8]");

    let declared = one(|m, x, _| m.op("math.exp", &[x], "vector<8x128xbf16>", &[]));
    assert_eq!(declared, "K0812 <k>:4:1 `math.exp` declares a bf16[8, 128], but makes a f32[8, 128]");

    let elements = one(|m, x, _| m.op("arith.addi", &[x, x], TILE, &[]));
    assert_eq!(elements, "K0812 <k>:4:1 `arith.addi` computes with elements of type f32");

    let memref = one(|m, _, r| m.op("math.exp", &[r], TILE, &[]));
    assert_eq!(memref, "K0812 <k>:4:1 `math.exp` takes a memref where a number belongs");

    let shape = one(|m, x, _| m.op("vector.shape_cast", &[x], "vector<8x64xf32>", &[]));
    assert_eq!(shape, "K0812 <k>:4:1 `vector.shape_cast` makes a f32[8, 64] of a f32[8, 128]");

    let undefined = one(|m, _, _| {
        let y = m.value(TILE);
        m.op("math.exp", &[y], TILE, &[])
    });
    assert_eq!(undefined, "K0812 <k>:4:1 `math.exp` uses a value that is not defined there");

    let missing = one(|m, x, _| m.op("tpu.transpose", &[x], "vector<128x8xf32>", &[]));
    assert_eq!(missing, "K0812 <k>:4:1 `tpu.transpose` has no `permutation`");

    let large = one(|m, _, _| m.float("vector<65536x65536xf32>", 0.0));
    assert_eq!(large, "K0812 <k>:4:1 `arith.constant` makes a vector that is larger than any TPU's memory");

    let slice = one(|m, _, r| {
        let zero = m.constant("i32", 0);
        m.op("tpu.memref_slice", &[r, zero], VMEM, &[])
    });
    assert!(slice.contains("takes a vmem f32[8, 128] of a vmem f32[8, 128] by 1 indices"), "{slice}");
}

#[test]
fn a_value_stays_in_its_region() {
    let mut m = Make::new();
    m.main(&[VMEM, VMEM], |m, args| {
        let cond = m.constant("i1", 1);
        let mut inner = None;
        let then = m.region(&[], |m, _| {
            inner = Some(m.load(args[0], TILE));
            m.store(args[1], inner.unwrap(), 2);
            m.effect("scf.yield", &[], &[]);
        });
        m.op_with("scf.if", &[cond], &[], &[], vec![then]);
        m.store(args[1], inner.unwrap(), 2);
    });
    assert!(
        m.refusal().ends_with("`tpu.vector_store` uses a value that is not defined there"),
        "{}",
        m.refusal()
    );
}

#[test]
fn a_module_without_a_kernel_is_refused() {
    let mut m = Make::new();
    assert_eq!(m.refusal(), "K0812 <k>:0:0 the module has no kernel function");
    for name in ["a", "b"] {
        m.function(name, &[], &[], |m, _| m.effect("func.return", &[], &[]));
    }
    assert_eq!(m.refusal(), "K0812 <k>:0:0 the module has no kernel function");
    let mut m = Make::new();
    let core = m.opaque("#tpu.core_type<sc_vector_subcore>");
    m.function("a", &[], &[("tpu.core_type", core)], |m, _| m.effect("func.return", &[], &[]));
    assert!(m.refusal().contains("has the `tpu.core_type` sc_vector_subcore"), "{}", m.refusal());
}

#[test]
fn arguments_are_those_of_the_attributes() {
    let refusal = |attribute: &str, n: i64| {
        let mut m = Make::new();
        let n = m.int(n);
        m.function("main", &[VMEM], &[(attribute, n)], |m, _| m.effect("func.return", &[], &[]));
        m.refusal()
    };
    let few = "K0812 <k>:1:1 `func.func` has fewer arguments than its attributes say";
    assert_eq!(refusal("scratch_operands", 2), few);
    assert_eq!(refusal("scalar_prefetch", 2), few);
    assert!(refusal("scalar_prefetch", 1).contains("has a prefetched argument of type vmem f32[8, 128]"));
    assert!(refusal("scalar_prefetch", -1).contains("has a `scalar_prefetch` of -1"));
}
