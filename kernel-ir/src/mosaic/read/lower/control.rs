//! Control flow: conditions, loops, regions, and functions, which are inlined.

use super::Fallible;
use super::scope::Lower;
use crate::ir::{Binary, Block, DType, Literal, Op, OpKind, Type, Value};
use crate::mosaic::read::module::{Block as Source, Operation, ValueId};

impl<'m> Lower<'m> {
    /// `tpu.region`: its operations belong to the block around it.
    pub(super) fn region(&mut self, op: &'m Operation) -> Fallible<()> {
        let block = self.only_block(op, 0)?;
        let end = self.operations(block, "tpu.yield")?;
        self.pass_on(&end.operands, &op.results)
    }

    /// `func.call`: the function's operations, in place of the call.
    pub(super) fn call(&mut self, op: &'m Operation) -> Fallible<()> {
        let name = self.text(op, "callee").unwrap_or_default();
        let module = self.module;
        let function = module
            .body
            .iter()
            .find(|f| &*f.name == "func.func" && self.text(f, "sym_name") == Some(name))
            .ok_or_else(|| {
                self.unknown().note(format!("it calls `{name}`, which the module does not define"))
            })?;
        let block = self.only_block(function, 0)?;
        self.pass_on(&op.operands, &block.arguments)?;
        let end = self.operations(block, "func.return")?;
        self.pass_on(&end.operands, &op.results)
    }

    /// Says that values are what others have become.
    fn pass_on(&mut self, from: &[ValueId], to: &[ValueId]) -> Fallible<()> {
        if from.len() != to.len() {
            return Err(self.malformed(format!("passes {} values for {}", from.len(), to.len())));
        }
        let known: Fallible<Vec<_>> = from.iter().map(|v| self.known(*v).cloned()).collect();
        for (v, known) in to.iter().zip(known?) {
            self.set(*v, known);
        }
        Ok(())
    }

    /// The values that end a block, which are scalars and tiles.
    fn ends(&mut self, values: &[ValueId]) -> Fallible<Vec<Value>> {
        let mut out = vec![];
        for v in values {
            let x = self.get(*v)?;
            if matches!(self.ty(x), Type::Ref(_)) {
                return Err(self.unsupported("passes a memref over the border of a region"));
            }
            out.push(x);
        }
        Ok(out)
    }

    /// Checks that values may take the place of others.
    fn same_types(&self, a: &[Value], b: &[Value]) -> Fallible<()> {
        let same = a.len() == b.len() && a.iter().zip(b).all(|(x, y)| self.ty(*x) == self.ty(*y));
        if same { Ok(()) } else { Err(self.malformed("passes values of other types than it takes")) }
    }

    /// New values of the types of others.
    fn copies_of(&mut self, values: &[Value]) -> Fallible<Vec<Value>> {
        values.iter().map(|v| self.new_value(self.ty(*v).clone(), self.span)).collect()
    }

    /// Binds the arguments of a block or the results of an operation.
    fn bind_all(&mut self, to: &[ValueId], values: &[Value]) -> Fallible<()> {
        if to.len() != values.len() {
            return Err(self.malformed(format!("passes {} values for {}", values.len(), to.len())));
        }
        to.iter().zip(values).try_for_each(|(v, x)| self.bind(*v, *x))
    }

    /// `scf.if`
    pub(super) fn scf_if(&mut self, op: &'m Operation) -> Fallible<()> {
        let [cond] = self.operands(op)?;
        let cond = self.get(cond)?;
        if *self.ty(cond) != Type::Scalar(DType::Bool) {
            return Err(self.malformed(format!("branches by a {}", self.ty(cond))));
        }
        let then = self.branch(op, 0)?;
        let otherwise = match op.regions.get(1) {
            Some(region) if !region.blocks.is_empty() => self.branch(op, 1)?,
            _ => Block::default(),
        };
        self.same_types(&then.results, &otherwise.results)?;
        let results = self.copies_of(&then.results)?;
        self.append(OpKind::If { cond, then, otherwise }, results.clone());
        self.bind_all(&op.results, &results)
    }

    fn branch(&mut self, op: &'m Operation, region: usize) -> Fallible<Block> {
        let block = self.only_block(op, region)?;
        let (ops, results) = self.inside(|l| {
            let end = l.operations(block, "scf.yield")?;
            l.ends(&end.operands)
        })?;
        Ok(Block { args: vec![], ops, results })
    }

