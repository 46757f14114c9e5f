//! Builds modules by hand, also such that no compiler would write.

use std::sync::Arc;

use crate::diag::Report;
use crate::ir::Kernel;
use crate::mosaic::read::lower::lower;
use crate::mosaic::read::module::{
    AttrId, Attribute, Block, Module, Operation, Region, Signedness, Type, TypeId, ValueId,
};
use crate::verify;

/// A module being built, and the block that operations go to.
#[derive(Default)]
pub(super) struct Make {
    pub(super) module: Module,
    open: Vec<Operation>,
}

/// Attributes of an operation, by name.
pub(super) type Named<'a> = &'a [(&'a str, AttrId)];

impl Make {
    pub(super) fn new() -> Self {
        let module = Module { name: Some("k".into()), version: Some(18), ..Module::default() };
        Self { module, open: vec![] }
    }

    /// A module that is made already.
    pub(super) fn of(module: Module) -> Self {
        Self { module, open: vec![] }
    }

    // --- types ---

    /// A type: `i32`, `bf16`, `index`, `vector<8x128xf32>`, `memref<?x8xi32, smem>`, `memref<!tpu.semaphore>`.
    pub(super) fn ty(&mut self, text: &str) -> TypeId {
        let ty = if let Some(inside) = text.strip_prefix("vector<").and_then(|t| t.strip_suffix('>')) {
            let (shape, element) = self.shaped(inside);
            Type::Vector { shape: shape.into_iter().flatten().collect(), element }
        } else if let Some(inside) = text.strip_prefix("memref<").and_then(|t| t.strip_suffix('>')) {
            let (inside, space) = inside.split_once(", ").unwrap_or((inside, ""));
            let (shape, element) = self.shaped(inside);
            let space = (!space.is_empty()).then(|| self.opaque(&format!("#tpu.memory_space<{space}>")));
            Type::MemRef { shape, element, layout: None, space }
        } else if text.starts_with('!') {
            Type::Opaque(text.into())
        } else if text == "index" {
            Type::Index
        } else if let Some(bits) = text.strip_prefix('i').and_then(|n| n.parse().ok()) {
            Type::Integer { bits, signedness: Signedness::Signless }
        } else {
            Type::Float(text.into())
        };
        let known = self.module.types.iter().position(|t| *t == ty);
        let at = known.unwrap_or_else(|| {
            self.module.types.push(ty);
            self.module.types.len() - 1
        });
        TypeId(at as u32)
    }

    fn shaped(&mut self, text: &str) -> (Vec<Option<i64>>, TypeId) {
        let mut parts: Vec<&str> = text.split('x').collect();
        // `index` has an x of its own.
        let element = match parts.pop() {
            Some("") => parts.pop().map(|p| format!("{p}x")).unwrap(),
            other => other.unwrap().to_owned(),
        };
        let shape = parts.iter().map(|n| n.parse().ok()).collect();
        (shape, self.ty(&element))
    }

    // --- attributes ---

    pub(super) fn attr(&mut self, attribute: Attribute) -> AttrId {
        self.module.attributes.push(attribute);
        AttrId(self.module.attributes.len() as u32 - 1)
    }

    pub(super) fn opaque(&mut self, text: &str) -> AttrId {
        self.attr(Attribute::Opaque(text.into()))
    }

    pub(super) fn int(&mut self, value: i64) -> AttrId {
        let ty = self.ty("i32");
        self.attr(Attribute::Integer { ty, value })
    }

    pub(super) fn text(&mut self, text: &str) -> AttrId {
        self.attr(Attribute::String(text.into()))
    }

    pub(super) fn type_attr(&mut self, text: &str) -> AttrId {
        let ty = self.ty(text);
        self.attr(Attribute::Type(ty))
    }

    /// `array<i64: ..>`
    pub(super) fn ints(&mut self, values: &[i64]) -> AttrId {
        let element = self.ty("i64");
        self.attr(Attribute::DenseArray { element, values: values.to_vec() })
    }

    /// `[..]`
    pub(super) fn list(&mut self, values: &[i64]) -> AttrId {
        let items = values.iter().map(|n| self.int(*n)).collect();
        self.attr(Attribute::Array(items))
    }

    pub(super) fn dictionary(&mut self, entries: Named<'_>) -> AttrId {
        self.attr(Attribute::Dictionary(entries.iter().map(|(n, a)| ((*n).into(), *a)).collect()))
    }

    // --- operations ---

    pub(super) fn value(&mut self, ty: &str) -> ValueId {
        let ty = self.ty(ty);
        self.module.values.push(ty);
        ValueId(self.module.values.len() as u32 - 1)
    }

    /// Appends an operation with regions; its results.
    pub(super) fn op_with(
        &mut self,
        name: &str,
        operands: &[ValueId],
        results: &[&str],
        attributes: Named<'_>,
        regions: Vec<Region>,
    ) -> Vec<ValueId> {
        let results: Vec<_> = results.iter().map(|t| self.value(t)).collect();
        let attributes = Some(self.dictionary(attributes));
        let (name, operands): (Arc<str>, _) = (name.into(), operands.to_vec());
        let op = Operation { name, operands, results: results.clone(), attributes, regions, location: None };
        self.open.push(op);
        results
    }

    pub(super) fn op(
        &mut self,
        name: &str,
        operands: &[ValueId],
        result: &str,
        attributes: Named<'_>,
    ) -> ValueId {
        self.op_with(name, operands, &[result], attributes, vec![])[0]
    }

    pub(super) fn effect(&mut self, name: &str, operands: &[ValueId], attributes: Named<'_>) {
        self.op_with(name, operands, &[], attributes, vec![]);
    }

    /// A region of one block; `f` fills it, with its arguments.
    pub(super) fn region(&mut self, arguments: &[&str], f: impl FnOnce(&mut Self, &[ValueId])) -> Region {
        let arguments: Vec<_> = arguments.iter().map(|t| self.value(t)).collect();
        let outer = std::mem::take(&mut self.open);
        f(self, &arguments);
        let operations = std::mem::replace(&mut self.open, outer);
        Region { blocks: vec![Block { arguments, operations }] }
    }

    /// A function.
    pub(super) fn function(
        &mut self,
        name: &str,
        arguments: &[&str],
        attributes: Named<'_>,
        f: impl FnOnce(&mut Self, &[ValueId]),
    ) {
        let region = self.region(arguments, f);
        let name = self.text(name);
        let all = [attributes, &[("sym_name", name)]].concat();
        self.op_with("func.func", &[], &[], &all, vec![region]);
        let function = self.open.pop().unwrap();
        self.module.body.push(function);
    }

    /// The kernel function, without a grid.
    pub(super) fn main(&mut self, arguments: &[&str], f: impl FnOnce(&mut Self, &[ValueId])) {
        self.function("main", arguments, &[], |m, args| {
            f(m, args);
            m.effect("func.return", &[], &[]);
        });
    }

    // --- what most bodies do ---

    pub(super) fn constant(&mut self, ty: &str, value: i64) -> ValueId {
        let id = self.ty(ty);
        let value = self.attr(Attribute::Integer { ty: id, value });
        self.op("arith.constant", &[], ty, &[("value", value)])
    }

    pub(super) fn float(&mut self, ty: &str, value: f64) -> ValueId {
        let id = self.ty(ty);
        let value = self.attr(Attribute::Float { ty: id, value });
        self.op("arith.constant", &[], ty, &[("value", value)])
    }

    /// Loads all of a memref.
    pub(super) fn load(&mut self, base: ValueId, ty: &str) -> ValueId {
        let rank = ty.matches('x').count();
        let zero = self.constant("index", 0);
        let operands = [vec![base], vec![zero; rank]].concat();
        self.op("vector.load", &operands, ty, &[])
    }

    /// Stores all of a memref.
    pub(super) fn store(&mut self, base: ValueId, value: ValueId, rank: usize) {
        let zero = self.constant("index", 0);
        let operands = [vec![value, base], vec![zero; rank]].concat();
        self.effect("tpu.vector_store", &operands, &[]);
    }

    /// The kernel, which must hang together if there is one.
    pub(super) fn lower(&self) -> Result<Kernel, Report> {
        let kernel = lower(&self.module, None)?;
        verify::well_formed(&kernel)?;
        Ok(kernel)
    }

    /// The code and the message of the error, and its place.
    pub(super) fn refusal(&self) -> String {
        match self.lower() {
            Ok(kernel) => format!("none:\n{kernel}"),
            Err(report) => {
                let d = &report.diagnostics[0];
                let place = d.labels.first().map_or_else(String::new, |l| l.loc.to_string());
                format!("{} {place} {}", d.code, d.message)
            }
        }
    }
}
