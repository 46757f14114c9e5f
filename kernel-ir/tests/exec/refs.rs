//! Loads and stores of parts of memory, and refs that see memory under another shape or element type.

use kernel_ir::exec::Array;
use kernel_ir::ir::{
    ArgReduction, Binary, Compare, DType, MemorySpace, Offset, OpKind, Role, Size, Type, Value,
};
use proptest::prelude::*;

use crate::build::{Build, apply, numbers, run_serial};

const ANY: [DType; 5] = [DType::F32, DType::Bf16, DType::I32, DType::I16, DType::I8];

/// A kernel over `x` (copied to scratch, which `f` may change) whose scratch becomes `o`.
fn scribble(x: &Array, f: impl FnOnce(&mut Build, Value)) -> Result<Array, String> {
    let shape: Vec<_> = x.shape().iter().map(|n| (*n).into()).collect();
    let mut b = Build::once();
    let i = b.array(("x", Role::Input), x.dtype(), MemorySpace::Vmem, &shape);
    let o = b.array(("o", Role::Output), x.dtype(), MemorySpace::Vmem, &shape);
    let s = b.scratch("s", x.dtype(), MemorySpace::Vmem, x.shape());
    let v = b.load(i);
    b.store(s, v);
    f(&mut b, s);
    let v = b.load(s);
    b.store(o, v);
    Ok(run_serial(&b.finish(), &[("x", x)])?["o"].clone())
}

fn constants<const N: usize>(at: [usize; N]) -> Vec<Offset> {
    at.map(Offset::Const).to_vec()
}

#[test]
fn strided_loads_take_every_so_many_elements() {
    for dtype in ANY {
        let x = numbers(dtype, &[3, 17, 8], 1);
        let v = x.to_f64();
        for ([a, b, c], [p, q, r], [m, n, k]) in [
            ([0, 0, 0], [1, 1, 1], [3, 17, 8]),
            ([1, 3, 0], [1, 4, 1], [2, 4, 8]),
            ([0, 2, 1], [2, 5, 3], [2, 3, 3]),
            ([2, 16, 7], [9, 9, 9], [1, 1, 1]),
        ] {
            let mut bu = Build::once();
            let i = bu.array(("x", Role::Input), dtype, MemorySpace::Vmem, &[3.into(), 17.into(), 8.into()]);
            let o = bu.array(("o", Role::Output), dtype, MemorySpace::Vmem, &[m.into(), n.into(), k.into()]);
            let load = OpKind::LoadStrided { base: i, offsets: constants([a, b, c]), strides: vec![p, q, r] };
            let t = bu.op(Type::tile(dtype, [m, n, k]), load);
            bu.store(o, t);
            let got = run_serial(&bu.finish(), &[("x", &x)]).unwrap()["o"].to_f64();
            let at = |i: usize| [i / (n * k) * p + a, i / k % n * q + b, i % k * r + c];
            let want: Vec<f64> = (0..m * n * k).map(at).map(|[i, j, l]| v[(i * 17 + j) * 8 + l]).collect();
            assert_eq!(got, want, "{dtype}");
        }
    }
}

#[test]
fn a_strided_access_that_ends_outside_is_an_error() {
    let x = numbers(DType::F32, &[16, 8], 1);
    for (rows, fits) in [(4, true), (5, false)] {
        let got = scribble(&x, |b, s| {
            let strides = vec![5, 1];
            let offsets = constants([0, 0]);
            let t =
                b.op(Type::tile(DType::F32, [rows, 8]), OpKind::LoadStrided { base: s, offsets, strides });
            let offsets = constants([0, 0]);
            b.effect(OpKind::StoreStrided { base: s, offsets, strides: vec![5, 1], value: t });
        });
        match got {
            Ok(got) => assert!(fits && got == x),
            Err(e) => assert!(!fits && e.contains("K0401") && e.contains("0..21"), "{e}"),
        }
    }
}

