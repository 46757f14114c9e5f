//! Ops that read bits: unsigned arithmetic, casts and comparisons, bitcasts of tiles and scalars, random bits.

use kernel_ir::exec::Array;
use kernel_ir::ir::{Binary, Compare, DType, OpKind, Type, Unary};

use crate::build::{Build, apply, run_serial};

const INTS: [DType; 3] = [DType::I32, DType::I16, DType::I8];

/// Integers at the ends of every width, wrapped to `dtype`.
fn ints(dtype: DType, turn: usize) -> Array {
    let mut v: Vec<i64> = vec![0, 1, 2, 3, 7, -1, -2, 100, -128, 127, 255, 32767, -32768, 65535];
    v.extend([i64::from(i32::MAX), i64::from(i32::MIN), 0x1234_5678, -0x1234_5678]);
    v.rotate_left(turn);
    let v: Vec<f64> = v.into_iter().map(|x| wrap(dtype, x) as f64).collect();
    Array::from_f64(dtype, [v.len()], &v).unwrap()
}

fn wrap(dtype: DType, x: i64) -> i64 {
    match dtype {
        DType::I8 => i64::from(x as i8),
        DType::I16 => i64::from(x as i16),
        _ => i64::from(x as i32),
    }
}

/// The bits of a number of `dtype`, read as unsigned.
fn unsigned(dtype: DType, x: f64) -> u64 {
    x as i64 as u64 & ((1 << dtype.bits()) - 1)
}

#[test]
fn unsigned_functions_read_the_bits_of_their_width() {
    type F = fn(u64, u64, u64) -> u64;
    let table: [(Binary, F); 5] = [
        (Binary::DivUnsigned, |x, y, _| x / y),
        (Binary::RemUnsigned, |x, y, _| x % y),
        (Binary::MinUnsigned, |x, y, _| x.min(y)),
        (Binary::MaxUnsigned, |x, y, _| x.max(y)),
        (Binary::ShrUnsigned, |x, y, bits| if y < bits { x >> y } else { 0 }),
    ];
    for dtype in INTS {
        let x = ints(dtype, 0);
        for turn in 1..18 {
            let y = ints(dtype, turn);
            let mut fine: Vec<f64> = y.to_f64();
            fine.iter_mut().for_each(|y| *y = if *y == 0.0 { 5.0 } else { *y });
            let y = Array::from_f64(dtype, [18], &fine).unwrap();
            for (op, f) in table {
                let ty = Type::tile(dtype, [18]);
                let got = apply(&[&x, &y], |b, v| b.op(ty, OpKind::Binary { op, x: v[0], y: v[1] }));
                let pairs = x.to_f64().into_iter().zip(y.to_f64());
                let f = |(x, y)| {
                    let r = f(unsigned(dtype, x), unsigned(dtype, y), dtype.bits() as u64);
                    wrap(dtype, r as i64) as f64
                };
                assert_eq!(got.to_f64(), pairs.map(f).collect::<Vec<_>>(), "{dtype} {op:?}");
            }
            type C = fn(&u64, &u64) -> bool;
            let table: [(Compare, C); 4] = [
                (Compare::LtUnsigned, u64::lt),
                (Compare::LeUnsigned, u64::le),
                (Compare::GtUnsigned, u64::gt),
                (Compare::GeUnsigned, u64::ge),
            ];
            for (op, f) in table {
                let ty = Type::tile(DType::Bool, [18]);
                let got = apply(&[&x, &y], |b, v| b.op(ty, OpKind::Compare { op, x: v[0], y: v[1] }));
                let pairs = x.to_f64().into_iter().zip(y.to_f64());
                let f = |(x, y)| f64::from(u8::from(f(&unsigned(dtype, x), &unsigned(dtype, y))));
                assert_eq!(got.to_f64(), pairs.map(f).collect::<Vec<_>>(), "{dtype} {op:?}");
            }
        }
    }
}

#[test]
fn bits_are_counted_and_products_have_upper_halves() {
    for dtype in INTS {
        let x = ints(dtype, 0);
        let ty = Type::tile(dtype, [18]);
        let zeros = |x: &f64| f64::from(unsigned(dtype, *x).leading_zeros() + dtype.bits() as u32 - 64);
        let ones = |x: &f64| f64::from(unsigned(dtype, *x).count_ones());
        let count = |op| apply(&[&x], |b, v| b.op(ty.clone(), OpKind::Unary { op, x: v[0] })).to_f64();
        let x = x.to_f64();
        assert_eq!(count(Unary::LeadingZeros), x.iter().map(zeros).collect::<Vec<_>>(), "{dtype}");
        assert_eq!(count(Unary::PopCount), x.iter().map(ones).collect::<Vec<_>>(), "{dtype}");
    }
    let (x, y) = (ints(DType::I32, 0), ints(DType::I32, 5));
    let high = |op| {
        let ty = Type::tile(DType::I32, [18]);
        apply(&[&x, &y], |b, v| b.op(ty, OpKind::Binary { op, x: v[0], y: v[1] })).to_f64()
    };
    let pairs: Vec<(i128, i128)> =
        x.to_f64().iter().zip(y.to_f64()).map(|(x, y)| (*x as i128, y as i128)).collect();
    let signed: Vec<f64> = pairs.iter().map(|(x, y)| f64::from(((x * y) >> 32) as i32)).collect();
    assert_eq!(high(Binary::MulHigh), signed);
    let bits = |x: i128| i128::from(x as u32);
    let unsigned: Vec<f64> =
        pairs.iter().map(|(x, y)| f64::from(((bits(*x) * bits(*y)) >> 32) as u32 as i32)).collect();
    assert_eq!(high(Binary::MulHighUnsigned), unsigned);
}

