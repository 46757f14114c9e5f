//! Counting semaphores on one device, assertions, and remote ops where there is no mesh.

use kernel_ir::exec::{Array, Options, run};
use kernel_ir::ir::{
    Compare, DType, Elem, Kernel, MemorySpace, Offset, OpKind, RefType, Role, Semantics, Type, Value,
};

use crate::build::{Build, run_serial};

fn int() -> Type {
    Type::Scalar(DType::I32)
}

pub(crate) fn barrier(b: &mut Build) -> Value {
    let ty = RefType { elem: Elem::Semaphore, shape: vec![], space: MemorySpace::Semaphore };
    b.op(Type::Ref(ty), OpKind::BarrierSemaphore)
}

fn signal(b: &mut Build, sem: Value, amount: i64, device: Option<i64>) {
    let amount = b.int(amount);
    let device = device.map(|d| b.int(d));
    b.effect(OpKind::SemSignal { sem, amount, device, core: None });
}

fn wait(b: &mut Build, sem: Value, amount: i64) {
    let amount = b.int(amount);
    b.effect(OpKind::SemWait { sem, amount });
}

/// A kernel of one step with a counting semaphore and an output of as many integers as `f` yields.
fn counting(f: impl FnOnce(&mut Build, Value) -> Vec<Value>) -> Kernel {
    let mut b = Build::once();
    let sem = b.counter("ready");
    let results = f(&mut b, sem);
    let o = b.array(("o", Role::Output), DType::I32, MemorySpace::Smem, &[results.len().into()]);
    for (i, v) in results.into_iter().enumerate() {
        b.store_scalar(o, Offset::Const(i), v);
    }
    b.finish()
}

#[test]
fn signals_count_waits_take_and_reads_look() {
    let kernel = counting(|b, sem| {
        let before = b.op(int(), OpKind::SemRead { sem });
        signal(b, sem, 5, None);
        signal(b, sem, 2, Some(0));
        let after = b.op(int(), OpKind::SemRead { sem });
        wait(b, sem, 4);
        let rest = b.op(int(), OpKind::SemRead { sem });
        wait(b, sem, 3);
        let id = b.op(int(), OpKind::DeviceId);
        let shared = barrier(b);
        signal(b, shared, 1, Some(0));
        wait(b, shared, 1);
        vec![before, after, rest, id]
    });
    assert_eq!(run_serial(&kernel, &[]).unwrap()["o"].to_f64(), [0.0, 7.0, 3.0, 0.0]);
}

#[test]
fn a_wait_for_more_than_is_signalled_is_a_deadlock() {
    let kernel = counting(|b, sem| {
        signal(b, sem, 2, None);
        wait(b, sem, 3);
        vec![]
    });
    let line = kernel.loc(kernel.body.ops.last().unwrap().span).line;
    let e = run_serial(&kernel, &[]).unwrap_err();
    assert!(e.contains("K0402") && e.contains("`ready` has reached 3") && e.contains("it counts 2"), "{e}");
    assert!(e.contains(&format!("kernel.rs:{line}")), "{e}");
}

#[test]
fn a_semaphore_that_still_counts_at_the_end_is_an_error() {
    let e = run_serial(
        &counting(|b, sem| {
            signal(b, sem, 2, None);
            wait(b, sem, 1);
            vec![]
        }),
        &[],
    );
    let e = e.unwrap_err();
    assert!(e.contains("K0403") && e.contains("`ready` still counts 1 at the end"), "{e}");
    let e = run_serial(
        &counting(|b, _| {
            let shared = barrier(b);
            signal(b, shared, 1, None);
            vec![]
        }),
        &[],
    );
    assert!(e.unwrap_err().contains("the barrier semaphore"), "the barrier counts too");
}

