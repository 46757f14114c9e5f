//! Control flow: `if`, `for` and `while` as `scf` operations.

use melior::ir::{BlockRef, OperationRef, Region, Type, Value};

use super::Fallible;
use super::function::{Function, Shaped, argument};
use crate::ir::{self, Block, DType};

impl<'c, 'a, 'k> Function<'c, 'a, 'k> {
    /// How a value passes a region's border, if not as it is: the compiler carries no tiles of truth values.
    fn carried(&self, v: ir::Value) -> Fallible<Option<(Shaped<'k>, DType)>> {
        match self.ty(v)? {
            ir::Type::Tile(t) if t.dtype == DType::Bool => Ok(Some((self.shaped(v)?, DType::I32))),
            _ => Ok(None),
        }
    }

    /// The types in which values pass a border.
    fn types(&self, values: &[ir::Value]) -> Fallible<Vec<Type<'c>>> {
        let ty = |v: &ir::Value| match self.carried(*v)? {
            Some((t, dtype)) => Ok(self.mlir(Shaped { dtype, ..t })),
            None => self.mlir_of(*v),
        };
        values.iter().map(ty).collect()
    }

    /// Values as they go over a border.
    fn leaving(&mut self, values: &[ir::Value]) -> Fallible<Vec<Value<'c, 'a>>> {
        let mut out = vec![];
        for v in values {
            let x = self.get(*v)?;
            out.push(match self.carried(*v)? {
                Some((t, dtype)) => self.cast(x, t, dtype)?,
                None => x,
            });
        }
        Ok(out)
    }

    /// Says what came over a border for `v`.
    fn arrived(&mut self, v: ir::Value, x: Value<'c, 'a>) -> Fallible<()> {
        let x = match self.carried(v)? {
            Some((t, dtype)) => self.cast(x, Shaped { dtype, ..t }, t.dtype)?,
            None => x,
        };
        self.set(v, x);
        Ok(())
    }

    /// Translates `block` into `target`, whose arguments are the block's, and ends it.
    fn fill_block(
        &mut self,
        target: BlockRef<'c, 'a>,
        block: &Block,
        end: impl FnOnce(&mut Self, &[Value<'c, 'a>]) -> Fallible<OperationRef<'c, 'a>>,
    ) -> Fallible<()> {
        self.inside(target, |f| {
            for (i, arg) in block.args.iter().enumerate() {
                let v = argument(target, i).ok_or_else(|| f.malformed("a block has too many arguments"))?;
                f.arrived(*arg, v)?;
            }
            f.block_ops(block)?;
            let results = f.leaving(&block.results)?;
            end(f, &results)?;
            Ok(())
        })
    }

    fn set_results(&mut self, results: &[ir::Value], op: OperationRef<'c, 'a>) -> Fallible<()> {
        for (i, r) in results.iter().enumerate() {
            let v = self.result(op, i)?;
            self.arrived(*r, v)?;
        }
        Ok(())
    }

    /// One block or the other.
    pub(super) fn emit_if(
        &mut self,
        cond: ir::Value,
        then: &Block,
        otherwise: &Block,
        results: &[ir::Value],
    ) -> Fallible<()> {
        let ty = self.types(results)?;
        let cond = self.get(cond)?;
        let mut blocks = vec![then, otherwise];
        let mut regions = vec![self.new_region(&[]), self.new_region(&[])];
        if results.is_empty() && otherwise.ops.is_empty() {
            blocks.pop();
            regions[1] = Region::new();
        }
        let op = self.op_with_regions("scf.if", &[cond], &ty, &[], regions)?;
        for (i, block) in blocks.into_iter().enumerate() {
            let target = self.region(op, i)?;
            self.fill_block(target, block, |f, r| f.op("scf.yield", r, &[], &[]))?;
        }
        self.set_results(results, op)
    }

    /// A counted loop.
    pub(super) fn emit_for(
        &mut self,
        lo: ir::Value,
        hi: ir::Value,
        init: &[ir::Value],
        body: &Block,
        results: &[ir::Value],
    ) -> Fallible<()> {
        let ty = self.types(results)?;
        let mut operands = vec![self.get(lo)?, self.get(hi)?, self.i32(1)?];
        operands.extend(self.leaving(init)?);
        let region = self.new_region(&self.types(&body.args)?);
        let op = self.op_with_regions("scf.for", &operands, &ty, &[], vec![region])?;
        let target = self.region(op, 0)?;
        self.fill_block(target, body, |f, r| f.op("scf.yield", r, &[], &[]))?;
        self.set_results(results, op)
    }

    /// A loop that runs while its condition holds; what the condition saw last is what it yields.
    pub(super) fn emit_while(
        &mut self,
        init: &[ir::Value],
        cond: &Block,
        body: &Block,
        results: &[ir::Value],
    ) -> Fallible<()> {
        let ty = self.types(results)?;
        let operands = self.leaving(init)?;
        let regions =
            vec![self.new_region(&self.types(&cond.args)?), self.new_region(&self.types(&body.args)?)];
        let op = self.op_with_regions("scf.while", &operands, &ty, &[], regions)?;
        let before = self.region(op, 0)?;
        self.fill_block(before, cond, |f, r| {
            let mut operands = r.to_vec();
            operands.extend(f.leaving(&cond.args)?);
            f.op("scf.condition", &operands, &[], &[])
        })?;
        let after = self.region(op, 1)?;
        self.fill_block(after, body, |f, r| f.op("scf.yield", r, &[], &[]))?;
        self.set_results(results, op)
    }
}
