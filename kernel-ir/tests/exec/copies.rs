//! Copies and semaphores: when data lands, what may not happen meanwhile, and how far a copy may reach.

use kernel_ir::exec::Array;
use kernel_ir::ir::{
    DType, DimExpr, Kernel, MemorySpace, Offset, OpKind, Role, Semantics, Size, Type, Value,
};

use crate::build::{Build, run_serial};

struct Parts {
    x: Value,
    o: Value,
    buf: Value,
    sem: Value,
}

/// One step over `x` and `o` in HBM, `buf` in VMEM and a semaphore; `x` is `[m, n]`, the others are given.
fn kernel(buf: [usize; 2], out: [usize; 2], f: impl FnOnce(&mut Build, &Parts)) -> Kernel {
    let mut b = Build::once();
    let x =
        b.array(("x", Role::Input), DType::F32, MemorySpace::Any, &[DimExpr::dim("m"), DimExpr::dim("n")]);
    let o = b.array(("o", Role::Output), DType::F32, MemorySpace::Any, &[out[0].into(), out[1].into()]);
    let buf = b.scratch("buf", DType::F32, MemorySpace::Vmem, &buf);
    let sem = b.semaphore("sem");
    f(&mut b, &Parts { x, o, buf, sem });
    b.finish()
}

fn part(b: &mut Build, base: Value, at: [usize; 2], size: [usize; 2]) -> Value {
    b.slice(base, &at.map(Offset::Const), &size.map(Size::Const))
}

fn start(b: &mut Build, src: Value, dst: Value, sem: Value) {
    b.effect(OpKind::CopyStart { src, dst, sem });
}

fn wait(b: &mut Build, src: Value, dst: Value, sem: Value) {
    b.effect(OpKind::CopyWait { src, dst, sem });
}

/// Copies and waits.
fn copy(b: &mut Build, src: Value, dst: Value, sem: Value) {
    start(b, src, dst, sem);
    wait(b, src, dst, sem);
}

fn count(m: usize, n: usize) -> Array {
    Array::from_fn([m, n], |i| i as f32)
}

fn error(k: &Kernel, x: &Array) -> String {
    run_serial(k, &[("x", x)]).expect_err("the kernel is wrong")
}

#[test]
fn a_copy_goes_to_vmem_and_back_by_slices() {
    let k = kernel([4, 3], [2, 3], |b, p| {
        let from = part(b, p.x, [1, 2], [2, 3]);
        let to = part(b, p.buf, [2, 0], [2, 3]);
        copy(b, from, to, p.sem);
        copy(b, to, p.o, p.sem);
    });
    let out = run_serial(&k, &[("x", &count(4, 8))]).unwrap();
    assert_eq!(out["o"].to_f64(), [10., 11., 12., 18., 19., 20.]);
}

#[test]
fn sizes_and_offsets_may_be_known_only_when_it_runs() {
    let mut b = Build::once();
    let n = DimExpr::dim("n");
    let x = b.array(("x", Role::Input), DType::I32, MemorySpace::Any, std::slice::from_ref(&n));
    let o = b.array(("o", Role::Output), DType::I32, MemorySpace::Any, &[n]);
    let sem = b.semaphore("sem");
    let len = b.op(Type::Scalar(DType::I32), OpKind::Dim { name: "n".into() });
    let one = b.int(1);
    let rest =
        b.op(Type::Scalar(DType::I32), OpKind::Binary { op: kernel_ir::ir::Binary::Sub, x: len, y: one });
    let from = b.slice(x, &[Offset::Const(0)], &[Size::Value(rest)]);
    let to = b.slice(o, &[Offset::Value(one)], &[Size::Value(rest)]);
    copy(&mut b, from, to, sem);
    let first = b.slice(x, &[Offset::Value(rest)], &[Size::Const(1)]);
    let to = b.slice(o, &[Offset::Const(0)], &[Size::Const(1)]);
    copy(&mut b, first, to, sem);
    let kernel = b.finish();
    for n in [1, 5] {
        let x = Array::from_fn([n], |i| i as i32);
        let want: Vec<f64> = (0..n).map(|i| ((i + n - 1) % n) as f64).collect();
        assert_eq!(run_serial(&kernel, &[("x", &x)]).unwrap()["o"].to_f64(), want);
    }
}

#[test]
fn waits_on_one_semaphore_land_copies_in_order_and_by_bytes() {
    // One wait for both: the semaphore counts bytes, whoever moved them.
    let k = kernel([4, 8], [4, 8], |b, p| {
        let (a, c) = (part(b, p.x, [0, 0], [2, 8]), part(b, p.x, [2, 0], [2, 8]));
        let (top, bottom) = (part(b, p.buf, [0, 0], [2, 8]), part(b, p.buf, [2, 0], [2, 8]));
        start(b, a, top, p.sem);
        start(b, c, bottom, p.sem);
        wait(b, p.x, p.buf, p.sem);
        copy(b, p.buf, p.o, p.sem);
    });
    let x = count(4, 8);
    assert_eq!(run_serial(&k, &[("x", &x)]).unwrap()["o"], x);
    // A wait that names the second copy gets the first: reading the second is a race.
    let k = kernel([4, 8], [2, 8], |b, p| {
        let (a, c) = (part(b, p.x, [0, 0], [2, 8]), part(b, p.x, [2, 0], [2, 8]));
        let (top, bottom) = (part(b, p.buf, [0, 0], [2, 8]), part(b, p.buf, [2, 0], [2, 8]));
        start(b, a, top, p.sem);
        start(b, c, bottom, p.sem);
        wait(b, c, bottom, p.sem);
        start(b, bottom, p.o, p.sem);
    });
    assert!(error(&k, &x).contains("K0408"));
}

