//! Compiles a kernel into a [`Plan`]: walks each block in order, delays what can be fused or read in place, and emits
//! it when somebody needs it or when memory is about to change.

use std::collections::{BTreeMap, BTreeSet};

use crate::exec::fault::{Checked, Fault};
use crate::exec::layout::MAX_RANK;
use crate::exec::scalar::Scalar;
use crate::ir::{self, Block, Kernel, Op, OpKind, Span, TileType, Type, Value};

use super::fuse::Group;
use super::needed::Needed;
use super::written::{self, base_of, target_of};
use super::{Action, Code, Dot, IndexMap, Offset, Operand, Passed, Plan, Slot, Step, Store, lifetime};

/// What stands for a tile value while its block is compiled.
#[derive(Clone, Debug)]
pub(super) enum Bound {
    /// A way to read it.
    Operand(Operand),
    /// A result of an open group.
    Grouped,
    /// A product that is not emitted yet, in case the next op adds something to it.
    Product(Box<Dot>, Span),
}

/// The state of the compilation.
pub(super) struct Lowering<'k> {
    pub(super) kernel: &'k Kernel,
    pub(super) needed: Needed,
    /// Uses that were not compiled yet, by value.
    pub(super) uses_left: Vec<u32>,
    pub(super) bound: BTreeMap<Value, Bound>,
    pub(super) groups: Vec<Group>,
    /// Products not emitted yet, oldest first.
    pub(super) products: Vec<Value>,
    steps: Vec<Step>,
    /// By value: the parameter that a ref leads to.
    roots: BTreeMap<Value, usize>,
    /// Refs that see memory under another element type.
    recast: BTreeSet<Value>,
    /// True when other devices may write to this one's memory.
    remote: bool,
    constants: Vec<(Slot, Scalar)>,
    program_ids: Vec<(Slot, usize)>,
    dims: &'k ir::dims::Dims,
    grid: &'k [i64],
}

/// Compiles a kernel for one call: `dims` and the extents of the grid are known, and which parameter each one shares its
/// memory with (itself, if it is no alias).
pub(in crate::exec) fn compile(
    kernel: &Kernel,
    dims: &ir::dims::Dims,
    grid: &[i64],
    memory: &[usize],
) -> Checked<Plan> {
    let needed = Needed::of(kernel);
    let mut l = Lowering {
        kernel,
        uses_left: needed.uses.clone(),
        needed,
        bound: BTreeMap::new(),
        groups: vec![],
        products: vec![],
        steps: vec![],
        roots: BTreeMap::new(),
        recast: BTreeSet::new(),
        remote: false,
        constants: vec![],
        program_ids: vec![],
        dims,
        grid,
    };
    for (i, p) in kernel.params.iter().enumerate() {
        let rank = kernel.ref_ty(p.value).shape.len();
        if rank > MAX_RANK {
            return Err(Fault::refused(
                p.span,
                format!("`{}` has {rank} axes (at most {MAX_RANK} here)", p.name),
            ));
        }
        l.roots.insert(p.value, memory.get(i).copied().unwrap_or(i));
    }
    kernel.each_op(&mut |op| l.remote |= matches!(op.kind, OpKind::CopyStartRemote { .. }));
    let mut windows = vec![];
    for p in &kernel.params {
        windows.push(match &p.window {
            None => None,
            Some(w) => Some(IndexMap {
                args: w.index.args.iter().map(|v| slot(*v)).collect(),
                code: l.block(&w.index)?,
            }),
        });
    }
    let written = written::written(kernel);
    let mut body = l.block(&kernel.body)?;
    lifetime::assign(&mut body, &[]);
    Ok(Plan { body, windows, constants: l.constants, program_ids: l.program_ids, written })
}

/// The slot of a value.
pub(super) const fn slot(v: Value) -> Slot {
    v.0 as usize
}

pub(super) fn offset(o: &ir::Offset) -> Offset {
    match o {
        ir::Offset::Const(n) => Offset::Const(*n),
        ir::Offset::Value(v) => Offset::Slot(slot(*v)),
    }
}

