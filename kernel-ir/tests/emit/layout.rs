//! Operations that move elements or combine them along an axis, in every element type; products of matrices.

use kernel_ir::ir::{DType, DotDims, Literal, OpKind, Precision, Reduction, Type};

use crate::cases::{Case, SHAPE};

pub(crate) fn moves() -> Vec<Case> {
    let mut out = vec![];
    for axis in [0, 1] {
        out.push(Case::tiles(
            &format!("iota_{axis}"),
            &[(DType::I32, SHAPE)],
            (DType::I32, SHAPE),
            move |b, _| b.op(OpKind::Iota { axis }, Type::tile(DType::I32, SHAPE)),
        ));
    }
    out.push(Case::tiles("iota_1d", &[(DType::I32, SHAPE)], (DType::I32, &[256]), move |b, _| {
        b.op(OpKind::Iota { axis: 0 }, Type::tile(DType::I32, [256]))
    }));
    out.push(Case::tiles("iota_3d", &[(DType::I32, SHAPE)], (DType::I32, &[4, 8, 128]), move |b, _| {
        b.op(OpKind::Iota { axis: 0 }, Type::tile(DType::I32, [4, 8, 128]))
    }));
    for d in DType::ALL {
        let shapes: [(&[usize], &[usize]); 4] =
            [(&[1, 128], SHAPE), (&[32, 1], SHAPE), (&[1, 1], SHAPE), (&[4, 1, 128], &[4, 8, 128])];
        for (from, to) in shapes {
            out.push(Case::tiles(&format!("broadcast_{d}_{from:?}"), &[(d, from)], (d, to), move |b, x| {
                b.op(OpKind::Broadcast { x: x[0] }, Type::tile(d, to))
            }));
        }
        out.push(Case::tiles(&format!("broadcast_scalar_{d}"), &[(d, SHAPE)], (d, SHAPE), move |b, _| {
            let x = b.op(OpKind::Constant(Literal::of(d, 1.0)), Type::Scalar(d));
            b.op(OpKind::Broadcast { x }, Type::tile(d, SHAPE))
        }));
        let shapes: [(&[usize], &[usize]); 6] = [
            (SHAPE, &[1, 32, 128]),
            (&[1, 32, 128], SHAPE),
            (&[64, 128], &[2, 32, 128]),
            (&[2, 32, 128], &[64, 128]),
            (&[256], &[1, 256]),
            (&[1, 256], &[256]),
        ];
        for (from, to) in shapes {
            out.push(Case::tiles(
                &format!("reshape_{d}_{from:?}_{to:?}"),
                &[(d, from)],
                (d, to),
                move |b, x| b.op(OpKind::Reshape { x: x[0] }, Type::tile(d, to)),
            ));
        }
        out.push(Case::tiles(
            &format!("transpose_{d}"),
            &[(d, &[128, 256])],
            (d, &[256, 128]),
            move |b, x| {
                let permutation = vec![1, 0];
                b.op(OpKind::Transpose { x: x[0], permutation }, Type::tile(d, [256, 128]))
            },
        ));
        out.push(Case::tiles(
            &format!("transpose3_{d}"),
            &[(d, &[4, 32, 128])],
            (d, &[32, 4, 128]),
            move |b, x| {
                let permutation = vec![1, 0, 2];
                b.op(OpKind::Transpose { x: x[0], permutation }, Type::tile(d, [32, 4, 128]))
            },
        ));
        for (axis, to) in [(0, [64, 128]), (1, [32, 256])] {
            let ins: &[(DType, &[usize])] = &[(d, SHAPE), (d, SHAPE)];
            out.push(Case::tiles(&format!("concatenate_{d}_{axis}"), ins, (d, &to), move |b, x| {
                b.op(OpKind::Concatenate { xs: x.to_vec(), axis }, Type::tile(d, to))
            }));
        }
        out.push(Case::tiles(&format!("concatenate1_{d}"), &[(d, SHAPE)], (d, SHAPE), move |b, x| {
            b.op(OpKind::Concatenate { xs: x.to_vec(), axis: 0 }, Type::tile(d, SHAPE))
        }));
        for offsets in [[32, 128], [3, 7]] {
            out.push(Case::tiles(
                &format!("extract_{d}_{offsets:?}"),
                &[(d, &[64, 256])],
                (d, SHAPE),
                move |b, x| {
                    let offsets = offsets.to_vec();
                    b.op(OpKind::ExtractSlice { x: x[0], offsets }, Type::tile(d, SHAPE))
                },
            ));
        }
        for axis in [0, 1] {
            out.push(Case::tiles(&format!("roll_{d}_{axis}"), &[(d, SHAPE)], (d, SHAPE), move |b, x| {
                let amount = b.int(-3);
                b.op(OpKind::Roll { x: x[0], amount, axis }, Type::tile(d, SHAPE))
            }));
        }
        for op in [Reduction::Sum, Reduction::Max, Reduction::Min] {
            let shapes: [(&[usize], usize, &[usize]); 4] = [
                (SHAPE, 0, &[1, 128]),
                (SHAPE, 1, &[32, 1]),
                (&[4, 32, 128], 0, &[1, 32, 128]),
                (&[256], 0, &[1]),
            ];
            for (from, axis, to) in shapes {
                out.push(Case::tiles(
                    &format!("reduce_{op:?}_{d}_{from:?}_{axis}"),
                    &[(d, from)],
                    (d, SHAPE),
                    move |b, x| {
                        let y = b.op(OpKind::Reduce { op, x: x[0], axis }, Type::tile(d, to));
                        if to.len() == 3 {
                            b.op(OpKind::Reshape { x: y }, Type::tile(d, SHAPE))
                        } else if to.len() == 1 {
                            let y = b.op(OpKind::ToScalar { x: y }, Type::Scalar(d));
                            b.op(OpKind::Broadcast { x: y }, Type::tile(d, SHAPE))
                        } else {
                            b.op(OpKind::Broadcast { x: y }, Type::tile(d, SHAPE))
                        }
                    },
                ));
            }
        }
        out.push(Case::tiles(&format!("to_scalar_{d}"), &[(d, SHAPE)], (d, SHAPE), move |b, x| {
            let offsets = vec![3, 5];
            let one = b.op(OpKind::ExtractSlice { x: x[0], offsets }, Type::tile(d, [1, 1]));
            let x = b.op(OpKind::ToScalar { x: one }, Type::Scalar(d));
            b.op(OpKind::Broadcast { x }, Type::tile(d, SHAPE))
        }));
    }
    out
}

