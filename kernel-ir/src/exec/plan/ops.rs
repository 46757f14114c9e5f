//! How each op on tiles is compiled: layout ops become ways of reading, elementwise ops join a group, the rest become
//! steps.

use crate::exec::elementwise::{takes_floats, takes_ints};
use crate::exec::fault::{Checked, Fault};
use crate::ir::{Binary, DType, Offset, Op, OpKind, Precision, Span, TileType, Type, Unary, Value};

use super::fuse::Group;
use super::lower::{Bound, Lowering, offset, slot};
use super::{Action, Dot, ElementOp, LaneKind, Operand, Reduce, Reg, Slot, Source};

impl Lowering<'_> {
    pub(super) fn tile_op(&mut self, op: &Op, result: Value, ty: &TileType) -> Checked<()> {
        let span = op.span;
        self.tile_type(result, span)?;
        match &op.kind {
            OpKind::Unary { op: f, x } => {
                self.check_unary(*f, ty.dtype, span)?;
                self.elementwise(result, ty, &[*x], span, |r| ElementOp::Unary(*f, r[0]))
            }
            OpKind::Binary { op: f, x, y } => {
                if *f == Binary::Add && self.add_to_product(result, ty, *x, *y)? {
                    return Ok(());
                }
                check_binary(*f, ty.dtype, span)?;
                self.elementwise(result, ty, &[*x, *y], span, |r| ElementOp::Binary(*f, r[0], r[1]))
            }
            OpKind::Compare { op: f, x, y } => {
                self.elementwise(result, ty, &[*x, *y], span, |r| ElementOp::Compare(*f, r[0], r[1]))
            }
            OpKind::Select { mask, x, y } => {
                self.elementwise(result, ty, &[*x, *y, *mask], span, |r| ElementOp::Select(r[2], r[0], r[1]))
            }
            OpKind::Cast { x } => self.elementwise(result, ty, &[*x], span, |r| ElementOp::Cast(r[0])),
            OpKind::CastUnsigned { x } => {
                let from = self.tile_type(*x, span)?.dtype;
                self.elementwise(result, ty, &[*x], span, |r| ElementOp::CastUnsigned(r[0], from))
            }
            OpKind::Bitcast { x } => {
                let from = self.tile_type(*x, span)?.dtype;
                if from.bits() == ty.dtype.bits() {
                    return self.elementwise(result, ty, &[*x], span, |r| ElementOp::Bitcast(r[0], from));
                }
                let from = self.operand(*x, span)?;
                self.emit_tile(result, span, |to| Action::Bitcast { from, dtype: ty.dtype, to });
                Ok(())
            }
            OpKind::Constant(l) => {
                self.constant(result, *l, ty);
                self.bind(result, Operand::splat(slot(result), ty));
                Ok(())
            }
            OpKind::Iota { axis } if *axis < ty.shape.len() => {
                self.bind(result, Operand::iota(*axis, ty));
                Ok(())
            }
            OpKind::Load { base, offsets } => self.load(result, ty, *base, offsets, &[], span),
            OpKind::LoadStrided { base, offsets, strides } => {
                self.load(result, ty, *base, offsets, strides, span)
            }
            OpKind::PrngBits => {
                let len = ty.len();
                self.emit_tile(result, span, |to| Action::Random { len, to });
                Ok(())
            }
            OpKind::Dot { lhs, rhs, dims, precision } => {
                let mut dot = Dot {
                    lhs: self.matrix(*lhs, span)?,
                    rhs: self.matrix(*rhs, span)?,
                    acc: None,
                    to: slot(result),
                    dtype: ty.dtype,
                    round: *precision == Precision::Bf16,
                };
                if dims.lhs == 0 {
                    dot.lhs = dot.lhs.transpose(&[1, 0]);
                }
                if dims.rhs == 1 {
                    dot.rhs = dot.rhs.transpose(&[1, 0]);
                }
                if dot.lhs.shape[1] != dot.rhs.shape[0] {
                    return Err(Fault::refused(span, "a dot whose contracted axes differ"));
                }
                self.products.push(result);
                self.bound.insert(result, Bound::Product(Box::new(dot), span));
                Ok(())
            }
            _ => self.layout_op(op, result, ty),
        }
    }

    /// Notes where a loaded tile lies; it is read there.
    fn load(
        &mut self,
        result: Value,
        ty: &TileType,
        base: Value,
        offsets: &[Offset],
        strides: &[usize],
        span: Span,
    ) -> Checked<()> {
        let source = Source::Memory {
            base: slot(base),
            offsets: offsets.iter().map(offset).collect(),
            extent: ty.shape.clone(),
            strides: strides.to_vec(),
            span,
        };
        if self.is_recast(base) {
            let dtype = ty.dtype;
            self.emit_tile(result, span, |to| Action::LoadBits { from: source, dtype, to });
        } else {
            self.bind(result, Operand::whole(source, ty.shape.clone(), ty.dtype));
        }
        Ok(())
    }

    fn layout_op(&mut self, op: &Op, result: Value, ty: &TileType) -> Checked<()> {
        let span = op.span;
        match &op.kind {
            OpKind::Broadcast { x } => {
                let view = match self.kernel.ty(*x) {
                    Type::Scalar(_) => {
                        self.used(*x);
                        Operand::splat(slot(*x), ty)
                    }
                    _ => self.operand(*x, span)?.broadcast(&ty.shape),
                };
                self.bind(result, view);
            }
            OpKind::Reshape { x } => {
                let from = self.operand(*x, span)?;
                let view = match from.reshape(&ty.shape) {
                    Some(view) => Some(view),
                    None => self.materialize(*x, from, span)?.reshape(&ty.shape),
                };
                let view = view
                    .ok_or_else(|| Fault::refused(span, "a reshape that changes the number of elements"))?;
                self.bind(result, view);
            }
            OpKind::Transpose { x, permutation } => {
                let view = self.operand(*x, span)?.transpose(permutation);
                self.bind(result, view);
            }
            OpKind::ExtractSlice { x, offsets } => {
                let view = self.operand(*x, span)?.extract(offsets, &ty.shape);
                self.bind(result, view);
            }
            OpKind::Concatenate { xs, axis } => {
                let xs = xs.iter().map(|x| self.operand(*x, span)).collect::<Checked<Vec<_>>>()?;
                self.emit_tile(result, span, |to| Action::Concatenate {
                    xs,
                    axis: *axis,
                    to,
                    shape: ty.shape.clone(),
                });
            }
            OpKind::Roll { x, amount, axis } => {
                let from = self.operand(*x, span)?;
                self.used(*amount);
                self.emit_tile(result, span, |to| Action::Roll {
                    from,
                    amount: slot(*amount),
                    axis: *axis,
                    to,
                });
            }
            OpKind::Gather { x, index, axis } => {
                let (from, index) = (self.operand(*x, span)?, self.operand(*index, span)?);
                self.emit_tile(result, span, |to| Action::Gather { from, index, axis: *axis, to });
            }
            OpKind::ArgReduce { op: f, x, axis } => {
                let from = self.operand(*x, span)?;
                self.emit_tile(result, span, |to| Action::ArgReduce { op: *f, from, axis: *axis, to });
            }
            OpKind::Reduce { op: f, x, axis } => {
                let from = self.operand(*x, span)?;
                let shape = from.shape.clone();
                self.emit_tile(result, span, |to| {
                    Action::Reduce(Box::new(Reduce {
                        op: *f,
                        from,
                        to,
                        outer: shape[..*axis].iter().product(),
                        len: shape[*axis],
                        inner: shape[*axis + 1..].iter().product(),
                        dtype: ty.dtype,
                    }))
                });
            }
            other => {
                return Err(Fault::refused(span, format!("this op makes no tile: {other:?}")));
            }
        }
        Ok(())
    }

    /// Binds a value to a way of reading it.
    fn bind(&mut self, v: Value, operand: Operand) {
        self.bound.insert(v, Bound::Operand(operand));
    }

    /// Emits a step that fills the slot of a value.
    fn emit_tile(&mut self, v: Value, span: Span, action: impl FnOnce(Slot) -> Action) {
        self.emit(span, action(slot(v)));
        self.bind_tile(v);
    }

    /// Uses a value: a way to read it, emitting what was delayed.
    pub(super) fn operand(&mut self, v: Value, span: Span) -> Checked<Operand> {
        // Settled while this use still counts: the value is wanted.
        self.settle(v);
        self.used(v);
        match self.bound.get(&v) {
            Some(Bound::Operand(o)) => Ok(o.clone()),
            _ => Err(Fault::refused(span, format!("%{} is used before it is made", v.0))),
        }
    }

    /// Makes sure that a value is not part of anything delayed.
    fn settle(&mut self, v: Value) {
        match self.bound.get(&v) {
            Some(Bound::Grouped) => {
                if let Some(i) = self.groups.iter().position(|g| g.find(v).is_some()) {
                    self.close_group(i);
                }
            }
            Some(Bound::Product(..)) => {
                self.products.retain(|p| *p != v);
                self.emit_product(v);
            }
            _ => {}
        }
    }

    /// Uses a value as a tile in a slot.
    pub(super) fn dense(&mut self, v: Value, span: Span) -> Checked<Slot> {
        let operand = self.operand(v, span)?;
        match operand.tile_slot() {
            Some(s) if operand.is_whole_tile() => Ok(s),
            _ => {
                self.emit_copy(v, operand, span);
                Ok(slot(v))
            }
        }
    }

    /// Uses a value as a side of a product: strides in storage, not something computed.
    fn matrix(&mut self, v: Value, span: Span) -> Checked<Operand> {
        let operand = self.operand(v, span)?;
        let operand = match operand.source {
            Source::Tile { .. } | Source::Memory { .. } => operand,
            Source::Splat(_) | Source::Iota => self.materialize(v, operand, span)?,
        };
        if operand.shape.len() != 2 {
            return Err(Fault::refused(span, "a dot of tiles that are not of rank 2"));
        }
        Ok(operand)
    }

    /// Writes a value out and reads it from its slot from now on.
    pub(super) fn materialize(&mut self, v: Value, from: Operand, span: Span) -> Checked<Operand> {
        let ty = self.tile_type(v, span)?;
        self.emit_copy(v, from, span);
        Ok(Operand::tile(slot(v), &ty))
    }

    pub(super) fn emit_copy(&mut self, v: Value, from: Operand, span: Span) {
        self.emit_tile(v, span, |to| Action::Materialize { from, to });
    }

    fn elementwise(
        &mut self,
        result: Value,
        ty: &TileType,
        args: &[Value],
        span: Span,
        op: impl Fn(&[Reg]) -> ElementOp,
    ) -> Checked<()> {
        let from = self.tile_type(args[0], span)?.dtype;
        let place = |l: &Self| l.groups.iter().position(|g| g.shape == ty.shape);
        // First read what lies outside the group: that may close groups, this one too.
        let mut outside = vec![];
        for v in args {
            let inside = place(self).is_some_and(|g| self.groups[g].find(*v).is_some());
            let operand = if inside { None } else { Some(self.operand(*v, span)?) };
            if operand.as_ref().is_some_and(|o| o.shape != ty.shape) {
                return Err(Fault::refused(span, "an elementwise op on different shapes"));
            }
            outside.push(operand);
        }
        let at = place(self).unwrap_or_else(|| {
            self.groups.push(Group::new(ty.shape.clone()));
            self.groups.len() - 1
        });
        let mut regs = vec![];
        for (v, operand) in args.iter().zip(outside) {
            let group = &mut self.groups[at];
            regs.push(match (group.find(*v), operand) {
                (_, Some(o)) => group.leaf(o),
                (Some(r), None) => {
                    self.used(*v);
                    r
                }
                (None, None) => {
                    let o = self.operand(*v, span)?;
                    self.groups[at].leaf(o)
                }
            });
        }
        self.groups[at].push(result, op(&regs), LaneKind::of(from), ty.dtype, span);
        self.bound.insert(result, Bound::Grouped);
        Ok(())
    }

    /// Emits an open group.
    pub(super) fn close_group(&mut self, at: usize) {
        let group = self.groups.remove(at);
        let results = group.results().to_vec();
        let left = &self.uses_left;
        let fused = group.close(|v| left[slot(v)] > 0);
        for v in results {
            if self.uses_left[slot(v)] > 0 {
                self.bind_tile(v);
            }
        }
        if let Some(span) = fused.code.last().map(|i| i.span)
            && !fused.outs.is_empty()
        {
            self.emit(span, Action::Fused(Box::new(fused)));
        }
    }

    /// Emits a product that waits in [`Bound::Product`].
    pub(super) fn emit_product(&mut self, v: Value) {
        if let Some(Bound::Product(dot, span)) = self.bound.remove(&v) {
            self.emit(span, Action::Dot(dot));
        }
        self.bind_tile(v);
    }

    /// Compiles `x + y` as a product that starts from the other side, if one side is a product used only here.
    fn add_to_product(&mut self, result: Value, ty: &TileType, x: Value, y: Value) -> Checked<bool> {
        if x == y || !matches!(ty.dtype, DType::F32 | DType::I32) {
            return Ok(false);
        }
        let is_product = |l: &Self, v: Value| {
            l.uses_left[slot(v)] == 1 && matches!(l.bound.get(&v), Some(Bound::Product(..)))
        };
        let (product, other) = match (is_product(self, x), is_product(self, y)) {
            (_, true) => (y, x),
            (true, _) => (x, y),
            _ => return Ok(false),
        };
        let Some(Bound::Product(mut dot, span)) = self.bound.remove(&product) else {
            return Ok(false);
        };
        self.products.retain(|p| *p != product);
        self.used(product);
        dot.acc = Some(self.operand(other, span)?);
        dot.to = slot(result);
        self.emit_tile(result, span, |_| Action::Dot(dot));
        Ok(true)
    }

    fn check_unary(&self, f: Unary, dtype: DType, span: Span) -> Checked<()> {
        let fits = match dtype {
            _ if dtype.is_float() => !matches!(f, Unary::Not | Unary::LeadingZeros | Unary::PopCount),
            DType::Bool => f == Unary::Not,
            _ => takes_ints(f),
        };
        if fits {
            return Ok(());
        }
        Err(Fault::refused(span, format!("{f:?} of {dtype}")))
    }
}

fn check_binary(f: Binary, dtype: DType, span: Span) -> Checked<()> {
    let fits = match dtype {
        _ if dtype.is_float() => takes_floats(f),
        DType::Bool => matches!(f, Binary::And | Binary::Or | Binary::Xor),
        _ => !matches!(f, Binary::Pow | Binary::Atan2),
    };
    if fits {
        return Ok(());
    }
    Err(Fault::refused(span, format!("{f:?} of {dtype}")))
}
