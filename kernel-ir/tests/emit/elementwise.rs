//! Functions of one and two operands, comparisons, choices and casts, of tiles and of scalars, in every element type.

use kernel_ir::ir::{Binary, Compare, DType, Literal, OpKind, Type, Unary};

use crate::cases::{Case, SHAPE};
use crate::kernels::binary;

const UNARY: [Unary; 17] = [
    Unary::Neg,
    Unary::Abs,
    Unary::Exp,
    Unary::Exp2,
    Unary::Log,
    Unary::Log2,
    Unary::Sqrt,
    Unary::Rsqrt,
    Unary::Reciprocal,
    Unary::Tanh,
    Unary::Logistic,
    Unary::Erf,
    Unary::Sin,
    Unary::Cos,
    Unary::Floor,
    Unary::Ceil,
    Unary::Not,
];
const BINARY: [Binary; 12] = [
    Binary::Add,
    Binary::Sub,
    Binary::Mul,
    Binary::Div,
    Binary::Rem,
    Binary::Min,
    Binary::Max,
    Binary::And,
    Binary::Or,
    Binary::Xor,
    Binary::Shl,
    Binary::Shr,
];
const COMPARE: [Compare; 6] = [Compare::Eq, Compare::Ne, Compare::Lt, Compare::Le, Compare::Gt, Compare::Ge];

fn unary_takes(op: Unary, d: DType) -> bool {
    match op {
        Unary::Neg | Unary::Abs => d != DType::Bool,
        Unary::Not => !d.is_float(),
        _ => d.is_float(),
    }
}

fn binary_takes(op: Binary, d: DType) -> bool {
    match op {
        Binary::And | Binary::Or | Binary::Xor => !d.is_float(),
        Binary::Shl | Binary::Shr => d.is_int(),
        _ => d != DType::Bool,
    }
}

fn compare_takes(op: Compare, d: DType) -> bool {
    d != DType::Bool || matches!(op, Compare::Eq | Compare::Ne)
}

pub(crate) fn tiles() -> Vec<Case> {
    let mut out = vec![];
    for d in DType::ALL {
        let t = move || Type::tile(d, SHAPE);
        for op in UNARY.into_iter().filter(|op| unary_takes(*op, d)) {
            out.push(Case::tiles(&format!("{op:?}_{d}"), &[(d, SHAPE)], (d, SHAPE), move |b, x| {
                b.op(OpKind::Unary { op, x: x[0] }, t())
            }));
        }
        for op in BINARY.into_iter().filter(|op| binary_takes(*op, d)) {
            let ins = &[(d, SHAPE), (d, SHAPE)];
            out.push(Case::tiles(&format!("{op:?}_{d}"), ins, (d, SHAPE), move |b, x| {
                b.op(binary(op, x[0], x[1]), t())
            }));
        }
        for op in COMPARE.into_iter().filter(|op| compare_takes(*op, d)) {
            let ins = &[(d, SHAPE), (d, SHAPE)];
            let bools = Type::tile(DType::Bool, SHAPE);
            out.push(Case::tiles(&format!("{op:?}_{d}"), ins, (DType::Bool, SHAPE), move |b, x| {
                b.op(OpKind::Compare { op, x: x[0], y: x[1] }, bools.clone())
            }));
        }
        // A comparison and a choice of its own operands, which the compiler turns into a minimum.
        let ins = &[(d, SHAPE), (d, SHAPE)];
        let op = if d == DType::Bool { Compare::Eq } else { Compare::Lt };
        out.push(Case::tiles(&format!("select_{d}"), ins, (d, SHAPE), move |b, x| {
            let bools = Type::tile(DType::Bool, SHAPE);
            let mask = b.op(OpKind::Compare { op, x: x[0], y: x[1] }, bools);
            b.op(OpKind::Select { mask, x: x[0], y: x[1] }, t())
        }));
        let ins = &[(DType::I32, SHAPE), (d, SHAPE), (d, SHAPE)];
        out.push(Case::tiles(&format!("select_by_i32_{d}"), ins, (d, SHAPE), move |b, x| {
            let bools = Type::tile(DType::Bool, SHAPE);
            let at = b.op(OpKind::Iota { axis: 1 }, Type::tile(DType::I32, SHAPE));
            let mask = b.op(OpKind::Compare { op: Compare::Lt, x: at, y: x[0] }, bools);
            b.op(OpKind::Select { mask, x: x[1], y: x[2] }, t())
        }));
        out.push(Case::tiles(&format!("constant_{d}"), &[(d, SHAPE)], (d, SHAPE), move |b, _| {
            b.fill(d, SHAPE, 1.0)
        }));
        for to in DType::ALL.into_iter().filter(|to| *to != d) {
            out.push(Case::tiles(&format!("cast_{d}_{to}"), &[(d, SHAPE)], (to, SHAPE), move |b, x| {
                b.op(OpKind::Cast { x: x[0] }, Type::tile(to, SHAPE))
            }));
        }
    }
    out
}

/// Bitwise functions of narrow scalars: the compiler rewrites them to narrow ones, which the scalar unit lacks.
fn has_no_scalar_form(op: Binary, d: DType) -> bool {
    matches!(op, Binary::And | Binary::Or | Binary::Xor) && matches!(d, DType::I16 | DType::I8)
}

pub(crate) fn scalars() -> Vec<Case> {
    let mut out = vec![];
    for d in DType::ALL {
        let t = move || Type::Scalar(d);
        for op in UNARY.into_iter().filter(|op| unary_takes(*op, d)) {
            out.push(Case::scalars(&format!("scalar_{op:?}_{d}"), &[d], d, move |b, x| {
                b.op(OpKind::Unary { op, x: x[0] }, t())
            }));
        }
        for op in BINARY.into_iter().filter(|op| binary_takes(*op, d) && !has_no_scalar_form(*op, d)) {
            out.push(Case::scalars(&format!("scalar_{op:?}_{d}"), &[d, d], d, move |b, x| {
                b.op(binary(op, x[0], x[1]), t())
            }));
        }
        for op in COMPARE.into_iter().filter(|op| compare_takes(*op, d)) {
            let bool = Type::Scalar(DType::Bool);
            out.push(Case::scalars(&format!("scalar_{op:?}_{d}"), &[d, d], DType::Bool, move |b, x| {
                b.op(OpKind::Compare { op, x: x[0], y: x[1] }, bool.clone())
            }));
        }
        let op = if d == DType::Bool { Compare::Eq } else { Compare::Lt };
        out.push(Case::scalars(&format!("scalar_select_{d}"), &[d, d], d, move |b, x| {
            let mask = b.op(OpKind::Compare { op, x: x[0], y: x[1] }, Type::Scalar(DType::Bool));
            b.op(OpKind::Select { mask, x: x[0], y: x[1] }, t())
        }));
        if d != DType::Bf16 {
            out.push(Case::scalars(&format!("scalar_constant_{d}"), &[d], d, move |b, _| {
                b.op(OpKind::Constant(Literal::of(d, 1.0)), t())
            }));
        }
        for to in DType::ALL.into_iter().filter(|to| *to != d) {
            out.push(Case::scalars(&format!("scalar_cast_{d}_{to}"), &[d], to, move |b, x| {
                b.op(OpKind::Cast { x: x[0] }, Type::Scalar(to))
            }));
        }
    }
    out
}
