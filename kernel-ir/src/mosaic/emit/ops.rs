//! One operation after the other: which translation each kind of operation takes.

use melior::ir::Value;
use melior::ir::operation::{OperationLike as _, OperationResult};

use super::Fallible;
use super::function::Function;
use super::types;
use crate::ir::{self, Binary, Block, DType, Op, OpKind};

impl<'c, 'a> Function<'c, 'a, '_> {
    /// Translates the operations of a block.
    pub(super) fn block_ops(&mut self, block: &Block) -> Fallible<()> {
        for op in &block.ops {
            self.span = op.span;
            self.emit_op(op)?;
        }
        Ok(())
    }

    fn emit_op(&mut self, op: &Op) -> Fallible<()> {
        match &op.kind {
            OpKind::Store { base, offsets, value } => self.store(*base, offsets, *value, None),
            OpKind::StoreMasked { base, offsets, value, mask } => {
                self.store(*base, offsets, *value, Some(*mask))
            }
            OpKind::StoreStrided { base, offsets, strides, value } => {
                self.store_strided(*base, offsets, strides, *value)
            }
            OpKind::StoreScalar { base, offsets, value } => self.store_scalar(*base, offsets, *value),
            OpKind::CopyStart { src, dst, sem } => self.copy(true, *src, *dst, *sem),
            OpKind::CopyWait { src, dst, sem } => self.copy(false, *src, *dst, *sem),
            OpKind::CopyStartRemote { src, sent, dst, received, device } => {
                self.copy_remote([*src, *dst], [*sent, *received], *device)
            }
            OpKind::SemSignal { sem, amount, device, core } => self.signal(*sem, *amount, [*device, *core]),
            OpKind::SemWait { sem, amount } => self.wait(*sem, *amount),
            OpKind::PrngSeed { seeds } => self.seed(seeds),
            OpKind::Assert { cond, message } => self.assert(*cond, message),
            OpKind::If { cond, then, otherwise } => self.emit_if(*cond, then, otherwise, &op.results),
            OpKind::For { lo, hi, init, body } => self.emit_for(*lo, *hi, init, body, &op.results),
            OpKind::While { init, cond, body } => self.emit_while(init, cond, body, &op.results),
            _ => {
                let [result] = op.results.as_slice() else {
                    return Err(self.malformed("an operation that makes one value names another number"));
                };
                let value = match &op.kind {
                    OpKind::Slice { base, offsets, sizes } => self.slice(*base, offsets, sizes, *result)?,
                    OpKind::Squeeze { base, axes } => self.squeeze(*base, axes, *result)?,
                    OpKind::ReshapeRef { base } => self.recast("tpu.memref_reshape", *base, *result)?,
                    OpKind::BitcastRef { base } => self.recast("tpu.memref_bitcast", *base, *result)?,
                    OpKind::BarrierSemaphore
                    | OpKind::DeviceId
                    | OpKind::PrngBits
                    | OpKind::SemRead { .. } => self.sync_value(&op.kind, *result)?,
                    _ => self.emit_value(op)?,
                };
                self.set(*result, value);
                Ok(())
            }
        }
    }

    /// Translates an operation that makes one scalar or tile.
    fn emit_value(&mut self, op: &Op) -> Fallible<Value<'c, 'a>> {
        let out = self.shaped(op.results[0])?;
        match &op.kind {
            OpKind::Constant(literal) => self.literal(out, *literal),
            OpKind::Iota { axis } => self.iota(out, *axis),
            OpKind::ProgramId { axis } => match self.grid.get(*axis) {
                Some(index) => Ok(*index),
                None => Err(self.malformed(format!("the grid has no axis {axis}"))),
            },
            OpKind::NumPrograms { axis } => self.num_programs(*axis),
            OpKind::Dim { name } => self.dim(name),

            OpKind::Unary { op, x } => {
                let t = self.shaped(*x)?;
                let x = self.get(*x)?;
                self.unary(*op, x, t)
            }
            OpKind::Binary { op, x, y } => {
                // `dot + acc` is accumulated by the matrix unit; `acc + dot` is not recognised.
                let (x, y) = match op {
                    Binary::Add if self.is_product(*y)? => (*y, *x),
                    _ => (*x, *y),
                };
                let t = self.shaped(x)?;
                let (x, y) = (self.get(x)?, self.get(y)?);
                self.binary(*op, x, y, t)
            }
            OpKind::Compare { op, x, y } => {
                let t = self.shaped(*x)?;
                let (x, y) = (self.get(*x)?, self.get(*y)?);
                self.compare(*op, x, y, t)
            }
            OpKind::Select { mask, x, y } => self.select(*mask, *x, *y),
            OpKind::Cast { x } => {
                let t = self.shaped(*x)?;
                let x = self.get(*x)?;
                self.cast(x, t, out.dtype)
            }
            OpKind::AssumeMultiple { x, multiple } => {
                let x = self.get(*x)?;
                let multiple =
                    i64::try_from(*multiple).map_err(|_| self.malformed("a multiple is too large"))?;
                let multiple = types::i32(self.context, multiple);
                let ty = types::integer(self.context, 32);
                self.value("tpu.assume_multiple", &[x], ty, &[("multiple", multiple)])
            }

            OpKind::CastUnsigned { x } => self.cast_unsigned(*x, out),
            OpKind::Bitcast { x } => self.bitcast(*x, out),
            OpKind::Gather { x, index, axis } => self.gather(*x, *index, *axis, out),
            OpKind::ArgReduce { op, x, axis } => self.arg_reduce(*op, *x, *axis, out),

            OpKind::Broadcast { x } => self.broadcast(*x, out),
            OpKind::Reshape { x } => self.reshape(*x, out),
            OpKind::Transpose { x, permutation } => self.transpose(*x, permutation, out),
            OpKind::Concatenate { xs, axis } => self.concatenate(xs, *axis, out),
            OpKind::ExtractSlice { x, offsets } => self.extract_slice(*x, offsets, out),
            OpKind::Roll { x, amount, axis } => self.roll(*x, *amount, *axis, out),
            OpKind::Reduce { op, x, axis } => self.reduce(*op, *x, *axis, out),
            OpKind::ToScalar { x } => self.element(*x, out),
            OpKind::Dot { lhs, rhs, dims, precision } => self.dot(*lhs, *rhs, *dims, *precision, out),

            OpKind::Load { base, offsets } => self.load(*base, offsets, out),
            OpKind::LoadStrided { base, offsets, strides } => self.load_strided(*base, offsets, strides, out),
            OpKind::LoadScalar { base, offsets } => self.load_scalar(*base, offsets, out),
            other => Err(self.malformed(format!("{other:?} makes no scalar or tile"))),
        }
    }

    /// The extent of a grid axis.
    fn num_programs(&mut self, axis: usize) -> Fallible<Value<'c, 'a>> {
        let Some(g) = self.kernel.grid.get(axis) else {
            return Err(self.malformed(format!("the grid has no axis {axis}")));
        };
        if let Some(n) = g.extent.known() {
            return self.i32(n);
        }
        let dim = types::i32(self.context, axis as i64);
        let ty = types::integer(self.context, 32);
        self.value("tpu.iteration_bound", &[], ty, &[("dim", dim)])
    }

    /// Whether an IR value became the result of a matrix product.
    fn is_product(&self, v: ir::Value) -> Fallible<bool> {
        Ok(self.shaped(v)?.dtype != DType::Bool && self.is_made_by(v, "tpu.matmul")?)
    }

    /// Whether an IR value became a constant.
    pub(super) fn is_constant(&self, v: ir::Value) -> Fallible<bool> {
        self.is_made_by(v, "arith.constant")
    }

    fn is_made_by(&self, v: ir::Value, name: &str) -> Fallible<bool> {
        let maker = OperationResult::try_from(self.get(v)?).ok().map(|r| r.owner().name());
        Ok(maker.is_some_and(|n| n.as_string_ref().as_str() == Ok(name)))
    }
}
