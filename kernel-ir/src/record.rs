//! The recorder behind the DSL: one stack a thread; operators and free functions append to the kernel on top.
//!
//! Invariant: user code is never called while the recorder is borrowed, so nested calls cannot collide.

use std::cell::RefCell;
use std::collections::HashMap;
use std::panic::Location;
use std::sync::Arc;

use crate::diag::{Diagnostic, SourceLoc};
use crate::ir::{
    Block, DType, Demand, GridAxis, Kernel, Literal, Offset, Op, OpKind, Param, RefType, Span, Type, Value,
    ValueInfo,
};

/// Where the user wrote something.
pub(crate) type At = &'static Location<'static>;

thread_local!(static STACK: RefCell<Vec<Recorder>> = const { RefCell::new(Vec::new()) });

/// A kernel in the making.
pub(crate) struct Recorder {
    name: &'static str,
    values: Vec<ValueInfo>,
    /// The region that each value was made in.
    homes: Vec<u32>,
    constants: HashMap<Value, Literal>,
    /// Results of operations that were wrong: uses of them are not reported again.
    poisoned: Vec<Value>,
    open: Vec<(u32, Block)>,
    regions: u32,
    params: Vec<Param>,
    spans: Vec<SourceLoc>,
    span_of: HashMap<SourceLoc, Span>,
    diagnostics: Vec<Diagnostic>,
    /// Launch tokens (prefetch arrays) that this launch bound, with their refs.
    tokens: HashMap<u64, Value>,
}

/// Runs `f` on the kernel that this thread is recording.
pub(crate) fn with<R>(f: impl FnOnce(&mut Recorder) -> R) -> R {
    STACK.with(|s| {
        let mut stack = s.borrow_mut();
        let top = stack.last_mut().expect("tile operations only work inside a kernel that is being recorded");
        f(top)
    })
}

/// Takes the recorder off the stack even if the kernel function panics.
struct Guard;

impl Drop for Guard {
    fn drop(&mut self) {
        STACK.with(|s| s.borrow_mut().pop());
    }
}

/// Records what `f` does as a kernel, with what was found wrong on the way. Does not verify it.
pub(crate) fn record(
    name: &'static str,
    grid: Vec<GridAxis>,
    demands: Vec<Demand>,
    at: At,
    f: impl FnOnce(),
) -> (Kernel, Vec<Diagnostic>) {
    let loc = SourceLoc::from(at);
    let recorder = Recorder {
        name,
        values: vec![],
        homes: vec![],
        constants: HashMap::new(),
        poisoned: vec![],
        open: vec![(0, Block::default())],
        regions: 0,
        params: vec![],
        spans: vec![loc.clone()],
        span_of: HashMap::from([(loc, Span(0))]),
        diagnostics: vec![],
        tokens: HashMap::new(),
    };
    STACK.with(|s| s.borrow_mut().push(recorder));
    let guard = Guard;
    f();
    let r = STACK.with(|s| s.borrow_mut().pop()).expect("pushed above");
    std::mem::forget(guard);
    r.finish(grid, demands)
}

impl Recorder {
    fn finish(mut self, grid: Vec<GridAxis>, demands: Vec<Demand>) -> (Kernel, Vec<Diagnostic>) {
        let (_, body) = self.open.pop().expect("the body's region is open until here");
        let kernel = Kernel {
            name: self.name.to_owned(),
            span: Span(0),
            grid,
            params: self.params,
            body,
            demands,
            values: self.values,
            spans: self.spans,
        };
        (kernel, self.diagnostics)
    }

    /// The span of a source place.
    pub(crate) fn span(&mut self, at: At) -> Span {
        let loc = SourceLoc::from(at);
        *self.span_of.entry(loc).or_insert_with_key(|loc| {
            self.spans.push(loc.clone());
            Span(u32::try_from(self.spans.len() - 1).expect("fewer places than u32 counts"))
        })
    }

    /// A new value of the current region.
    pub(crate) fn value(&mut self, ty: Type, at: At) -> Value {
        let span = self.span(at);
        self.values.push(ValueInfo { ty, span });
        self.homes.push(self.open.last().map_or(0, |(r, _)| *r));
        Value(u32::try_from(self.values.len() - 1).expect("fewer values than u32 counts"))
    }

    /// The type of a value.
    pub(crate) fn ty(&self, v: Value) -> Type {
        self.values[v.0 as usize].ty.clone()
    }

    /// The type of a ref.
    pub(crate) fn ref_ty(&self, v: Value) -> RefType {
        match self.ty(v) {
            Type::Ref(r) => r,
            other => unreachable!("the DSL makes refs only of ref values, not of {other}"),
        }
    }

    /// The shape of a tile; empty for a scalar.
    pub(crate) fn shape(&self, v: Value) -> Vec<usize> {
        self.values[v.0 as usize].ty.shape().unwrap_or_default().to_vec()
    }

