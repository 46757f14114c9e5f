//! Windows: edges, revisits, undefined contents, parallel axes, block maps.

use kernel_ir::exec::{Array, Options, run};
use kernel_ir::ir::{
    Binary, Compare, DType, DimExpr, DimOp, Kernel, MemorySpace, Offset, OpKind, Reduction, Role, Semantics,
    Type, Value, WindowUnit,
};
use proptest::prelude::*;

use crate::build::{Build, numbers, run_serial};

use Semantics::{Arbitrary, Parallel};

const TILE: [usize; 1] = [4];

fn add(b: &mut Build, x: Value, y: Value) -> Value {
    let ty = b.tile_type(x);
    b.op(Type::Tile(ty), OpKind::Binary { op: Binary::Add, x, y })
}

fn scalar(b: &mut Build, op: Binary, x: Value, y: i64) -> Value {
    let y = b.int(y);
    b.op(Type::Scalar(DType::I32), OpKind::Binary { op, x, y })
}

fn when_equal(b: &mut Build, x: Value, y: i64, then: impl FnOnce(&mut Build)) {
    let y = b.int(y);
    let cond = b.op(Type::Scalar(DType::Bool), OpKind::Compare { op: Compare::Eq, x, y });
    let then = b.block(&[], |b, _| {
        then(b);
        vec![]
    });
    let otherwise = b.block(&[], |_, _| vec![]);
    b.effect(OpKind::If { cond, then, otherwise });
}

/// `o = x + x` by blocks of any size, in any order of axes.
fn doubling(dtype: DType, block: [usize; 2], semantics: [Semantics; 2], swapped: bool) -> Kernel {
    let shape = [DimExpr::dim("m"), DimExpr::dim("n")];
    let count = |axis: usize| DimExpr::op(DimOp::CeilDiv, shape[axis].clone(), block[axis].into());
    let order = if swapped { [1, 0] } else { [0, 1] };
    let mut b = Build::new(&order.map(|axis| (count(axis), semantics[axis])));
    let map = |_: &mut Build, i: &[Value]| order.iter().map(|axis| i[*axis]).collect();
    let x = b.window(("x", Role::Input), dtype, &shape, &block, map);
    let o = b.window(("o", Role::Output), dtype, &shape, &block, map);
    let v = b.load(x);
    let sum = add(&mut b, v, v);
    b.store(o, sum);
    b.finish()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(120))]
    #[test]
    fn blocks_of_any_size_cover_an_array_of_any_size(
        m in 0_usize..40, n in 1_usize..40, bm in 1_usize..17, bn in 1_usize..50,
        kind in 0_usize..3, parallel in any::<[bool; 2]>(), swapped in any::<bool>(),
        threads in prop_oneof![Just(None), Just(Some(1)), Just(Some(3))], shuffle in any::<Option<u64>>(),
    ) {
        let dtype = [DType::F32, DType::Bf16, DType::I32][kind];
        let kernel = doubling(dtype, [bm, bn], parallel.map(|p| if p { Parallel } else { Arbitrary }), swapped);
        let x = numbers(dtype, &[m, n], 1);
        let out = run(&kernel, &[("x", &x)], &Options { threads, shuffle, ..Options::default() }).unwrap();
        prop_assert_eq!(out["o"].to_f64(), x.to_f64().iter().map(|x| 2.0 * x).collect::<Vec<_>>());
    }
}

#[test]
fn what_sticks_out_of_an_array_is_undefined() {
    for (dtype, want) in [(DType::F32, f64::NAN), (DType::Bf16, f64::NAN), (DType::I32, -1_951_535_091.0)] {
        let mut b = Build::new(&[(2.into(), Arbitrary)]);
        let x = b.window(("x", Role::Input), dtype, &[6.into()], &TILE, |_, i| vec![i[0]]);
        let o = b.window(("o", Role::Output), dtype, &[2.into()], &[1], |_, i| vec![i[0]]);
        let v = b.load(x);
        let min = b.op(Type::tile(dtype, [1]), OpKind::Reduce { op: Reduction::Min, x: v, axis: 0 });
        b.store(o, min);
        let x = Array::from_f64(dtype, [6], &[5.0, 2.0, 3.0, 4.0, 1.0, 6.0]).unwrap();
        let got = run_serial(&b.finish(), &[("x", &x)]).unwrap()["o"].to_f64();
        assert_eq!(got[0], 2.0);
        assert!(got[1] == want || got[1].is_nan() && want.is_nan(), "{got:?}");
    }
}