#[test]
fn strided_and_masked_stores_leave_the_rest() {
    for dtype in ANY {
        let (x, y) = (numbers(dtype, &[12, 6], 1), numbers(dtype, &[12, 6], 2));
        let got = scribble(&x, |b, s| {
            let value = b.splat(dtype, &[3, 2], 3.0);
            let (offsets, strides) = (constants([1, 2]), vec![4, 3]);
            b.effect(OpKind::StoreStrided { base: s, offsets, strides, value });
        });
        let hit = |i: usize| matches!((i / 6, i % 6), (1 | 5 | 9, 2 | 5));
        let want: Vec<f64> =
            x.to_f64().iter().enumerate().map(|(i, x)| if hit(i) { 3.0 } else { *x }).collect();
        assert_eq!(got.unwrap().to_f64(), want);

        // Where `x < y`, from the memory that is stored to, transposed twice: nothing is read after it is written.
        let mut b = Build::once();
        let shape = [12.into(), 6.into()];
        let [i, j] = ["x", "y"].map(|n| b.array((n, Role::Input), dtype, MemorySpace::Vmem, &shape));
        let o = b.array(("o", Role::Output), dtype, MemorySpace::Vmem, &shape);
        let (v, w) = (b.load(i), b.load(j));
        b.store(o, v);
        let old = b.load(o);
        let less = OpKind::Compare { op: Compare::Lt, x: old, y: w };
        let mask = b.op(Type::tile(DType::Bool, [12, 6]), less);
        b.effect(OpKind::StoreMasked { base: o, offsets: constants([0, 0]), value: w, mask });
        let out = run_serial(&b.finish(), &[("x", &x), ("y", &y)]).unwrap()["o"].to_f64();
        let want: Vec<f64> =
            x.to_f64().iter().zip(y.to_f64()).map(|(x, y)| if *x < y { y } else { *x }).collect();
        assert_eq!(out, want);
    }
}

/// Stores 7 in a tile of 4 rows and 3 columns at a corner that may lie outside of 8 x 6, where the mask keeps some rows and columns.
fn store_kept(x: &Array, corner: [i64; 2], rows: [i64; 2], columns: [i64; 2]) -> Result<Array, String> {
    scribble(x, |b, s| {
        let ty = Type::tile(DType::I32, [4, 3]);
        let value = b.splat(x.dtype(), &[4, 3], 7.0);
        let mut mask = None;
        for (axis, [first, end]) in [rows, columns].into_iter().enumerate() {
            let i = b.op(ty.clone(), OpKind::Iota { axis });
            for (op, bound) in [(Compare::Ge, first), (Compare::Lt, end)] {
                let bound = b.splat(DType::I32, &[4, 3], bound as f64);
                let kept = b.op(Type::tile(DType::Bool, [4, 3]), OpKind::Compare { op, x: i, y: bound });
                let both = |x| OpKind::Binary { op: Binary::And, x, y: kept };
                mask = Some(mask.map_or(kept, |m| b.op(Type::tile(DType::Bool, [4, 3]), both(m))));
            }
        }
        let offsets = corner.map(|n| Offset::Value(b.int(n))).to_vec();
        b.effect(OpKind::StoreMasked { base: s, offsets, value, mask: mask.unwrap() });
    })
}

#[test]
fn a_masked_store_may_stick_out_where_it_stores_nothing() {
    for dtype in ANY {
        let x = numbers(dtype, &[8, 6], 3);
        for (corner, rows, columns) in [
            ([6, 4], [0, 2], [0, 2]),
            ([-2, -1], [2, 4], [1, 3]),
            ([100, 0], [2, 2], [0, 3]),
            ([-1, 4], [2, 3], [1, 2]),
        ] {
            let got = store_kept(&x, corner, rows, columns).unwrap().to_f64();
            let inside = |i: i64, first: i64, kept: [i64; 2]| (kept[0]..kept[1]).contains(&(i - first));
            let hit = |i: i64| inside(i / 6, corner[0], rows) && inside(i % 6, corner[1], columns);
            let want = x.to_f64().into_iter().enumerate().map(|(i, x)| if hit(i as i64) { 7.0 } else { x });
            assert_eq!(got, want.collect::<Vec<_>>(), "{dtype} at {corner:?}");
        }
    }
}

