//! What stands at the top of a function and is made once: constants, and the dims that the kernel reads.

use std::collections::HashMap;
use std::sync::Arc;

use melior::ir::attribute::{AttributeLike as _, IntegerAttribute};
use melior::ir::block::BlockLike as _;
use melior::ir::{Attribute, Type, Value};

use super::Fallible;
use super::function::{Function, Shaped};
use super::types::{self, Number};

/// The first operations of a function.
#[derive(Default)]
pub(super) struct Top<'c, 'a> {
    /// How many there are.
    len: usize,
    constants: HashMap<Attribute<'c>, Value<'c, 'a>>,
    dims_operand: Option<Value<'c, 'a>>,
    dims: HashMap<Arc<str>, Value<'c, 'a>>,
}

impl<'c, 'a> Function<'c, 'a, '_> {
    /// Says which operand carries the dims that the kernel reads.
    pub(super) fn set_dims(&mut self, operand: Value<'c, 'a>) {
        self.top.dims_operand = Some(operand);
    }

    fn hoist(&mut self, op: melior::ir::Operation<'c>) -> Fallible<Value<'c, 'a>> {
        let op = self.entry.insert_operation(self.top.len, op);
        self.top.len += 1;
        self.result(op, 0)
    }

    /// A constant, made once for the function.
    pub(super) fn constant(&mut self, value: Attribute<'c>) -> Fallible<Value<'c, 'a>> {
        if let Some(v) = self.top.constants.get(&value) {
            return Ok(*v);
        }
        let ty = value.r#type();
        let op = self.build("arith.constant", &[], &[ty], &[("value", value)], vec![])?;
        let v = self.hoist(op)?;
        self.top.constants.insert(value, v);
        Ok(v)
    }

    /// A scalar, or a tile with the same element everywhere.
    pub(super) fn fill(&mut self, t: Shaped<'_>, value: Number) -> Fallible<Value<'c, 'a>> {
        match t.shape {
            None => {
                let number = types::number(self.context, t.dtype, self.mlir(t), value);
                self.constant(number)
            }
            Some(_) => {
                let element = types::register(self.context, t.dtype);
                let one = types::number(self.context, t.dtype, element, value);
                self.constant(types::splat(self.mlir(t), one))
            }
        }
    }

    /// An `i32`.
    pub(super) fn i32(&mut self, value: i64) -> Fallible<Value<'c, 'a>> {
        self.constant(types::i32(self.context, value))
    }

    /// An `index`.
    pub(super) fn index(&mut self, value: usize) -> Fallible<Value<'c, 'a>> {
        let value = i64::try_from(value).map_err(|_| self.malformed("an index is too large"))?;
        self.constant(IntegerAttribute::new(Type::index(self.context), value).into())
    }

    /// The size of a symbolic dim, read once for the function.
    pub(super) fn dim(&mut self, name: &Arc<str>) -> Fallible<Value<'c, 'a>> {
        if let Some(v) = self.top.dims.get(name) {
            return Ok(*v);
        }
        let at = self.kernel.dims_read().iter().position(|d| d == name);
        let (Some(at), Some(dims)) = (at, self.top.dims_operand) else {
            return Err(self.malformed(format!("the kernel has no dim `{name}`")));
        };
        let index = self.index(at)?;
        let i32 = types::integer(self.context, 32);
        let op = self.build("memref.load", &[dims, index], &[i32], &[], vec![])?;
        let v = self.hoist(op)?;
        self.top.dims.insert(name.clone(), v);
        Ok(v)
    }
}
