//! Every op on tiles against its formula.

use kernel_ir::exec::Array;
use kernel_ir::ir::{Binary, Compare, DType, OpKind, Reduction, Type, Unary};

use crate::build::{apply, numbers};

const FLOATS: [DType; 2] = [DType::F32, DType::Bf16];
const INTS: [DType; 3] = [DType::I32, DType::I16, DType::I8];

/// Nearest `dtype` to each number, as numbers.
fn rounded(dtype: DType, v: &[f64]) -> Vec<f64> {
    Array::from_f64(dtype, [v.len()], v).unwrap().to_f64()
}

fn close(dtype: DType, got: &[f64], want: &[f64]) {
    let tolerance = if dtype == DType::Bf16 { 4e-3 } else { 4e-7 };
    assert_eq!(got.len(), want.len());
    for (i, (g, w)) in got.iter().zip(want).enumerate() {
        let same = g == w || (g.is_nan() && w.is_nan()) || (g - w).abs() <= tolerance * w.abs();
        assert!(same, "{dtype} element {i}: got {g}, want {w}");
    }
}

#[test]
fn unary_functions_of_floats() {
    let erf = |x: f64| {
        // Simpson's rule on 2/sqrt(pi) e^(-t^2).
        let n = 2000;
        let h = x / f64::from(n);
        let f = |i: i32| {
            (-(h * f64::from(i)).powi(2)).exp()
                * if i == 0 || i == n { 1.0 } else { f64::from(2 + 2 * (i % 2)) }
        };
        (0..=n).map(f).sum::<f64>() * h / 3.0 * std::f64::consts::FRAC_2_SQRT_PI
    };
    let table: [(Unary, &dyn Fn(f64) -> f64); 16] = [
        (Unary::Neg, &|x| -x),
        (Unary::Abs, &f64::abs),
        (Unary::Exp, &f64::exp),
        (Unary::Exp2, &f64::exp2),
        (Unary::Log, &f64::ln),
        (Unary::Log2, &f64::log2),
        (Unary::Sqrt, &f64::sqrt),
        (Unary::Rsqrt, &|x| 1.0 / x.sqrt()),
        (Unary::Reciprocal, &|x| 1.0 / x),
        (Unary::Tanh, &f64::tanh),
        (Unary::Logistic, &|x| 1.0 / (1.0 + (-x).exp())),
        (Unary::Erf, &erf),
        (Unary::Sin, &f64::sin),
        (Unary::Cos, &f64::cos),
        (Unary::Floor, &f64::floor),
        (Unary::Ceil, &f64::ceil),
    ];
    for dtype in FLOATS {
        let x = numbers(dtype, &[7, 301], 1);
        for (op, f) in table {
            let got = apply(&[&x], |b, v| b.op(Type::tile(dtype, [7, 301]), OpKind::Unary { op, x: v[0] }));
            let want: Vec<f64> = x.to_f64().iter().map(|x| f(*x)).collect();
            close(dtype, &got.to_f64(), &rounded(dtype, &want));
        }
    }
}

#[test]
fn unary_functions_of_integers() {
    for dtype in INTS {
        let x = numbers(dtype, &[1500], 2);
        for (op, f) in
            [(Unary::Neg, (|x| -x) as fn(f64) -> f64), (Unary::Abs, f64::abs), (Unary::Not, |x| -x - 1.0)]
        {
            let got = apply(&[&x], |b, v| b.op(Type::tile(dtype, [1500]), OpKind::Unary { op, x: v[0] }));
            assert_eq!(got.to_f64(), x.to_f64().into_iter().map(f).collect::<Vec<_>>(), "{op:?}");
        }
    }
}