impl Lowering<'_> {
    pub(super) fn emit(&mut self, span: Span, action: Action) {
        self.steps.push(Step { action, span, release: vec![] });
    }

    /// The type of a tile value.
    pub(super) fn tile_type(&self, v: Value, span: Span) -> Checked<TileType> {
        match self.kernel.ty(v) {
            Type::Tile(t) if t.shape.len() <= MAX_RANK => Ok(t.clone()),
            Type::Tile(t) => Err(Fault::refused(
                span,
                format!("a tile of rank {} (at most {MAX_RANK} here)", t.shape.len()),
            )),
            other => Err(Fault::refused(span, format!("expected a tile, found {other}"))),
        }
    }

    /// True for a ref that sees memory under another element type.
    pub(super) fn is_recast(&self, v: Value) -> bool {
        self.recast.contains(&v)
    }

    /// The parameter behind a ref.
    fn root(&self, v: Value, span: Span) -> Checked<usize> {
        self.roots.get(&v).copied().ok_or_else(|| Fault::refused(span, "a ref that leads to no parameter"))
    }

    /// Compiles a block; nothing delayed crosses its border.
    pub(super) fn block(&mut self, block: &Block) -> Checked<Code> {
        let outer_steps = std::mem::take(&mut self.steps);
        let outer_bound = self.bound.clone();
        for op in block.ops.iter().filter(|op| self.needed.op(op)).collect::<Vec<_>>() {
            self.op(op)?;
        }
        let mut results = vec![];
        for v in &block.results {
            let span = self.kernel.values[slot(*v)].span;
            results.push(self.passed(*v, span)?);
        }
        self.emit_delayed();
        self.bound = outer_bound;
        Ok(Code { steps: std::mem::replace(&mut self.steps, outer_steps), results })
    }

    /// A value as a block hands it over: a scalar, or a tile in a slot of its own.
    fn passed(&mut self, v: Value, span: Span) -> Checked<Passed> {
        let is_tile = matches!(self.kernel.ty(v), Type::Tile(_));
        let slot = if is_tile { self.dense(v, span)? } else { slot(v) };
        Ok(Passed { slot, is_tile, last: false })
    }

    fn op(&mut self, op: &Op) -> Checked<()> {
        match &op.kind {
            OpKind::If { cond, then, otherwise } => {
                self.before_region(&op.kind);
                let (then, otherwise) = (self.block(then)?, self.block(otherwise)?);
                let (cond, results) = (slot(*cond), self.region_results(op));
                self.emit(op.span, Action::If { cond, then, otherwise, results });
            }
            OpKind::For { lo, hi, init, body } => {
                let init = self.init(init, op.span)?;
                self.before_region(&op.kind);
                let args = self.block_args(&body.args);
                let code = self.block(body)?;
                let (Some((&index, args)), results) = (args.split_first(), self.region_results(op)) else {
                    return Err(Fault::refused(op.span, "a loop without an index"));
                };
                self.emit(
                    op.span,
                    Action::For {
                        lo: slot(*lo),
                        hi: slot(*hi),
                        index,
                        init,
                        args: args.to_vec(),
                        body: code,
                        results,
                    },
                );
            }
            OpKind::While { init, cond, body } => {
                let init = self.init(init, op.span)?;
                self.before_region(&op.kind);
                let (cond_args, body_args) = (self.block_args(&cond.args), self.block_args(&body.args));
                let (cond, body) = (self.block(cond)?, self.block(body)?);
                let results = self.region_results(op);
                self.emit(op.span, Action::While { init, cond, cond_args, body, body_args, results });
            }
            OpKind::Store { base, offsets, value } => self.store(op, (*base, offsets, &[]), *value, None)?,
            OpKind::StoreStrided { base, offsets, strides, value } => {
                self.store(op, (*base, offsets, strides), *value, None)?;
            }
            OpKind::StoreMasked { base, offsets, value, mask } => {
                self.store(op, (*base, offsets, &[]), *value, Some(*mask))?;
            }
            OpKind::Slice { base, .. } | OpKind::Squeeze { base, .. } => self.ref_op(op, *base)?,
            OpKind::ReshapeRef { base } => self.ref_op(op, *base)?,
            OpKind::BitcastRef { base } => {
                self.ref_op(op, *base)?;
                self.recast.insert(self.result(op)?);
            }
            OpKind::CopyStart { dst, .. }
            | OpKind::CopyWait { dst, .. }
            | OpKind::CopyStartRemote { dst, .. } => {
                let root = self.root(*dst, op.span)?;
                self.before_write(Some(root).filter(|_| !self.remote));
                self.plain(op);
            }
            OpKind::StoreScalar { base, .. } => {
                let root = self.root(*base, op.span)?;
                self.before_write(Some(root));
                self.plain(op);
            }
            OpKind::SemSignal { .. } | OpKind::SemWait { .. } | OpKind::SemRead { .. } => {
                // Other devices may write once they are told to; what they wrote lands here.
                if self.remote {
                    self.before_write(None);
                }
                self.plain(op);
            }
            OpKind::BarrierSemaphore | OpKind::PrngSeed { .. } | OpKind::Assert { .. } => self.plain(op),
            _ => return self.value_op(op),
        }
        Ok(())
    }

    /// Ops that make one value and have no other effect.
    fn value_op(&mut self, op: &Op) -> Checked<()> {
        let result = self.result(op)?;
        if let Type::Tile(ty) = self.kernel.ty(result) {
            let ty = ty.clone();
            return self.tile_op(op, result, &ty);
        }
        match &op.kind {
            OpKind::Constant(l) => {
                let dtype = self.kernel.ty(result).dtype();
                let dtype = dtype.ok_or_else(|| Fault::refused(op.span, "a constant of no type"))?;
                self.constants.push((slot(result), Scalar::literal(*l, dtype)));
            }
            OpKind::Dim { name } => {
                let n = self.dims.get(&**name).and_then(|n| i32::try_from(*n).ok());
                let n = n.ok_or_else(|| Fault::refused(op.span, format!("dim `{name}` is not known")))?;
                self.constants.push((slot(result), Scalar::int(n)));
            }
            OpKind::NumPrograms { axis } => {
                let n = self.grid.get(*axis).and_then(|n| i32::try_from(*n).ok());
                let n = n.ok_or_else(|| Fault::refused(op.span, format!("the grid has no axis {axis}")))?;
                self.constants.push((slot(result), Scalar::int(n)));
            }
            OpKind::ProgramId { axis } if *axis < self.grid.len() => {
                self.program_ids.push((slot(result), *axis));
            }
            OpKind::ToScalar { x } => {
                let from = self.operand(*x, op.span)?;
                self.emit(op.span, Action::ToScalar { from, to: slot(result) });
            }
            _ => self.plain(op),
        }
        Ok(())
    }

    /// Notes a scalar that never changes.
    pub(super) fn constant(&mut self, v: Value, l: ir::Literal, ty: &TileType) {
        self.constants.push((slot(v), Scalar::literal(l, ty.dtype)));
    }

    fn plain(&mut self, op: &Op) {
        let to = op.results.first().map(|v| slot(*v));
        for v in op.kind.operands() {
            self.used(v);
        }
        self.emit(op.span, Action::Plain { kind: op.kind.clone(), to });
    }

    fn store(
        &mut self,
        op: &Op,
        (base, offsets, strides): (Value, &[ir::Offset], &[usize]),
        value: Value,
        mask: Option<Value>,
    ) -> Checked<()> {
        let root = self.root(base, op.span)?;
        let mask = mask.map(|m| self.stored(m, root, op.span)).transpose()?;
        let value = self.stored(value, root, op.span)?;
        self.before_write(Some(root));
        let (base, offsets) = (slot(base), offsets.iter().map(offset).collect());
        let store = Store { base, offsets, strides: strides.to_vec(), value, mask };
        self.emit(op.span, Action::Store(Box::new(store)));
        Ok(())
    }

    /// Uses a value that is stored to memory, or says where to.
    fn stored(&mut self, v: Value, root: usize, span: Span) -> Checked<Operand> {
        let from = self.operand(v, span)?;
        // Reading and writing one memory in one step would need a copy: make it here.
        match from.memory_base() {
            Some(b) if self.root_of_slot(b) == Some(root) => self.materialize(v, from, span),
            _ => Ok(from),
        }
    }

    /// An op that makes a ref of another one.
    fn ref_op(&mut self, op: &Op, base: Value) -> Checked<()> {
        let (root, result) = (self.root(base, op.span)?, self.result(op)?);
        if let Type::Ref(ty) = self.kernel.ty(result)
            && ty.shape.len() > MAX_RANK
        {
            let message = format!("a ref of rank {} (at most {MAX_RANK} here)", ty.shape.len());
            return Err(Fault::refused(op.span, message));
        }
        self.roots.insert(result, root);
        if self.recast.contains(&base) {
            self.recast.insert(result);
        }
        self.plain(op);
        Ok(())
    }

    pub(super) fn result(&self, op: &Op) -> Checked<Value> {
        match op.results.as_slice() {
            [r] => Ok(*r),
            _ => Err(Fault::refused(op.span, "an op with a wrong number of results")),
        }
    }

    fn init(&mut self, init: &[Value], span: Span) -> Checked<Vec<Passed>> {
        init.iter().map(|v| self.passed(*v, span)).collect()
    }

    fn block_args(&mut self, args: &[Value]) -> Vec<Slot> {
        args.iter().for_each(|v| self.bind_tile(*v));
        args.iter().map(|v| slot(*v)).collect()
    }

    fn region_results(&mut self, op: &Op) -> Vec<Slot> {
        self.block_args(&op.results)
    }

    /// Binds a tile value to the slot of its own; does nothing for scalars.
    pub(super) fn bind_tile(&mut self, v: Value) {
        if let Type::Tile(ty) = self.kernel.ty(v) {
            let operand = Operand::tile(slot(v), ty);
            self.bound.insert(v, Bound::Operand(operand));
        }
    }

    /// Notes that one use of a value is compiled.
    pub(super) fn used(&mut self, v: Value) {
        let left = &mut self.uses_left[slot(v)];
        *left = left.saturating_sub(1);
    }

    pub(super) fn root_of_slot(&self, s: Slot) -> Option<usize> {
        u32::try_from(s).ok().and_then(|s| self.roots.get(&Value(s)).copied())
    }

    /// Emits everything delayed.
    fn emit_delayed(&mut self) {
        for v in std::mem::take(&mut self.products) {
            self.emit_product(v);
        }
        while !self.groups.is_empty() {
            self.close_group(0);
        }
    }

    /// Emits everything delayed that reads the memory of a parameter (or any memory), which is about to change.
    fn before_write(&mut self, root: Option<usize>) {
        let reads =
            |l: &Self, base: Option<Slot>| base.is_some_and(|b| root.is_none() || l.root_of_slot(b) == root);
        for v in self.products.clone() {
            if let Some(Bound::Product(dot, _)) = self.bound.get(&v)
                && [&dot.lhs, &dot.rhs].iter().any(|o| reads(self, o.memory_base()))
            {
                self.products.retain(|p| *p != v);
                self.emit_product(v);
            }
        }
        for i in (0..self.groups.len()).rev() {
            if self.groups[i].memory_bases().any(|b| reads(self, Some(b))) {
                self.close_group(i);
            }
        }
        let stale: Vec<(Value, Operand)> = self
            .bound
            .iter()
            .filter_map(|(v, b)| match b {
                Bound::Operand(o) if self.uses_left[slot(*v)] > 0 && reads(self, o.memory_base()) => {
                    Some((*v, o.clone()))
                }
                _ => None,
            })
            .collect();
        for (v, operand) in stale {
            let span = self.kernel.values[slot(v)].span;
            self.emit_copy(v, operand, span);
        }
    }

    fn before_region(&mut self, kind: &OpKind) {
        self.emit_delayed();
        if self.remote {
            return self.before_write(None);
        }
        let mut roots = BTreeSet::new();
        let mut slices: BTreeMap<Value, Value> = BTreeMap::new();
        written_inside(kind, &mut slices, &mut |v| {
            roots.insert(v);
        });
        for v in roots {
            let mut base = v;
            while let Some(b) = slices.get(&base) {
                base = *b;
            }
            if let Some(root) = self.roots.get(&base).copied() {
                self.before_write(Some(root));
            }
        }
    }
}

/// Calls `f` with every ref that the blocks of an op write to, and notes which ref each other one is made of.
fn written_inside(kind: &OpKind, slices: &mut BTreeMap<Value, Value>, f: &mut dyn FnMut(Value)) {
    for op in kind.blocks().into_iter().flat_map(|b| &b.ops) {
        slices.extend(op.results.first().copied().zip(base_of(&op.kind)));
        target_of(&op.kind).into_iter().for_each(&mut *f);
        written_inside(&op.kind, slices, f);
    }
}
