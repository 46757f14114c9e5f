//! Kernels whose grid is a map over the cores of a device: signals between cores, and the arrays that they share.

use kernel_ir::diag::Report;
use kernel_ir::exec::{Array, Options, call, run_mesh};
use kernel_ir::ir::{Binary, DType, Kernel, MemorySpace, Offset, OpKind, Role, Semantics, Size, Type, Value};

use crate::build::Build;

fn op(b: &mut Build, op: Binary, x: Value, y: Value) -> Value {
    b.op(Type::Scalar(DType::I32), OpKind::Binary { op, x, y })
}

/// A kernel on this many cores.
fn on_cores(cores: usize) -> Build {
    Build::new(&[(cores.into(), Semantics::Parallel)])
}

fn signal(b: &mut Build, sem: Value, device: Option<Value>, core: Value) {
    let amount = b.int(1);
    b.effect(OpKind::SemSignal { sem, amount, device, core: Some(core) });
}

/// Core `i` writes row `i` of `o`, in HBM: the row of core `i - 1`, plus `x`, once that one has said that it is there.
fn relay(cores: usize) -> Kernel {
    let mut b = on_cores(cores);
    let x = b.array(("x", Role::Input), DType::I32, MemorySpace::Vmem, &[1.into(), 4.into()]);
    let o = b.array(("o", Role::Output), DType::I32, MemorySpace::Any, &[cores.into(), 4.into()]);
    let buffer = b.scratch("buffer", DType::I32, MemorySpace::Vmem, &[1, 4]);
    let (copied, ready) = (b.semaphore("copied"), b.counter("ready"));
    let (i, one, n) = (b.program_id(0), b.int(1), b.int(cores as i64));
    let row = |b: &mut Build, i| {
        b.slice(o, &[Offset::Value(i), Offset::Const(0)], &[Size::Const(1), Size::Const(4)])
    };
    let copy = |b: &mut Build, src, dst| {
        b.effect(OpKind::CopyStart { src, dst, sem: copied });
        b.effect(OpKind::CopyWait { src, dst, sem: copied });
    };
    let later = op(&mut b, Binary::Min, i, one);
    b.effect(OpKind::SemWait { sem: ready, amount: later });
    let before = op(&mut b, Binary::Sub, i, later);
    let (from, to) = (row(&mut b, before), row(&mut b, i));
    let zero = b.splat(DType::I32, &[1, 4], 0.0);
    b.store(buffer, zero);
    // Row 0 comes from nowhere.
    let is_later = OpKind::Compare { op: kernel_ir::ir::Compare::Eq, x: later, y: one };
    let cond = b.op(Type::Scalar(DType::Bool), is_later);
    let then = b.block(&[], |b, _| {
        copy(b, from, buffer);
        vec![]
    });
    let otherwise = b.block(&[], |_, _| vec![]);
    b.effect(OpKind::If { cond, then, otherwise });
    let (old, v) = (b.load(buffer), b.load(x));
    let sum = b.op(Type::tile(DType::I32, [1, 4]), OpKind::Binary { op: Binary::Add, x: old, y: v });
    b.store(buffer, sum);
    copy(&mut b, buffer, to);
    let next = op(&mut b, Binary::Add, i, one);
    let next = op(&mut b, Binary::Rem, next, n);
    signal(&mut b, ready, None, next);
    let first = op(&mut b, Binary::Sub, one, later);
    b.effect(OpKind::SemWait { sem: ready, amount: first });
    b.finish()
}

#[test]
fn cores_pass_on_what_they_write_to_hbm() {
    let x = Array::new([1, 4], vec![1, 10, 100, 1000]).unwrap();
    for cores in [1, 2, 7] {
        let want: Vec<f64> = (1..=cores).flat_map(|i| [1, 10, 100, 1000].map(|x| (i * x) as f64)).collect();
        for threads in [Some(1), None] {
            let options = Options { threads, ..Options::default() };
            let got = call(&relay(cores), std::slice::from_ref(&x), &options).unwrap();
            assert_eq!(got[0].to_f64(), want);
        }
        // On several devices, each has cores and an array of its own.
        let twice = Array::new([1, 4], vec![2, 20, 200, 2000]).unwrap();
        let options = Options { shuffle: Some(3), ..Options::default() };
        let got = run_mesh(&relay(cores), &[vec![x.clone()], vec![twice]], &options).unwrap();
        assert_eq!(got[0][0].to_f64(), want);
        assert_eq!(got[1][0].to_f64(), want.iter().map(|x| 2.0 * x).collect::<Vec<_>>());
    }
}

