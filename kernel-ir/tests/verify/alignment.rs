//! K0308, K0309: traced indices start at registers, and the machine has the operation.

use kernel_ir::ir::*;

use super::builder::*;

const NONE: [&str; 0] = [];

/// Codes for a load of `shape` from scratch of `whole`, at `n` times the step's index on `axis`.
fn load(d: DType, whole: [usize; 2], shape: [usize; 2], axis: usize, n: i64) -> Vec<&'static str> {
    let mut b = Builder::new("seq 1 seq 2");
    let s = b.scratch("s", d, &whole);
    let o = b.block("o", Role::Output, "8 256", &[8, 128], "0 i1");
    b.clear(s);
    b.clear(o);
    let p = b.program_id(1);
    let mut at = [Offset::Const(0); 2];
    at[axis] = Offset::Value(b.times(p, n));
    b.load(s, &at, &shape);
    b.codes()
}

// Each of these was compiled by libtpu 0.0.52 for v5e, v6e and v7x; a finding here is an error there.
#[test]
fn a_traced_row_starts_a_register() {
    assert_eq!(load(F32, [64, 256], [8, 256], 0, 8), NONE);
    assert_eq!(load(F32, [64, 256], [8, 256], 0, 1), ["K0308"]);
    assert_eq!(load(F32, [64, 256], [4, 256], 0, 4), ["K0308"]);
    assert_eq!(load(BF16, [64, 256], [16, 256], 0, 16), NONE);
    assert_eq!(load(BF16, [64, 256], [16, 256], 0, 8), ["K0308"]);
    assert_eq!(load(I8, [128, 256], [32, 256], 0, 32), NONE);
    assert_eq!(load(I8, [128, 256], [32, 256], 0, 16), ["K0308"]);
}

#[test]
fn a_traced_row_of_one_piece_is_free() {
    assert_eq!(load(F32, [64, 256], [1, 256], 0, 1), NONE);
    assert_eq!(load(F32, [64, 256], [1, 128], 0, 1), ["K0308"]);
    assert_eq!(load(F32, [64, 128], [8, 128], 0, 1), NONE);
    assert_eq!(load(F32, [64, 64], [8, 64], 0, 1), NONE);
    assert_eq!(load(BF16, [64, 128], [1, 128], 0, 1), ["K0308"]);
}

#[test]
fn a_traced_lane_starts_a_register() {
    assert_eq!(load(F32, [8, 512], [8, 128], 1, 128), NONE);
    assert_eq!(load(F32, [8, 512], [8, 128], 1, 64), ["K0308"]);
    assert_eq!(load(F32, [8, 512], [8, 64], 1, 64), ["K0308"]);
}

#[test]
fn numbers_and_leading_axes_are_free() {
    let b = with_blocks(|b, x, _| {
        b.load(x, &[Offset::Const(3), Offset::Const(5)], &[2, 100]);
    });
    assert_eq!(b.codes(), NONE);
    let mut b = Builder::new("seq 2");
    let s = b.scratch("s", BF16, &[2, 8, 128]);
    let o = b.block("o", Role::Output, "16 128", &[8, 128], "i0 0");
    b.clear(s);
    b.clear(o);
    let p = b.program_id(0);
    b.load(s, &[Offset::Value(p), Offset::Const(0), Offset::Const(0)], &[1, 8, 128]);
    b.facts();
}

/// Codes for one more operation with a result of this type.
fn op(ty: Type, f: impl FnOnce(&mut Builder) -> OpKind) -> Vec<&'static str> {
    with_blocks(|b, _, _| {
        let kind = f(b);
        b.op(kind, ty);
    })
    .codes()
}

#[test]
fn the_machine_has_the_operation() {
    assert_eq!(op(tile(I32, &[8, 128]), |_| OpKind::Iota { axis: 1 }), NONE);
    assert_eq!(op(tile(I32, &[128]), |_| OpKind::Iota { axis: 0 }), NONE);
    let dot = |a: DType, to: DType| {
        op(tile(to, &[8, 8]), |b| {
            let x = b.zeros(a, &[8, 128]);
            OpKind::Dot { lhs: x, rhs: x, dims: DotDims { lhs: 1, rhs: 1 }, precision: Precision::Highest }
        })
    };
    assert_eq!(dot(BF16, F32), NONE);
    assert_eq!(dot(I8, I32), NONE);
    assert_eq!(dot(I32, I32), ["K0309"]);
    assert_eq!(dot(BF16, BF16), ["K0309"]);
}

#[test]
fn narrow_arithmetic_is_a_warning() {
    let b = with_blocks(|b, _, _| {
        let x = b.zeros(I8, &[32, 128]);
        b.binary(Binary::Add, x, x);
        b.binary(Binary::And, x, x);
    });
    let text = b.messages();
    assert_eq!(text.lines().count(), 1, "{text}");
    assert!(text.contains("warning[K0309]: `add` of i8 is done in i32 and converted back"), "{text}");
}
