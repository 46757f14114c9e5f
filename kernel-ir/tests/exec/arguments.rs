//! What a call must bring: names, element types, shapes that agree, and dims that meet the kernel's demands.

use kernel_ir::exec::{self, Array, Options, run};
use kernel_ir::ir::{
    Binary, DType, Demand, DimCompare, DimExpr, DimOp, Kernel, MemorySpace, Offset, OpKind, Role, Semantics,
    Size, Type,
};

use crate::build::Build;

/// `o[n, q] = x[m, n]` for as many rows as there are steps; `offsets` has one more element than `m`.
fn kernel() -> Kernel {
    let [m, n, q] = ["m", "n", "q"].map(DimExpr::dim);
    let mut b = Build::new(&[(q.clone(), Semantics::Arbitrary)]);
    let more = DimExpr::op(DimOp::Add, m.clone(), 1.into());
    b.array(("offsets", Role::Prefetch), DType::I32, MemorySpace::Smem, &[more]);
    b.array(("x", Role::Input), DType::F32, MemorySpace::Any, &[m.clone(), n.clone()]);
    b.array(("y", Role::Input), DType::Bf16, MemorySpace::Any, &[n.clone(), 4.into()]);
    let o = b.window(("o", Role::Output), DType::F32, &[q, 4.into()], &[1, 4], |b, i| vec![i[0], b.int(0)]);
    let v = b.splat(DType::F32, &[1, 4], 1.0);
    b.store(o, v);
    let twice = DimExpr::op(DimOp::Mod, n, 2.into());
    b.kernel().demands.push(Demand { compare: DimCompare::Eq, left: twice, right: 0.into() });
    b.finish()
}

struct Case {
    offsets: Array,
    x: Array,
    y: Array,
    q: Option<i64>,
}

fn fitting() -> Case {
    Case {
        offsets: Array::zeros(DType::I32, [4]),
        x: Array::zeros(DType::F32, [3, 6]),
        y: Array::zeros(DType::Bf16, [6, 4]),
        q: Some(2),
    }
}

fn call(c: &Case) -> Result<Array, String> {
    let options =
        Options { dims: c.q.map(|q| ("q".to_string(), q)).into_iter().collect(), ..Options::default() };
    let inputs = [("offsets", &c.offsets), ("x", &c.x), ("y", &c.y)];
    run(&kernel(), &inputs, &options).map(|o| o["o"].clone()).map_err(|e| e.to_string())
}

#[test]
fn arguments_that_fit_give_outputs_of_the_right_shape() {
    assert_eq!(call(&fitting()).unwrap(), Array::new([2, 4], vec![1.0_f32; 8]).unwrap());
    let none = Case { q: Some(0), ..fitting() };
    assert_eq!(call(&none).unwrap().shape(), [0, 4]);
}

#[test]
fn arguments_that_do_not_fit_are_named() {
    let table = [
        (
            Case { x: Array::zeros(DType::Bf16, [3, 6]), ..fitting() },
            "K0404",
            "argument `x` is bf16, but the kernel takes f32",
        ),
        (
            Case { x: Array::zeros(DType::F32, [18]), ..fitting() },
            "K0404",
            "argument `x` has shape [18], but the kernel takes f32[m, n]",
        ),
        (
            Case { y: Array::zeros(DType::Bf16, [8, 4]), ..fitting() },
            "K0404",
            "argument `y` has 8 elements on axis 0, not `n` = 6",
        ),
        (
            Case { y: Array::zeros(DType::Bf16, [6, 5]), ..fitting() },
            "K0404",
            "argument `y` has 5 elements on axis 1, not 4",
        ),
        (
            Case { offsets: Array::zeros(DType::I32, [3]), ..fitting() },
            "K0404",
            "argument `offsets` has 3 elements on axis 0, not `(m + 1)` = 4",
        ),
        (Case { q: None, ..fitting() }, "K0404", "grid axis 0 is `q`, which is not known"),
        (Case { q: Some(-1), ..fitting() }, "K0404", "grid axis 0 has -1 steps"),
        (Case { q: Some(1 << 40), ..fitting() }, "K0404", "grid axis 0 has 1099511627776 steps"),
        (
            Case { x: Array::zeros(DType::F32, [3, 5]), y: Array::zeros(DType::Bf16, [5, 4]), ..fitting() },
            "K0405",
            "the kernel needs mod(n, 2) == 0, but n = 5",
        ),
    ];
    for (case, code, message) in table {
        let e = call(&case).unwrap_err();
        assert!(e.contains(code) && e.contains(message), "{e}\n(wanted {message})");
    }
}