#[test]
fn binary_functions_of_floats() {
    type F = fn(f64, f64) -> f64;
    let table: [(Binary, F); 7] = [
        (Binary::Add, |x, y| x + y),
        (Binary::Sub, |x, y| x - y),
        (Binary::Mul, |x, y| x * y),
        (Binary::Div, |x, y| x / y),
        (Binary::Rem, |x, y| x % y),
        (Binary::Min, f64::min),
        (Binary::Max, f64::max),
    ];
    for dtype in FLOATS {
        let (x, y) = (numbers(dtype, &[3, 5, 64], 3), numbers(dtype, &[3, 5, 64], 4));
        for (op, f) in table {
            let ty = Type::tile(dtype, [3, 5, 64]);
            let got = apply(&[&x, &y], |b, v| b.op(ty, OpKind::Binary { op, x: v[0], y: v[1] }));
            let want: Vec<f64> = x.to_f64().iter().zip(y.to_f64()).map(|(x, y)| f(*x, y)).collect();
            close(dtype, &got.to_f64(), &rounded(dtype, &want));
        }
    }
}

#[test]
fn nan_wins_minimum_and_maximum_on_either_side() {
    let x = Array::new([4], vec![f32::NAN, 1.0, f32::NAN, 2.0]).unwrap();
    let y = Array::new([4], vec![0.0, f32::NAN, f32::NAN, 3.0]).unwrap();
    for (op, last) in [(Binary::Min, 2.0), (Binary::Max, 3.0)] {
        let got = apply(&[&x, &y], |b, v| {
            b.op(Type::tile(DType::F32, [4]), OpKind::Binary { op, x: v[0], y: v[1] })
        });
        let got = got.to_f64();
        assert!(got[..3].iter().all(|x| x.is_nan()), "{got:?}");
        assert_eq!(got[3], last);
    }
}

#[test]
fn binary_functions_of_integers_wrap_to_their_width() {
    type F = fn(i64, i64) -> i64;
    let table: [(Binary, F); 10] = [
        (Binary::Add, |x, y| x + y),
        (Binary::Sub, |x, y| x - y),
        (Binary::Mul, |x, y| x * y),
        (Binary::Div, |x, y| x / y),
        (Binary::Rem, |x, y| x % y),
        (Binary::Min, i64::min),
        (Binary::Max, i64::max),
        (Binary::And, |x, y| x & y),
        (Binary::Or, |x, y| x | y),
        (Binary::Xor, |x, y| x ^ y),
    ];
    let x: Vec<i32> = vec![7, -7, 100, -128, 32767, i32::MAX, i32::MIN, 0, 5];
    let y: Vec<i32> = vec![2, 2, 100, 3, 2, 2, -2, 3, -3];
    let wrap = |dtype: DType, x: i64| match dtype {
        DType::I8 => i64::from(x as i8),
        DType::I16 => i64::from(x as i16),
        _ => i64::from(x as i32),
    };
    let make = |dtype: DType, v: &[i32]| {
        let v: Vec<f64> = v.iter().map(|x| wrap(dtype, i64::from(*x)) as f64).collect();
        Array::from_f64(dtype, [9], &v).unwrap()
    };
    for dtype in INTS {
        let (a, b) = (make(dtype, &x), make(dtype, &y));
        for (op, f) in table {
            let got = apply(&[&a, &b], |bu, v| {
                bu.op(Type::tile(dtype, [9]), OpKind::Binary { op, x: v[0], y: v[1] })
            });
            let pairs = a.to_f64().into_iter().zip(b.to_f64());
            let want: Vec<f64> = pairs.map(|(x, y)| wrap(dtype, f(x as i64, y as i64)) as f64).collect();
            assert_eq!(got.to_f64(), want, "{dtype} {op:?}");
        }
    }
}

#[test]
fn shifts_by_the_width_or_more_leave_zeros_or_the_sign() {
    let x = Array::new([5], vec![1, -8, -8, 3, 5]).unwrap();
    let y = Array::new([5], vec![4, 1, 40, 32, -1]).unwrap();
    let shift = |op| {
        apply(&[&x, &y], |b, v| b.op(Type::tile(DType::I32, [5]), OpKind::Binary { op, x: v[0], y: v[1] }))
    };
    assert_eq!(shift(Binary::Shl).to_f64(), [16.0, -16.0, 0.0, 0.0, 0.0]);
    assert_eq!(shift(Binary::Shr).to_f64(), [0.0, -4.0, -1.0, 0.0, 0.0]);
}