/// Each core signals the core behind it, of its own device or of the one behind that; `o` is what it has got of its semaphore.
fn ring(devices: usize, cores: usize, wait: i64, across: bool) -> Kernel {
    let mut b = on_cores(cores);
    let o = b.window(("o", Role::Output), DType::I32, &[cores.into()], &[1], |_, i| vec![i[0]]);
    let ready = b.counter("ready");
    let after = |b: &mut Build, i, n: usize| {
        let (one, n) = (b.int(1), b.int(n as i64));
        let next = op(b, Binary::Add, i, one);
        op(b, Binary::Rem, next, n)
    };
    let (i, id) = (b.program_id(0), b.op(Type::Scalar(DType::I32), OpKind::DeviceId));
    let (core, device) = (after(&mut b, i, cores), after(&mut b, id, devices));
    signal(&mut b, ready, across.then_some(device), core);
    let amount = b.int(wait);
    b.effect(OpKind::SemWait { sem: ready, amount });
    let hundred = b.int(100);
    let number = op(&mut b, Binary::Mul, id, hundred);
    let number = op(&mut b, Binary::Add, number, i);
    let v = b.op(Type::tile(DType::I32, [1]), OpKind::Broadcast { x: number });
    b.store(o, v);
    b.finish()
}

fn run_ring(devices: usize, cores: usize, wait: i64, across: bool) -> Result<Vec<Vec<Array>>, Report> {
    run_mesh(&ring(devices, cores, wait, across), &vec![vec![]; devices], &Options::default())
}

#[test]
fn a_signal_names_a_core_of_a_device() {
    for across in [false, true] {
        let got = run_ring(2, 3, 1, across).unwrap();
        let numbers: Vec<_> = got.iter().map(|o| o[0].to_f64()).collect();
        assert_eq!(numbers, [[0.0, 1.0, 2.0], [100.0, 101.0, 102.0]]);
    }
}

#[test]
fn what_goes_wrong_between_cores_names_them() {
    let e = run_ring(1, 2, 2, false).unwrap_err().to_string();
    assert!(e.contains("K0402") && e.contains("the cores wait for each other forever"), "{e}");
    assert!(e.contains("core 1 waits at") && !e.contains("device"), "{e}");
    let e = run_ring(2, 2, 2, true).unwrap_err().to_string();
    assert!(e.contains("core 1 of device 0 waits at"), "{e}");
    let e = run_ring(1, 2, 0, false).unwrap_err().to_string();
    assert!(e.contains("K0403") && e.contains("core 0 never waits for what core 1 sends it"), "{e}");

    let mut b = on_cores(2);
    let ready = b.counter("ready");
    let two = b.int(2);
    signal(&mut b, ready, None, two);
    let e = call(&b.finish(), &[], &Options::default()).unwrap_err().to_string();
    assert!(e.contains("K0401") && e.contains("there is no core 2: the kernel runs on 2"), "{e}");
    assert!(e.contains("on core "), "{e}");
}

#[test]
fn more_cores_than_run_here_are_refused() {
    for (devices, cores) in [(1, 257), (2, 129), (1, 1 << 30)] {
        let e = run_ring(devices, cores, 1, false).unwrap_err().to_string();
        assert!(e.contains("K0404") && e.contains("1 to 256 run here in all"), "{e}");
    }
}

#[test]
fn cores_do_not_share_an_array_on_the_chip() {
    let mut b = on_cores(2);
    let o = b.array(("o", Role::Output), DType::I32, MemorySpace::Vmem, &[4.into()]);
    let (ready, i) = (b.counter("ready"), b.program_id(0));
    signal(&mut b, ready, None, i);
    let v = b.splat(DType::I32, &[4], 1.0);
    b.store(o, v);
    let e = call(&b.finish(), &[], &Options::default()).unwrap_err().to_string();
    assert!(e.contains("K0411") && e.contains("`o` is on the chip as a whole"), "{e}");
}