    /// Appends an operation that yields a value, after checking that it may see its operands.
    pub(crate) fn push(&mut self, kind: OpKind, ty: Type, at: At) -> Value {
        self.check_scope(&kind, at);
        let span = self.span(at);
        let v = self.value(ty, at);
        if self.any_poisoned(&kind.operands()) {
            self.poisoned.push(v);
        }
        self.append(Op { kind, results: vec![v], span });
        v
    }

    /// Appends an operation that yields nothing.
    pub(crate) fn effect(&mut self, kind: OpKind, at: At) {
        self.check_scope(&kind, at);
        let span = self.span(at);
        self.append(Op { kind, results: vec![], span });
    }

    /// Appends an operation whose results were made before.
    pub(crate) fn append_with(&mut self, kind: OpKind, results: Vec<Value>, at: At) {
        self.check_scope(&kind, at);
        let span = self.span(at);
        self.append(Op { kind, results, span });
    }

    fn append(&mut self, op: Op) {
        self.open.last_mut().expect("the body's region stays open").1.ops.push(op);
    }

    /// A constant of a scalar type; known to later foldings.
    pub(crate) fn constant(&mut self, dtype: DType, literal: Literal, at: At) -> Value {
        let v = self.push(OpKind::Constant(literal), Type::Scalar(dtype), at);
        self.constants.insert(v, literal);
        v
    }

    /// The number that a scalar is known to be.
    pub(crate) fn known_int(&self, v: Value) -> Option<i64> {
        match self.constants.get(&v) {
            Some(Literal::Int(n)) => Some(*n),
            _ => None,
        }
    }

    /// A value as an offset: a number when it is known.
    pub(crate) fn offset(&self, v: Value) -> Offset {
        match self.known_int(v).map(usize::try_from) {
            Some(Ok(n)) => Offset::Const(n),
            _ => Offset::Value(v),
        }
    }

    fn check_scope(&mut self, kind: &OpKind, at: At) {
        for v in kind.operands() {
            let visible = self.open.iter().any(|(r, _)| *r == self.homes[v.0 as usize]);
            if !visible && !self.poisoned.contains(&v) {
                self.poisoned.push(v);
                let made = self.spans[self.values[v.0 as usize].span.0 as usize].clone();
                self.report(
                    Diagnostic::error("K0101", "a value is used outside the region that made it")
                        .at(at.into(), "used here")
                        .at(made, "made here, inside a `when` or a loop")
                        .help("carry it with `let mut` through the `range` loop, or store it to a ref"),
                );
            }
        }
    }

    /// Opens a region; values made from now on are visible only inside it.
    pub(crate) fn enter(&mut self) {
        self.regions += 1;
        self.open.push((self.regions, Block::default()));
    }

    /// Closes the region that was opened last.
    pub(crate) fn leave(&mut self) -> Block {
        self.open.pop().expect("every `leave` follows an `enter`").1
    }

    /// Declares a parameter.
    pub(crate) fn param(&mut self, p: Param) {
        self.params.push(p);
    }

    /// The name of the parameter behind a ref, for messages.
    pub(crate) fn param_name(&self, v: Value) -> Arc<str> {
        self.params.iter().find(|p| p.value == v).map_or_else(|| "ref".into(), |p| p.name.clone())
    }

    /// Remembers that a launch token stands for a ref of this kernel.
    pub(crate) fn bind_token(&mut self, token: u64, v: Value) {
        self.tokens.insert(token, v);
    }

    /// The ref that a launch token stands for.
    pub(crate) fn token(&self, token: u64) -> Option<Value> {
        self.tokens.get(&token).copied()
    }

    /// Files a finding.
    pub(crate) fn report(&mut self, d: Diagnostic) {
        self.diagnostics.push(d);
    }

    /// Files a finding, and yields a value of the type that the operation should have had, which is not reported again.
    pub(crate) fn wrong(&mut self, d: Diagnostic, ty: Type, at: At) -> Value {
        self.report(d);
        let v = self.value(ty, at);
        self.poisoned.push(v);
        v
    }

    /// True if any of the values is the result of something already reported.
    pub(crate) fn any_poisoned(&self, vs: &[Value]) -> bool {
        vs.iter().any(|v| self.poisoned.contains(v))
    }

    /// How many findings there are.
    pub(crate) fn found(&self) -> usize {
        self.diagnostics.len()
    }

    /// Marks the result of an operation that was reported.
    pub(crate) fn taint(&mut self, v: Value) {
        self.poisoned.push(v);
    }

    /// A stand-in for the result of an operation on poisoned values.
    pub(crate) fn poison(&mut self, ty: Type, at: At) -> Value {
        let v = self.value(ty, at);
        self.poisoned.push(v);
        v
    }
}

/// `[2, 128]`, for messages.
pub(crate) fn show(shape: &[usize]) -> String {
    format!("[{}]", shape.iter().map(ToString::to_string).collect::<Vec<_>>().join(", "))
}
