//! The rewrites. Everything else in a kernel's body is left as the user wrote it.

use proc_macro2::TokenStream;
use quote::{quote, quote_spanned};
use syn::spanned::Spanned;
use syn::visit_mut::{self, VisitMut};
use syn::{BinOp, Expr, ExprForLoop, Ident, ItemFn, parse_quote_spanned};

use crate::carried::{self, is_range_call};

/// Rewrites the body in place, and yields `compile_error!` items for forms that cannot be traced.
pub(crate) fn function(item: &mut ItemFn) -> TokenStream {
    let mut desugar = Desugar { errors: vec![] };
    desugar.visit_block_mut(&mut item.block);
    if !desugar.errors.is_empty() {
        // Say each thing once: rustc would find the same faults again in the body.
        let Ok(empty) = syn::parse2(quote!({ ::core::unreachable!() })) else { return TokenStream::new() };
        *item.block = empty;
    }
    desugar.errors.iter().map(syn::Error::to_compile_error).collect()
}

struct Desugar {
    errors: Vec<syn::Error>,
}

impl VisitMut for Desugar {
    fn visit_expr_mut(&mut self, expr: &mut Expr) {
        // A traced loop is analysed before its body is rewritten: carried variables are found by syntax.
        let traced = match expr {
            Expr::ForLoop(f) if is_range_call(&f.expr) => Some(self.carried(f)),
            _ => None,
        };
        visit_mut::visit_expr_mut(self, expr);
        let new = match expr {
            Expr::Assign(a) => match &*a.left {
                Expr::Index(place) => Some(store(place, "set", &a.right)),
                _ => None,
            },
            Expr::Binary(b) => match (&*b.left, update(&b.op)) {
                (Expr::Index(place), Some(method)) => Some(store(place, method, &b.right)),
                _ => compare(b),
            },
            Expr::If(syn::ExprIf { cond, .. }) | Expr::While(syn::ExprWhile { cond, .. }) => {
                if !contains_let(cond) {
                    **cond = parse_quote_spanned!(cond.span()=> ::kernel_ir::k::host_bool(#cond));
                }
                None
            }
            Expr::ForLoop(f) => traced.and_then(|carried| for_range(f, &carried)),
            _ => None,
        };
        if let Some(new) = new {
            *expr = new;
        }
    }

    /// A nested item is its own world.
    fn visit_item_mut(&mut self, _: &mut syn::Item) {}
}

fn contains_let(e: &Expr) -> bool {
    match e {
        Expr::Let(_) => true,
        Expr::Binary(b) => contains_let(&b.left) || contains_let(&b.right),
        _ => false,
    }
}

/// The call carries the span of the ref, so that rustc and the recorder both point at `o` in `o[..] = v`.
fn store(place: &syn::ExprIndex, method: &str, value: &Expr) -> Expr {
    let (target, index) = (&place.expr, &place.index);
    let method = Ident::new(method, target.span());
    parse_quote_spanned!(target.span()=> #target.#method(#index, #value))
}

fn update(op: &BinOp) -> Option<&'static str> {
    match op {
        BinOp::AddAssign(_) => Some("add_set"),
        BinOp::SubAssign(_) => Some("sub_set"),
        BinOp::MulAssign(_) => Some("mul_set"),
        BinOp::DivAssign(_) => Some("div_set"),
        _ => None,
    }
}

fn compare(b: &syn::ExprBinary) -> Option<Expr> {
    let (class, method) = match b.op {
        BinOp::Eq(_) => ("Eq", "eq"),
        BinOp::Ne(_) => ("Eq", "ne"),
        BinOp::Lt(_) => ("Ord", "lt"),
        BinOp::Le(_) => ("Ord", "le"),
        BinOp::Gt(_) => ("Ord", "gt"),
        BinOp::Ge(_) => ("Ord", "ge"),
        _ => return None,
    };
    let span = b.op.span();
    let (class, method) = (Ident::new(class, span), Ident::new(method, span));
    let (l, r) = (&b.left, &b.right);
    Some(parse_quote_spanned!(span=> ::kernel_ir::k::#class::#method(&(#l), &(#r))))
}

/// `for pat in range(..) { body }` with the variables that it assigns threaded through a closure.
fn for_range(f: &ExprForLoop, carried: &[Ident]) -> Option<Expr> {
    let (pat, range, body) = (&f.pat, &f.expr, &f.body);
    let span = f.for_token.span;
    if carried.is_empty() {
        return syn::parse2(
            quote_spanned!(span=> { ::kernel_ir::k::for_range(#range, (), |#pat, ()| #body); }),
        )
        .ok();
    }
    let init = carried.iter().map(|v| quote_spanned!(v.span()=> ::kernel_ir::k::carried(#v)));
    syn::parse2(quote_spanned!(span=> {
        (#(#carried,)*) = ::kernel_ir::k::for_range(#range, (#(#init,)*), |#pat, (#(mut #carried,)*)| {
            #body
            (#(#carried,)*)
        });
    }))
    .ok()
}

impl Desugar {
    /// Variables declared outside `f` that its body assigns, in order of name.
    fn carried(&mut self, f: &ExprForLoop) -> Vec<Ident> {
        let effects = carried::effects(f);
        self.errors.extend(effects.escapes.into_iter().map(|(span, what)| {
            let text =
                "cannot leave a `range` loop: the loop runs on the TPU for a trip count fixed when it starts";
            syn::Error::new(span, format!("`{what}` {text}"))
        }));
        effects.assigned.into_values().collect()
    }
}