    /// `scf.for`: a step other than 1 becomes a factor.
    pub(super) fn scf_for(&mut self, op: &'m Operation) -> Fallible<()> {
        let [lo, hi, step, init @ ..] = op.operands.as_slice() else {
            return Err(self.malformed("has no bounds"));
        };
        let step_known = match self.constant_of(*step) {
            Some(Literal::Int(n)) if n >= 1 => Some(n),
            Some(_) => return Err(self.malformed("has a step that is not positive")),
            None => None,
        };
        let (mut lo, mut hi) = (self.get(*lo)?, self.get(*hi)?);
        let i32 = Type::Scalar(DType::I32);
        if *self.ty(lo) != i32 || *self.ty(hi) != i32 {
            return Err(self.malformed("counts with other types than i32"));
        }
        let mut stride = None;
        if step_known != Some(1) {
            let (start, step) = (lo, self.get(*step)?);
            // Steps that are begun; none if `hi` is not above `lo`.
            let length = self.binary(Binary::Sub, hi, lo)?;
            let one = self.i32(1)?;
            let up = self.binary(Binary::Sub, step, one)?;
            let length = self.binary(Binary::Add, length, up)?;
            hi = self.binary(Binary::Div, length, step)?;
            lo = self.i32(0)?;
            stride = Some((start, step));
        }
        let init = self.ends(init)?;
        let block = self.only_block(op, 0)?;
        let Some((index, carried)) = block.arguments.split_first() else {
            return Err(self.malformed("has a body without an index"));
        };
        let counter = self.new_value(i32, self.span)?;
        let mut args = vec![counter];
        args.extend(self.copies_of(&init)?);
        let (ops, results) = self.inside(|l| {
            let i = match stride {
                None => counter,
                Some((start, step)) => {
                    let moved = l.binary(Binary::Mul, counter, step)?;
                    l.binary(Binary::Add, start, moved)?
                }
            };
            l.bind(*index, i)?;
            l.bind_all(carried, &args[1..])?;
            let end = l.operations(block, "scf.yield")?;
            l.ends(&end.operands)
        })?;
        self.same_types(&init, &results)?;
        let out = self.copies_of(&init)?;
        self.append(OpKind::For { lo, hi, init, body: Block { args, ops, results } }, out.clone());
        self.bind_all(&op.results, &out)
    }

    /// `scf.while`. What its condition hands to the body, and yields at the end, is often what the condition was given;
    /// if not, the loop carries that, and the condition's answer with it.
    pub(super) fn scf_while(&mut self, op: &'m Operation) -> Fallible<()> {
        let init = self.ends(&op.operands)?;
        let (before, after) = (self.only_block(op, 0)?, self.only_block(op, 1)?);
        let end = before.operations.last().map(|o| o.operands.as_slice()).unwrap_or_default();
        match end.split_first() {
            Some((_, handed)) if *handed == before.arguments => self.plain_while(op, init, before, after),
            _ => self.rotated_while(op, &init, before, after),
        }
    }

    /// Fills a block with the condition's operations: its answer, and what it hands on.
    fn condition(&mut self, before: &'m Source) -> Fallible<(Value, Vec<Value>)> {
        let end = self.operations(before, "scf.condition")?;
        let (answer, handed) = end.operands.split_first().ok_or_else(|| self.malformed("has no answer"))?;
        let answer = self.get(*answer)?;
        if *self.ty(answer) != Type::Scalar(DType::Bool) {
            return Err(self.malformed("has an answer that is no i1"));
        }
        let handed = self.ends(handed)?;
        Ok((answer, handed))
    }

    fn plain_while(
        &mut self,
        op: &'m Operation,
        init: Vec<Value>,
        before: &'m Source,
        after: &'m Source,
    ) -> Fallible<()> {
        let args = self.copies_of(&init)?;
        let (ops, (answer, _)) = self.inside(|l| {
            l.bind_all(&before.arguments, &args)?;
            l.condition(before)
        })?;
        let cond = Block { args, ops, results: vec![answer] };
        let args = self.copies_of(&init)?;
        let (ops, results) = self.inside(|l| {
            l.bind_all(&after.arguments, &args)?;
            let end = l.operations(after, "scf.yield")?;
            l.ends(&end.operands)
        })?;
        self.same_types(&init, &results)?;
        let body = Block { args, ops, results };
        let out = self.copies_of(&init)?;
        self.append(OpKind::While { init, cond, body }, out.clone());
        self.bind_all(&op.results, &out)
    }

    fn rotated_while(
        &mut self,
        op: &'m Operation,
        init: &[Value],
        before: &'m Source,
        after: &'m Source,
    ) -> Fallible<()> {
        let at = (self.name, self.span);
        self.bind_all(&before.arguments, init)?;
        let (answer, handed) = self.condition(before)?;
        (self.name, self.span) = at;
        let carried = [&[answer], handed.as_slice()].concat();
        let args = self.copies_of(&carried)?;
        let cond = Block { results: vec![args[0]], args, ops: vec![] };
        let args = self.copies_of(&carried)?;
        let (ops, results): (Vec<Op>, _) = self.inside(|l| {
            l.bind_all(&after.arguments, &args[1..])?;
            let end = l.operations(after, "scf.yield")?;
            let next = l.ends(&end.operands)?;
            l.bind_all(&before.arguments, &next)?;
            let (answer, handed) = l.condition(before)?;
            Ok([&[answer], handed.as_slice()].concat())
        })?;
        self.same_types(&carried, &results)?;
        let body = Block { args, ops, results };
        let out = self.copies_of(&carried)?;
        self.append(OpKind::While { init: carried, cond, body }, out.clone());
        self.bind_all(&op.results, &out[1..])
    }
}
