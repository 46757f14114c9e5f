//! `dot` in every element type, orientation and precision.

use kernel_ir::exec::{Array, Options, call};
use kernel_ir::ir::{Binary, DType, DotDims, MemorySpace, OpKind, Precision, Role, Type};
use proptest::prelude::*;

use crate::build::{Build, apply, numbers};

struct Sizes {
    m: usize,
    k: usize,
    n: usize,
}

fn product(
    x: &Array,
    y: &Array,
    acc: Option<&Array>,
    dims: DotDims,
    precision: Precision,
    to: DType,
) -> Array {
    let inputs: Vec<&Array> = [x, y].into_iter().chain(acc).collect();
    let (m, n) = (x.shape()[1 - dims.lhs], y.shape()[1 - dims.rhs]);
    apply(&inputs, |b, v| {
        let ty = Type::tile(to, [m, n]);
        let dot = b.op(ty.clone(), OpKind::Dot { lhs: v[0], rhs: v[1], dims, precision });
        match v.get(2) {
            Some(acc) => b.op(ty, OpKind::Binary { op: Binary::Add, x: *acc, y: dot }),
            None => dot,
        }
    })
}

fn naive(x: &Array, y: &Array, acc: Option<&Array>, dims: DotDims, Sizes { m, k, n }: &Sizes) -> Vec<f64> {
    let (a, b) = (x.to_f64(), y.to_f64());
    let left = |i: usize, p: usize| if dims.lhs == 1 { a[i * k + p] } else { a[p * m + i] };
    let right = |p: usize, j: usize| if dims.rhs == 0 { b[p * n + j] } else { b[j * k + p] };
    let start = acc.map_or_else(|| vec![0.0; m * n], Array::to_f64);
    (0..m * n).map(|e| start[e] + (0..*k).map(|p| left(e / n, p) * right(p, e % n)).sum::<f64>()).collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(60))]
    #[test]
    fn products_equal_the_sum_of_products(
        m in 1_usize..40, k in 1_usize..700, n in 1_usize..40,
        lhs in 0_usize..2, rhs in 0_usize..2, add in any::<bool>(), kind in 0_usize..4, seed in any::<u64>(),
    ) {
        let (dtype, to) = [
            (DType::F32, DType::F32),
            (DType::Bf16, DType::F32),
            (DType::I8, DType::I32),
            (DType::I32, DType::I32),
        ][kind];
        let dims = DotDims { lhs, rhs };
        let x = numbers(dtype, &if lhs == 1 { [m, k] } else { [k, m] }, seed);
        let y = numbers(dtype, &if rhs == 0 { [k, n] } else { [n, k] }, seed ^ 1);
        let acc = add.then(|| numbers(to, &[m, n], seed ^ 2));
        let got = product(&x, &y, acc.as_ref(), dims, Precision::Highest, to);
        // Multiples of 1/64 below 2^17: every sum is exact in `f32`.
        prop_assert_eq!(got.to_f64(), naive(&x, &y, acc.as_ref(), dims, &Sizes { m, k, n }));
    }
}

#[test]
fn products_of_many_rows_are_shared_by_threads_and_exact() {
    let (m, k, n) = (300, 600, 520);
    for dtype in [DType::F32, DType::Bf16, DType::I8] {
        let to = if dtype == DType::I8 { DType::I32 } else { DType::F32 };
        let (x, y) = (numbers(dtype, &[m, k], 1), numbers(dtype, &[n, k], 2));
        let dims = DotDims { lhs: 1, rhs: 1 };
        let got = product(&x, &y, None, dims, Precision::Highest, to);
        assert_eq!(got.to_f64(), naive(&x, &y, None, dims, &Sizes { m, k, n }), "{dtype}");
    }
}

#[test]
fn eight_bit_products_are_exact_where_floats_would_not_be() {
    let k = 5000;
    let x = Array::new([1, k], vec![-128_i8; k]).unwrap();
    let y = Array::new([k, 1], (0..k).map(|i| if i % 2 == 0 { 127_i8 } else { -128 }).collect::<Vec<_>>())
        .unwrap();
    let got = product(&x, &y, None, DotDims { lhs: 1, rhs: 0 }, Precision::Highest, DType::I32);
    assert_eq!(got.to_f64(), [f64::from(2500 * -128 * 127 + 2500 * 128 * 128)]);
}

#[test]
fn precision_bf16_rounds_operands_first() {
    let x = Array::new([1, 2], vec![1.0 + 1.0 / 512.0, 3.0_f32]).unwrap();
    let y = Array::new([2, 1], vec![1.0, 1.0 + 1.0 / 1024.0_f32]).unwrap();
    let dims = DotDims { lhs: 1, rhs: 0 };
    let exact = product(&x, &y, None, dims, Precision::Highest, DType::F32);
    assert_eq!(exact.to_f64(), [1.0 + 1.0 / 512.0 + 3.0 + 3.0 / 1024.0]);
    let rounded = product(&x, &y, None, dims, Precision::Bf16, DType::F32);
    assert_eq!(rounded.to_f64(), [4.0]);
}

#[test]
fn exact_products_are_a_way_to_run_any_kernel() {
    let (x, y) = (Array::new([1, 1], vec![1.0 + 1.0 / 512.0_f32]), Array::new([1, 1], vec![3.0_f32]));
    let arguments = [x.unwrap(), y.unwrap()];
    let mut b = Build::once();
    let [i, j] =
        ["x", "y"].map(|n| b.array((n, Role::Input), DType::F32, MemorySpace::Vmem, &[1.into(), 1.into()]));
    let o = b.array(("o", Role::Output), DType::F32, MemorySpace::Vmem, &[1.into(), 1.into()]);
    let (lhs, rhs) = (b.load(i), b.load(j));
    let dims = DotDims { lhs: 1, rhs: 0 };
    let dot = OpKind::Dot { lhs, rhs, dims, precision: Precision::Bf16 };
    let v = b.op(Type::tile(DType::F32, [1, 1]), dot);
    b.store(o, v);
    let kernel = b.finish();
    for (exact_products, want) in [(false, 3.0), (true, 3.0 + 3.0 / 512.0)] {
        let options = Options { exact_products, ..Options::default() };
        assert_eq!(call(&kernel, &arguments, &options).unwrap()[0].to_f64(), [want]);
    }
}

#[test]
fn a_product_may_be_used_twice_and_added_to_itself() {
    let (x, y) = (numbers(DType::F32, &[4, 8], 3), numbers(DType::F32, &[8, 4], 4));
    let ty = Type::tile(DType::F32, [4, 4]);
    let dims = DotDims { lhs: 1, rhs: 0 };
    let got = apply(&[&x, &y], |b, v| {
        let dot = b.op(ty.clone(), OpKind::Dot { lhs: v[0], rhs: v[1], dims, precision: Precision::Highest });
        b.op(ty.clone(), OpKind::Binary { op: Binary::Add, x: dot, y: dot })
    });
    let once = naive(&x, &y, None, dims, &Sizes { m: 4, k: 8, n: 4 });
    assert_eq!(got.to_f64(), once.iter().map(|x| 2.0 * x).collect::<Vec<_>>());
}