/// `o += x` over `steps` steps, where output block `map(i)` is set to zero in step 0 only.
fn accumulate(steps: usize, map: impl FnOnce(&mut Build, &[Value]) -> Vec<Value>) -> Vec<f64> {
    let mut b = Build::new(&[(steps.into(), Arbitrary)]);
    let x = b.window(("x", Role::Input), DType::F32, &[(4 * steps).into()], &TILE, |_, i| vec![i[0]]);
    let o = b.window(("o", Role::Output), DType::F32, &[8.into()], &TILE, map);
    let step = b.program_id(0);
    when_equal(&mut b, step, 0, |b| {
        let zero = b.splat(DType::F32, &TILE, 0.0);
        b.store(o, zero);
    });
    let (old, new) = (b.load(o), b.load(x));
    let sum = add(&mut b, old, new);
    b.store(o, sum);
    let x = Array::from_fn([4 * steps], |i| (i / 4 + 1) as f32);
    run_serial(&b.finish(), &[("x", &x)]).unwrap()["o"].to_f64()
}

#[test]
fn an_output_block_is_kept_while_its_index_stays_and_undefined_when_it_changes() {
    // Blocks 0, 0, 0, 1: the sum of the first three steps, then a block nobody set to zero.
    let got = accumulate(4, |b, i| vec![scalar(b, Binary::Div, i[0], 3)]);
    assert_eq!(got[..4], [6.0; 4]);
    assert!(got[4..].iter().all(|x| x.is_nan()), "{got:?}");
    // Blocks 0, 1, 0: a block that is left and visited again starts undefined.
    let got = accumulate(3, |b, i| vec![scalar(b, Binary::Rem, i[0], 2)]);
    assert!(got[..4].iter().all(|x| x.is_nan()), "{got:?}");
    // A block that no step visits is never written.
    let got = accumulate(2, |b, _| vec![b.int(0)]);
    assert_eq!(got[..4], [3.0; 4]);
    assert!(got[4..].iter().all(|x| x.is_nan()), "{got:?}");
}

#[test]
fn an_input_block_is_fetched_only_when_its_index_changes() {
    // The kernel scribbles on its input window: the mark is there in the next step of the same block, and gone after.
    let mut b = Build::new(&[(4.into(), Arbitrary)]);
    let x = b.window(("x", Role::Input), DType::F32, &[8.into()], &TILE, |b, i| {
        vec![scalar(b, Binary::Div, i[0], 2)]
    });
    let o = b.window(("o", Role::Output), DType::F32, &[16.into()], &TILE, |_, i| vec![i[0]]);
    let v = b.load(x);
    b.store(o, v);
    let mark = b.splat(DType::F32, &TILE, -1.0);
    b.store(x, mark);
    let x = Array::from_fn([8], |i| i as f32);
    let got = run_serial(&b.finish(), &[("x", &x)]).unwrap()["o"].to_f64();
    assert_eq!(got, [0., 1., 2., 3., -1., -1., -1., -1., 4., 5., 6., 7., -1., -1., -1., -1.]);
    assert_eq!(x.to_f64(), (0..8).map(f64::from).collect::<Vec<_>>(), "the caller's array stays");
}

#[test]
fn scratch_starts_undefined_and_is_kept_across_steps() {
    let build = |semantics| {
        let mut b = Build::new(&[(3.into(), semantics)]);
        let s = b.scratch("s", DType::F32, MemorySpace::Vmem, &TILE);
        let o = b.window(("o", Role::Output), DType::F32, &[12.into()], &TILE, |_, i| vec![i[0]]);
        let old = b.load(s);
        b.store(o, old);
        let step = b.program_id(0);
        let step = b.op(Type::Scalar(DType::F32), OpKind::Cast { x: step });
        let mark = b.op(Type::tile(DType::F32, TILE), OpKind::Broadcast { x: step });
        b.store(s, mark);
        b.finish()
    };
    let got = run_serial(&build(Arbitrary), &[]).unwrap()["o"].to_f64();
    assert!(got[..4].iter().all(|x| x.is_nan()));
    assert_eq!(got[4..], [0., 0., 0., 0., 1., 1., 1., 1.]);
    // Shuffled parallel steps have scratch of their own each.
    let options = Options { shuffle: Some(1), ..Options::default() };
    let got = run(&build(Parallel), &[], &options).unwrap()["o"].to_f64();
    assert!(got.iter().all(|x| x.is_nan()), "{got:?}");
}

