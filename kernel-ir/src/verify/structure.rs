//! K0001: the kernel's tables and regions hang together, so that every later rule may index and recurse freely.

use crate::diag::Diagnostic;
use crate::ir::{Block, DType, Kernel, Op, OpKind, Span, Type, Value};

/// Regions nested deeper than this are refused: every stage recurses over them.
const DEEPEST: usize = 64;

/// Checks what the rest of the verifier takes for granted. Stops at the first fault of a region: what follows from a
/// fault says nothing new.
pub(super) fn check(kernel: &Kernel) -> Result<(), Diagnostic> {
    if kernel.spans.is_empty() {
        return Err(Diagnostic::error("K0001", format!("kernel `{}` has no source places", kernel.name)));
    }
    let mut s = Structure { kernel, state: vec![State::Unmade; kernel.values.len()], open: vec![] };
    s.span(kernel.span)?;
    for (i, v) in kernel.values.iter().enumerate() {
        if v.span.0 as usize >= kernel.spans.len() {
            return Err(fault(
                kernel,
                kernel.span,
                format!("value %{i} has a source place that is not there"),
            ));
        }
    }
    s.grid()?;
    for p in &kernel.params {
        s.span(p.span)?;
        s.make(p.value, p.span)?;
        if !matches!(kernel.ty(p.value), Type::Ref(_)) {
            return Err(fault(kernel, p.span, format!("parameter `{}` is not a ref", p.name)));
        }
    }
    for p in &kernel.params {
        if let Some(w) = &p.window {
            s.span(w.span)?;
            s.region(&w.index, w.span, 1)?;
        }
    }
    if !kernel.body.args.is_empty() || !kernel.body.results.is_empty() {
        return Err(fault(kernel, kernel.span, "the body takes or yields values".to_owned()));
    }
    s.region(&kernel.body, kernel.span, 1)
}

/// A fault of the IR, reported where the source place can be trusted.
fn fault(kernel: &Kernel, span: Span, message: String) -> Diagnostic {
    let at = kernel.spans.get(span.0 as usize).unwrap_or(&kernel.spans[0]);
    Diagnostic::error("K0001", message)
        .at(at.clone(), "in this operation")
        .help("please report this if the kernel came from `#[tpu_kernel]`")
}

/// How far a value's life has come.
#[derive(Clone, Copy, PartialEq)]
enum State {
    Unmade,
    Visible,
    /// Its region has ended.
    Gone,
}

struct Structure<'k> {
    kernel: &'k Kernel,
    /// By value.
    state: Vec<State>,
    /// Visible values, in order of making.
    open: Vec<Value>,
}

impl Structure<'_> {
    fn fault<T>(&self, span: Span, message: String) -> Result<T, Diagnostic> {
        Err(fault(self.kernel, span, message))
    }

    fn span(&self, span: Span) -> Result<(), Diagnostic> {
        if (span.0 as usize) < self.kernel.spans.len() {
            return Ok(());
        }
        self.fault(span, format!("source place {} is not there", span.0))
    }

    fn grid(&self) -> Result<(), Diagnostic> {
        for (axis, g) in self.kernel.grid.iter().enumerate() {
            if let Some(n) = g.extent.known()
                && !(0..=i64::from(i32::MAX)).contains(&n)
            {
                return self.fault(self.kernel.span, format!("grid axis {axis} has extent {n}"));
            }
        }
        Ok(())
    }

    /// Makes a value, which must not exist yet.
    fn make(&mut self, v: Value, span: Span) -> Result<(), Diagnostic> {
        match self.state.get_mut(v.0 as usize) {
            None => self.fault(span, format!("value %{} is not in the kernel's table", v.0)),
            Some(state) if *state == State::Unmade => {
                *state = State::Visible;
                self.open.push(v);
                Ok(())
            }
            Some(_) => self.fault(span, format!("value %{} is made twice", v.0)),
        }
    }

    fn sees(&self, v: Value, span: Span) -> Result<(), Diagnostic> {
        match self.state.get(v.0 as usize) {
            Some(State::Visible) => Ok(()),
            _ => self.fault(span, format!("value %{} is used where it is not defined", v.0)),
        }
    }

    fn region(&mut self, b: &Block, span: Span, depth: usize) -> Result<(), Diagnostic> {
        if depth > DEEPEST {
            return self.fault(span, format!("regions are nested more than {DEEPEST} deep"));
        }
        let outer = self.open.len();
        for v in &b.args {
            self.make(*v, span)?;
        }
        for op in &b.ops {
            self.op(op, depth)?;
        }
        for v in &b.results {
            self.sees(*v, span)?;
        }
        if b.args.iter().chain(&b.results).any(|v| matches!(self.kernel.ty(*v), Type::Ref(_))) {
            return self.fault(span, "a region takes or yields a ref".to_owned());
        }
        for v in self.open.drain(outer..) {
            self.state[v.0 as usize] = State::Gone;
        }
        Ok(())
    }

    fn op(&mut self, op: &Op, depth: usize) -> Result<(), Diagnostic> {
        self.span(op.span)?;
        for v in op.kind.operands() {
            self.sees(v, op.span)?;
        }
        for b in op.kind.blocks() {
            self.region(b, op.span, depth + 1)?;
        }
        for v in &op.results {
            self.make(*v, op.span)?;
        }
        let fits = match &op.kind {
            OpKind::If { then, otherwise, .. } => {
                let no_args = then.args.is_empty() && otherwise.args.is_empty();
                no_args && self.same(&then.results, &op.results) && self.same(&otherwise.results, &op.results)
            }
            OpKind::For { init, body, .. } => {
                let index =
                    body.args.first().is_some_and(|v| *self.kernel.ty(*v) == Type::Scalar(DType::I32));
                index
                    && self.same(init, &body.args[1..])
                    && self.same(init, &body.results)
                    && self.same(init, &op.results)
            }
            OpKind::While { init, cond, body } => {
                let flag = matches!(cond.results[..], [v] if *self.kernel.ty(v) == Type::Scalar(DType::Bool));
                flag && self.same(init, &cond.args)
                    && self.same(init, &body.args)
                    && self.same(init, &body.results)
                    && self.same(init, &op.results)
            }
            kind => op.results.len() == usize::from(kind.makes_value()),
        };
        if fits {
            return Ok(());
        }
        self.fault(
            op.span,
            "what goes into a region or comes out of it has the wrong number or types".to_owned(),
        )
    }

    /// Whether two lists of values have the same types.
    fn same(&self, a: &[Value], b: &[Value]) -> bool {
        a.len() == b.len() && a.iter().zip(b).all(|(x, y)| self.kernel.ty(*x) == self.kernel.ty(*y))
    }
}