/// Copies `x` to `o` through scratch, counted by semaphores that `f` makes; `device` makes the first copy a remote one.
fn copying(counted: bool, device: Option<i64>) -> Kernel {
    let mut b = Build::once();
    let shape = [4.into(), 4.into()];
    let x = b.array(("x", Role::Input), DType::F32, MemorySpace::Any, &shape);
    let o = b.array(("o", Role::Output), DType::F32, MemorySpace::Any, &shape);
    let s = b.scratch("s", DType::F32, MemorySpace::Vmem, &[4, 4]);
    let make = |b: &mut Build, name: &str| if counted { b.counter(name) } else { b.semaphore(name) };
    let (sem, other) = (make(&mut b, "sem"), make(&mut b, "other"));
    match device {
        None => b.effect(OpKind::CopyStart { src: x, dst: s, sem }),
        Some(d) => {
            let device = b.int(d);
            b.effect(OpKind::CopyStartRemote { src: x, sent: other, dst: s, received: sem, device });
            b.effect(OpKind::CopyWait { src: x, dst: x, sem: other });
        }
    }
    if counted {
        wait(&mut b, sem, 1);
    } else {
        b.effect(OpKind::CopyWait { src: x, dst: s, sem });
    }
    b.effect(OpKind::CopyStart { src: s, dst: o, sem });
    b.effect(OpKind::CopyWait { src: s, dst: o, sem });
    b.finish()
}

#[test]
fn copies_count_one_on_a_counting_semaphore_and_device_0_is_here() {
    let x = Array::from_fn([4, 4], |i| i as f32);
    for counted in [false, true] {
        for device in [None, Some(0)] {
            let out = run_serial(&copying(counted, device), &[("x", &x)]).unwrap();
            assert_eq!(out["o"], x, "{counted} {device:?}");
        }
        let e = run_serial(&copying(counted, Some(1)), &[("x", &x)]).unwrap_err();
        assert!(e.contains("K0401") && e.contains("there is no device 1"), "{e}");
    }
}

#[test]
fn the_source_of_a_remote_copy_is_in_use_until_it_is_sent() {
    let x = Array::from_fn([4, 4], |i| i as f32);
    let mut b = Build::once();
    let s = b.scratch("s", DType::F32, MemorySpace::Vmem, &[4, 4]);
    let t = b.scratch("t", DType::F32, MemorySpace::Vmem, &[4, 4]);
    let (sent, received, device) = (b.semaphore("sent"), b.semaphore("received"), b.int(0));
    let v = b.splat(DType::F32, &[4, 4], 1.0);
    b.store(s, v);
    b.effect(OpKind::CopyStartRemote { src: s, sent, dst: t, received, device });
    b.effect(OpKind::CopyWait { src: s, dst: t, sem: received });
    b.store(s, v);
    let e = run_serial(&b.finish(), &[]).unwrap_err();
    assert!(e.contains("K0408") && e.contains("`s` is written while a copy from it"), "{e}");
    drop(x);
}

#[test]
fn an_assertion_names_its_message_and_the_step() {
    let mut b = Build::new(&[(4.into(), Semantics::Arbitrary)]);
    let (i, two) = (b.program_id(0), b.int(2));
    let cond = b.op(Type::Scalar(DType::Bool), OpKind::Compare { op: Compare::Lt, x: i, y: two });
    b.effect(OpKind::Assert { cond, message: "index out of range".into() });
    let e = run_serial(&b.finish(), &[]).unwrap_err();
    assert!(e.contains("K0412") && e.contains("index out of range") && e.contains("grid step [2]"), "{e}");
}

#[test]
fn all_rounds_of_a_kernel_together_are_bounded() {
    let mut b = Build::new(&[(10.into(), Semantics::Arbitrary)]);
    let (lo, hi) = (b.int(0), b.int(100));
    let inner = b.block(&[int()], |_, _| vec![]);
    let body = b.block(&[int()], |b, _| {
        b.effect(OpKind::For { lo, hi, init: vec![], body: inner });
        vec![]
    });
    b.effect(OpKind::For { lo, hi, init: vec![], body });
    let kernel = b.finish();
    // 10 steps of 100 rounds of 100 rounds.
    let all = 10 * (1 + 100 * (1 + 100));
    for (max_rounds, fits) in [(all, true), (all - 1, false)] {
        let options = Options { max_rounds, threads: Some(1), ..Options::default() };
        match run(&kernel, &[], &options) {
            Ok(_) => assert!(fits),
            Err(e) => assert!(!fits && e.to_string().contains("K0407"), "{e}"),
        }
    }
}
