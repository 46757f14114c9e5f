//! A module as MLIR text in the generic form: every operation as `"dialect.name"(operands) {attributes} : types`.
//!
//! With `{:#}` every operation is followed by its location.

mod attributes;
mod words;

use std::fmt::{self, Write};

use super::module::{Attribute, Block, Module, Operation, Region, ValueId};
use words::quote;

/// The most bytes of text; a module may repeat a long attribute often.
const LONGEST: usize = 8 << 20;

impl fmt::Display for Module {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let locations = f.alternate();
        let out = Limited { out: f, left: LONGEST };
        let mut printer = Printer { module: self, names: Names::of(self), out, locations };
        match printer.module() {
            Err(_) if printer.out.left == 0 => f.write_str("\n// the text is cut here: it is too long\n"),
            result => result,
        }
    }
}

/// Text up to a length.
struct Limited<'a, 'f> {
    out: &'a mut fmt::Formatter<'f>,
    left: usize,
}

impl Write for Limited<'_, '_> {
    fn write_str(&mut self, s: &str) -> fmt::Result {
        self.left = self.left.saturating_sub(s.len());
        if self.left == 0 { Err(fmt::Error) } else { self.out.write_str(s) }
    }
}

/// What a value is called.
#[derive(Clone, Copy)]
enum Name {
    Argument(u32),
    Result(u32),
    /// One of several results.
    OneOf(u32, u32),
}

/// The names of values, in the order of the text.
struct Names {
    /// By value.
    all: Vec<Name>,
    arguments: u32,
    results: u32,
}

impl Names {
    fn of(module: &Module) -> Self {
        let mut names = Self { all: vec![Name::Result(0); module.values.len()], arguments: 0, results: 0 };
        names.operations(&module.body);
        names
    }

    fn operations(&mut self, operations: &[Operation]) {
        for op in operations {
            for (i, v) in op.results.iter().enumerate() {
                let one = op.results.len() == 1;
                let name = if one { Name::Result(self.results) } else { Name::OneOf(self.results, i as u32) };
                self.all[v.0 as usize] = name;
            }
            self.results += u32::from(!op.results.is_empty());
            for block in op.regions.iter().flat_map(|r| &r.blocks) {
                for v in &block.arguments {
                    self.all[v.0 as usize] = Name::Argument(self.arguments);
                    self.arguments += 1;
                }
                self.operations(&block.operations);
            }
        }
    }
}

struct Printer<'a, 'f> {
    module: &'a Module,
    names: Names,
    out: Limited<'a, 'f>,
    locations: bool,
}

impl Printer<'_, '_> {
    fn module(&mut self) -> fmt::Result {
        self.out.write_str("\"builtin.module\"() ({\n")?;
        let module = self.module;
        self.operations(&module.body, 1)?;
        self.out.write_str("})")?;
        let version = module.version.map(|v| format!("stable_mosaic.version = {v} : i64"));
        let mut entries: Vec<String> = version.into_iter().collect();
        if let Some(name) = &module.name {
            let mut quoted = String::new();
            quote(&mut quoted, name)?;
            entries.push(format!("sym_name = {quoted}"));
        }
        if !entries.is_empty() {
            write!(self.out, " {{{}}}", entries.join(", "))?;
        }
        self.out.write_str(" : () -> ()\n")
    }

    fn operations(&mut self, operations: &[Operation], depth: usize) -> fmt::Result {
        operations.iter().try_for_each(|op| self.operation(op, depth))
    }

    fn operation(&mut self, op: &Operation, depth: usize) -> fmt::Result {
        self.indent(depth)?;
        if let Some(first) = op.results.first() {
            match self.names.all[first.0 as usize] {
                Name::OneOf(n, _) => write!(self.out, "%{n}:{} = ", op.results.len())?,
                _ => {
                    self.value(*first)?;
                    self.out.write_str(" = ")?;
                }
            }
        }
        quote(&mut self.out, &op.name)?;
        self.out.write_str("(")?;
        self.list(&op.operands, |p, v| p.value(*v))?;
        self.out.write_str(")")?;
        if !op.regions.is_empty() {
            self.out.write_str(" (")?;
            self.list(&op.regions, |p, r| p.region(r, depth))?;
            self.out.write_str(")")?;
        }
        if let Some(id) = op.attributes
            && !matches!(self.module.attr(id), Attribute::Dictionary(all) if all.is_empty())
        {
            self.out.write_str(" ")?;
            self.attribute(id)?;
        }
        self.out.write_str(" : (")?;
        self.list(&op.operands, |p, v| p.type_of(*v))?;
        self.out.write_str(") -> ")?;
        let one = op.results.len() == 1;
        self.out.write_str(if one { "" } else { "(" })?;
        self.list(&op.results, |p, v| p.type_of(*v))?;
        self.out.write_str(if one { "" } else { ")" })?;
        if let Some(id) = op.location.filter(|_| self.locations) {
            self.out.write_str(" loc(")?;
            self.location(id)?;
            self.out.write_str(")")?;
        }
        self.out.write_str("\n")
    }

    fn region(&mut self, region: &Region, depth: usize) -> fmt::Result {
        self.out.write_str("{\n")?;
        for (i, block) in region.blocks.iter().enumerate() {
            self.block(block, i, depth)?;
        }
        self.indent(depth)?;
        self.out.write_str("}")
    }

    fn block(&mut self, block: &Block, i: usize, depth: usize) -> fmt::Result {
        if i > 0 || !block.arguments.is_empty() {
            self.indent(depth)?;
            write!(self.out, "^bb{i}(")?;
            self.list(&block.arguments, |p, v| {
                p.value(*v)?;
                p.out.write_str(": ")?;
                p.type_of(*v)
            })?;
            self.out.write_str("):\n")?;
        }
        self.operations(&block.operations, depth + 1)
    }

    fn indent(&mut self, depth: usize) -> fmt::Result {
        (0..depth).try_for_each(|_| self.out.write_str("  "))
    }

    fn list<T>(&mut self, all: &[T], mut one: impl FnMut(&mut Self, &T) -> fmt::Result) -> fmt::Result {
        for (i, item) in all.iter().enumerate() {
            if i > 0 {
                self.out.write_str(", ")?;
            }
            one(self, item)?;
        }
        Ok(())
    }

    fn value(&mut self, v: ValueId) -> fmt::Result {
        match self.names.all[v.0 as usize] {
            Name::Argument(n) => write!(self.out, "%arg{n}"),
            Name::Result(n) => write!(self.out, "%{n}"),
            Name::OneOf(n, i) => write!(self.out, "%{n}#{i}"),
        }
    }
}
