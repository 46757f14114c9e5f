//! Simulated meshes: collectives written with remote copies, signals between devices, deadlocks.

use kernel_ir::exec::{Array, Options, run_mesh};
use kernel_ir::ir::{Binary, DType, Kernel, MemorySpace, Offset, OpKind, Role, Semantics, Size, Type, Value};

use crate::build::Build;
use crate::semaphores::barrier;

fn int() -> Type {
    Type::Scalar(DType::I32)
}

fn op(b: &mut Build, op: Binary, x: Value, y: Value) -> Value {
    b.op(int(), OpKind::Binary { op, x, y })
}

/// The device to the right of this one.
fn right(b: &mut Build, devices: usize) -> Value {
    let (id, one, n) = (b.op(int(), OpKind::DeviceId), b.int(1), b.int(devices as i64));
    let next = op(b, Binary::Add, id, one);
    op(b, Binary::Rem, next, n)
}

/// A ring all-gather: `o[d] = x` of device `d`, one hop a grid step; a barrier before the first. `own` says whether each
/// hop has a semaphore of its own.
fn all_gather(devices: usize, own: bool) -> Kernel {
    let mut b = Build::new(&[((devices - 1).into(), Semantics::Arbitrary)]);
    let x = b.array(("x", Role::Input), DType::F32, MemorySpace::Any, &[8.into()]);
    let o = b.array(("o", Role::Output), DType::F32, MemorySpace::Any, &[devices.into(), 8.into()]);
    let (local, sent) = (b.semaphore("local"), b.semaphore("sent"));
    let received = b.semaphores("received", devices - 1);
    let (step, id, n) = (b.program_id(0), b.op(int(), OpKind::DeviceId), b.int(devices as i64));
    let next = right(&mut b, devices);
    let slot = |b: &mut Build, i: Value| {
        let row = b.slice(o, &[Offset::Value(i), Offset::Const(0)], &[Size::Const(1), Size::Const(8)]);
        let mut ty = b.kernel().ref_ty(row).clone();
        ty.shape.remove(0);
        b.op(Type::Ref(ty), OpKind::Squeeze { base: row, axes: vec![0] })
    };
    let zero = b.int(0);
    let first = OpKind::Compare { op: kernel_ir::ir::Compare::Eq, x: step, y: zero };
    let cond = b.op(Type::Scalar(DType::Bool), first);
    let then = b.block(&[], |b, _| {
        let (shared, one) = (barrier(b), b.int(1));
        b.effect(OpKind::SemSignal { sem: shared, amount: one, device: Some(next), core: None });
        b.effect(OpKind::SemWait { sem: shared, amount: one });
        let own = slot(b, id);
        b.effect(OpKind::CopyStart { src: x, dst: own, sem: local });
        b.effect(OpKind::CopyWait { src: x, dst: own, sem: local });
        vec![]
    });
    let otherwise = b.block(&[], |_, _| vec![]);
    b.effect(OpKind::If { cond, then, otherwise });
    // What came last goes on: the shard of the device `step` to the left.
    let from = op(&mut b, Binary::Sub, id, step);
    let from = op(&mut b, Binary::Add, from, n);
    let from = op(&mut b, Binary::Rem, from, n);
    let shard = slot(&mut b, from);
    let at = if own { Offset::Value(step) } else { Offset::Const(0) };
    let received = b.slice(received, &[at], &[Size::Const(1)]);
    let mut ty = b.kernel().ref_ty(received).clone();
    ty.shape.clear();
    let received = b.op(Type::Ref(ty), OpKind::Squeeze { base: received, axes: vec![0] });
    b.effect(OpKind::CopyStartRemote { src: shard, sent, dst: shard, received, device: next });
    b.effect(OpKind::CopyWait { src: shard, dst: shard, sem: sent });
    b.effect(OpKind::CopyWait { src: shard, dst: shard, sem: received });
    b.finish()
}

#[test]
fn a_ring_gathers_the_shards_of_all_devices() {
    for devices in [2, 3, 8] {
        let kernel = all_gather(devices, true);
        let shard = |d: usize| Array::from_fn([8], |i| (d * 8 + i) as f32);
        let arguments: Vec<_> = (0..devices).map(|d| vec![shard(d)]).collect();
        let want: Vec<f64> = (0..devices * 8).map(|i| i as f64).collect();
        for shuffle in [None, Some(1), Some(2)] {
            let options = Options { shuffle, ..Options::default() };
            let got = run_mesh(&kernel, &arguments, &options).unwrap();
            assert_eq!(got.len(), devices);
            assert!(got.iter().all(|o| o.len() == 1 && o[0].to_f64() == want), "{devices}");
        }
    }
}