#[test]
fn a_wait_without_a_copy_is_a_deadlock() {
    let k = kernel([4, 8], [4, 8], |b, p| wait(b, p.x, p.buf, p.sem));
    let e = error(&k, &count(4, 8));
    assert!(e.contains("K0402") && e.contains("`buf`") && e.contains("kernel.rs"), "{e}");
    // Half of the bytes are not enough.
    let k = kernel([4, 8], [4, 8], |b, p| {
        let (a, top) = (part(b, p.x, [0, 0], [2, 8]), part(b, p.buf, [0, 0], [2, 8]));
        start(b, a, top, p.sem);
        wait(b, p.x, p.buf, p.sem);
    });
    let e = error(&k, &count(4, 8));
    assert!(e.contains("K0402") && e.contains("needs 128 bytes; 64 have landed"), "{e}");
}

#[test]
fn a_copy_that_nobody_waits_for_is_reported_where_it_started() {
    let k = kernel([4, 8], [4, 8], |b, p| {
        copy(b, p.x, p.buf, p.sem);
        start(b, p.buf, p.o, p.sem);
    });
    let line = k.loc(k.body.ops[2].span).line;
    let e = error(&k, &count(4, 8));
    assert!(e.contains("K0403") && e.contains("`o` is never waited for"), "{e}");
    assert!(e.contains(&format!("kernel.rs:{line}")), "{e}");
    // Waiting for fewer bytes than were copied leaves the semaphore counting.
    let k = kernel([4, 8], [4, 8], |b, p| {
        start(b, p.x, p.buf, p.sem);
        let (a, top) = (part(b, p.x, [0, 0], [1, 8]), part(b, p.buf, [0, 0], [1, 8]));
        wait(b, a, top, p.sem);
    });
    let e = error(&k, &count(4, 8));
    assert!(e.contains("K0403") && e.contains("`sem` still counts 96 bytes"), "{e}");
}

#[test]
fn memory_may_not_be_touched_while_a_copy_is_on_its_way() {
    let x = count(4, 8);
    type Touch = fn(&mut Build, &Parts);
    let touches: [(&str, Touch); 3] = [
        ("`buf` is read while a copy into it", |b, p| {
            let v = b.load(p.buf);
            b.store(p.buf, v);
        }),
        ("`buf` is written while a copy into it", |b, p| {
            let v = b.splat(DType::F32, &[4, 8], 0.0);
            b.store(p.buf, v);
        }),
        ("`buf` is written while a copy into it", |b, p| start(b, p.x, p.buf, p.sem)),
    ];
    for (message, touch) in touches {
        let k = kernel([4, 8], [4, 8], |b, p| {
            start(b, p.x, p.buf, p.sem);
            touch(b, p);
        });
        let e = error(&k, &x);
        assert!(e.contains("K0408") && e.contains(message), "{e}");
    }
    let k = kernel([4, 8], [4, 8], |b, p| {
        copy(b, p.x, p.buf, p.sem);
        start(b, p.buf, p.o, p.sem);
        let v = b.splat(DType::F32, &[4, 8], 0.0);
        b.store(p.buf, v);
    });
    let e = error(&k, &x);
    assert!(e.contains("`buf` is written while a copy from it"), "{e}");
    // Another part of the same memory is free.
    let k = kernel([4, 8], [2, 8], |b, p| {
        let (a, top) = (part(b, p.x, [0, 0], [2, 8]), part(b, p.buf, [0, 0], [2, 8]));
        let bottom = part(b, p.buf, [2, 0], [2, 8]);
        start(b, a, top, p.sem);
        let v = b.splat(DType::F32, &[2, 8], 3.0);
        b.store(bottom, v);
        wait(b, a, top, p.sem);
        copy(b, bottom, p.o, p.sem);
    });
    assert_eq!(run_serial(&k, &[("x", &x)]).unwrap()["o"].to_f64(), [3.0; 16]);
}