#[test]
fn comparisons_are_false_for_nan_except_not_equal() {
    let x = Array::new([4], vec![1.0_f32, 2.0, f32::NAN, 3.0]).unwrap();
    let y = Array::new([4], vec![2.0_f32, 2.0, 1.0, f32::NAN]).unwrap();
    let table = [
        (Compare::Eq, [0.0, 1.0, 0.0, 0.0]),
        (Compare::Ne, [1.0, 0.0, 1.0, 1.0]),
        (Compare::Lt, [1.0, 0.0, 0.0, 0.0]),
        (Compare::Le, [1.0, 1.0, 0.0, 0.0]),
        (Compare::Gt, [0.0, 0.0, 0.0, 0.0]),
        (Compare::Ge, [0.0, 1.0, 0.0, 0.0]),
    ];
    for (op, want) in table {
        let got = apply(&[&x, &y], |b, v| {
            b.op(Type::tile(DType::Bool, [4]), OpKind::Compare { op, x: v[0], y: v[1] })
        });
        assert_eq!(got.to_f64(), want, "{op:?}");
    }
}

#[test]
fn masks_choose_and_combine() {
    let (x, y) = (numbers(DType::I32, &[9, 33], 5), numbers(DType::I32, &[9, 33], 6));
    let flag = Type::tile(DType::Bool, [9, 33]);
    let got = apply(&[&x, &y], |b, v| {
        let less = b.op(flag.clone(), OpKind::Compare { op: Compare::Lt, x: v[0], y: v[1] });
        let zero = b.splat(DType::I32, &[9, 33], 0.0);
        let positive = b.op(flag.clone(), OpKind::Compare { op: Compare::Gt, x: v[0], y: zero });
        let not = b.op(flag.clone(), OpKind::Unary { op: Unary::Not, x: positive });
        let mask = b.op(flag.clone(), OpKind::Binary { op: Binary::Or, x: less, y: not });
        b.op(Type::tile(DType::I32, [9, 33]), OpKind::Select { mask, x: v[0], y: v[1] })
    });
    let pairs = x.to_f64().into_iter().zip(y.to_f64());
    let want: Vec<f64> = pairs.map(|(x, y)| if x < y || x <= 0.0 { x } else { y }).collect();
    assert_eq!(got.to_f64(), want);
}

#[test]
fn casts_truncate_saturate_and_round_to_nearest_even() {
    let cast = |x: &Array, to: DType| {
        let shape = x.shape().to_vec();
        apply(&[x], |b, v| b.op(Type::tile(to, shape), OpKind::Cast { x: v[0] })).to_f64()
    };
    let x = Array::new([8], vec![1.9_f32, -1.9, 300.0, -300.0, 1e10, -1e10, f32::NAN, 0.0]).unwrap();
    let (most, least) = (f64::from(i32::MAX), f64::from(i32::MIN));
    assert_eq!(cast(&x, DType::I32), [1.0, -1.0, 300.0, -300.0, most, least, 0.0, 0.0]);
    assert_eq!(cast(&x, DType::I16), [1.0, -1.0, 300.0, -300.0, 32767.0, -32768.0, 0.0, 0.0]);
    assert_eq!(cast(&x, DType::I8), [1.0, -1.0, 127.0, -128.0, 127.0, -128.0, 0.0, 0.0]);
    assert_eq!(cast(&x, DType::Bool), [1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 0.0]);
    // 1 + 2^-8 is halfway between 1 and 1 + 2^-7; 1 + 3 * 2^-8 is halfway the other way.
    let x = Array::new([3], vec![1.0 + 1.0 / 256.0, 1.0 + 3.0 / 256.0, -1.0 - 1.1 / 256.0_f32]).unwrap();
    assert_eq!(cast(&x, DType::Bf16), [1.0, 1.0 + 4.0 / 256.0, -1.0 - 2.0 / 256.0]);
    let x = Array::new([4], vec![200, -200, 70_000, -1]).unwrap();
    assert_eq!(cast(&x, DType::I8), [-56.0, 56.0, 112.0, -1.0]);
    assert_eq!(cast(&x, DType::F32), [200.0, -200.0, 70_000.0, -1.0]);
    let x = Array::new([2], vec![true, false]).unwrap();
    assert_eq!(cast(&x, DType::I32), [1.0, 0.0]);
    assert_eq!(cast(&x, DType::Bf16), [1.0, 0.0]);
}