#[test]
fn a_masked_store_of_a_lane_outside_is_an_error() {
    let x = numbers(DType::F32, &[8, 6], 3);
    for (corner, rows, columns, reaches) in [
        ([6, 0], [1, 3], [0, 3], "7..9 is out of bounds for axis 0 of length 8"),
        ([0, 4], [0, 4], [0, 3], "4..7 is out of bounds for axis 1 of length 6"),
        ([-2, 0], [1, 4], [0, 3], "-1..2 is out of bounds for axis 0 of length 8"),
        ([4, 6], [1, 2], [0, 1], "index 6 is out of bounds for axis 1 of length 6"),
    ] {
        let error = store_kept(&x, corner, rows, columns).unwrap_err();
        assert!(error.contains("K0401") && error.contains(reaches), "{error}");
    }
}

#[test]
fn gathers_pick_along_an_axis_modulo_its_length() {
    for dtype in ANY {
        let x = numbers(dtype, &[4, 6, 5], 3);
        let v = x.to_f64();
        for (axis, [m, n, k]) in [(0, [3, 6, 5]), (1, [4, 9, 5]), (2, [4, 6, 2])] {
            let index = Array::from_fn([m, n, k], |i| (i as i32 * 7) % 31 - 11);
            let at = index.to_f64();
            let got = apply(&[&x, &index], |b, v| {
                b.op(Type::tile(dtype, [m, n, k]), OpKind::Gather { x: v[0], index: v[1], axis })
            });
            let want: Vec<f64> = (0..m * n * k)
                .map(|i| {
                    let mut from = [i / (n * k), i / k % n, i % k];
                    from[axis] = (at[i] as i64).rem_euclid([4, 6, 5][axis]) as usize;
                    v[(from[0] * 6 + from[1]) * 5 + from[2]]
                })
                .collect();
            assert_eq!(got.to_f64(), want, "{dtype} {axis}");
        }
    }
}

#[test]
fn positions_are_those_of_the_first_extreme_and_nan_wins() {
    let find = |x: &Array, op, axis| {
        let mut shape = x.shape().to_vec();
        shape[axis] = 1;
        apply(&[x], |b, v| b.op(Type::tile(DType::I32, shape), OpKind::ArgReduce { op, x: v[0], axis }))
            .to_f64()
    };
    for dtype in ANY {
        let x = numbers(dtype, &[5, 7, 6], 4);
        let v = x.to_f64();
        for (axis, len) in [(0, 5), (1, 7), (2, 6)] {
            for (op, sign) in [(ArgReduction::Max, 1.0), (ArgReduction::Min, -1.0)] {
                let mut kept = [5, 7, 6];
                kept[axis] = 1;
                let want: Vec<f64> = (0..kept.iter().product())
                    .map(|i: usize| {
                        let at = [i / (kept[1] * kept[2]), i / kept[2] % kept[1], i % kept[2]];
                        let value = |p: usize| {
                            let mut at = at;
                            at[axis] = p;
                            sign * v[(at[0] * 7 + at[1]) * 6 + at[2]]
                        };
                        (1..len).fold(0, |best, p| if value(p) > value(best) { p } else { best }) as f64
                    })
                    .collect();
                assert_eq!(find(&x, op, axis), want, "{dtype} {op:?} {axis}");
            }
        }
    }
    let nan = f32::NAN;
    let x = Array::new([2, 4], vec![1.0, nan, 9.0, nan, -1.0, 0.0, 3.0, 3.0]).unwrap();
    assert_eq!(find(&x, ArgReduction::Max, 1), [1.0, 2.0]);
    assert_eq!(find(&x, ArgReduction::Min, 1), [1.0, 0.0]);
}

