//! Floats of eight bits and integers of four: every code, rounding against brute force and against `ml_dtypes`, and ops.

use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use kernel_ir::exec::{Array, F8E4M3B11Fnuz, F8E4M3Fn, F8E5M2};
use kernel_ir::ir::{Binary, DType, DotDims, OpKind, Precision, Reduction, Type};

use crate::build::{apply, numbers};

const FLOATS: [DType; 3] = [DType::F8E4M3Fn, DType::F8E5M2, DType::F8E4M3B11Fnuz];

fn encode(dtype: DType, x: f32) -> u8 {
    match dtype {
        DType::F8E4M3Fn => F8E4M3Fn::from_f32(x).0,
        DType::F8E5M2 => F8E5M2::from_f32(x).0,
        _ => F8E4M3B11Fnuz::from_f32(x).0,
    }
}

fn decode(dtype: DType, code: u8) -> f32 {
    match dtype {
        DType::F8E4M3Fn => F8E4M3Fn(code).to_f32(),
        DType::F8E5M2 => F8E5M2(code).to_f32(),
        _ => F8E4M3B11Fnuz(code).to_f32(),
    }
}

/// `f32`s that differ in their upper halves, and lie on, near and between those.
fn patterns() -> impl Iterator<Item = u32> {
    (0..=0xffff_u32).flat_map(|high| [0, 1, 0x8000, 0xffff].map(|low| high << 16 | low))
}

#[test]
fn codes_have_their_numbers() {
    for (dtype, mantissa, bias, finite) in
        [(DType::F8E4M3Fn, 3, 7, 0x7f), (DType::F8E5M2, 2, 15, 0x7c), (DType::F8E4M3B11Fnuz, 3, 11, 0x80)]
    {
        for code in 0..=255_u8 {
            let got = decode(dtype, code);
            let (sign, size) = (if code < 128 { 1.0 } else { -1.0 }, code & 127);
            if dtype == DType::F8E4M3B11Fnuz && code == 128 || u32::from(size) >= finite {
                let infinite = dtype == DType::F8E5M2 && size == 0x7c;
                assert!(if infinite { got == sign * f32::INFINITY } else { got.is_nan() }, "{dtype} {code}");
                continue;
            }
            let (e, m) = (i32::from(size) >> mantissa, f64::from(size & ((1 << mantissa) - 1)));
            let m = m / f64::from(1 << mantissa);
            let want = if e == 0 { m * 2_f64.powi(1 - bias) } else { (1.0 + m) * 2_f64.powi(e - bias) };
            assert_eq!(f64::from(got), f64::from(sign) * want, "{dtype} {code}");
            assert_eq!(encode(dtype, got), code, "{dtype}: every code is its own nearest");
        }
    }
}

#[test]
fn the_nearest_code_is_found_ties_to_even() {
    for dtype in FLOATS {
        let finite: Vec<(f64, u8)> =
            (0..128).map(|c| (f64::from(decode(dtype, c)), c)).filter(|(x, _)| x.is_finite()).collect();
        let step = finite[finite.len() - 1].0 - finite[finite.len() - 2].0;
        for bits in patterns().step_by(7) {
            let x = f32::from_bits(bits);
            let got = decode(dtype, encode(dtype, x));
            let size = f64::from(x.abs());
            if x.is_nan() || size > finite[finite.len() - 1].0 + step / 2.0 {
                assert!(!got.is_finite(), "{dtype} {x}: {got}");
                continue;
            }
            let distance = |(y, _): &(f64, u8)| (y - size).abs();
            let least = finite.iter().map(distance).fold(f64::INFINITY, f64::min);
            let mut near: Vec<_> = finite.iter().filter(|p| distance(p) == least).collect();
            near.sort_by_key(|(_, c)| c % 2);
            let tie_at_the_end = near.len() == 1 && least == step / 2.0 && near[0].1 % 2 == 1;
            if tie_at_the_end {
                assert!(!got.is_finite(), "{dtype} {x}: {got}");
            } else {
                assert_eq!(f64::from(got.abs()), near[0].0, "{dtype} {x}");
                assert!(got == 0.0 || got.is_sign_negative() == x.is_sign_negative());
            }
        }
    }
}

