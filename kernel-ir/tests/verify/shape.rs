//! K0002, K0104: every operation refuses operands that it is not defined on.

use kernel_ir::ir::*;

use super::builder::*;

/// What one more operation, made of a loaded `f32[8, 128]` tile, leads to.
fn op(ty: Type, f: impl FnOnce(&mut Builder, Value) -> OpKind) -> Vec<&'static str> {
    let mut found = vec![];
    let b = with_blocks(|b, x, _| {
        let t = b.read(x);
        let kind = f(b, t);
        found.push(b.op(kind, ty));
    });
    b.codes()
}

const X: [usize; 2] = [8, 128];

fn x() -> Type {
    tile(F32, &X)
}

#[test]
fn elementwise_operations_want_one_type() {
    let add = |b: &mut Builder, t, y| {
        let _ = b;
        OpKind::Binary { op: Binary::Add, x: t, y }
    };
    assert_eq!(op(x(), |b, t| add(b, t, t)), [""; 0]);
    assert_eq!(op(tile(F32, &[8, 1]), |b, t| add(b, t, t)), ["K0002"]);
    assert_eq!(
        op(x(), |b, t| {
            let y = b.zeros(F32, &[8, 1]);
            add(b, t, y)
        }),
        ["K0002"]
    );
    assert_eq!(op(x(), |_, t| OpKind::Binary { op: Binary::And, x: t, y: t }), ["K0002"]);
    assert_eq!(op(x(), |_, t| OpKind::Binary { op: Binary::Shl, x: t, y: t }), ["K0002"]);
    assert_eq!(op(x(), |_, t| OpKind::Unary { op: Unary::Not, x: t }), ["K0002"]);
    assert_eq!(op(x(), |_, t| OpKind::Unary { op: Unary::Exp, x: t }), [""; 0]);
    assert_eq!(op(tile(DType::Bool, &X), |_, t| OpKind::Compare { op: Compare::Lt, x: t, y: t }), [""; 0]);
    assert_eq!(op(x(), |_, t| OpKind::Compare { op: Compare::Lt, x: t, y: t }), ["K0002"]);
    assert_eq!(op(x(), |_, t| OpKind::Select { mask: t, x: t, y: t }), ["K0002"]);
    assert_eq!(op(tile(BF16, &X), |_, t| OpKind::Cast { x: t }), [""; 0]);
    assert_eq!(op(tile(BF16, &[8, 1]), |_, t| OpKind::Cast { x: t }), ["K0002"]);
}

#[test]
fn constants_fit_their_type() {
    let constant = |ty, l| op(ty, |_, _| OpKind::Constant(l));
    assert_eq!(constant(scalar(I32), Literal::Int(1 << 40)), ["K0002"]);
    assert_eq!(constant(scalar(I8), Literal::Int(127)), [""; 0]);
    assert_eq!(constant(scalar(I8), Literal::Int(128)), ["K0002"]);
    assert_eq!(constant(scalar(F32), Literal::Int(1)), ["K0002"]);
    assert_eq!(constant(x(), Literal::Float(1.0)), [""; 0]);
}

#[test]
fn moves_keep_the_elements() {
    assert_eq!(op(tile(F32, &[8, 256]), |_, t| OpKind::Broadcast { x: t }), ["K0002"]);
    assert_eq!(op(tile(F32, &[1, 1024]), |_, t| OpKind::Reshape { x: t }), [""; 0]);
    assert_eq!(op(tile(F32, &[1, 1023]), |_, t| OpKind::Reshape { x: t }), ["K0002"]);
    let transpose = |ty, p: &[usize]| op(ty, |_, t| OpKind::Transpose { x: t, permutation: p.to_vec() });
    assert_eq!(transpose(tile(F32, &[128, 8]), &[1, 0]), [""; 0]);
    assert_eq!(transpose(x(), &[1, 0]), ["K0002"]);
    assert_eq!(transpose(tile(F32, &[128, 128]), &[1, 1]), ["K0002"]);
    assert_eq!(transpose(x(), &[0]), ["K0002"]);
    let join = |ty, axis| op(ty, |_, t| OpKind::Concatenate { xs: vec![t, t], axis });
    assert_eq!(join(tile(F32, &[16, 128]), 0), [""; 0]);
    assert_eq!(join(tile(F32, &[16, 128]), 1), ["K0002"]);
    assert_eq!(join(tile(F32, &[16, 128]), 2), ["K0002"]);
    let part = |ty, at: &[usize]| op(ty, |_, t| OpKind::ExtractSlice { x: t, offsets: at.to_vec() });
    assert_eq!(part(tile(F32, &[4, 128]), &[4, 0]), [""; 0]);
    assert_eq!(part(tile(F32, &[4, 128]), &[5, 0]), ["K0002"]);
    assert_eq!(part(tile(F32, &[4, 128]), &[usize::MAX, 0]), ["K0002"]);
    let roll = |axis, amount: Type| {
        op(x(), |b, t| {
            let amount = b.op(OpKind::Constant(Literal::Int(3)), amount);
            OpKind::Roll { x: t, amount, axis }
        })
    };
    assert_eq!(roll(1, scalar(I32)), [""; 0]);
    assert_eq!(roll(2, scalar(I32)), ["K0002"]);
    assert_eq!(roll(1, scalar(I8)), ["K0002"]);
    assert_eq!(op(tile(F32, &[8, 1]), |_, t| OpKind::Reduce { op: Reduction::Sum, x: t, axis: 1 }), [""; 0]);
    assert_eq!(op(x(), |_, t| OpKind::Reduce { op: Reduction::Sum, x: t, axis: 1 }), ["K0002"]);
    assert_eq!(op(scalar(F32), |_, t| OpKind::ToScalar { x: t }), ["K0002"]);
}

