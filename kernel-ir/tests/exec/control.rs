//! Control flow, what is carried through it, scalars, and values that were never written.

use kernel_ir::exec::{Array, Options, run};
use kernel_ir::ir::{
    Binary, Compare, DType, Kernel, MemorySpace, Offset, OpKind, Role, Semantics, Size, Type, Value,
};

use crate::build::{Build, numbers, run_serial};

fn int() -> Type {
    Type::Scalar(DType::I32)
}

fn binary(b: &mut Build, op: Binary, x: Value, y: Value) -> Value {
    let ty = b.kernel().ty(x).clone();
    b.op(ty, OpKind::Binary { op, x, y })
}

fn less(b: &mut Build, x: Value, y: Value) -> Value {
    b.op(Type::Scalar(DType::Bool), OpKind::Compare { op: Compare::Lt, x, y })
}

/// A kernel of one step whose scalar goes to `o[0]`.
fn scalar_kernel(f: impl FnOnce(&mut Build) -> Value) -> Kernel {
    let mut b = Build::once();
    let o = b.array(("o", Role::Output), DType::I32, MemorySpace::Smem, &[1.into()]);
    let v = f(&mut b);
    b.store_scalar(o, Offset::Const(0), v);
    b.finish()
}

#[test]
fn loops_carry_scalars_and_tiles_that_trade_places() {
    // Fibonacci numbers: (a, b) -> (b, a + b), as scalars and as tiles at once.
    let mut b = Build::once();
    let ty = Type::tile(DType::I32, [3]);
    let x = b.array(("x", Role::Input), DType::I32, MemorySpace::Vmem, &[3.into()]);
    let o = b.array(("o", Role::Output), DType::I32, MemorySpace::Vmem, &[3.into()]);
    let s = b.array(("s", Role::Output), DType::I32, MemorySpace::Smem, &[2.into()]);
    let (lo, hi, zero, one) = (b.int(0), b.int(10), b.int(0), b.int(1));
    let start = b.load(x);
    let types = [int(), int(), int(), ty.clone(), ty.clone()];
    let body = b.block(&types, |b, args| {
        let next = binary(b, Binary::Add, args[1], args[2]);
        let tiles = binary(b, Binary::Add, args[3], args[4]);
        vec![args[2], next, args[4], tiles]
    });
    let results: Vec<Value> = types[1..].iter().map(|t| b.value(t.clone())).collect();
    b.results(&results, OpKind::For { lo, hi, init: vec![zero, one, start, start], body });
    b.store_scalar(s, Offset::Const(0), results[0]);
    b.store_scalar(s, Offset::Const(1), results[1]);
    b.store(o, results[3]);
    let x = Array::new([3], vec![1, 10, -2]).unwrap();
    let out = run_serial(&b.finish(), &[("x", &x)]).unwrap();
    assert_eq!(out["s"].to_f64(), [55.0, 89.0]);
    assert_eq!(out["o"].to_f64(), [144.0, 1440.0, -288.0]);
}

#[test]
fn a_while_loop_runs_until_its_condition_fails() {
    // The number of halvings from 1000 to 0, with a tile carried along and looked at by the condition.
    let mut b = Build::once();
    let o = b.array(("o", Role::Output), DType::I32, MemorySpace::Vmem, &[2.into()]);
    let ty = Type::tile(DType::I32, [2]);
    let (n, counts) = (b.int(1000), b.splat(DType::I32, &[2], 0.0));
    let types = [int(), ty.clone()];
    let cond = b.block(&types, |b, args| {
        let total = b.op(Type::tile(DType::I32, [1]), OpKind::ExtractSlice { x: args[1], offsets: vec![0] });
        let total = b.op(int(), OpKind::ToScalar { x: total });
        let (zero, limit) = (b.int(0), b.int(100));
        let (positive, few) = (less(b, zero, args[0]), less(b, total, limit));
        vec![binary(b, Binary::And, positive, few)]
    });
    let body = b.block(&types, |b, args| {
        let (two, one) = (b.int(2), b.splat(DType::I32, &[2], 1.0));
        vec![binary(b, Binary::Div, args[0], two), binary(b, Binary::Add, args[1], one)]
    });
    let results: Vec<Value> = types.iter().map(|t| b.value(t.clone())).collect();
    b.results(&results, OpKind::While { init: vec![n, counts], cond, body });
    b.store(o, results[1]);
    assert_eq!(run_serial(&b.finish(), &[]).unwrap()["o"].to_f64(), [10.0, 10.0]);
}