#[test]
fn block_maps_may_read_prefetched_arrays_and_dims() {
    let g = DimExpr::dim("g");
    let mut b = Build::new(&[(g.clone(), Arbitrary)]);
    let order = b.array(("order", Role::Prefetch), DType::I32, MemorySpace::Smem, &[g]);
    let rows = DimExpr::dim("rows");
    let x = b.window(("x", Role::Input), DType::I32, &[rows, 4.into()], &[1, 4], |b, i| {
        let last = b.op(Type::Scalar(DType::I32), OpKind::Dim { name: "rows".into() });
        let at = b.load_scalar(order, Offset::Value(i[0]));
        let back = b.op(Type::Scalar(DType::I32), OpKind::Binary { op: Binary::Sub, x: last, y: at });
        vec![back, b.int(0)]
    });
    let o = b.window(("o", Role::Output), DType::I32, &[DimExpr::dim("g"), 4.into()], &[1, 4], |b, i| {
        vec![i[0], b.int(0)]
    });
    let v = b.load(x);
    b.store(o, v);
    let kernel = b.finish();
    let x = Array::from_fn([3, 4], |i| i as i32);
    let run = |order: Vec<i32>| {
        let order = Array::new([order.len()], order).unwrap();
        run_serial(&kernel, &[("order", &order), ("x", &x)]).map(|o| o["o"].to_f64())
    };
    assert_eq!(run(vec![3, 1]).unwrap(), [0., 1., 2., 3., 8., 9., 10., 11.]);
    let error = run(vec![1, 0]).unwrap_err();
    assert!(
        error.contains("K0401") && error.contains("block 3 of `x` starts outside axis 0 of length 3"),
        "{error}"
    );
    assert!(error.contains("grid step [1]"), "{error}");
    let error = run(vec![4]).unwrap_err();
    assert!(error.contains("block -1 of `x`"), "{error}");
}

#[test]
fn parallel_steps_that_write_one_block_are_reported() {
    let mut b = Build::new(&[(2.into(), Parallel), (2.into(), Parallel)]);
    let o = b.window(("o", Role::Output), DType::F32, &[8.into()], &TILE, |_, i| vec![i[1]]);
    let v = b.splat(DType::F32, &TILE, 1.0);
    b.store(o, v);
    let kernel = b.finish();
    for options in [
        Options { threads: Some(1), ..Options::default() },
        Options { shuffle: Some(3), ..Options::default() },
    ] {
        let error = run(&kernel, &[], &options).unwrap_err().to_string();
        assert!(
            error.contains("K0410") && error.contains("of `o` is written by two parallel steps"),
            "{error}"
        );
    }
}

#[test]
fn an_output_in_vmem_as_a_whole_is_written_back_at_the_end() {
    let mut b = Build::new(&[(3.into(), Parallel)]);
    let o = b.array(("o", Role::Output), DType::I32, MemorySpace::Smem, &[3.into()]);
    let (i, seven) = (b.program_id(0), b.int(7));
    b.store_scalar(o, Offset::Value(i), seven);
    assert_eq!(run(&b.finish(), &[], &Options::default()).unwrap()["o"].to_f64(), [7.0; 3]);
}

#[test]
fn windows_may_count_elements_of_a_padded_array() {
    // Blocks of 4 every 3 elements, from two before the array on; what lies in the padding is undefined.
    let padded = |steps: usize, pads: (usize, usize)| {
        let mut b = Build::new(&[(steps.into(), Arbitrary)]);
        let x = b.window(("x", Role::Input), DType::F32, &[9.into()], &TILE, |b, i| {
            vec![scalar(b, Binary::Mul, i[0], 3)]
        });
        b.kernel().params[0].window.as_mut().unwrap().unit = WindowUnit::Elements(vec![pads]);
        let o = b.window(("o", Role::Output), DType::F32, &[(4 * steps).into()], &TILE, |_, i| vec![i[0]]);
        let v = b.load(x);
        b.store(o, v);
        let x = Array::from_fn([9], |i| i as f32);
        run_serial(&b.finish(), &[("x", &x)]).map(|o| o["o"].to_f64())
    };
    let got = padded(4, (2, 1)).unwrap();
    for (i, v) in got.iter().enumerate() {
        let at = (i / 4 * 3 + i % 4) as f64 - 2.0;
        assert!(if (0.0..9.0).contains(&at) { *v == at } else { v.is_nan() }, "{got:?}");
    }
    assert_eq!(padded(2, (0, 0)).unwrap(), [0., 1., 2., 3., 3., 4., 5., 6.]);
    let e = padded(5, (2, 1)).unwrap_err();
    assert!(e.contains("K0401") && e.contains("grid step [4]"), "{e}");
}

#[test]
fn an_output_window_may_count_elements() {
    // One element further each step: the second half of each block is overwritten by the next step.
    let mut b = Build::new(&[(4.into(), Arbitrary)]);
    let o = b.window(("o", Role::Output), DType::I32, &[8.into()], &TILE, |b, i| {
        vec![scalar(b, Binary::Mul, i[0], 2)]
    });
    b.kernel().params[0].window.as_mut().unwrap().unit = WindowUnit::Elements(vec![(1, 0)]);
    let step = b.program_id(0);
    let v = b.op(Type::tile(DType::I32, TILE), OpKind::Broadcast { x: step });
    b.store(o, v);
    let got = run_serial(&b.finish(), &[]).unwrap()["o"].to_f64();
    assert_eq!(got, [0., 1., 1., 2., 2., 3., 3., 3.]);
}
