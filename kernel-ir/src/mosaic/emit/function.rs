//! A function under construction: where operations go, and what each IR value became.

use std::cell::RefCell;
use std::collections::HashMap;

use melior::Context;
use melior::ir::RegionLike as _;
use melior::ir::block::BlockLike as _;
use melior::ir::operation::{OperationBuilder, OperationLike as _};
use melior::ir::{Attribute, Block, BlockRef, Identifier, Location, OperationRef, Region, Type, Value};

use super::top::Top;
use super::types;
use super::{Fallible, problem};
use crate::diag::Diagnostic;
use crate::ir::{self, DType, Kernel, RefType, Span, TileType};

/// A function under construction.
pub(super) struct Function<'c, 'a, 'k> {
    pub(super) context: &'c Context,
    pub(super) kernel: &'k Kernel,
    /// Where the next operation goes.
    pub(super) block: BlockRef<'c, 'a>,
    /// The grid indices of this step.
    pub(super) grid: Vec<Value<'c, 'a>>,
    /// The line being translated.
    pub(super) span: Span,
    /// The function's first block, and what stands at its top.
    pub(super) entry: BlockRef<'c, 'a>,
    pub(super) top: Top<'c, 'a>,
    values: HashMap<ir::Value, Value<'c, 'a>>,
    /// Types of refs, which take a parser to make.
    memrefs: RefCell<HashMap<&'k RefType, Type<'c>>>,
}

/// An IR type seen elementwise: what the elements are, and how many.
#[derive(Clone, Copy, Debug)]
pub(super) struct Shaped<'k> {
    /// Element type.
    pub(super) dtype: DType,
    /// Length of each axis; `None` for a scalar.
    pub(super) shape: Option<&'k [usize]>,
}

impl<'c, 'a, 'k> Function<'c, 'a, 'k> {
    /// A function whose body is `entry`.
    pub(super) fn new(context: &'c Context, kernel: &'k Kernel, entry: BlockRef<'c, 'a>) -> Self {
        Self {
            context,
            kernel,
            block: entry,
            grid: vec![],
            span: kernel.span,
            entry,
            top: Top::default(),
            values: HashMap::new(),
            memrefs: RefCell::default(),
        }
    }

    /// An argument of the entry block.
    pub(super) fn argument(&self, index: usize) -> Fallible<Value<'c, 'a>> {
        argument(self.entry, index).ok_or_else(|| self.malformed("a function argument is missing"))
    }