#[test]
fn more_functions_of_floats() {
    let x = Array::new([8], vec![0.0_f32, 0.5, -0.5, 1.5, 2.5, -2.5, 1e-6, 3.0]).unwrap();
    let y = Array::new([8], vec![2.0_f32, 3.0, 2.0, -1.0, 0.5, 3.0, 0.25, 0.0]).unwrap();
    let close = |got: Array, want: Vec<f64>, what: &str| {
        for (g, w) in got.to_f64().iter().zip(&want) {
            let same = g == w || (g.is_nan() && w.is_nan()) || (g - w).abs() <= 3e-7 * w.abs();
            assert!(same, "{what}: {:?}, not {want:?}", got.to_f64());
        }
    };
    type F = fn(f64) -> f64;
    let table: [(Unary, F); 4] = [
        (Unary::Log1p, f64::ln_1p),
        (Unary::Tan, f64::tan),
        (Unary::Round, f64::round),
        (Unary::RoundEven, f64::round_ties_even),
    ];
    let ty = Type::tile(DType::F32, [8]);
    for (op, f) in table {
        let got = apply(&[&x], |b, v| b.op(ty.clone(), OpKind::Unary { op, x: v[0] }));
        close(got, x.to_f64().into_iter().map(f).collect(), &format!("{op:?}"));
    }
    type G = fn(f64, f64) -> f64;
    for (op, f) in [(Binary::Pow, f64::powf as G), (Binary::Atan2, f64::atan2)] {
        let got = apply(&[&x, &y], |b, v| b.op(ty.clone(), OpKind::Binary { op, x: v[0], y: v[1] }));
        let want = x.to_f64().into_iter().zip(y.to_f64()).map(|(x, y)| f(x, y));
        close(got, want.collect(), &format!("{op:?}"));
    }
}

#[test]
fn unsigned_casts_of_tiles_and_scalars() {
    let cast = |x: &Array, to: DType| {
        let tile = apply(&[x], |b, v| b.op(Type::tile(to, [x.len()]), OpKind::CastUnsigned { x: v[0] }));
        // The same on scalars, one by one.
        let scalars = apply(&[x], |b, v| {
            let cells = (0..x.len()).map(|i| {
                let slice = OpKind::ExtractSlice { x: v[0], offsets: vec![i] };
                let one = b.op(Type::tile(x.dtype(), [1]), slice);
                let one = b.op(Type::Scalar(x.dtype()), OpKind::ToScalar { x: one });
                let one = b.op(Type::Scalar(to), OpKind::CastUnsigned { x: one });
                b.op(Type::tile(to, [1]), OpKind::Broadcast { x: one })
            });
            let xs = cells.collect();
            b.op(Type::tile(to, [x.len()]), OpKind::Concatenate { xs, axis: 0 })
        });
        assert_eq!(tile, scalars);
        tile.to_f64()
    };
    for dtype in INTS {
        let x = ints(dtype, 0);
        let numbers: Vec<u64> = x.to_f64().iter().map(|x| unsigned(dtype, *x)).collect();
        let floats: Vec<f64> = numbers.iter().map(|n| f64::from(*n as f32)).collect();
        assert_eq!(cast(&x, DType::F32), floats);
        for to in INTS {
            let want: Vec<f64> = numbers.iter().map(|n| wrap(to, *n as i64) as f64).collect();
            assert_eq!(cast(&x, to), want, "{dtype} to {to}");
        }
    }
    let x = Array::new([6], vec![1.9_f32, -1.9, 300.0, 3e9, 1e20, f32::NAN]).unwrap();
    let as_unsigned = |to| cast(&x, to).iter().map(|x| unsigned(to, *x)).collect::<Vec<_>>();
    assert_eq!(as_unsigned(DType::I32), [1, 0, 300, 3_000_000_000, u64::from(u32::MAX), 0]);
    assert_eq!(as_unsigned(DType::I16), [1, 0, 300, 65535, 65535, 0]);
    assert_eq!(as_unsigned(DType::I8), [1, 0, 255, 255, 255, 0]);
}