#[test]
fn both_ways_of_an_if_yield() {
    for step in 0..2 {
        let mut b = Build::once();
        let x = b.array(("x", Role::Input), DType::F32, MemorySpace::Vmem, &[4.into()]);
        let o = b.array(("o", Role::Output), DType::F32, MemorySpace::Vmem, &[4.into()]);
        let (step, one) = (b.int(step), b.int(1));
        let x = b.load(x);
        let double = binary(&mut b, Binary::Add, x, x);
        let cond = less(&mut b, step, one);
        let then = b.block(&[], |b, _| vec![binary(b, Binary::Mul, double, double)]);
        let otherwise = b.block(&[], |_, _| vec![double]);
        let ty = Type::tile(DType::F32, [4]);
        let r = b.op(ty, OpKind::If { cond, then, otherwise });
        let sum = binary(&mut b, Binary::Add, r, double);
        b.store(o, sum);
        let kernel = b.finish();
        let x = Array::new([4], vec![1.0_f32, 2.0, 3.0, 4.0]).unwrap();
        let got = run_serial(&kernel, &[("x", &x)]).unwrap()["o"].to_f64();
        let want = [1.0, 2.0, 3.0, 4.0]
            .map(|x: f64| 2.0 * x + if kernel_step(&kernel) == 0 { 4.0 * x * x } else { 2.0 * x });
        assert_eq!(got, want);
    }
}

/// The constant that the kernel above compares.
fn kernel_step(k: &Kernel) -> i64 {
    match k.body.ops[0].kind {
        OpKind::Constant(kernel_ir::ir::Literal::Int(i)) => i,
        _ => unreachable!(),
    }
}

#[test]
fn a_load_sees_memory_as_it_was_whatever_is_stored_before_it_is_used() {
    // Values are read lazily: every kind of write in between must not change what was loaded.
    for case in 0..4 {
        let mut b = Build::once();
        let x = b.array(("x", Role::Input), DType::F32, MemorySpace::Vmem, &[4.into()]);
        let far = b.array(("far", Role::Input), DType::F32, MemorySpace::Any, &[4.into()]);
        let o = b.array(("o", Role::Output), DType::F32, MemorySpace::Vmem, &[4.into()]);
        let s = b.scratch("s", DType::F32, MemorySpace::Vmem, &[4]);
        let sem = b.semaphore("sem");
        let v = b.load(x);
        b.store(s, v);
        let old = b.load(s);
        let negated =
            b.op(Type::tile(DType::F32, [4]), OpKind::Unary { op: kernel_ir::ir::Unary::Neg, x: old });
        let mark = b.splat(DType::F32, &[4], 9.0);
        let (zero, one) = (b.int(0), b.int(1));
        match case {
            0 => b.store(s, mark),
            1 => {
                b.effect(OpKind::CopyStart { src: far, dst: s, sem });
                b.effect(OpKind::CopyWait { src: far, dst: s, sem });
            }
            2 => {
                let cond = less(&mut b, zero, one);
                let view = b.slice(s, &[Offset::Const(0)], &[Size::Const(4)]);
                let then = b.block(&[], |b, _| {
                    b.store(view, mark);
                    vec![]
                });
                let otherwise = b.block(&[], |_, _| vec![]);
                b.effect(OpKind::If { cond, then, otherwise });
            }
            _ => {
                let body = b.block(&[int()], |b, _| {
                    let now = b.load(s);
                    let more = binary(b, Binary::Add, now, now);
                    b.store(s, more);
                    vec![]
                });
                b.effect(OpKind::For { lo: zero, hi: one, init: vec![], body });
            }
        }
        let new = b.load(s);
        let shift = binary(&mut b, Binary::Mul, new, mark);
        let sum = binary(&mut b, Binary::Add, shift, old);
        let sum = binary(&mut b, Binary::Add, sum, negated);
        let sum = binary(&mut b, Binary::Add, sum, old);
        b.store(o, sum);
        let x = Array::new([4], vec![1.0_f32, 2.0, 3.0, 4.0]).unwrap();
        let far = Array::new([4], vec![9.0_f32; 4]).unwrap();
        let got = run_serial(&b.finish(), &[("x", &x), ("far", &far)]).unwrap()["o"].to_f64();
        let want = [1.0, 2.0, 3.0, 4.0].map(|x: f64| x + 9.0 * if case < 3 { 9.0 } else { 2.0 * x });
        assert_eq!(got, want, "case {case}");
    }
}