/// The interpreter that has `ml_dtypes`: `TESSERA_PYTHON`, else the repository's `.venv`.
fn python() -> Option<PathBuf> {
    let named = std::env::var_os("TESSERA_PYTHON").map(PathBuf::from);
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent()?;
    named.or(Some(root.join(".venv/bin/python"))).filter(|p| p.exists())
}

#[test]
fn conversions_are_those_of_ml_dtypes() {
    let Some(python) = python() else {
        return;
    };
    let script = "import sys, numpy, ml_dtypes\n\
                  x = numpy.frombuffer(sys.stdin.buffer.read(), numpy.float32)\n\
                  numpy.seterr(all='ignore')\n\
                  for t in 'float8_e4m3fn', 'float8_e5m2', 'float8_e4m3b11fnuz':\n\
                  \x20   sys.stdout.buffer.write(x.astype(getattr(ml_dtypes, t)).view(numpy.uint8).tobytes())\n";
    let mut child = Command::new(python)
        .args(["-c", script])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let floats: Vec<u8> = patterns().flat_map(u32::to_le_bytes).collect();
    let mut to = child.stdin.take().unwrap();
    let writer = std::thread::spawn(move || to.write_all(&floats));
    let out = child.wait_with_output().unwrap();
    writer.join().unwrap().unwrap();
    assert!(out.status.success(), "Python failed");
    let n = patterns().count();
    assert_eq!(out.stdout.len(), 3 * n);
    for (dtype, codes) in FLOATS.into_iter().zip(out.stdout.chunks(n)) {
        for (bits, want) in patterns().zip(codes) {
            let (x, got) = (f32::from_bits(bits), encode(dtype, f32::from_bits(bits)));
            let same = got == *want || decode(dtype, got).is_nan() && decode(dtype, *want).is_nan();
            assert!(same, "{dtype} of {x:e} ({bits:#x}): {got:#x}, not {want:#x}");
        }
    }
}

#[test]
fn casts_round_saturate_and_wrap() {
    let x = Array::new([6], vec![0.3_f32, -1.06, 17.0, 460.0, -7.6, 1e-9]).unwrap();
    for dtype in FLOATS {
        let got = apply(&[&x], |b, v| b.op(Type::tile(dtype, [6]), OpKind::Cast { x: v[0] }));
        let want: Vec<u8> = x.as_slice::<f32>().unwrap().iter().map(|x| encode(dtype, *x)).collect();
        assert_eq!(got.to_bytes(), want);
        let wide = apply(&[&got], |b, v| b.op(Type::tile(DType::F32, [6]), OpKind::Cast { x: v[0] }));
        let same = |(a, b): (&f64, &f64)| a == b || a.is_nan() && b.is_nan();
        assert!(wide.to_f64().iter().zip(&got.to_f64()).all(same));
    }
    let cast = |x: &Array, to, unsigned| {
        let kind = |x| if unsigned { OpKind::CastUnsigned { x } } else { OpKind::Cast { x } };
        apply(&[x], |b, v| b.op(Type::tile(to, [x.len()]), kind(v[0]))).to_f64()
    };
    let x = Array::new([5], vec![7, 8, -8, -9, 31]).unwrap();
    assert_eq!(cast(&x, DType::I4, false), [7., -8., -8., 7., -1.]);
    let x = Array::from_f64(DType::I4, [4], &[7., -8., -1., 3.]).unwrap();
    assert_eq!(cast(&x, DType::F32, false), [7., -8., -1., 3.]);
    assert_eq!(cast(&x, DType::I32, true), [7., 8., 15., 3.]);
    assert_eq!(cast(&x, DType::F32, true), [7., 8., 15., 3.]);
    let x = Array::new([4], vec![7.9_f32, 100.0, -100.0, f32::NAN]).unwrap();
    assert_eq!(cast(&x, DType::I4, false), [7., 7., -8., 0.]);
    assert_eq!(cast(&x, DType::I4, true), [7., -1., 0., 0.]);
}

