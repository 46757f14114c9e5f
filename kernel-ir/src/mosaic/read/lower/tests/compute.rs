//! Operations that are made of several compute what Mosaic says they do: run by the executor, against formulas.

use super::build::Make;
use crate::exec::{Array, Options, call};
use crate::ir::DType;
use crate::mosaic::read::module::ValueId;

fn ty(dtype: DType, shape: &[usize]) -> String {
    let lengths: String = shape.iter().map(|n| format!("{n}x")).collect();
    format!("{lengths}{}", dtype.mlir())
}

fn ints(shape: &[usize], f: impl FnMut(usize) -> i32) -> Array {
    Array::from_fn(shape.to_vec(), f)
}

pub(super) fn floats(shape: &[usize], mut f: impl FnMut(usize) -> f64) -> Array {
    Array::from_fn(shape.to_vec(), |i| f(i) as f32)
}

/// Runs a kernel of one step: `body` makes a value of the inputs, each loaded whole.
pub(super) fn run(ins: &[Array], out: &str, body: impl FnOnce(&mut Make, &[ValueId]) -> ValueId) -> Vec<f64> {
    let mut m = Make::new();
    let vector = |a: &Array| format!("vector<{}>", ty(a.dtype(), a.shape()));
    let memrefs = ins.iter().map(|a| format!("memref<{}, vmem>", ty(a.dtype(), a.shape())));
    let memrefs: Vec<_> = memrefs.chain([format!("memref<{out}, vmem>")]).collect();
    let arguments: Vec<&str> = memrefs.iter().map(String::as_str).collect();
    m.main(&arguments, |m, args| {
        let loaded: Vec<_> = ins.iter().zip(args).map(|(a, r)| m.load(*r, &vector(a))).collect();
        let y = body(m, &loaded);
        m.store(*args.last().unwrap(), y, out.matches('x').count());
    });
    let kernel = m.lower().unwrap_or_else(|e| panic!("{e:?}"));
    let options = Options { exact_products: true, ..Options::default() };
    call(&kernel, ins, &options).unwrap_or_else(|e| panic!("{e:?}\n{kernel}")).remove(0).to_f64()
}

#[test]
fn an_iota_counts_along_several_axes() {
    let got = run(&[], "2x3x4xi32", |m, _| {
        let axes = m.ints(&[2, 0]);
        m.op("tpu.iota", &[], "vector<2x3x4xi32>", &[("dimensions", axes)])
    });
    let expected: Vec<f64> = (0..24).map(|i| (i % 4 * 2 + i / 12) as f64).collect();
    assert_eq!(got, expected);
}

#[test]
fn what_is_packed_is_unpacked() {
    let x = floats(&[8, 128], |i| i as f64 / 4.0 - 100.0);
    let y = floats(&[8, 128], |i| -(i as f64));
    let rounded: Vec<f64> = y.to_f64().iter().map(|v| half::bf16::from_f64(*v).to_f64()).collect();
    let unpacked = run(&[x, y], "8x128xf32", |m, v| {
        let target = m.type_attr("bf16");
        let packed = m.op("tpu.pack_elementwise", v, "vector<8x128xi32>", &[("target_type", target)]);
        let index = m.int(1);
        let attributes = [("source_type", target), ("index", index)];
        m.op("tpu.unpack_elementwise", &[packed], "vector<8x128xf32>", &attributes)
    });
    assert_eq!(unpacked, rounded);
    let bytes: Vec<Array> = (0..4).map(|k| ints(&[8, 128], |i| (i * 5 + k) as i32 % 300 - 150)).collect();
    let third: Vec<f64> = bytes[2].to_f64().iter().map(|v| f64::from(*v as i32 as i8)).collect();
    let unpacked = run(&bytes, "8x128xi32", |m, v| {
        let target = m.type_attr("i8");
        let packed = m.op("tpu.pack_elementwise", v, "vector<8x128xi32>", &[("target_type", target)]);
        let index = m.int(2);
        let attributes = [("source_type", target), ("index", index)];
        m.op("tpu.unpack_elementwise", &[packed], "vector<8x128xi32>", &attributes)
    });
    assert_eq!(unpacked, third);
}

