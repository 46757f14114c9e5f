//! The kernel under construction: what each value of the module has become, and where the next operation goes.

use std::collections::HashMap;

use super::Fallible;
use super::live::Live;
use super::places::Places;
use crate::ir::{Block, GridAxis, Kernel, Literal, Op, OpKind, Param, Span, Type, Value, ValueInfo};
use crate::mosaic::read::module::{Module, ValueId};

/// Values of the largest kernel: bounds what inlining and unrolling make of a small module.
const MOST_VALUES: usize = 1 << 16;

/// What a value of the module has become.
#[derive(Clone, Debug)]
pub(super) enum Known {
    /// A value of the kernel.
    Value(Value),
    /// A scalar or a tile of one number, made where it is used.
    Constant(Literal, Type),
    /// The grid index of an axis.
    GridIndex(usize),
    /// A conversion or reshape of a value, made when it is used: a chain of them often comes to nothing.
    Later(Later),
}

/// Something that is made once it is used.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(super) struct Later {
    pub(super) how: How,
    pub(super) x: Value,
    pub(super) ty: Type,
    pub(super) span: Span,
}

/// How a [`Later`] is made.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(super) enum How {
    Cast,
    CastUnsigned,
    Reshape,
}

/// What was made on demand, and is not made again.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
enum Key {
    Constant(u8, u64, Type),
    GridIndex(usize),
    Later(Later),
}

/// A block being filled.
#[derive(Default)]
struct Scope {
    /// Differs from that of every other scope.
    id: u32,
    ops: Vec<Op>,
    made: HashMap<Key, Value>,
}

/// The kernel under construction.
pub(super) struct Lower<'m> {
    pub(super) module: &'m Module,
    pub(super) live: Live,
    pub(super) places: Places<'m>,
    /// The name of the operation at hand, for messages.
    pub(super) name: &'m str,
    /// The place of the operation at hand.
    pub(super) span: Span,
    pub(super) grid: Vec<GridAxis>,
    /// Memory that the body allocates: scratch that belongs to the kernel.
    pub(super) allocated: Vec<Value>,
    values: Vec<ValueInfo>,
    /// By [`ValueId`]: what it has become, and the scope that knows it (its depth and id).
    known: Vec<Option<(Known, usize, u32)>>,
    scopes: Vec<Scope>,
    opened: u32,
    /// Operations that were lowered.
    pub(super) lowered: usize,
    /// How deep the block at hand is nested, calls included.
    pub(super) depth: usize,
}

impl<'m> Lower<'m> {
    pub(super) fn new(module: &'m Module, live: Live) -> Self {
        Self {
            module,
            live,
            places: Places::new(module),
            name: "builtin.module",
            span: Span(0),
            grid: vec![],
            allocated: vec![],
            values: vec![],
            known: vec![None; module.values.len()],
            scopes: vec![],
            opened: 0,
            lowered: 0,
            depth: 0,
        }
    }

    // --- values of the module ---

    fn lookup(&self, v: ValueId) -> Fallible<(&Known, usize)> {
        let entry = self.known.get(v.0 as usize).and_then(Option::as_ref);
        match entry {
            Some((known, depth, id)) if self.scopes.get(*depth).is_some_and(|s| s.id == *id) => {
                Ok((known, *depth))
            }
            _ => Err(self.malformed("uses a value that is not defined there")),
        }
    }

    /// What a value has become.
    pub(super) fn known(&self, v: ValueId) -> Fallible<&Known> {
        self.lookup(v).map(|(known, _)| known)
    }

    /// Says what a value has become.
    pub(super) fn set(&mut self, v: ValueId, known: Known) {
        let (depth, id) = (self.scopes.len().saturating_sub(1), self.scopes.last().map_or(0, |s| s.id));
        if let Some(entry) = self.known.get_mut(v.0 as usize) {
            *entry = Some((known, depth, id));
        }
    }

    /// The constant that a value is.
    pub(super) fn constant_of(&self, v: ValueId) -> Option<Literal> {
        match self.known(v) {
            Ok(Known::Constant(literal, _)) => Some(*literal),
            _ => None,
        }
    }