#[test]
fn bfloat16_results_are_rounded_after_every_op() {
    // 256 + 1 is not a bfloat16 value: the sum rounds to 256 before 1 is added again.
    let x = Array::new([1], vec![half::bf16::from_f32(256.0)]).unwrap();
    let y = Array::new([1], vec![half::bf16::from_f32(1.0)]).unwrap();
    let ty = Type::tile(DType::Bf16, [1]);
    let got = apply(&[&x, &y], |b, v| {
        let sum = b.op(ty.clone(), OpKind::Binary { op: Binary::Add, x: v[0], y: v[1] });
        b.op(ty.clone(), OpKind::Binary { op: Binary::Add, x: sum, y: v[1] })
    });
    assert_eq!(got.to_f64(), [256.0]);
}

#[test]
fn iota_counts_along_its_axis_also_through_layout_ops() {
    let x = numbers(DType::I32, &[5, 4, 3], 7);
    for axis in 0..3 {
        let got = apply(&[&x], |b, v| {
            let i = b.op(Type::tile(DType::I32, [3, 5, 4]), OpKind::Iota { axis });
            let i = b.op(
                Type::tile(DType::I32, [5, 4, 3]),
                OpKind::Transpose { x: i, permutation: vec![1, 2, 0] },
            );
            b.op(Type::tile(DType::I32, [5, 4, 3]), OpKind::Binary { op: Binary::Add, x: i, y: v[0] })
        });
        let want: Vec<f64> = x
            .to_f64()
            .iter()
            .enumerate()
            .map(|(at, x)| {
                let index = [at % 3, at / 12, at / 3 % 4];
                x + index[axis] as f64
            })
            .collect();
        assert_eq!(got.to_f64(), want, "axis {axis}");
    }
}

/// Element `[i, j, k]` of a `[a, b, c]` array.
fn at(v: &[f64], [_, b, c]: [usize; 3], [i, j, k]: [usize; 3]) -> f64 {
    v[(i * b + j) * c + k]
}