#[test]
fn a_dot_contracts_equal_axes() {
    let dot = |ty, lhs, rhs| {
        op(ty, |_, t| OpKind::Dot {
            lhs: t,
            rhs: t,
            dims: DotDims { lhs, rhs },
            precision: Precision::Highest,
        })
    };
    assert_eq!(dot(tile(F32, &[8, 8]), 1, 1), [""; 0]);
    assert_eq!(dot(tile(F32, &[128, 128]), 0, 0), [""; 0]);
    assert_eq!(dot(tile(F32, &[8, 8]), 1, 0), ["K0002"]);
    assert_eq!(dot(tile(F32, &[8, 128]), 1, 1), ["K0002"]);
    assert_eq!(dot(tile(F32, &[8, 8]), 2, 2), ["K0002"]);
    assert_eq!(dot(tile(I32, &[8, 8]), 1, 1), ["K0002"]);
}

#[test]
fn a_tile_has_elements_and_fits_the_machine() {
    let empty = op(tile(F32, &[0, 128]), |_, _| OpKind::Constant(Literal::Float(0.0)));
    assert_eq!(empty, ["K0002"]);
    let huge = op(tile(F32, &[usize::MAX, 2]), |_, _| OpKind::Constant(Literal::Float(0.0)));
    assert_eq!(huge, ["K0002"]);
    assert_eq!(op(tile(F32, &[]), |_, _| OpKind::Constant(Literal::Float(0.0))), ["K0002"]);
}

#[test]
fn the_grid_has_the_axis_that_is_asked_for() {
    assert_eq!(op(scalar(I32), |_, _| OpKind::ProgramId { axis: 0 }), [""; 0]);
    assert_eq!(op(scalar(I32), |_, _| OpKind::ProgramId { axis: 1 }), ["K0104"]);
    assert_eq!(op(scalar(I32), |_, _| OpKind::NumPrograms { axis: 7 }), ["K0104"]);
}

#[test]
fn memory_is_reached_by_the_right_operation() {
    let load = |f: fn(&mut Builder, Value) -> Value, offsets: &[Offset], ty: Type| {
        with_blocks(|b, x, _| {
            let base = f(b, x);
            b.op(OpKind::Load { base, offsets: offsets.to_vec() }, ty);
        })
        .codes()
    };
    let zero = Offset::Const(0);
    assert_eq!(load(|_, x| x, &[zero, zero], x()), [""; 0]);
    assert_eq!(load(|_, x| x, &[zero], x()), ["K0002"]);
    assert_eq!(load(|_, x| x, &[zero, zero], tile(BF16, &X)), ["K0002"]);
    assert_eq!(load(|_, x| x, &[zero, zero], tile(F32, &[1024])), ["K0002"]);
    assert_eq!(load(|_, x| x, &[zero, zero], scalar(F32)), ["K0002"]);
    assert_eq!(load(|b, x| b.read(x), &[zero, zero], x()), ["K0002"]);
    let hbm = |b: &mut Builder, _| b.hbm("h", Role::Input, F32, "8 128");
    assert_eq!(load(hbm, &[zero, zero], x()), ["K0002"]);
    let scalars = with_blocks(|b, x, _| {
        b.op(OpKind::LoadScalar { base: x, offsets: vec![zero, zero] }, scalar(F32));
    });
    assert_eq!(scalars.codes(), ["K0002"]);
}

#[test]
fn a_copy_moves_between_equal_windows() {
    let copy = |rows: usize, d: DType, slots: bool| {
        let mut b = Builder::new("seq 1");
        let x = b.hbm("x", Role::Input, F32, "16 128");
        let o = b.hbm("o", Role::Output, d, "16 128");
        let sem = b.semaphores("sem", 1);
        let src = b.slice(x, &[Offset::Const(0), Offset::Const(0)], &[Size::Const(rows), Size::Const(128)]);
        let sem = if slots { b.slot(sem, Offset::Const(0)) } else { sem };
        b.effect(OpKind::CopyStart { src, dst: o, sem });
        b.effect(OpKind::CopyWait { src, dst: o, sem });
        b.codes()
    };
    assert_eq!(copy(16, F32, true), [""; 0]);
    assert_eq!(copy(8, F32, true), ["K0002", "K0002"]);
    assert_eq!(copy(16, I32, true), ["K0002", "K0002"]);
    assert_eq!(copy(16, F32, false), ["K0002", "K0002"]);
}
