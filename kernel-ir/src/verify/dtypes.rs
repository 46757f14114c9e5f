//! K0309: the machine has the operation for the element type: an error if there is no way to write it, a warning if it
//! is written in a wider type.

use super::{Found, operation};
use crate::diag::{Diagnostic, Severity};
use crate::ir::{Binary, DType, Kernel, Op, OpKind, Type, Value};
use crate::target::Generation;

pub(super) fn check(kernel: &Kernel, found: &mut Found) {
    kernel.each_op(&mut |op| {
        let Some((severity, what, help)) = limit(kernel, op) else { return };
        let message = format!("`{}` {what}", operation(&op.kind));
        let (d, label) = match severity {
            Severity::Error => (Diagnostic::error("K0309", message), "not on the TPU"),
            Severity::Warning => (Diagnostic::warning("K0309", message), "not natively on the TPU"),
        };
        found.push(d.at(kernel.loc(op.span).clone(), label).help(help));
    });
}

fn limit(kernel: &Kernel, op: &Op) -> Option<(Severity, String, &'static str)> {
    // Scalars are 32 bits wide wherever they are computed with.
    let tile = |v: &Value| match kernel.ty(*v) {
        Type::Tile(t) => Some(t.dtype),
        _ => None,
    };
    match &op.kind {
        OpKind::Binary { op: Binary::And | Binary::Or | Binary::Xor, .. } => None,
        OpKind::Binary { x, .. } | OpKind::Unary { x, .. } | OpKind::Reduce { x, .. } => match tile(x)? {
            d @ (DType::I8 | DType::I16) => Some((
                Severity::Warning,
                format!("of {d} is done in i32 and converted back"),
                "convert once with `.to::<i32>()`, compute there, and convert back at the end",
            )),
            _ => None,
        },
        OpKind::Dot { lhs, rhs, .. } => {
            let (a, b, to) = (tile(lhs)?, tile(rhs)?, tile(&op.results[0])?);
            let fits = Generation::ALL.into_iter().any(|g| g.target().takes_dot(a, b, to));
            (!fits).then(|| {
                let what = format!("of {a} and {b} to {to} does not exist");
                let help = "the matrix unit multiplies f32 and bf16 to f32, and i8 by i8 to i32: convert with `.to()`";
                (Severity::Error, what, help)
            })
        }
        _ => None,
    }
}