pub(crate) fn dots() -> Vec<Case> {
    let mut out = vec![];
    let types = [
        (DType::F32, DType::F32, DType::F32),
        (DType::Bf16, DType::Bf16, DType::F32),
        (DType::Bf16, DType::Bf16, DType::Bf16),
        (DType::Bf16, DType::F32, DType::F32),
        (DType::F32, DType::Bf16, DType::F32),
        (DType::I8, DType::I8, DType::I32),
    ];
    for (l, r, o) in types {
        for precision in [Precision::Highest, Precision::Bf16] {
            for (lc, rc) in [(1, 0), (1, 1), (0, 0), (0, 1)] {
                let side = |c: usize, free: usize| if c == 0 { [256, free] } else { [free, 256] };
                let ins: &[(DType, &[usize])] = &[(l, &side(lc, 64)), (r, &side(rc, 128))];
                out.push(Case::tiles(
                    &format!("dot_{l}_{r}_{o}_{precision:?}_{lc}{rc}"),
                    ins,
                    (o, &[64, 128]),
                    move |b, x| {
                        let dims = DotDims { lhs: lc, rhs: rc };
                        let (lhs, rhs) = (x[0], x[1]);
                        b.op(OpKind::Dot { lhs, rhs, dims, precision }, Type::tile(o, [64, 128]))
                    },
                ));
            }
        }
    }
    out
}