#[test]
fn a_copy_may_reach_into_the_padding_of_the_last_hbm_tile() {
    // x is [5, 100]: its last tile ends at row 8, column 128.
    let x = count(5, 100);
    let k = kernel([8, 128], [5, 100], |b, p| {
        let whole = part(b, p.x, [0, 0], [8, 128]);
        copy(b, whole, p.buf, p.sem);
        let target = part(b, p.o, [0, 0], [8, 128]);
        copy(b, p.buf, target, p.sem);
    });
    assert_eq!(run_serial(&k, &[("x", &x)]).unwrap()["o"], x, "what falls on padding is dropped");
    let k = kernel([8, 128], [8, 128], |b, p| {
        let whole = part(b, p.x, [0, 0], [8, 128]);
        copy(b, whole, p.buf, p.sem);
        copy(b, p.buf, p.o, p.sem);
    });
    let got = run_serial(&k, &[("x", &x)]).unwrap()["o"].to_f64();
    for (i, v) in got.iter().enumerate() {
        let (row, column) = (i / 128, i % 128);
        if row < 5 && column < 100 {
            assert_eq!(*v, (row * 100 + column) as f64);
        } else {
            assert!(v.is_nan(), "padding at {row}, {column} is undefined, not {v}");
        }
    }
}

#[test]
fn beyond_the_last_tile_and_beyond_vmem_is_out_of_bounds() {
    let x = count(5, 100);
    for (at, size, axis) in [([1, 0], [8, 128], 0), ([0, 0], [9, 1], 0), ([0, 8], [1, 128], 1)] {
        let k = kernel([16, 256], [1, 1], |b, p| {
            let from = part(b, p.x, at, size);
            let to = part(b, p.buf, [0, 0], size);
            start(b, from, to, p.sem);
        });
        let e = error(&k, &x);
        assert!(e.contains("K0401") && e.contains(&format!("axis {axis}")) && e.contains("`x`"), "{e}");
    }
    let k = kernel([5, 100], [1, 1], |b, p| {
        part(b, p.buf, [0, 0], [8, 128]);
        let _ = part(b, p.buf, [0, 0], [8, 128]);
        let (from, to) = (part(b, p.x, [0, 0], [8, 128]), part(b, p.buf, [0, 0], [8, 128]));
        start(b, from, to, p.sem);
    });
    let e = error(&k, &x);
    assert!(e.contains("K0401") && e.contains("`buf`"), "{e}");
}

#[test]
fn copies_cross_grid_steps() {
    let mut b = Build::new(&[(4.into(), Semantics::Arbitrary)]);
    let x = b.array(("x", Role::Input), DType::F32, MemorySpace::Any, &[16.into()]);
    let o = b.window(("o", Role::Output), DType::F32, &[16.into()], &[4], |_, i| vec![i[0]]);
    let buf = b.scratch("buf", DType::F32, MemorySpace::Vmem, &[8]);
    let sem = b.semaphore("sem");
    let (step, four, two) = (b.program_id(0), b.int(4), b.int(2));
    let int = Type::Scalar(DType::I32);
    let op = |b: &mut Build, op, x, y| b.op(int.clone(), OpKind::Binary { op, x, y });
    use kernel_ir::ir::{Binary, Compare};
    let one_block = |b: &mut Build, i: Value| {
        let (at, slot) = (op(b, Binary::Mul, i, four), op(b, Binary::Rem, i, two));
        let slot = op(b, Binary::Mul, slot, four);
        let from = b.slice(x, &[Offset::Value(at)], &[Size::Const(4)]);
        (from, b.slice(buf, &[Offset::Value(slot)], &[Size::Const(4)]))
    };
    let when = |b: &mut Build, compare, y: i64, body: &dyn Fn(&mut Build)| {
        let y = b.int(y);
        let cond = b.op(Type::Scalar(DType::Bool), OpKind::Compare { op: compare, x: step, y });
        let then = b.block(&[], |b, _| {
            body(b);
            vec![]
        });
        let otherwise = b.block(&[], |_, _| vec![]);
        b.effect(OpKind::If { cond, then, otherwise });
    };
    when(&mut b, Compare::Eq, 0, &|b| {
        let (from, to) = one_block(b, step);
        start(b, from, to, sem);
    });
    when(&mut b, Compare::Lt, 3, &|b| {
        let one = b.int(1);
        let next = op(b, Binary::Add, step, one);
        let (from, to) = one_block(b, next);
        start(b, from, to, sem);
    });
    let (from, to) = one_block(&mut b, step);
    wait(&mut b, from, to, sem);
    let v = b.load(to);
    b.store(o, v);
    let x = Array::from_fn([16], |i| i as f32);
    assert_eq!(run_serial(&b.finish(), &[("x", &x)]).unwrap()["o"], x);
}

#[test]
fn hbm_is_reached_by_copies_only() {
    let k = kernel([4, 8], [1, 1], |b, p| {
        let whole = part(b, p.x, [0, 0], [8, 128]);
        let v = b.load(whole);
        let view = part(b, p.buf, [0, 0], [1, 1]);
        let corner =
            b.op(Type::tile(DType::F32, [1, 1]), OpKind::ExtractSlice { x: v, offsets: vec![7, 127] });
        b.store(view, corner);
    });
    let e = error(&k, &count(4, 8));
    assert!(e.contains("K0411") && e.contains("`x` cannot be loaded"), "{e}");
}