#[test]
fn shuffled_messages_show_a_ring_that_counts_all_hops_on_one_semaphore() {
    let kernel = all_gather(8, false);
    let arguments: Vec<_> = (0..8).map(|d| vec![Array::from_fn([8], |i| (d * 8 + i) as f32)]).collect();
    let want: Vec<f64> = (0..64).map(f64::from).collect();
    let right = |shuffle| {
        let options = Options { shuffle, ..Options::default() };
        run_mesh(&kernel, &arguments, &options).unwrap().iter().all(|o| o[0].to_f64() == want)
    };
    assert!(right(None));
    assert!(!(0..20).all(|seed| right(Some(seed))), "no order was wrong");
}

/// Every device sends its number to every other one, into VMEM; each adds up what it got, when all have come.
#[test]
fn an_all_reduce_by_everybody_to_everybody() {
    let devices = 5;
    let mut b = Build::once();
    let x = b.array(("x", Role::Input), DType::F32, MemorySpace::Vmem, &[1.into(), 4.into()]);
    let o = b.array(("o", Role::Output), DType::F32, MemorySpace::Vmem, &[1.into(), 4.into()]);
    let own = b.scratch("own", DType::F32, MemorySpace::Vmem, &[1, 4]);
    let all = b.scratch("all", DType::F32, MemorySpace::Vmem, &[devices, 4]);
    let (sent, received) = (b.semaphore("sent"), b.semaphore("received"));
    let id = b.op(int(), OpKind::DeviceId);
    let v = b.load(x);
    b.store(own, v);
    let sizes = [Size::Const(1), Size::Const(4)];
    let row = b.slice(all, &[Offset::Value(id), Offset::Const(0)], &sizes);
    let (lo, hi) = (b.int(0), b.int(devices as i64));
    let send = b.block(&[int()], |b, i| {
        b.effect(OpKind::CopyStartRemote { src: own, sent, dst: row, received, device: i[0] });
        vec![]
    });
    b.effect(OpKind::For { lo, hi, init: vec![], body: send });
    let take = b.block(&[int()], |b, _| {
        b.effect(OpKind::CopyWait { src: own, dst: row, sem: sent });
        b.effect(OpKind::CopyWait { src: own, dst: row, sem: received });
        vec![]
    });
    b.effect(OpKind::For { lo, hi, init: vec![], body: take });
    let v = b.load(all);
    let sum = OpKind::Reduce { op: kernel_ir::ir::Reduction::Sum, x: v, axis: 0 };
    let sum = b.op(Type::tile(DType::F32, [1, 4]), sum);
    b.store(o, sum);
    let kernel = b.finish();
    let arguments: Vec<_> =
        (0..devices).map(|d| vec![Array::from_fn([1, 4], |i| (10 * d + i) as f32)]).collect();
    for seed in 0..20 {
        let options = Options { shuffle: Some(seed), ..Options::default() };
        for out in run_mesh(&kernel, &arguments, &options).unwrap() {
            assert_eq!(out[0].to_f64(), [100.0, 105.0, 110.0, 115.0]);
        }
    }
}

#[test]
fn a_delayed_load_is_done_before_others_may_write() {
    // Device 0 loads its scratch, tells device 1 to overwrite it, waits, and only then uses what it loaded.
    let mut b = Build::once();
    let o = b.array(("o", Role::Output), DType::F32, MemorySpace::Vmem, &[1.into(), 4.into()]);
    let s = b.scratch("s", DType::F32, MemorySpace::Vmem, &[1, 4]);
    let (ready, sent, received) = (b.counter("ready"), b.semaphore("sent"), b.semaphore("received"));
    let one = b.splat(DType::F32, &[1, 4], 1.0);
    b.store(s, one);
    let old = b.load(s);
    let (next, count) = (right(&mut b, 2), b.int(1));
    b.effect(OpKind::SemSignal { sem: ready, amount: count, device: Some(next), core: None });
    b.effect(OpKind::SemWait { sem: ready, amount: count });
    let t = b.scratch("t", DType::F32, MemorySpace::Vmem, &[1, 4]);
    let seven = b.splat(DType::F32, &[1, 4], 7.0);
    b.store(t, seven);
    b.effect(OpKind::CopyStartRemote { src: t, sent, dst: s, received, device: next });
    b.effect(OpKind::CopyWait { src: t, dst: s, sem: sent });
    b.effect(OpKind::CopyWait { src: t, dst: s, sem: received });
    let new = b.load(s);
    let sum = b.op(Type::tile(DType::F32, [1, 4]), OpKind::Binary { op: Binary::Sub, x: new, y: old });
    b.store(o, sum);
    for out in run_mesh(&b.finish(), &[vec![], vec![]], &Options::default()).unwrap() {
        assert_eq!(out[0].to_f64(), [6.0; 4]);
    }
}

