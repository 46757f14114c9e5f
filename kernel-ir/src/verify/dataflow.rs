//! K0201, K0202, K0206, K0207: what is read was written, what is asked for is made, and inputs stay as they are.

use super::Found;
use super::bounds::runs;
use super::ints::IntFact;
use super::views::View;
use crate::diag::Diagnostic;
use crate::ir::{Block, Kernel, Op, OpKind, Param, Role, Span, Type, Value};

/// What the body does with each parameter, in program order.
struct Flow<'k> {
    kernel: &'k Kernel,
    views: &'k [Option<View>],
    ints: &'k [IntFact],
    /// By parameter: some earlier operation may have written it.
    maybe_written: Vec<bool>,
    /// By parameter: the first read that every first grid step makes with no possible write before it.
    early_read: Vec<Option<Span>>,
    /// By parameter: the first read of any kind.
    read: Vec<Option<Span>>,
    used: Vec<bool>,
    /// Inputs that are written, and where.
    inputs_written: Vec<(usize, Span)>,
}

pub(super) fn check(kernel: &Kernel, views: &[Option<View>], ints: &[IntFact], found: &mut Found) {
    let n = kernel.params.len();
    let mut flow = Flow {
        kernel,
        views,
        ints,
        maybe_written: vec![false; n],
        early_read: vec![None; n],
        read: vec![None; n],
        used: vec![false; n],
        inputs_written: vec![],
    };
    flow.maps();
    flow.block(&kernel.body, true);
    flow.report(found);
}

impl Flow<'_> {
    /// Prefetched arrays are used by block maps.
    fn maps(&mut self) {
        for w in self.kernel.params.iter().filter_map(|p| p.window.as_ref()) {
            for v in w.index.ops.iter().flat_map(|op| op.kind.operands()) {
                if let Some(p) = self.param(v) {
                    self.used[p] = true;
                }
            }
        }
    }

    fn param(&self, v: Value) -> Option<usize> {
        self.views[v.0 as usize].as_ref().map(|v| v.param)
    }

    fn write(&mut self, v: Value, span: Span) {
        let Some(p) = self.param(v) else { return };
        self.maybe_written[p] = true;
        if matches!(self.kernel.params[p].role, Role::Input | Role::Prefetch) {
            self.inputs_written.push((p, span));
        }
    }

    /// `always` if the operation runs in every grid step.
    fn reads(&mut self, v: Value, span: Span, always: bool) {
        let Some(p) = self.param(v) else { return };
        self.read[p].get_or_insert(span);
        if always && !self.maybe_written[p] {
            self.early_read[p].get_or_insert(span);
        }
    }

    fn block(&mut self, b: &Block, always: bool) {
        for op in &b.ops {
            self.op(op, always);
        }
    }

    fn op(&mut self, op: &Op, always: bool) {
        for v in op.kind.operands() {
            if let Some(p) = self.param(v) {
                self.used[p] = true;
            }
        }
        match &op.kind {
            OpKind::Load { base, .. }
            | OpKind::LoadStrided { base, .. }
            | OpKind::LoadScalar { base, .. } => {
                self.reads(*base, op.span, always);
            }
            OpKind::Store { base, .. }
            | OpKind::StoreStrided { base, .. }
            | OpKind::StoreMasked { base, .. }
            | OpKind::StoreScalar { base, .. } => self.write(*base, op.span),
            OpKind::CopyStart { src, dst, .. } | OpKind::CopyStartRemote { src, dst, .. } => {
                self.reads(*src, op.span, always);
                self.write(*dst, op.span);
            }
            OpKind::If { then, otherwise, .. } => {
                self.block(then, false);
                self.block(otherwise, false);
            }
            OpKind::For { body, .. } => self.block(body, always && runs(&op.kind, self.ints)),
            OpKind::While { cond, body, .. } => {
                self.block(cond, always);
                self.block(body, false);
            }
            _ => {}
        }
    }

    fn report(&self, found: &mut Found) {
        for (i, p) in self.kernel.params.iter().enumerate() {
            let declared = |d: Diagnostic| d.at(self.kernel.loc(p.span).clone(), "declared here");
            if p.role == Role::Output && !self.maybe_written[i] {
                let d = Diagnostic::error("K0201", format!("output `{}` is never written", p.name));
                found.push(declared(d).help(format!("store to it, e.g. {}", example(self.kernel, p))));
            } else if !self.used[i] {
                let d = Diagnostic::warning("K0206", format!("{} is never used", describe(self.kernel, p)));
                found.push(declared(d).help("take it out of the function and the launch"));
            }
            if p.role == Role::Scratch {
                self.scratch(i, p, found);
            }
        }
        for (p, span) in &self.inputs_written {
            let p = &self.kernel.params[*p];
            let d = Diagnostic::error("K0207", format!("{} is written", describe(self.kernel, p)))
                .at(self.kernel.loc(*span).clone(), "written here")
                .at(self.kernel.loc(p.span).clone(), "declared here");
            found.push(d.help("write to an output or to scratch"));
        }
    }

    fn scratch(&self, i: usize, p: &Param, found: &mut Found) {
        let never = if self.maybe_written[i] { None } else { self.read[i] };
        let Some(span) = self.early_read[i].or(never) else { return };
        let d = Diagnostic::error("K0202", format!("scratch `{}` is read before it is written", p.name))
            .at(self.kernel.loc(span).clone(), "read here")
            .at(self.kernel.loc(p.span).clone(), "declared here");
        found.push(if self.maybe_written[i] {
            d.note("in the first grid step nothing has written it yet").help(format!(
                "clear it in the first step, e.g. `when(program_id(0) == 0, || {}[..] = 0.0)`",
                p.name
            ))
        } else {
            d.note("nothing in the kernel writes it")
        });
    }
}

/// How to store to an output, in the user's words.
fn example(kernel: &Kernel, p: &Param) -> String {
    match kernel.ty(p.value) {
        Type::Ref(r) if r.space == crate::ir::MemorySpace::Any => {
            format!("`copy(.., {}.at(..), ..)`", p.name)
        }
        _ => format!("`{}[..] = value`", p.name),
    }
}

/// E.g. "input `x`".
fn describe(kernel: &Kernel, p: &Param) -> String {
    let semaphore = matches!(kernel.ty(p.value), Type::Ref(r) if r.dtype().is_none());
    let role = match p.role {
        _ if semaphore => "semaphore",
        Role::Prefetch => "prefetched array",
        Role::Input => "input",
        Role::Output => "output",
        Role::Scratch => "scratch",
    };
    format!("{role} `{}`", p.name)
}