#[test]
fn wide_products_and_sums_have_two_halves() {
    let (x, y) = (
        ints(&[2, 8], |i| (i as i32).wrapping_mul(0x1234_5677) - 99),
        ints(&[2, 8], |i| (i as i32).wrapping_mul(0x7654_321f)),
    );
    let pairs: Vec<(i32, i32)> =
        x.to_f64().iter().zip(y.to_f64()).map(|(a, b)| (*a as i32, b as i32)).collect();
    for (name, f) in [
        ("arith.mulsi_extended", (|(a, b)| (i64::from(a) * i64::from(b)) >> 32) as fn((i32, i32)) -> i64),
        ("arith.mului_extended", |(a, b)| ((u64::from(a as u32) * u64::from(b as u32)) >> 32) as i64),
    ] {
        let got = run(&[x.clone(), y.clone()], "2x8xi32", |m, v| {
            let t = "vector<2x8xi32>";
            let halves = m.op_with(name, v, &[t, t], &[], vec![]);
            m.op("arith.addi", &halves, t, &[])
        });
        let low = |(a, b): (i32, i32)| a.wrapping_mul(b);
        let expected: Vec<f64> =
            pairs.iter().map(|p| f64::from((f(*p) as i32).wrapping_add(low(*p)))).collect();
        assert_eq!(got, expected, "{name}");
    }
    let got = run(&[x, y], "2x8xi32", |m, v| {
        let results = ["vector<2x8xi32>", "vector<2x8xi1>"];
        let sum = m.op_with("arith.addui_extended", v, &results, &[], vec![]);
        m.op("arith.extui", &[sum[1]], "vector<2x8xi32>", &[])
    });
    let carry = |(a, b): &(i32, i32)| f64::from(u8::from((*a as u32).checked_add(*b as u32).is_none()));
    assert_eq!(got, pairs.iter().map(carry).collect::<Vec<_>>());
}

#[test]
fn precision_is_reduced_to_the_nearest() {
    let x = floats(&[8, 128], |i| (i as f64 + 0.37).powf(2.3) * if i % 2 == 0 { 1.0 } else { -1.0 });
    let exact = x.to_f64();
    for (bits, kept) in [(7, 7), (10, 10), (23, 23)] {
        let got = run(std::slice::from_ref(&x), "8x128xf32", |m, v| {
            let (e, b) = (m.int(8), m.int(bits));
            let attributes = [("exponent_bits", e), ("mantissa_bits", b)];
            m.op("tpu.reduce_precision", v, "vector<8x128xf32>", &attributes)
        });
        for (y, x) in got.iter().zip(&exact) {
            let unit = 2_f64.powi(x.abs().log2().floor() as i32 - kept);
            let nearest = (x / unit).round_ties_even() * unit;
            assert_eq!(*y, nearest, "{x} to {bits} bits");
        }
    }
}

#[test]
fn random_bits_round_up_or_down() {
    let x = floats(&[8, 128], |i| i as f64 * 1.001 + 1.0);
    let convert = |random: i32| {
        let bits = ints(&[8, 128], |_| random);
        run(&[x.clone(), bits], "8x128xbf16", |m, v| {
            m.op("tpu.stochastic_convert", v, "vector<8x128xbf16>", &[])
        })
    };
    let bits = |x: f64| (x as f32).to_bits();
    let low: Vec<f64> = x.to_f64().iter().map(|x| f32::from_bits(bits(*x) & 0xffff_0000).into()).collect();
    assert_eq!(convert(0), low);
    let high = |x: &f64| f64::from(f32::from_bits((bits(*x) + 0xffff) & 0xffff_0000));
    assert_eq!(convert(-1), x.to_f64().iter().map(high).collect::<Vec<_>>());
}

#[test]
fn rows_rotate_by_different_amounts() {
    let x = ints(&[8, 128], |i| i as i32);
    let rotate = |stride: Option<i64>, amount: i64| {
        run(std::slice::from_ref(&x), "8x128xi32", |m, v| {
            let (axis, along) = (m.int(1), m.int(0));
            let amount = m.constant("i32", amount);
            let stride = stride.map(|s| m.int(s));
            let mut attributes = vec![("dimension", axis)];
            attributes.extend(stride.iter().map(|s| ("stride", *s)));
            attributes.extend(stride.iter().map(|_| ("stride_dimension", along)));
            m.op("tpu.dynamic_rotate", &[v[0], amount], "vector<8x128xi32>", &attributes)
        })
    };
    for (stride, amount) in [(None, 5), (None, -3), (Some(1), 0), (Some(30), 7), (Some(2), -9)] {
        let moved = |i: i64| {
            let (row, at) = (i / 128, i % 128);
            let from = (at - amount - row * stride.unwrap_or(0)).rem_euclid(128);
            (row * 128 + from) as f64
        };
        assert_eq!(rotate(stride, amount), (0..1024).map(moved).collect::<Vec<_>>(), "{stride:?} {amount}");
    }
}