#[test]
fn a_shifted_copy_within_one_memory_reads_before_it_writes() {
    let mut b = Build::once();
    let x = b.array(("x", Role::Input), DType::I32, MemorySpace::Vmem, &[8.into()]);
    let o = b.array(("o", Role::Output), DType::I32, MemorySpace::Vmem, &[8.into()]);
    let v = b.load(x);
    b.store(o, v);
    let head = b.op(Type::tile(DType::I32, [6]), OpKind::Load { base: o, offsets: vec![Offset::Const(0)] });
    b.effect(OpKind::Store { base: o, offsets: vec![Offset::Const(2)], value: head });
    let x = Array::from_fn([8], |i| i as i32);
    assert_eq!(
        run_serial(&b.finish(), &[("x", &x)]).unwrap()["o"].to_f64(),
        [0., 1., 0., 1., 2., 3., 4., 5.]
    );
}

#[test]
fn a_loop_that_does_not_end_is_stopped() {
    let kernel = scalar_kernel(|b| {
        let n = b.int(0);
        let cond = b.block(&[int()], |b, args| {
            let one = b.int(1);
            vec![less(b, args[0], one)]
        });
        let body = b.block(&[int()], |_, args| vec![args[0]]);
        b.op(int(), OpKind::While { init: vec![n], cond, body })
    });
    let options = Options { max_iterations: 1000, ..Options::default() };
    let e = run(&kernel, &[], &options).unwrap_err().to_string();
    assert!(e.contains("K0407") && e.contains("runs more than 1000 times"), "{e}");
    let kernel = scalar_kernel(|b| {
        let (lo, hi) = (b.int(0), b.int(1001));
        let body = b.block(&[int(), int()], |_, args| vec![args[0]]);
        b.op(int(), OpKind::For { lo, hi, init: vec![lo], body })
    });
    assert!(run(&kernel, &[], &options).unwrap_err().to_string().contains("K0407"));
    assert_eq!(run(&kernel, &[], &Options::default()).unwrap()["o"].to_f64(), [1000.0]);
}