#[test]
fn layout_ops_move_elements_as_they_say() {
    for dtype in [DType::F32, DType::Bf16, DType::I32] {
        let shape = [4, 6, 5];
        let x = numbers(dtype, &shape, 8);
        let v = x.to_f64();
        let all = |f: &dyn Fn(usize, usize, usize) -> f64, [a, b, c]: [usize; 3]| -> Vec<f64> {
            (0..a * b * c).map(|n| f(n / (b * c), n / c % b, n % c)).collect()
        };

        let got = apply(&[&x], |b, x| {
            b.op(Type::tile(dtype, [5, 4, 6]), OpKind::Transpose { x: x[0], permutation: vec![2, 0, 1] })
        });
        assert_eq!(got.to_f64(), all(&|i, j, k| at(&v, shape, [j, k, i]), [5, 4, 6]));

        let got = apply(&[&x], |b, x| {
            b.op(Type::tile(dtype, [2, 3, 4]), OpKind::ExtractSlice { x: x[0], offsets: vec![1, 2, 1] })
        });
        assert_eq!(got.to_f64(), all(&|i, j, k| at(&v, shape, [i + 1, j + 2, k + 1]), [2, 3, 4]));

        let got = apply(&[&x], |b, x| b.op(Type::tile(dtype, [8, 15]), OpKind::Reshape { x: x[0] }));
        assert_eq!(got.to_f64(), v);

        // A reshape of a transpose has to move elements; one that only adds an axis has not.
        let got = apply(&[&x], |b, x| {
            let t =
                b.op(Type::tile(dtype, [6, 4, 5]), OpKind::Transpose { x: x[0], permutation: vec![1, 0, 2] });
            let flat = b.op(Type::tile(dtype, [24, 5]), OpKind::Reshape { x: t });
            b.op(Type::tile(dtype, [24, 1, 5]), OpKind::Reshape { x: flat })
        });
        assert_eq!(got.to_f64(), all(&|i, _, k| at(&v, shape, [i % 4, i / 4, k]), [24, 1, 5]));

        let got = apply(&[&x], |b, x| {
            let s =
                b.op(Type::tile(dtype, [4, 1, 5]), OpKind::ExtractSlice { x: x[0], offsets: vec![0, 3, 0] });
            b.op(Type::tile(dtype, [4, 7, 5]), OpKind::Broadcast { x: s })
        });
        assert_eq!(got.to_f64(), all(&|i, _, k| at(&v, shape, [i, 3, k]), [4, 7, 5]));

        for axis in 0..3 {
            for amount in [0_i64, 1, 3, -2, 100] {
                let got = apply(&[&x], |b, x| {
                    let amount = b.int(amount);
                    b.op(Type::tile(dtype, shape), OpKind::Roll { x: x[0], amount, axis })
                });
                let want = all(
                    &|i, j, k| {
                        let mut from = [i as i64, j as i64, k as i64];
                        from[axis] = (from[axis] - amount).rem_euclid(shape[axis] as i64);
                        at(&v, shape, from.map(|i| i as usize))
                    },
                    shape,
                );
                assert_eq!(got.to_f64(), want, "roll by {amount} along {axis}");
            }
            let got = apply(&[&x], |b, x| {
                let mut joined = shape;
                joined[axis] *= 2;
                b.op(Type::tile(dtype, joined), OpKind::Concatenate { xs: vec![x[0], x[0]], axis })
            });
            let mut joined = shape;
            joined[axis] *= 2;
            let want = all(
                &|i, j, k| {
                    let mut from = [i, j, k];
                    from[axis] %= shape[axis];
                    at(&v, shape, from)
                },
                joined,
            );
            assert_eq!(got.to_f64(), want, "concatenate along {axis}");
        }
    }
}

#[test]
fn reductions_keep_their_axis() {
    for dtype in [DType::F32, DType::Bf16, DType::I32] {
        let shape = [3, 37, 19];
        let x = numbers(dtype, &shape, 9);
        let v = x.to_f64();
        for (op, zero) in
            [(Reduction::Sum, 0.0), (Reduction::Max, f64::NEG_INFINITY), (Reduction::Min, f64::INFINITY)]
        {
            for axis in 0..3 {
                let mut kept = shape;
                kept[axis] = 1;
                let got =
                    apply(&[&x], |b, x| b.op(Type::tile(dtype, kept), OpKind::Reduce { op, x: x[0], axis }));
                let mut want = vec![zero; kept.iter().product()];
                for (n, x) in v.iter().enumerate() {
                    let mut i = [n / (37 * 19), n / 19 % 37, n % 19];
                    i[axis] = 0;
                    let o = &mut want[(i[0] * kept[1] + i[1]) * kept[2] + i[2]];
                    *o = match op {
                        Reduction::Sum => *o + x,
                        Reduction::Max => o.max(*x),
                        Reduction::Min => o.min(*x),
                    };
                }
                assert_eq!(got.to_f64(), rounded(dtype, &want), "{dtype} {op:?} {axis}");
            }
        }
    }
}

#[test]
fn a_maximum_over_nan_is_nan() {
    let x = Array::new([2, 3], vec![1.0, f32::NAN, 2.0, 3.0, 4.0, 5.0]).unwrap();
    let ty = Type::tile(DType::F32, [2, 1]);
    let got = apply(&[&x], |b, x| b.op(ty, OpKind::Reduce { op: Reduction::Max, x: x[0], axis: 1 })).to_f64();
    assert!(got[0].is_nan());
    assert_eq!(got[1], 5.0);
}