/// Bits of every element, as they lie in memory.
fn raw(a: &Array) -> Vec<u64> {
    let width = a.dtype().bits() / 8;
    a.to_bytes().chunks(width).map(|c| c.iter().rev().fold(0, |n, b| n << 8 | u64::from(*b))).collect()
}

/// What a bitcast along the last axis but one of `[rows, columns]` must give.
fn repacked(x: &Array, to: DType) -> Vec<u64> {
    let [rows, columns] = [x.shape()[0], x.shape()[1]];
    let (from, to) = (x.dtype().bits(), to.bits());
    let bits = raw(x);
    // Bit `k` of the column `c`, counted from the first row's lowest bit.
    let bit = |c: usize, k: usize| bits[k / from * columns + c] >> (k % from) & 1;
    let height = rows * from / to;
    (0..height * columns)
        .map(|i| (0..to).map(|k| bit(i % columns, i / columns * to + k) << k).sum())
        .collect()
}

#[test]
fn bitcasts_keep_every_bit_also_of_nan() {
    let patterns: Vec<u32> = (0..8 * 12_u32)
        .map(|i| match i % 4 {
            0 => 0x7f80_0001 + i,
            1 => 0xffa5_0000 | i,
            2 => i.wrapping_mul(0x9e37_79b9),
            _ => 0x7fc1_7f81,
        })
        .collect();
    let bytes: Vec<u8> = patterns.iter().flat_map(|p| p.to_le_bytes()).collect();
    let all = [DType::F32, DType::Bf16, DType::I32, DType::I16, DType::I8];
    for from in all {
        let rows = 8 * 32 / from.bits();
        let x = Array::from_bytes(from, [rows, 12], &bytes).unwrap();
        for to in all {
            let height = rows * from.bits() / to.bits();
            let got = apply(&[&x], |b, v| b.op(Type::tile(to, [height, 12]), OpKind::Bitcast { x: v[0] }));
            assert_eq!(raw(&got), repacked(&x, to), "{from} to {to}");
            // There and back.
            let back = apply(&[&x], |b, v| {
                let there = b.op(Type::tile(to, [height, 12]), OpKind::Bitcast { x: v[0] });
                b.op(Type::tile(from, [rows, 12]), OpKind::Bitcast { x: there })
            });
            assert_eq!(raw(&back), raw(&x), "{from} to {to} and back");
        }
    }
}

#[test]
fn scalars_have_bits_too() {
    let pairs = [(DType::F32, DType::I32, 2.5, 0x4020_0000), (DType::Bf16, DType::I16, -2.5, -0x3fe0)];
    for (from, to, x, bits) in pairs {
        let x = Array::from_f64(from, [1], &[x]).unwrap();
        let got = apply(&[&x], |b, v| {
            let s = b.op(Type::Scalar(from), OpKind::ToScalar { x: v[0] });
            let s = b.op(Type::Scalar(to), OpKind::Bitcast { x: s });
            b.op(Type::tile(to, [1]), OpKind::Broadcast { x: s })
        });
        assert_eq!(got.to_f64(), [f64::from(bits)]);
        let back = apply(&[&got], |b, v| {
            let s = b.op(Type::Scalar(to), OpKind::ToScalar { x: v[0] });
            let s = b.op(Type::Scalar(from), OpKind::Bitcast { x: s });
            b.op(Type::tile(from, [1]), OpKind::Broadcast { x: s })
        });
        assert_eq!(back, x);
    }
}

#[test]
fn random_bits_follow_from_the_seed() {
    let draw = |seeds: [i64; 2]| {
        let mut b = Build::once();
        let seeds = seeds.map(|s| b.int(s)).to_vec();
        b.effect(OpKind::PrngSeed { seeds: seeds.clone() });
        let ty = Type::tile(DType::I32, [64, 128]);
        let first = b.op(ty.clone(), OpKind::PrngBits);
        let second = b.op(ty.clone(), OpKind::PrngBits);
        b.effect(OpKind::PrngSeed { seeds });
        let again = b.op(ty, OpKind::PrngBits);
        for (name, v) in [("a", first), ("b", second), ("c", again)] {
            let shape = [64.into(), 128.into()];
            let o = b.array(
                (name, kernel_ir::ir::Role::Output),
                DType::I32,
                kernel_ir::ir::MemorySpace::Vmem,
                &shape,
            );
            b.store(o, v);
        }
        let out = run_serial(&b.finish(), &[]).unwrap();
        ["a", "b", "c"].map(|n| out[n].as_slice::<i32>().unwrap().to_vec())
    };
    let [a, b, c] = draw([1, 2]);
    assert_eq!(a, c);
    assert_ne!(a, b);
    assert_ne!(a, draw([1, 3])[0]);
    // Every bit is set in half of the words: 8192 of them, 5 standard deviations are 226.
    for bit in 0..32 {
        let ones = a.iter().filter(|x| *x >> bit & 1 == 1).count();
        assert!((4096 - 226..4096 + 226).contains(&ones), "bit {bit}: {ones}");
    }
}