#[test]
fn every_misfit_of_a_call_is_told_at_once() {
    let c = fitting();
    let e = run(&kernel(), &[("x", &c.y), ("z", &c.x), ("x", &c.x)], &Options::default())
        .unwrap_err()
        .to_string();
    for message in [
        "the kernel has no input `z`",
        "argument `x` is given twice",
        "argument `offsets` is missing",
        "argument `y` is missing",
        "argument `x` is bf16",
        "the inputs are `offsets`, `x`, `y`",
    ] {
        assert!(e.contains(message), "{e}\n(wanted {message})");
    }
}

#[test]
fn the_place_that_fixed_a_dim_is_told() {
    let e = call(&Case { y: Array::zeros(DType::Bf16, [8, 4]), ..fitting() }).unwrap_err();
    assert!(e.contains("`n` is fixed where `x` has 6 on axis 1"), "{e}");
}

#[test]
fn arrays_check_their_length_and_convert() {
    let e = Array::new([2, 3], vec![1.0_f32; 5]).unwrap_err().to_string();
    assert!(e.contains("K0404") && e.contains("[2, 3] has 6 elements, not 5"), "{e}");
    assert!(Array::new([usize::MAX, 2], vec![1.0_f32]).is_err());
    let a = Array::from_f64(DType::Bf16, [2], &[1.0, 1.0 + 1.0 / 512.0]).unwrap();
    assert_eq!(a.to_f64(), [1.0, 1.0]);
    assert_eq!(a.as_slice::<half::bf16>().unwrap().len(), 2);
    assert!(a.as_slice::<f32>().is_none());
    let mut b = Array::from_fn([3], |i| i as i32);
    b.as_mut_slice::<i32>().unwrap()[0] = 7;
    assert_eq!(b.to_f64(), [7.0, 1.0, 2.0]);
}

#[test]
fn a_call_by_position_takes_prefetched_arrays_first() {
    let c = fitting();
    let options = Options { dims: [("q".to_string(), 2)].into(), ..Options::default() };
    let all = [c.offsets, c.x, c.y];
    let out = exec::call(&kernel(), &all, &options).unwrap();
    assert_eq!(out, [Array::new([2, 4], vec![1.0_f32; 8]).unwrap()]);
    let e = exec::call(&kernel(), &all[..2], &options).unwrap_err().to_string();
    assert!(e.contains("K0404") && e.contains("2 arguments, but the kernel takes 3"), "{e}");
    assert!(e.contains("`offsets`, `x`, `y`"), "{e}");
}

/// `o[i] = x[3 - i]` for the first two blocks of two; the others are not visited. `space` is that of `y`, an output
/// nobody writes.
fn partial(space: MemorySpace) -> Kernel {
    let mut b = Build::new(&[(2.into(), Semantics::Arbitrary)]);
    let shape = [4.into(), 2.into()];
    let x = b.array(("x", Role::Input), DType::I32, MemorySpace::Vmem, &shape);
    let o = b.window(("o", Role::Output), DType::I32, &shape, &[1, 2], |b, i| vec![i[0], b.int(0)]);
    b.array(("y", Role::Output), DType::I32, space, &shape);
    let (three, i) = (b.int(3), b.program_id(0));
    let at = b.op(Type::Scalar(DType::I32), OpKind::Binary { op: Binary::Sub, x: three, y: i });
    let offsets = vec![Offset::Value(at), Offset::Const(0)];
    let v = b.op(Type::tile(DType::I32, [1, 2]), OpKind::Load { base: x, offsets });
    b.store(o, v);
    b.finish()
}

#[test]
fn an_output_may_start_with_the_contents_of_an_argument() {
    let x = Array::from_fn([4, 2], |i| i as i32);
    for space in [MemorySpace::Any, MemorySpace::Vmem, MemorySpace::Smem] {
        let options = Options { aliases: vec![(0, 0)], ..Options::default() };
        let out = exec::call(&partial(space), std::slice::from_ref(&x), &options).unwrap();
        assert_eq!(out[0].to_f64(), [6., 7., 4., 5., 4., 5., 6., 7.]);
        assert_ne!(out[1], x);
        let options = Options { aliases: vec![(0, 1)], ..Options::default() };
        let out = exec::call(&partial(space), std::slice::from_ref(&x), &options).unwrap();
        assert_eq!(out[1], x, "{space:?}");
    }
    assert_eq!(x, Array::from_fn([4, 2], |i| i as i32), "the caller's array stays");
}