#[test]
fn scalars_never_written_may_not_steer() {
    type Steer = fn(&mut Build, Value, Value);
    let ways: [(&str, Steer); 4] = [
        ("a condition", |b, x, y| {
            let cond = less(b, x, y);
            let (then, otherwise) = (b.block(&[], |_, _| vec![]), b.block(&[], |_, _| vec![]));
            b.effect(OpKind::If { cond, then, otherwise });
        }),
        ("a loop bound", |b, x, y| {
            let body = b.block(&[int()], |_, _| vec![]);
            b.effect(OpKind::For { lo: y, hi: x, init: vec![], body });
        }),
        ("an offset", |b, x, y| {
            let s = b.scratch("t", DType::I32, MemorySpace::Smem, &[4]);
            b.store_scalar(s, Offset::Value(x), y);
        }),
        ("a loop condition", |b, x, y| {
            let cond = b.block(&[], |b, _| vec![less(b, x, y)]);
            let body = b.block(&[], |_, _| vec![]);
            b.effect(OpKind::While { init: vec![], cond, body });
        }),
    ];
    for (what, steer) in ways {
        let mut b = Build::new(&[(2.into(), Semantics::Arbitrary)]);
        let s = b.scratch("s", DType::I32, MemorySpace::Smem, &[2]);
        let one = b.int(1);
        b.store_scalar(s, Offset::Const(1), one);
        let (fresh, known) = (b.load_scalar(s, Offset::Const(0)), b.load_scalar(s, Offset::Const(1)));
        let sum = binary(&mut b, Binary::Add, fresh, known);
        steer(&mut b, sum, known);
        let e = run_serial(&b.finish(), &[]).unwrap_err();
        assert!(e.contains("K0406") && e.contains(what), "{e}");
        assert!(e.contains("grid step [0]"), "{e}");
    }
}

#[test]
fn scalars_may_be_undefined_where_nothing_depends_on_them() {
    let kernel = scalar_kernel(|b| {
        let s = b.scratch("s", DType::I32, MemorySpace::Smem, &[1]);
        let (fresh, one) = (b.load_scalar(s, Offset::Const(0)), b.int(1));
        let yes = less(b, one, one);
        b.op(int(), OpKind::Select { mask: yes, x: fresh, y: one })
    });
    assert_eq!(run_serial(&kernel, &[]).unwrap()["o"].to_f64(), [1.0]);
}

#[test]
fn division_by_zero_is_an_error_in_scalars_and_tiles() {
    let kernel = scalar_kernel(|b| {
        let (x, y) = (b.int(1), b.int(0));
        binary(b, Binary::Div, x, y)
    });
    assert!(run_serial(&kernel, &[]).unwrap_err().contains("K0409"));
    let mut b = Build::once();
    let o = b.array(("o", Role::Output), DType::I32, MemorySpace::Vmem, &[2000.into()]);
    let (x, y) =
        (b.splat(DType::I32, &[2000], 1.0), b.op(Type::tile(DType::I32, [2000]), OpKind::Iota { axis: 0 }));
    let last = b.splat(DType::I32, &[2000], 1999.0);
    let y = binary(&mut b, Binary::Sub, y, last);
    let q = binary(&mut b, Binary::Rem, x, y);
    b.store(o, q);
    assert!(run_serial(&b.finish(), &[]).unwrap_err().contains("K0409"));
}

#[test]
fn broken_promises_and_loads_beyond_a_ref_name_the_line() {
    let kernel = scalar_kernel(|b| {
        let x = b.int(12);
        b.op(int(), OpKind::AssumeMultiple { x, multiple: 8 })
    });
    let e = run_serial(&kernel, &[]).unwrap_err();
    assert!(e.contains("12 is not a multiple of 8"), "{e}");
    let mut b = Build::once();
    let x = b.array(("x", Role::Input), DType::F32, MemorySpace::Vmem, &[8.into(), 4.into()]);
    let o = b.array(("o", Role::Output), DType::F32, MemorySpace::Vmem, &[2.into(), 4.into()]);
    let at = b.int(7);
    let offsets = vec![Offset::Value(at), Offset::Const(0)];
    let v = b.op(Type::tile(DType::F32, [2, 4]), OpKind::Load { base: x, offsets });
    b.store(o, v);
    let kernel = b.finish();
    let line = kernel.loc(kernel.body.ops[1].span).line;
    let x = numbers(DType::F32, &[8, 4], 1);
    let e = run_serial(&kernel, &[("x", &x)]).unwrap_err();
    assert!(e.contains("K0401") && e.contains("7..9 is out of bounds for axis 0 of length 8"), "{e}");
    assert!(e.contains(&format!("kernel.rs:{line}")) && e.contains("`x`"), "{e}");
}
