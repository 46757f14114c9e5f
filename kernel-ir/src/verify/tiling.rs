//! K0302: blocks are made of whole (8, 128) tiles, or take an axis whole.

use super::Found;
use crate::diag::Diagnostic;
use crate::ir::{ArrayType, DimExpr, Kernel, MemorySpace, Param, Type, Window};
use crate::target::{LANES, SUBLANES, packing};

pub(super) fn check(kernel: &Kernel, found: &mut Found) {
    for p in &kernel.params {
        let (Some(w), Some(array)) = (&p.window, &p.array) else { continue };
        let smem = matches!(kernel.ty(p.value), Type::Ref(r) if r.space == MemorySpace::Smem);
        let whole = w.block.iter().zip(&array.shape).all(|(b, e)| takes_whole(*b, e));
        if w.block.len() == array.shape.len() && !(smem && whole) {
            block(kernel, p, array, w, found);
        }
    }
}

fn takes_whole(block: usize, extent: &DimExpr) -> bool {
    extent.known() == i64::try_from(block).ok()
}

fn block(kernel: &Kernel, p: &Param, array: &ArrayType, w: &Window, found: &mut Found) {
    let mut wrong = |axis: usize, rule: String, help: String| {
        let message =
            format!("a block of {} on axis {axis} of `{}` does not fill whole tiles", w.block[axis], p.name);
        let d = Diagnostic::error("K0302", message).at(kernel.loc(w.span).clone(), rule);
        found.push(d.help(help));
    };
    let rank = w.block.len();
    if let ([n], [extent]) = (&w.block[..], &array.shape[..]) {
        let least = LANES * packing(array.dtype);
        let fits = takes_whole(*n, extent) || n.is_multiple_of(1024) || (n.is_power_of_two() && *n >= least);
        if !fits && *n > 0 {
            let rule = format!("wants a multiple of 1024, or a power of two from {least} up");
            wrong(
                0,
                rule,
                format!(
                    "use {}",
                    or_whole(n.next_power_of_two().max(least).min(n.next_multiple_of(1024)), extent)
                ),
            );
        }
        return;
    }
    for (back, multiple, which) in [(2, SUBLANES, "second-last"), (1, LANES, "last")] {
        let Some(axis) = rank.checked_sub(back) else { continue };
        let (n, extent) = (w.block[axis], &array.shape[axis]);
        if n > 0 && !n.is_multiple_of(multiple) && !takes_whole(n, extent) {
            let rule = format!("the {which} axis wants a multiple of {multiple}");
            let sizes = match n / multiple * multiple {
                0 => multiple.to_string(),
                below => format!("{below} or {}", below + multiple),
            };
            let sizes = match extent.known() {
                Some(d) => format!("{sizes}, or {d}, the whole axis"),
                None => {
                    format!("{sizes}; `{extent}` is symbolic, so no block is known to take the axis whole")
                }
            };
            wrong(axis, rule, format!("use {sizes}"));
        }
    }
}

fn or_whole(n: usize, extent: &DimExpr) -> String {
    match extent.known() {
        Some(d) => format!("{n}, or {d}, the whole axis"),
        None => n.to_string(),
    }
}