#[test]
fn a_reshaped_ref_has_the_same_elements() {
    for dtype in ANY {
        let x = numbers(dtype, &[4, 6, 10], 5);
        let v = x.to_f64();
        // Two of the four slabs, as rows of 5; rows 3 and 7 (every fourth) of those, squeezed out of a slice of one more.
        let got = scribble(&x, |b, s| {
            let part = b.slice(s, &constants([1, 0, 0]), &[2, 6, 10].map(Size::Const));
            let rows = b.reshaped(part, &[24, 5]);
            let load = OpKind::LoadStrided { base: rows, offsets: constants([3, 1]), strides: vec![4, 1] };
            let t = b.op(Type::tile(dtype, [2, 3]), load);
            let deep = b.reshaped(rows, &[2, 1, 3, 4, 5]);
            let last = b.slice(deep, &constants([1, 0, 2, 2, 2]), &[1, 1, 1, 2, 3].map(Size::Const));
            let mut ty = b.kernel().ref_ty(last).clone();
            ty.shape.drain(..3);
            let last = b.op(Type::Ref(ty), OpKind::Squeeze { base: last, axes: vec![0, 1, 2] });
            b.store(last, t);
        });
        let mut want = v.clone();
        let row = |r: usize| 60 + r * 5;
        for (from, to) in [(3, 22), (7, 23)] {
            let values: Vec<f64> = v[row(from) + 1..row(from) + 4].to_vec();
            want[row(to) + 2..row(to) + 5].copy_from_slice(&values);
        }
        assert_eq!(got.unwrap().to_f64(), want, "{dtype}");
    }
}

#[test]
fn a_reshape_that_would_have_to_move_elements_is_refused() {
    let x = numbers(DType::F32, &[4, 8], 1);
    let e = scribble(&x, |b, s| {
        let part = b.slice(s, &constants([0, 0]), &[4, 4].map(Size::Const));
        let flat = b.reshaped(part, &[16]);
        let v = b.splat(DType::F32, &[16], 0.0);
        b.store(flat, v);
    });
    assert!(e.unwrap_err().contains("K0411"));
    // Axes of length 1 come and go, and what stays whole may split, also of a part.
    let got = scribble(&x, |b, s| {
        let part = b.slice(s, &constants([0, 0]), &[4, 4].map(Size::Const));
        let split = b.reshaped(part, &[2, 2, 1, 4]);
        let v = b.splat(DType::F32, &[2, 2, 1, 4], 0.0);
        b.store(split, v);
    });
    let want: Vec<f64> =
        x.to_f64().iter().enumerate().map(|(i, x)| if i % 8 < 4 { 0.0 } else { *x }).collect();
    assert_eq!(got.unwrap().to_f64(), want);
}

/// The elements of a `[rows, columns]` array as `to`, and back.
fn repack(x: &Array, to: DType) -> Array {
    let [rows, columns] = [x.shape()[0], x.shape()[1]];
    let height = rows * x.dtype().bits() / to.bits();
    apply(&[x], |b, v| b.op(Type::tile(to, [height, columns]), OpKind::Bitcast { x: v[0] }))
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(150))]
    /// A box of a bitcast ref is loaded, moved and stored, with strides and masks: as the bitcast of the whole tile says.
    #[test]
    fn a_bitcast_ref_is_the_bitcast_of_its_tile(
        from in 0_usize..5, to in 0_usize..5, seed in any::<u64>(), at in [0_usize..8, 0..6], size in [1_usize..4, 1..4],
        strides in [1_usize..4, 1..3], masked in any::<bool>(), reshape in any::<bool>(),
    ) {
        let (from, to) = (ANY[from], ANY[to]);
        let rows = 12 * 32 / from.bits();
        let x = numbers(from, &[rows, 8], seed);
        let height = 12 * 32 / to.bits();
        let at = [at[0].min(height - (size[0] - 1) * strides[0] - 1), at[1].min(8 - (size[1] - 1) * strides[1] - 1)];
        let (zero, tile) = ([0, 0].map(Offset::Const).to_vec(), Type::tile(to, size));
        let got = scribble(&x, |b, s| {
            let mut r = b.bitcast_ref(s, to, &[height, 8]);
            if reshape {
                let four = b.reshaped(r, &[1, height, 8]);
                r = b.reshaped(four, &[height, 8]);
            }
            let (offsets, strides) = (constants(at), strides.to_vec());
            let load = OpKind::LoadStrided { base: r, offsets, strides };
            let t = b.op(tile.clone(), load);
            let corner = b.slice(r, &[0, 0].map(Offset::Const), &size.map(Size::Const));
            if masked {
                let i = b.op(Type::tile(DType::I32, size), OpKind::Iota { axis: 1 });
                let ones = b.splat(DType::I32, &size, 1.0);
                let less = OpKind::Compare { op: Compare::Lt, x: i, y: ones };
                let mask = b.op(Type::tile(DType::Bool, size), less);
                b.effect(OpKind::StoreMasked { base: corner, offsets: zero, value: t, mask });
            } else {
                b.store(corner, t);
            }
        });
        let seen = repack(&x, to);
        let mut bytes = seen.to_bytes();
        let width = to.bits() / 8;
        let all = bytes.clone();
        for i in 0..size[0] {
            for j in (0..size[1]).filter(|j| !masked || *j == 0) {
                let (a, z) = (((at[0] + i * strides[0]) * 8 + at[1] + j * strides[1]) * width, (i * 8 + j) * width);
                bytes[z..z + width].copy_from_slice(&all[a..a + width]);
            }
        }
        let want = repack(&Array::from_bytes(to, [height, 8], &bytes).unwrap(), from);
        prop_assert_eq!(got.unwrap().to_bytes(), want.to_bytes());
    }
}

