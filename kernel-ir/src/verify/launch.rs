//! K0301, K0312: blocks fit their arrays, and every dim can be read off an argument of the call.

use std::sync::Arc;

use super::Found;
use crate::diag::Diagnostic;
use crate::ir::{DimExpr, Kernel, OpKind, Param, Role, Span, Window};

pub(super) fn check(kernel: &Kernel, found: &mut Found) {
    for p in &kernel.params {
        if let Some(w) = &p.window {
            block(kernel, p, w, found);
        }
    }
    dims(kernel, found);
}

fn block(kernel: &Kernel, p: &Param, w: &Window, found: &mut Found) {
    let Some(array) = &p.array else { return };
    let mut wrong = |message: String, label: String, help: Option<String>| {
        let d = Diagnostic::error("K0301", message).at(kernel.loc(w.span).clone(), label);
        found.push(if let Some(h) = help { d.help(h) } else { d });
    };
    let (rank, of) = (w.block.len(), array.shape.len());
    if rank != of {
        let message = format!("the block of `{}` has {rank} axes, but its array has {of}", p.name);
        return wrong(message, format!("a block of rank {rank}"), None);
    }
    if rank == 0 {
        let message = format!("`{}` has rank 0", p.name);
        return wrong(
            message,
            "a block has at least one axis".to_owned(),
            Some("pass a scalar as `prefetch(1)`".to_owned()),
        );
    }
    for (axis, (n, extent)) in w.block.iter().zip(&array.shape).enumerate() {
        if *n == 0 {
            let message = format!("the block of `{}` has length 0 on axis {axis}", p.name);
            wrong(message, "an empty block".to_owned(), None);
        } else if let Some(d) = extent.known()
            && i64::try_from(*n).is_ok_and(|n| n > d)
        {
            let message =
                format!("a block of {n} is longer than axis {axis} of `{}`, which has length {d}", p.name);
            wrong(message, "longer than the array".to_owned(), Some(format!("use a block of {d} at most")));
        }
    }
}

/// K0312: dims that something reads, but no argument shows.
fn dims(kernel: &Kernel, found: &mut Found) {
    let mut shown: Vec<&Arc<str>> = vec![];
    for p in kernel.params.iter().filter(|p| matches!(p.role, Role::Input | Role::Prefetch)) {
        let shape = p.array.iter().flat_map(|a| &a.shape);
        shown.extend(shape.filter_map(|e| if let DimExpr::Dim(d) = e { Some(d) } else { None }));
    }
    let mut told: Vec<Arc<str>> = vec![];
    let mut need = |d: &Arc<str>, span: Span, what: &str| {
        if shown.contains(&d) || told.contains(d) {
            return;
        }
        told.push(d.clone());
        let d = Diagnostic::warning("K0312", format!("no argument of the kernel shows dim `{d}`"))
            .at(kernel.loc(span).clone(), what)
            .help(format!("give an input an axis of length `{d}`, or make `{d}` a number"));
        found.push(d);
    };
    for p in &kernel.params {
        for e in p.array.iter().flat_map(|a| &a.shape) {
            let span = p.window.as_ref().map_or(p.span, |w| w.span);
            e.each_dim(&mut |d| need(d, span, &format!("in the shape of `{}`", p.name)));
        }
    }
    for g in &kernel.grid {
        g.extent.each_dim(&mut |d| need(d, kernel.span, "in the grid of this launch"));
    }
    for d in &kernel.demands {
        for side in [&d.left, &d.right] {
            side.each_dim(&mut |d| need(d, kernel.span, "in a demand of this launch"));
        }
    }
    kernel.each_op(&mut |op| {
        if let OpKind::Dim { name } = &op.kind {
            need(name, op.span, "read here");
        }
    });
}