/// Each device waits for a signal that `amount` (an argument) says it sends to the right.
fn waiting() -> Kernel {
    let mut b = Build::once();
    let amount = b.array(("amount", Role::Prefetch), DType::I32, MemorySpace::Smem, &[1.into()]);
    let ready = b.counter("ready");
    let next = right(&mut b, 2);
    let n = b.load_scalar(amount, Offset::Const(0));
    b.effect(OpKind::SemSignal { sem: ready, amount: n, device: Some(next), core: None });
    let one = b.int(1);
    b.effect(OpKind::SemWait { sem: ready, amount: one });
    b.finish()
}

#[test]
fn a_deadlock_names_the_line_of_every_device() {
    let kernel = waiting();
    let run = |a: i32, c: i32| {
        let arguments = [a, c].map(|n| vec![Array::new([1], vec![n]).unwrap()]);
        run_mesh(&kernel, &arguments, &Options::default()).map_err(|e| e.to_string())
    };
    assert!(run(1, 1).is_ok());
    let line = kernel.loc(kernel.body.ops.last().unwrap().span).line;
    let e = run(0, 0).unwrap_err();
    assert!(e.contains("K0402"), "{e}");
    for device in 0..2 {
        assert!(e.contains(&format!("device {device} waits at kernel.rs:{line}")), "{e}");
    }
    let e = run(1, 0).unwrap_err();
    assert!(e.contains("device 0 waits at") && e.contains("device 1 has finished"), "{e}");
    let e = run(2, 1).unwrap_err();
    assert!(e.contains("K0403") && e.contains("still counts 1"), "{e}");
}

#[test]
fn a_device_that_fails_stops_the_others() {
    let mut b = Build::once();
    let ready = b.counter("ready");
    let (id, zero, one) = (b.op(int(), OpKind::DeviceId), b.int(0), b.int(1));
    let compare = OpKind::Compare { op: kernel_ir::ir::Compare::Eq, x: id, y: zero };
    let cond = b.op(Type::Scalar(DType::Bool), compare);
    b.effect(OpKind::Assert { cond, message: "only device 0".into() });
    b.effect(OpKind::SemWait { sem: ready, amount: one });
    let e = run_mesh(&b.finish(), &[vec![], vec![]], &Options::default()).unwrap_err().to_string();
    assert!(e.contains("K0412") && e.contains("on device 1"), "{e}");
}

#[test]
fn what_nobody_waits_for_is_reported_where_it_was_sent() {
    let mut b = Build::once();
    let ready = b.counter("ready");
    let (next, one) = (right(&mut b, 3), b.int(1));
    b.effect(OpKind::SemSignal { sem: ready, amount: one, device: Some(next), core: None });
    let kernel = b.finish();
    let line = kernel.loc(kernel.body.ops.last().unwrap().span).line;
    let e = run_mesh(&kernel, &[vec![], vec![], vec![]], &Options::default()).unwrap_err().to_string();
    assert!(e.contains("K0403") && e.contains("device 0 never waits for what device 2 sends it"), "{e}");
    assert!(e.contains(&format!("kernel.rs:{line}")), "{e}");
}

#[test]
fn devices_are_called_with_arrays_of_one_shape() {
    let mut b = Build::once();
    b.array(("x", Role::Input), DType::F32, MemorySpace::Any, &[kernel_ir::ir::DimExpr::dim("n")]);
    let arguments = [3, 4].map(|n| vec![Array::zeros(DType::F32, [n])]);
    let e = run_mesh(&b.finish(), &arguments, &Options::default()).unwrap_err().to_string();
    assert!(e.contains("K0404") && e.contains("device 1"), "{e}");
}