#[test]
fn packed_rows_are_loaded_as_words_by_page() {
    // As paged attention reads its pages: bfloat16 [pages, rows, heads, columns] as words, every other head.
    let x = numbers(DType::Bf16, &[2, 4, 6, 8], 6);
    let mut b = Build::once();
    let shape = [2.into(), 4.into(), 6.into(), 8.into()];
    let i = b.array(("x", Role::Input), DType::Bf16, MemorySpace::Vmem, &shape);
    let o = b.array(("o", Role::Output), DType::I32, MemorySpace::Vmem, &[8.into(), 8.into()]);
    let words = b.bitcast_ref(i, DType::I32, &[2, 4, 3, 8]);
    let words = b.reshaped(words, &[24, 8]);
    let load = OpKind::LoadStrided { base: words, offsets: constants([1, 0]), strides: vec![3, 1] };
    let t = b.op(Type::tile(DType::I32, [8, 8]), load);
    b.store(o, t);
    let got = run_serial(&b.finish(), &[("x", &x)]).unwrap()["o"].clone();
    let half = |row: usize, head: usize, column: usize| {
        let bits = x.as_slice::<half::bf16>().unwrap()[(row * 6 + head) * 8 + column].to_bits();
        u32::from(bits)
    };
    let want: Vec<i32> =
        (0..64).map(|i| (half(i / 8, 2, i % 8) | half(i / 8, 3, i % 8) << 16) as i32).collect();
    assert_eq!(got.as_slice::<i32>().unwrap(), want);
}

#[test]
fn scalar_memory_is_seen_through_a_bitcast() {
    let mut b = Build::once();
    let s = b.scratch("s", DType::I32, MemorySpace::Smem, &[2, 3]);
    let o = b.array(("o", Role::Output), DType::I16, MemorySpace::Smem, &[2.into()]);
    let n = b.int(0x0005_fffe);
    b.effect(OpKind::StoreScalar { base: s, offsets: constants([1, 2]), value: n });
    let halves = b.bitcast_ref(s, DType::I16, &[4, 3]);
    for (i, row) in [2, 3].into_iter().enumerate() {
        let load = OpKind::LoadScalar { base: halves, offsets: constants([row, 2]) };
        let v = b.op(Type::Scalar(DType::I16), load);
        b.effect(OpKind::StoreScalar { base: o, offsets: constants([i]), value: v });
    }
    assert_eq!(run_serial(&b.finish(), &[]).unwrap()["o"].to_f64(), [-2.0, 5.0]);
    // A word with one half written is not defined.
    let mut b = Build::once();
    let s = b.scratch("s", DType::I16, MemorySpace::Smem, &[2, 3]);
    let one = b.op(Type::Scalar(DType::I16), OpKind::Constant(kernel_ir::ir::Literal::Int(1)));
    b.effect(OpKind::StoreScalar { base: s, offsets: constants([0, 0]), value: one });
    let words = b.bitcast_ref(s, DType::I32, &[1, 3]);
    let load = OpKind::LoadScalar { base: words, offsets: constants([0, 0]) };
    let v = b.op(Type::Scalar(DType::I32), load);
    let body = b.block(&[Type::Scalar(DType::I32)], |_, _| vec![]);
    let zero = b.int(0);
    b.effect(OpKind::For { lo: zero, hi: v, init: vec![], body });
    assert!(run_serial(&b.finish(), &[]).unwrap_err().contains("K0406"));
}

