//! K0309: the machine has the operation for the element type: an error if it cannot be written, a warning if it is
//! done in a wider type.
//!
//! From what libtpu 0.0.52 accepts on v5e, v6e and v7x.

use super::{Found, operation};
use crate::diag::{Diagnostic, Severity};
use crate::ir::{Binary, DType, Kernel, Op, OpKind, Reduction, Type};

pub(super) fn check(kernel: &Kernel, found: &mut Found) {
    kernel.each_op(&mut |op| {
        if let Some((severity, what, help)) = limit(kernel, op) {
            let message = format!("`{}` {what}", operation(&op.kind));
            let at = kernel.loc(op.span).clone();
            found.push(match severity {
                Severity::Error => Diagnostic::error("K0309", message).at(at, "not on the TPU").help(help),
                Severity::Warning => {
                    Diagnostic::warning("K0309", message).at(at, "not natively on the TPU").help(help)
                }
            });
        }
    });
}

fn limit(kernel: &Kernel, op: &Op) -> Option<(Severity, String, &'static str)> {
    let wider = |d: DType, wide: &str| {
        let what = format!("of {d} is done in {wide} and converted back");
        Some((
            Severity::Warning,
            what,
            "convert once with `.to()`, compute there, and convert back at the end",
        ))
    };
    let tile = |v| match kernel.ty(v) {
        Type::Tile(t) => Some(t),
        _ => None,
    };
    match &op.kind {
        OpKind::Iota { .. } if tile(op.results[0])?.shape.len() < 2 => {
            let what = "of rank 1 does not exist".to_owned();
            Some((Severity::Error, what, "make it a row, `iota([1, n], 1)`, or a column, `iota([n, 1], 0)`"))
        }
        OpKind::Binary { op: b, x, .. } => {
            let t = tile(*x)?;
            match (t.dtype, b) {
                (d @ DType::I8, Binary::And | Binary::Or | Binary::Xor | Binary::Shl | Binary::Shr) => {
                    let _ = d;
                    None
                }
                (d @ DType::I8, _) => wider(d, "i32"),
                (d @ DType::I16, Binary::Div | Binary::Rem | Binary::Min | Binary::Max) => wider(d, "i32"),
                (d @ DType::Bf16, Binary::Rem) => wider(d, "f32"),
                _ => None,
            }
        }
        OpKind::Unary { op: _, x } => match tile(*x)?.dtype {
            d @ DType::I8 => wider(d, "i32"),
            _ => None,
        },
        OpKind::Reduce { op: r, x, .. } => match (tile(*x)?.dtype, r) {
            (d @ (DType::I8 | DType::I16), Reduction::Sum | Reduction::Max | Reduction::Min) => {
                wider(d, "i32")
            }
            _ => None,
        },
        OpKind::Dot { lhs, rhs, .. } => {
            let (a, b, to) = (tile(*lhs)?.dtype, tile(*rhs)?.dtype, tile(op.results[0])?.dtype);
            let fits = match to {
                DType::F32 => a.is_float() && b.is_float(),
                DType::I32 => a == DType::I8 && b == DType::I8,
                _ => false,
            };
            let what = format!("of {a} and {b} to {to} does not exist");
            (!fits).then_some((
                Severity::Error,
                what,
                "the matrix unit multiplies f32 and bf16 to f32, and i8 by i8 to i32: convert with `.to()`",
            ))
        }
        _ => None,
    }
}