#[test]
fn narrow_elements_are_packed_along_the_last_axis_but_one() {
    let words = Array::new([1, 2], vec![0x7654_3210, 0x89ab_cdef_u32.cast_signed()]).unwrap();
    let got = apply(&[&words], |b, v| b.op(Type::tile(DType::I4, [8, 2]), OpKind::Bitcast { x: v[0] }));
    let want = [0., -1., 1., -2., 2., -3., 3., -4., 4., -5., 5., -6., 6., -7., 7., -8.];
    assert_eq!(got.to_f64(), want);
    let back = apply(&[&got], |b, v| b.op(Type::tile(DType::I32, [1, 2]), OpKind::Bitcast { x: v[0] }));
    assert_eq!(back, words);
    for dtype in FLOATS {
        let bytes = apply(&[&words], |b, v| b.op(Type::tile(dtype, [4, 2]), OpKind::Bitcast { x: v[0] }));
        let want = [0x10, 0xef, 0x32, 0xcd, 0x54, 0xab, 0x76, 0x89];
        assert_eq!(bytes.to_bytes(), want, "{dtype}");
        let ints = apply(&[&bytes], |b, v| b.op(Type::tile(DType::I8, [4, 2]), OpKind::Bitcast { x: v[0] }));
        assert_eq!(ints.to_bytes(), want, "{dtype}");
    }
}

#[test]
fn products_and_sums_of_narrow_elements() {
    let all = [DType::F8E4M3Fn, DType::F8E5M2, DType::F8E4M3B11Fnuz, DType::I4];
    for dtype in all {
        let (x, y) = (numbers(dtype, &[9, 33], 1), numbers(dtype, &[33, 5], 2));
        let out = if dtype == DType::I4 { DType::I32 } else { DType::F32 };
        let dims = DotDims { lhs: 1, rhs: 0 };
        let got = apply(&[&x, &y], |b, v| {
            let dot = OpKind::Dot { lhs: v[0], rhs: v[1], dims, precision: Precision::Highest };
            b.op(Type::tile(out, [9, 5]), dot)
        });
        let (a, c) = (x.to_f64(), y.to_f64());
        let want: Vec<f64> =
            (0..45).map(|i| (0..33).map(|k| a[i / 5 * 33 + k] * c[k * 5 + i % 5]).sum()).collect();
        for (g, w) in got.to_f64().iter().zip(&want) {
            assert!((g - w).abs() <= 1e-5 * w.abs().max(1.0), "{dtype}: {g}, not {w}");
        }
        let got = apply(&[&x], |b, v| {
            let max = OpKind::Reduce { op: Reduction::Max, x: v[0], axis: 1 };
            b.op(Type::tile(dtype, [9, 1]), max)
        });
        let want: Vec<f64> = a.chunks(33).map(|r| r.iter().copied().fold(f64::MIN, f64::max)).collect();
        assert_eq!(got.to_f64(), want);
        // Results are rounded (or wrapped) after every op.
        let sum = apply(&[&x], |b, v| {
            let ty = Type::tile(dtype, [9, 33]);
            b.op(ty, OpKind::Binary { op: Binary::Add, x: v[0], y: v[0] })
        });
        let want: Vec<f64> = a
            .iter()
            .map(|x| match dtype {
                DType::I4 => f64::from(((2.0 * x) as i32) << 28 >> 28),
                _ => f64::from(decode(dtype, encode(dtype, 2.0 * *x as f32))),
            })
            .collect();
        assert_eq!(sum.to_f64(), want, "{dtype}");
    }
}