#[test]
fn copies_go_through_refs_of_other_shapes_and_types() {
    // HBM bfloat16 [8, 4] as words [4, 4], copied to scratch of words, and rows of it back as [2, 2, 4] of bfloat16.
    let x = numbers(DType::Bf16, &[8, 4], 7);
    let mut b = Build::once();
    let i = b.array(("x", Role::Input), DType::Bf16, MemorySpace::Any, &[8.into(), 4.into()]);
    let o = b.array(("o", Role::Output), DType::Bf16, MemorySpace::Any, &[2.into(), 2.into(), 4.into()]);
    let s = b.scratch("s", DType::I32, MemorySpace::Vmem, &[4, 4]);
    let sem = b.semaphore("sem");
    let words = b.bitcast_ref(i, DType::I32, &[4, 4]);
    b.effect(OpKind::CopyStart { src: words, dst: s, sem });
    b.effect(OpKind::CopyWait { src: words, dst: s, sem });
    let halves = b.bitcast_ref(s, DType::Bf16, &[8, 4]);
    let part = b.slice(halves, &constants([3, 0]), &[4, 4].map(Size::Const));
    let flat = b.reshaped(o, &[4, 4]);
    b.effect(OpKind::CopyStart { src: part, dst: flat, sem });
    b.effect(OpKind::CopyWait { src: part, dst: flat, sem });
    let got = run_serial(&b.finish(), &[("x", &x)]).unwrap()["o"].clone();
    assert_eq!(got.to_f64(), x.to_f64()[12..28]);
}

#[test]
fn races_are_seen_through_other_shapes() {
    let race = |rows: [usize; 2]| {
        let x = numbers(DType::F32, &[8, 4], 7);
        let mut b = Build::once();
        let i = b.array(("x", Role::Input), DType::F32, MemorySpace::Any, &[8.into(), 4.into()]);
        let s = b.scratch("s", DType::F32, MemorySpace::Vmem, &[8, 4]);
        let o = b.array(("o", Role::Output), DType::F32, MemorySpace::Vmem, &[2.into(), 4.into()]);
        let sem = b.semaphore("sem");
        let [from, to] = [i, s].map(|r| b.slice(r, &constants([2, 0]), &[2, 4].map(Size::Const)));
        b.effect(OpKind::CopyStart { src: from, dst: to, sem });
        // Rows of `s`, as four of its words each.
        let other = b.bitcast_ref(s, DType::I32, &[8, 4]);
        let other = b.reshaped(other, &[4, 2, 4]);
        let [a, c] = rows;
        let part = b.slice(other, &constants([a, c, 0]), &[1, 1, 4].map(Size::Const));
        let v = b.splat(DType::I32, &[1, 1, 4], 0.0);
        b.store(part, v);
        b.effect(OpKind::CopyWait { src: from, dst: to, sem });
        let v = b.op(Type::tile(DType::F32, [2, 4]), OpKind::Load { base: s, offsets: constants([2, 0]) });
        b.store(o, v);
        run_serial(&b.finish(), &[("x", &x)]).map(|o| o["o"].to_f64() == x.to_f64()[8..16])
    };
    assert_eq!(race([0, 1]), Ok(true));
    assert_eq!(race([2, 0]), Ok(true));
    assert!(race([1, 0]).unwrap_err().contains("K0408"));
    assert!(race([1, 1]).unwrap_err().contains("K0408"));
}