    /// The value of the kernel that a value has become; it is made now if it was left for later.
    pub(super) fn get(&mut self, v: ValueId) -> Fallible<Value> {
        let (known, depth) = self.lookup(v)?;
        match known.clone() {
            Known::Value(x) => Ok(x),
            Known::Constant(literal, ty) => self.constant(literal, ty),
            Known::GridIndex(axis) => {
                let ty = Type::Scalar(crate::ir::DType::I32);
                let here = self.scopes.len() - 1;
                self.make(here, Key::GridIndex(axis), OpKind::ProgramId { axis }, ty, self.span)
            }
            // Not in a loop if it was asked for before the loop.
            Known::Later(later) => self.make_later(later, depth),
        }
    }

    fn make_later(&mut self, later: Later, depth: usize) -> Fallible<Value> {
        let x = later.x;
        let kind = match later.how {
            How::Cast => OpKind::Cast { x },
            How::CastUnsigned => OpKind::CastUnsigned { x },
            How::Reshape => OpKind::Reshape { x },
        };
        let (ty, span) = (later.ty.clone(), later.span);
        self.make(depth, Key::Later(later), kind, ty, span)
    }

    /// A scalar, or a tile of one number; once a block.
    pub(super) fn constant(&mut self, literal: Literal, ty: Type) -> Fallible<Value> {
        let (class, bits) = match literal {
            Literal::Float(x) => (0, x.to_bits()),
            Literal::Int(n) => (1, n.cast_unsigned()),
            Literal::Bool(b) => (2, u64::from(b)),
        };
        let key = Key::Constant(class, bits, ty.clone());
        let here = self.scopes.len().saturating_sub(1);
        self.make(here, key, OpKind::Constant(literal), ty, self.span)
    }

    /// Makes something in the scope at `depth`, unless a scope that is open there has it.
    fn make(&mut self, depth: usize, key: Key, kind: OpKind, ty: Type, span: Span) -> Fallible<Value> {
        let open = self.scopes.iter().take(depth + 1);
        if let Some(made) = open.rev().find_map(|s| s.made.get(&key)) {
            return Ok(*made);
        }
        let value = self.new_value(ty, span)?;
        if let Some(scope) = self.scopes.get_mut(depth) {
            scope.ops.push(Op { kind, results: vec![value], span });
            scope.made.insert(key, value);
        }
        Ok(value)
    }

    // --- values of the kernel ---

    /// A value that nothing makes yet.
    pub(super) fn new_value(&mut self, ty: Type, span: Span) -> Fallible<Value> {
        if self.values.len() >= MOST_VALUES {
            return Err(self.unsupported(format!("is where the kernel gets more than {MOST_VALUES} values")));
        }
        self.values.push(ValueInfo { ty, span });
        Ok(Value(u32::try_from(self.values.len() - 1).unwrap_or(u32::MAX)))
    }

    /// The type of a value.
    pub(super) fn ty(&self, v: Value) -> &Type {
        &self.values[v.0 as usize].ty
    }

    /// Appends an operation that makes one value.
    pub(super) fn push(&mut self, kind: OpKind, ty: Type) -> Fallible<Value> {
        let value = self.new_value(ty, self.span)?;
        self.append(kind, vec![value]);
        Ok(value)
    }

    /// Appends an operation.
    pub(super) fn append(&mut self, kind: OpKind, results: Vec<Value>) {
        let span = self.span;
        if let Some(scope) = self.scopes.last_mut() {
            scope.ops.push(Op { kind, results, span });
        }
    }

    /// What made a value, if that was a moment ago.
    pub(super) fn made_by(&self, v: Value) -> Option<&OpKind> {
        const MOMENT: usize = 16;
        let scopes = self.scopes.iter().rev().take(MOMENT);
        let mut recent = scopes.flat_map(|s| s.ops.iter().rev().take(MOMENT));
        recent.find(|op| op.results.contains(&v)).map(|op| &op.kind)
    }

    /// Runs `f` with a new block to fill; the operations that it made, and what `f` yields.
    pub(super) fn inside<T>(&mut self, f: impl FnOnce(&mut Self) -> Fallible<T>) -> Fallible<(Vec<Op>, T)> {
        let at = (self.name, self.span);
        self.opened += 1;
        self.scopes.push(Scope { id: self.opened, ..Scope::default() });
        let result = f(self);
        let scope = self.scopes.pop().unwrap_or_default();
        let result = result?;
        (self.name, self.span) = at;
        Ok((scope.ops, result))
    }

    /// The kernel.
    pub(super) fn kernel(self, launch: Span, name: String, params: Vec<Param>, body: Block) -> Kernel {
        Kernel {
            name,
            span: Span(0),
            grid: self.grid,
            params,
            body,
            demands: vec![],
            values: self.values,
            spans: self.places.finish(launch),
        }
    }
}