#[test]
fn reductions_go_over_several_axes_and_start_somewhere() {
    let x = floats(&[3, 4, 5], |i| (i * 37 % 23) as f64);
    let data = x.to_f64();
    for (kind, start, f) in [
        ("add", 2.5, (|a, b| a + b) as fn(f64, f64) -> f64),
        ("maximumf", 7.0, f64::max),
        ("minimumf", 7.0, f64::min),
    ] {
        let got = run(std::slice::from_ref(&x), "4xf32", |m, v| {
            let (kind, axes) = (m.opaque(&format!("#vector.kind<{kind}>")), m.ints(&[0, 2]));
            let start = m.float("vector<4xf32>", start);
            let attributes = [("kind", kind), ("reduction_dims", axes)];
            m.op("vector.multi_reduction", &[v[0], start], "vector<4xf32>", &attributes)
        });
        let combined = |j: usize| {
            let of_j = (0..60).filter(|i| i / 5 % 4 == j).map(|i| data[i]);
            of_j.fold(start, f)
        };
        assert_eq!(got, (0..4).map(combined).collect::<Vec<_>>(), "{kind}");
    }
}

#[test]
fn float_predicates_are_those_of_mlir() {
    let values = [f64::NAN, 1.0, 2.0];
    let x = floats(&[9, 128], |i| values[i / 128 / 3]);
    let y = floats(&[9, 128], |i| values[i / 128 % 3]);
    // Whether it holds when unordered, equal, less and greater.
    let table = [
        (1, [false, true, false, false]),
        (2, [false, false, false, true]),
        (3, [false, true, false, true]),
        (4, [false, false, true, false]),
        (5, [false, true, true, false]),
        (6, [false, false, true, true]),
        (7, [false, true, true, true]),
        (8, [true, true, false, false]),
        (9, [true, false, false, true]),
        (10, [true, true, false, true]),
        (11, [true, false, true, false]),
        (12, [true, true, true, false]),
        (13, [true, false, true, true]),
        (14, [true, false, false, false]),
    ];
    for (number, [unordered, equal, less, greater]) in table {
        let got = run(&[x.clone(), y.clone()], "9x128xi32", |m, v| {
            let predicate = m.int(number);
            let z = m.op("arith.cmpf", v, "vector<9x128xi1>", &[("predicate", predicate)]);
            m.op("arith.extui", &[z], "vector<9x128xi32>", &[])
        });
        for (row, z) in got.chunks(128).map(|row| row[0]).enumerate() {
            let holds = match values[row / 3].partial_cmp(&values[row % 3]) {
                None => unordered,
                Some(std::cmp::Ordering::Equal) => equal,
                Some(std::cmp::Ordering::Less) => less,
                Some(std::cmp::Ordering::Greater) => greater,
            };
            assert_eq!(z != 0.0, holds, "predicate {number}, row {row}");
        }
    }
}

#[test]
fn one_bit_is_minus_one_with_a_sign() {
    let x = ints(&[2, 128], |i| i as i32 % 7 - 3);
    let of = |name: &str, out: &str| {
        run(std::slice::from_ref(&x), out, |m, v| {
            let bit = m.op("arith.trunci", v, "vector<2x128xi1>", &[]);
            m.op(name, &[bit], &format!("vector<{out}>"), &[])
        })
    };
    let odd = |sign: f64| (0..256).map(|i| if (i % 7 - 3) % 2 == 0 { 0.0 } else { sign }).collect::<Vec<_>>();
    assert_eq!(of("arith.extui", "2x128xi32"), odd(1.0));
    assert_eq!(of("arith.extsi", "2x128xi32"), odd(-1.0));
    assert_eq!(of("arith.uitofp", "2x128xf32"), odd(1.0));
    assert_eq!(of("arith.sitofp", "2x128xf32"), odd(-1.0));
}

#[test]
fn a_scalar_is_taken_from_a_traced_position() {
    let x = ints(&[4, 6], |i| i as i32 * 3);
    let got = run(&[x], "1x8xi32", |m, v| {
        let (row, column) = (m.constant("index", 2), i64::MIN);
        let at = m.ints(&[column, 5]);
        let y = m.op("vector.extract", &[v[0], row], "i32", &[("static_position", at)]);
        m.op("vector.broadcast", &[y], "vector<1x8xi32>", &[])
    });
    assert_eq!(got, [51.0; 8]);
}
