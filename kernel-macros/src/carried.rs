//! Which variables a traced loop assigns, found by syntax, and jumps that would leave it.
//!
//! Anything the scan misses (an assignment hidden in a macro, a closure that mutates) is a rustc error, since loop bodies
//! are `Fn` closures: never a silent wrong value.

use std::collections::BTreeMap;

use proc_macro2::Span;
use syn::visit::{self, Visit};
use syn::{Expr, ExprForLoop, Ident, Pat};

/// What a traced loop's body does to the outside.
#[derive(Default)]
pub(crate) struct Effects {
    /// Variables that it assigns but does not declare, by name.
    pub(crate) assigned: BTreeMap<String, Ident>,
    /// `break`, `continue`, `return`, `?` that would leave it.
    pub(crate) escapes: Vec<(Span, &'static str)>,
    scopes: Vec<Vec<String>>,
    host_loops: usize,
}

/// Scans the body of a traced loop.
pub(crate) fn effects(f: &ExprForLoop) -> Effects {
    let mut e = Effects { scopes: vec![vec![]], ..Effects::default() };
    e.declare(&f.pat);
    e.visit_block(&f.body);
    e
}

/// True for `range(..)`, under whatever path.
pub(crate) fn is_range_call(e: &Expr) -> bool {
    let Expr::Call(call) = e else { return false };
    let Expr::Path(path) = &*call.func else { return false };
    path.path.segments.last().is_some_and(|s| s.ident == "range")
}

impl Effects {
    fn declare(&mut self, pat: &Pat) {
        struct Names<'a>(&'a mut Vec<String>);
        impl Visit<'_> for Names<'_> {
            fn visit_pat_ident(&mut self, p: &syn::PatIdent) {
                self.0.push(p.ident.to_string());
                visit::visit_pat_ident(self, p);
            }
        }
        if let Some(scope) = self.scopes.last_mut() {
            Names(scope).visit_pat(pat);
        }
    }

    fn assign(&mut self, place: &Expr) {
        match place {
            Expr::Path(p) => {
                if let Some(id) = p.path.get_ident()
                    && !self.scopes.iter().flatten().any(|n| id == n)
                {
                    self.assigned.entry(id.to_string()).or_insert_with(|| id.clone());
                }
            }
            Expr::Tuple(t) => t.elems.iter().for_each(|e| self.assign(e)),
            Expr::Array(a) => a.elems.iter().for_each(|e| self.assign(e)),
            Expr::Paren(p) => self.assign(&p.expr),
            _ => {}
        }
    }

    fn scoped(&mut self, f: impl FnOnce(&mut Self)) {
        self.scopes.push(vec![]);
        f(self);
        self.scopes.pop();
    }

    fn host_loop(&mut self, f: impl FnOnce(&mut Self)) {
        self.host_loops += 1;
        f(self);
        self.host_loops -= 1;
    }
}

impl<'a> Visit<'a> for Effects {
    fn visit_block(&mut self, b: &'a syn::Block) {
        self.scoped(|e| visit::visit_block(e, b));
    }

    fn visit_local(&mut self, l: &'a syn::Local) {
        visit::visit_local(self, l);
        self.declare(&l.pat);
    }

    fn visit_arm(&mut self, a: &'a syn::Arm) {
        self.scoped(|e| {
            e.declare(&a.pat);
            visit::visit_arm(e, a);
        });
    }

    fn visit_expr_let(&mut self, l: &'a syn::ExprLet) {
        visit::visit_expr_let(self, l);
        self.declare(&l.pat);
    }

    fn visit_expr_if(&mut self, i: &'a syn::ExprIf) {
        self.scoped(|e| visit::visit_expr_if(e, i));
    }

    fn visit_expr_assign(&mut self, a: &'a syn::ExprAssign) {
        self.assign(&a.left);
        visit::visit_expr_assign(self, a);
    }

    fn visit_expr_binary(&mut self, b: &'a syn::ExprBinary) {
        if is_assignment(&b.op) {
            self.assign(&b.left);
        }
        visit::visit_expr_binary(self, b);
    }

    fn visit_expr_for_loop(&mut self, f: &'a ExprForLoop) {
        self.scoped(|e| {
            e.declare(&f.pat);
            if is_range_call(&f.expr) {
                visit::visit_expr_for_loop(e, f);
            } else {
                e.host_loop(|e| visit::visit_expr_for_loop(e, f));
            }
        });
    }

    fn visit_expr_while(&mut self, w: &'a syn::ExprWhile) {
        self.scoped(|e| e.host_loop(|e| visit::visit_expr_while(e, w)));
    }

    fn visit_expr_loop(&mut self, l: &'a syn::ExprLoop) {
        self.host_loop(|e| visit::visit_expr_loop(e, l));
    }

    fn visit_expr_break(&mut self, b: &'a syn::ExprBreak) {
        if self.host_loops == 0 {
            self.escapes.push((b.break_token.span, "break"));
        }
        visit::visit_expr_break(self, b);
    }

    fn visit_expr_continue(&mut self, c: &'a syn::ExprContinue) {
        if self.host_loops == 0 {
            self.escapes.push((c.continue_token.span, "continue"));
        }
    }

    fn visit_expr_return(&mut self, r: &'a syn::ExprReturn) {
        self.escapes.push((r.return_token.span, "return"));
    }

    fn visit_expr_try(&mut self, t: &'a syn::ExprTry) {
        self.escapes.push((t.question_token.span, "?"));
        visit::visit_expr_try(self, t);
    }

    /// Assignments in a closure are rustc's to judge.
    fn visit_expr_closure(&mut self, _: &'a syn::ExprClosure) {}

    fn visit_item(&mut self, _: &'a syn::Item) {}
}

/// True for `+=` and its kin.
pub(crate) fn is_assignment(op: &syn::BinOp) -> bool {
    use syn::BinOp::{
        AddAssign, BitAndAssign, BitOrAssign, BitXorAssign, DivAssign, MulAssign, RemAssign, ShlAssign,
        ShrAssign, SubAssign,
    };
    matches!(
        op,
        AddAssign(_)
            | SubAssign(_)
            | MulAssign(_)
            | DivAssign(_)
            | RemAssign(_)
            | BitAndAssign(_)
            | BitOrAssign(_)
            | BitXorAssign(_)
            | ShlAssign(_)
            | ShrAssign(_)
    )
}
