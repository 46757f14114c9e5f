//! What the verifier knows of integers and windows.

use kernel_ir::ir::*;
use kernel_ir::verify::IntFact;

use super::builder::*;

/// Facts of an integer that `f` computes in a grid `[4, m]` from `t[0]`, which is anything.
fn int(f: impl FnOnce(&mut Builder, Value) -> Value) -> IntFact {
    let mut b = Builder::new("seq 4 seq m");
    let t = b.prefetch("t", "m");
    let o = b.block("o", Role::Output, "32 m", &[8, 128], "i0 i1");
    b.clear(o);
    let zero = b.int(0);
    let any = b.get(t, zero);
    b.demand(DimExpr::dim("m"), DimCompare::Le, 4096);
    b.demand(DimExpr::op(DimOp::Mod, DimExpr::dim("m"), 512.into()), DimCompare::Eq, 0);
    b.kernel.grid[1].extent = DimExpr::op(DimOp::CeilDiv, DimExpr::dim("m"), 128.into());
    let v = f(&mut b, any);
    b.facts().int(v)
}

fn range(lo: i64, hi: i64, multiple: u64) -> (i64, i64, u64) {
    (lo, hi, multiple)
}

fn known(f: IntFact) -> (i64, i64, u64) {
    (f.lo, f.hi, f.multiple)
}

const MAX: i64 = i32::MAX as i64;
const MIN: i64 = i32::MIN as i64;

#[test]
fn sources_are_known() {
    assert_eq!(known(int(|b, _| b.program_id(0))), range(0, 3, 1));
    assert_eq!(known(int(|b, _| b.program_id(1))), range(0, MAX, 1));
    assert_eq!(known(int(|b, _| b.op(OpKind::NumPrograms { axis: 0 }, scalar(I32)))), range(4, 4, 4));
    assert_eq!(
        known(int(|b, _| b.op(OpKind::Dim { name: dim_name("m") }, scalar(I32)))),
        range(0, 4096, 512)
    );
    assert_eq!(known(int(|_, any| any)), range(MIN, MAX, 1));
}

#[test]
fn arithmetic_is_followed() {
    let with = |op: Binary, n: i64| {
        int(|b, _| {
            let p = b.program_id(0);
            let x = b.times(p, 24);
            let y = b.int(n);
            b.binary(op, x, y)
        })
    };
    assert_eq!(known(with(Binary::Add, 4)), range(4, 76, 4));
    assert_eq!(known(with(Binary::Sub, 8)), range(-8, 64, 8));
    assert_eq!(known(with(Binary::Div, 4)), range(0, 18, 6));
    assert_eq!(known(with(Binary::Div, 7)), range(0, 10, 1));
    assert_eq!(known(with(Binary::Rem, 16)), range(0, 15, 8));
    assert_eq!(known(with(Binary::Min, 32)), range(0, 32, 8));
    assert_eq!(known(with(Binary::Max, 16)), range(16, 72, 8));
    assert_eq!(known(with(Binary::Shl, 1)), range(0, 144, 48));
    assert_eq!(known(with(Binary::Shr, 2)), range(0, 18, 6));
    assert_eq!(known(with(Binary::And, 7)), range(0, 7, 1));
}

#[test]
fn promises_add_up() {
    let promised = int(|b, any| {
        let x = b.times(any, 6);
        b.op(OpKind::AssumeMultiple { x, multiple: 4 }, scalar(I32))
    });
    assert_eq!(promised.multiple, 12);
}

#[test]
fn what_a_loop_carries_settles() {
    // x = 0; for i in 0..any { x += 256 }
    let carried = int(|b, any| {
        let (lo, init) = (b.int(0), b.int(0));
        let (i, arg, out) = (b.value(scalar(I32)), b.value(scalar(I32)), b.value(scalar(I32)));
        let mut next = arg;
        let mut body = b.region(|b| {
            let step = b.int(256);
            next = b.binary(Binary::Add, arg, step);
        });
        (body.args, body.results) = (vec![i, arg], vec![next]);
        let kind = OpKind::For { lo, hi: any, init: vec![init], body };
        let span = b.span();
        b.push(Op { kind, results: vec![out], span });
        out
    });
    assert_eq!(carried.multiple, 256);
}

#[test]
fn windows_know_what_they_depend_on() {
    let mut b = Builder::new("par 4 seq 4");
    let t = b.prefetch("t", "4");
    let x = b.block("x", Role::Input, "512 512", &[128, 128], "i0 0");
    let w = b.window(&[128, 128], |b, g| vec![b.get(t, g[1]), b.int(0)]);
    let y = b.param("y", Role::Input, vmem(F32, &[128, 128]), Some("512 128"), Some(w));
    let z = b.block("z", Role::Input, "512 512", &[128, 128], "0 0");
    let o = b.block("o", Role::Output, "512 128", &[128, 128], "i0 0");
    for v in [x, y, z] {
        b.read(v);
    }
    b.clear(o);
    let facts = b.facts();
    let w = &facts.windows;
    assert_eq!((w[1].axes.as_slice(), w[1].data_dependent), (&[0][..], false));
    assert_eq!((w[2].axes.as_slice(), w[2].data_dependent), (&[1][..], true));
    assert!(w[3].is_constant() && !w[1].is_constant() && !w[2].is_constant());
}