#[test]
fn aliased_arrays_in_hbm_are_one_array() {
    // Row 0 of `o` is written, then row 0 of `x` is copied to row 1 of `o`.
    let mut b = Build::once();
    let shape = [3.into(), 4.into()];
    let x = b.array(("x", Role::Input), DType::F32, MemorySpace::Any, &shape);
    let o = b.array(("o", Role::Output), DType::F32, MemorySpace::Any, &shape);
    let s = b.scratch("s", DType::F32, MemorySpace::Vmem, &[1, 4]);
    let sem = b.semaphore("sem");
    let seven = b.splat(DType::F32, &[1, 4], 7.0);
    b.store(s, seven);
    let row = |b: &mut Build, base, i| {
        b.slice(base, &[Offset::Const(i), Offset::Const(0)], &[Size::Const(1), Size::Const(4)])
    };
    let (o0, x0, o1) = (row(&mut b, o, 0), row(&mut b, x, 0), row(&mut b, o, 1));
    for (src, dst) in [(s, o0), (x0, o1)] {
        b.effect(OpKind::CopyStart { src, dst, sem });
        b.effect(OpKind::CopyWait { src, dst, sem });
    }
    let kernel = b.finish();
    let x = Array::from_fn([3, 4], |i| i as f32);
    let run = |aliases| {
        let options = Options { aliases, ..Options::default() };
        exec::call(&kernel, std::slice::from_ref(&x), &options).map(|mut o| o.remove(0).to_f64())
    };
    assert_eq!(run(vec![(0, 0)]).unwrap(), [7., 7., 7., 7., 7., 7., 7., 7., 8., 9., 10., 11.]);
    assert_eq!(run(vec![]).unwrap()[4..8], [0., 1., 2., 3.]);
    for aliases in [vec![(1, 0)], vec![(0, 1)], vec![(0, 0), (0, 0)]] {
        let e = run(aliases).unwrap_err().to_string();
        assert!(e.contains("K0404"), "{e}");
    }
}

#[test]
fn an_aliased_argument_on_the_chip_that_the_kernel_writes_to_is_the_output() {
    for space in [MemorySpace::Smem, MemorySpace::Vmem] {
        let mut b = Build::once();
        let x = b.array(("x", Role::Input), DType::I32, space, &[4.into()]);
        b.array(("o", Role::Output), DType::I32, space, &[4.into()]);
        if space == MemorySpace::Smem {
            let (seven, first) = (b.int(7), b.load_scalar(x, Offset::Const(0)));
            b.store_scalar(x, Offset::Const(1), seven);
            b.store_scalar(x, Offset::Const(2), first);
        } else {
            // Each element moves on by one: what is read and written is one memory.
            let v =
                b.op(Type::tile(DType::I32, [3]), OpKind::Load { base: x, offsets: vec![Offset::Const(0)] });
            b.effect(OpKind::Store { base: x, offsets: vec![Offset::Const(1)], value: v });
        }
        let kernel = b.finish();
        let x = Array::new([4], vec![3, 4, 5, 6]).unwrap();
        let run = |aliases| {
            let options = Options { aliases, ..Options::default() };
            exec::call(&kernel, std::slice::from_ref(&x), &options).unwrap().remove(0).to_f64()
        };
        let want = if space == MemorySpace::Smem { [3., 7., 3., 6.] } else { [3., 3., 4., 5.] };
        assert_eq!(run(vec![(0, 0)]), want, "{space:?}");
        assert_ne!(run(vec![]), want, "without an alias nothing is written to `o`");
        assert_eq!(x.to_f64(), [3., 4., 5., 6.], "the caller's array stays");
    }
}

/// A kernel on 2 x 2 blocks: block `[j, i]` of `o` becomes block `[i, j]` of `x`, plus 1.
fn add_across(semantics: Semantics) -> Kernel {
    let mut b = Build::new(&[(2.into(), semantics), (2.into(), Semantics::Arbitrary)]);
    let shape = [2.into(), 2.into()];
    let x = b.window(("x", Role::Input), DType::F32, &shape, &[1, 1], |_, i| vec![i[0], i[1]]);
    let o = b.window(("o", Role::Output), DType::F32, &shape, &[1, 1], |_, i| vec![i[1], i[0]]);
    let (v, one) = (b.load(x), b.splat(DType::F32, &[1, 1], 1.0));
    let sum = b.op(Type::tile(DType::F32, [1, 1]), OpKind::Binary { op: Binary::Add, x: v, y: one });
    b.store(o, sum);
    b.finish()
}

#[test]
fn a_block_of_an_aliased_argument_that_was_written_is_read_as_written() {
    // Step [0, 1] writes block [1, 0], which step [1, 0] reads: it is the very next one.
    let x = Array::new([2, 2], vec![10_f32, 20., 30., 40.]).unwrap();
    let run = |aliases| {
        let options = Options { aliases, ..Options::default() };
        let kernel = add_across(Semantics::Arbitrary);
        exec::call(&kernel, std::slice::from_ref(&x), &options).unwrap().remove(0).to_f64()
    };
    assert_eq!(run(vec![(0, 0)]), [11., 22., 21., 41.]);
    assert_eq!(run(vec![]), [11., 31., 21., 41.]);
    assert_eq!(x.to_f64(), [10., 20., 30., 40.], "the caller's array stays");
}