    /// The location of the line being translated.
    pub(super) fn location(&self) -> Location<'c> {
        location(self.context, self.kernel, self.span)
    }

    // --- what IR values are ---

    /// The type of an IR value.
    pub(super) fn ty(&self, v: ir::Value) -> Fallible<&'k ir::Type> {
        match self.kernel.values.get(v.0 as usize) {
            Some(info) => Ok(&info.ty),
            None => Err(self.malformed(format!("%{} is not a value of the kernel", v.0))),
        }
    }

    /// The type of a scalar or tile.
    pub(super) fn shaped(&self, v: ir::Value) -> Fallible<Shaped<'k>> {
        match self.ty(v)? {
            ir::Type::Scalar(dtype) => Ok(Shaped { dtype: *dtype, shape: None }),
            ir::Type::Tile(t) if !is_tile(&t.shape) => {
                Err(self.malformed(format!("%{} is a {t}, which is empty or too large for a tile", v.0)))
            }
            ir::Type::Tile(t) => Ok(Shaped { dtype: t.dtype, shape: Some(&t.shape) }),
            other @ ir::Type::Ref(_) => {
                Err(self.malformed(format!("%{} is a {other} where a value is needed", v.0)))
            }
        }
    }

    /// The type of a tile.
    pub(super) fn tile(&self, v: ir::Value) -> Fallible<&'k TileType> {
        self.shaped(v)?;
        match self.ty(v)? {
            ir::Type::Tile(t) => Ok(t),
            other => Err(self.malformed(format!("%{} is a {other}, not a tile", v.0))),
        }
    }

    /// The type of a ref.
    pub(super) fn reference(&self, v: ir::Value) -> Fallible<&'k RefType> {
        match self.ty(v)? {
            ir::Type::Ref(r) => Ok(r),
            other => Err(self.malformed(format!("%{} is a {other}, not a ref", v.0))),
        }
    }

    /// What an IR value became.
    pub(super) fn get(&self, v: ir::Value) -> Fallible<Value<'c, 'a>> {
        self.values
            .get(&v)
            .copied()
            .ok_or_else(|| self.malformed(format!("%{} is used before it is made", v.0)))
    }

    /// Says what an IR value became.
    pub(super) fn set(&mut self, v: ir::Value, value: Value<'c, 'a>) {
        self.values.insert(v, value);
    }

    /// The MLIR type of a scalar or tile.
    pub(super) fn mlir(&self, t: Shaped<'_>) -> Type<'c> {
        let element = match t.shape {
            None => types::scalar(t.dtype),
            Some(_) => t.dtype,
        };
        types::vector(t.shape, types::register(self.context, element))
    }

    /// The MLIR type of any IR value.
    pub(super) fn mlir_of(&self, v: ir::Value) -> Fallible<Type<'c>> {
        match self.ty(v)? {
            ir::Type::Ref(r) => {
                if let Some(known) = self.memrefs.borrow().get(r) {
                    return Ok(*known);
                }
                let made = types::memref(self.context, r)
                    .ok_or_else(|| self.malformed(format!("{r} is too large")))?;
                self.memrefs.borrow_mut().insert(r, made);
                Ok(made)
            }
            _ => Ok(self.mlir(self.shaped(v)?)),
        }
    }

    // --- making operations ---

    /// Appends an operation.
    pub(super) fn op(
        &self,
        name: &str,
        operands: &[Value<'c, 'a>],
        results: &[Type<'c>],
        attributes: &[(&str, Attribute<'c>)],
    ) -> Fallible<OperationRef<'c, 'a>> {
        self.op_with_regions(name, operands, results, attributes, vec![])
    }

    /// Appends an operation that has regions.
    pub(super) fn op_with_regions(
        &self,
        name: &str,
        operands: &[Value<'c, 'a>],
        results: &[Type<'c>],
        attributes: &[(&str, Attribute<'c>)],
        regions: Vec<Region<'c>>,
    ) -> Fallible<OperationRef<'c, 'a>> {
        let op = self.build(name, operands, results, attributes, regions)?;
        Ok(self.block.append_operation(op))
    }

    /// Appends an operation and yields its one result.
    pub(super) fn value(
        &self,
        name: &str,
        operands: &[Value<'c, 'a>],
        result: Type<'c>,
        attributes: &[(&str, Attribute<'c>)],
    ) -> Fallible<Value<'c, 'a>> {
        let op = self.op(name, operands, &[result], attributes)?;
        self.result(op, 0)
    }

    /// A result of an operation.
    pub(super) fn result(&self, op: OperationRef<'c, 'a>, index: usize) -> Fallible<Value<'c, 'a>> {
        match op.result(index) {
            Ok(r) => Ok(r.into()),
            Err(_) => Err(self.malformed("an operation has fewer results than expected")),
        }
    }

    pub(super) fn build(
        &self,
        name: &str,
        operands: &[Value<'c, 'a>],
        results: &[Type<'c>],
        attributes: &[(&str, Attribute<'c>)],
        regions: Vec<Region<'c>>,
    ) -> Fallible<melior::ir::Operation<'c>> {
        let attributes: Vec<_> =
            attributes.iter().map(|(k, v)| (Identifier::new(self.context, k), *v)).collect();
        OperationBuilder::new(name, self.location())
            .add_operands(operands)
            .add_results(results)
            .add_attributes(&attributes)
            .add_regions_vec(regions)
            .build()
            .map_err(|e| self.malformed(format!("MLIR does not make this {name}: {e}")))
    }

    /// Appends to another block for a while.
    pub(super) fn inside<R>(
        &mut self,
        block: BlockRef<'c, 'a>,
        f: impl FnOnce(&mut Self) -> Fallible<R>,
    ) -> Fallible<R> {
        let (outer, span) = (self.block, self.span);
        self.block = block;
        let result = f(self);
        (self.block, self.span) = (outer, span);
        result
    }

    /// The only block of a region of an operation.
    pub(super) fn region(&self, op: OperationRef<'c, 'a>, index: usize) -> Fallible<BlockRef<'c, 'a>> {
        op.region(index)
            .ok()
            .and_then(|r| r.first_block())
            .ok_or_else(|| self.malformed("an operation has fewer regions than expected"))
    }

    /// A region of one block with these arguments.
    pub(super) fn new_region(&self, arguments: &[Type<'c>]) -> Region<'c> {
        let at = self.location();
        let arguments: Vec<_> = arguments.iter().map(|t| (*t, at)).collect();
        let region = Region::new();
        region.append_block(Block::new(&arguments));
        region
    }

    // --- what goes wrong ---

    /// The IR breaks its own rules; the verifier would have said so.
    pub(super) fn malformed(&self, message: impl Into<String>) -> Diagnostic {
        problem(self.kernel, self.span, "K0602", message)
    }
}

/// Whether a tile may have this shape: at least one axis, at least one element, and fewer than any TPU has bytes for.
fn is_tile(shape: &[usize]) -> bool {
    let len = shape.iter().try_fold(1_usize, |len, n| len.checked_mul(*n));
    !shape.is_empty() && len.is_some_and(|len| (1..1 << 31).contains(&len))
}

/// An argument of a block.
pub(super) fn argument<'c, 'a>(block: BlockRef<'c, 'a>, index: usize) -> Option<Value<'c, 'a>> {
    block.argument(index).ok().map(Into::into)
}

/// The MLIR location of a span.
pub(super) fn location<'c>(context: &'c Context, kernel: &Kernel, span: Span) -> Location<'c> {
    kernel.spans.get(span.0 as usize).map_or_else(
        || Location::unknown(context),
        |l| Location::new(context, &l.file, l.line as usize, l.column as usize),
    )
}