#[test]
fn parallel_steps_do_not_read_what_others_write() {
    let x = Array::zeros(DType::F32, [2, 2]);
    for threads in [1, 2] {
        let options = Options { aliases: vec![(0, 0)], threads: Some(threads), ..Options::default() };
        let kernel = add_across(Semantics::Parallel);
        let e = exec::call(&kernel, std::slice::from_ref(&x), &options).unwrap_err().to_string();
        assert!(e.contains("K0410") && e.contains("of `o` is written by one parallel step and read"), "{e}");
        exec::call(&kernel, std::slice::from_ref(&x), &Options { aliases: vec![], ..options }).unwrap();
    }
}

#[test]
fn copies_into_an_aliased_array_are_seen_through_the_window_of_its_argument() {
    // Each step copies its block of `x` to row `i + 1` of `o`, which the next step sees as its block.
    let mut b = Build::new(&[(3.into(), Semantics::Arbitrary)]);
    let shape = [4.into(), 2.into()];
    let zero = |b: &mut Build| b.int(0);
    let x = b.window(("x", Role::Input), DType::I32, &shape, &[1, 2], |b, i| vec![i[0], zero(b)]);
    let o = b.array(("o", Role::Output), DType::I32, MemorySpace::Any, &shape);
    let sem = b.semaphore("sem");
    let (i, one) = (b.program_id(0), b.int(1));
    let next = b.op(Type::Scalar(DType::I32), OpKind::Binary { op: Binary::Add, x: i, y: one });
    let dst = b.slice(o, &[Offset::Value(next), Offset::Const(0)], &[Size::Const(1), Size::Const(2)]);
    b.effect(OpKind::CopyStart { src: x, dst, sem });
    b.effect(OpKind::CopyWait { src: x, dst, sem });
    let x = Array::from_fn([4, 2], |i| i as i32);
    let options = Options { aliases: vec![(0, 0)], ..Options::default() };
    let out = exec::call(&b.finish(), std::slice::from_ref(&x), &options).unwrap().remove(0);
    assert_eq!(out.to_f64(), [0., 1., 0., 1., 0., 1., 0., 1.]);
}

#[test]
fn what_a_kernel_writes_to_a_prefetched_array_stays_for_later_steps() {
    // Each step counts up what the block map reads: blocks 0, 1, 2 of `o` come in turn.
    let mut b = Build::new(&[(3.into(), Semantics::Arbitrary)]);
    let t = b.array(("t", Role::Prefetch), DType::I32, MemorySpace::Smem, &[1.into()]);
    let o = b.window(("o", Role::Output), DType::I32, &[4.into()], &[1], |b, _| {
        vec![b.load_scalar(t, Offset::Const(0))]
    });
    let (at, one) = (b.load_scalar(t, Offset::Const(0)), b.int(1));
    let v = b.op(Type::tile(DType::I32, [1]), OpKind::Broadcast { x: at });
    b.store(o, v);
    let next = b.op(Type::Scalar(DType::I32), OpKind::Binary { op: Binary::Add, x: at, y: one });
    b.store_scalar(t, Offset::Const(0), next);
    let t = Array::new([1], vec![1]).unwrap();
    let out = exec::call(&b.finish(), std::slice::from_ref(&t), &Options::default()).unwrap().remove(0);
    assert_eq!(out.to_f64()[1..], [1., 2., 3.]);
    assert_eq!(t.to_f64(), [1.], "the caller's array stays");
}

#[test]
fn an_alias_has_the_type_and_shape_of_its_array() {
    let mut b = Build::once();
    b.array(("x", Role::Input), DType::F32, MemorySpace::Any, &[4.into()]);
    b.array(("y", Role::Input), DType::I32, MemorySpace::Any, &[3.into()]);
    b.array(("o", Role::Output), DType::I32, MemorySpace::Any, &[4.into()]);
    let kernel = b.finish();
    let arguments = [Array::zeros(DType::F32, [4]), Array::zeros(DType::I32, [3])];
    for from in 0..2 {
        let options = Options { aliases: vec![(from, 0)], ..Options::default() };
        let e = exec::call(&kernel, &arguments, &options).unwrap_err().to_string();
        assert!(e.contains("K0404") && e.contains("`o` cannot alias"), "{e}");
    }
}
