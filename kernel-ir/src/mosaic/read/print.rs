//! A module as MLIR text in the generic form: every operation as `"dialect.name"(operands) {attributes} : types`.
//!
//! With `{:#}` every operation is followed by its location.

use std::fmt::{self, Write};

use super::floats;
use super::module::{
    AffineExpr, AttrId, Attribute, Block, Module, Operation, Region, Signedness, Type, TypeId, ValueId,
};

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

    fn type_of(&mut self, v: ValueId) -> fmt::Result {
        self.ty(self.module.values[v.0 as usize])
    }

    fn ty(&mut self, id: TypeId) -> fmt::Result {
        match self.module.ty(id) {
            Type::Integer { bits, signedness } => {
                let sign = match signedness {
                    Signedness::Signless => "",
                    Signedness::Signed => "s",
                    Signedness::Unsigned => "u",
                };
                write!(self.out, "{sign}i{bits}")
            }
            Type::Index => self.out.write_str("index"),
            Type::None => self.out.write_str("none"),
            Type::Float(name) | Type::Opaque(name) => self.out.write_str(name),
            Type::Vector { shape, element } => {
                self.out.write_str("vector<")?;
                self.shape(shape.iter().map(|n| Some(*n)), *element)?;
                self.out.write_str(">")
            }
            Type::Tensor { shape, element } => {
                self.out.write_str("tensor<")?;
                self.shape(shape.iter().copied(), *element)?;
                self.out.write_str(">")
            }
            Type::MemRef { shape, element, layout, space } => {
                self.out.write_str("memref<")?;
                self.shape(shape.iter().copied(), *element)?;
                for id in [layout, space].into_iter().flatten() {
                    self.out.write_str(", ")?;
                    match self.module.attr(*id) {
                        // A memory space that is a number has no type here.
                        Attribute::Integer { value, .. } => write!(self.out, "{value}")?,
                        _ => self.attribute(*id)?,
                    }
                }
                self.out.write_str(">")
            }
            Type::Function { inputs, results } => {
                self.out.write_str("(")?;
                self.list(inputs, |p, t| p.ty(*t))?;
                self.out.write_str(") -> ")?;
                let one = results.len() == 1;
                self.out.write_str(if one { "" } else { "(" })?;
                self.list(results, |p, t| p.ty(*t))?;
                self.out.write_str(if one { "" } else { ")" })
            }
        }
    }

    fn shape(&mut self, shape: impl Iterator<Item = Option<i64>>, element: TypeId) -> fmt::Result {
        for length in shape {
            match length {
                Some(n) => write!(self.out, "{n}x")?,
                None => self.out.write_str("?x")?,
            }
        }
        self.ty(element)
    }

    fn attribute(&mut self, id: AttrId) -> fmt::Result {
        match self.module.attr(id) {
            Attribute::Unit => self.out.write_str("unit"),
            Attribute::Integer { ty, value } => {
                if matches!(self.module.ty(*ty), Type::Integer { bits: 1, .. }) {
                    return write!(self.out, "{}", *value != 0);
                }
                match self.module.ty(*ty) {
                    // Kept with its highest bit as the sign.
                    Type::Integer { bits: bits @ 1..64, signedness: Signedness::Unsigned } => {
                        write!(self.out, "{} : ", value & ((1 << bits) - 1))?;
                    }
                    Type::Integer { signedness: Signedness::Unsigned, .. } => {
                        write!(self.out, "{} : ", *value as u64)?
                    }
                    _ => write!(self.out, "{value} : ")?,
                }
                self.ty(*ty)
            }
            Attribute::Float { ty, value } => {
                float(&mut self.out, *value)?;
                self.out.write_str(" : ")?;
                self.ty(*ty)
            }
            Attribute::String(text) => quote(&mut self.out, text),
            Attribute::Symbol(name) => symbol(&mut self.out, name),
            Attribute::Type(ty) => self.ty(*ty),
            Attribute::Array(all) => {
                self.out.write_str("[")?;
                self.list(all, |p, a| p.attribute(*a))?;
                self.out.write_str("]")
            }
            Attribute::Dictionary(all) => {
                self.out.write_str("{")?;
                self.list(all, |p, (name, value)| {
                    key(&mut p.out, name)?;
                    if matches!(p.module.attr(*value), Attribute::Unit) {
                        return Ok(());
                    }
                    p.out.write_str(" = ")?;
                    p.attribute(*value)
                })?;
                self.out.write_str("}")
            }
            Attribute::DenseArray { element, values } => {
                let truth = matches!(self.module.ty(*element), Type::Integer { bits: 1, .. });
                self.array(*element, values, |out, v| match truth {
                    true => write!(out, "{}", *v != 0),
                    false => write!(out, "{v}"),
                })
            }
            Attribute::DenseFloats { element, values } => {
                self.array(*element, values, |out, v| float(out, *v))
            }
            Attribute::Dense { ty, splat, data } => {
                self.out.write_str("dense<")?;
                self.elements(*ty, *splat, data)?;
                self.out.write_str("> : ")?;
                self.ty(*ty)
            }

            Attribute::AffineMap { dims, symbols, results } => {
                let names = |letter, n: &usize| {
                    (0..*n).map(|i| format!("{letter}{i}")).collect::<Vec<_>>().join(", ")
                };
                write!(self.out, "affine_map<({})", names('d', dims))?;
                if *symbols > 0 {
                    write!(self.out, "[{}]", names('s', symbols))?;
                }
                self.out.write_str(" -> (")?;
                self.list(results, |p, e| affine(&mut p.out, e))?;
                self.out.write_str(")>")
            }
            Attribute::Opaque(text) => self.out.write_str(text),
            Attribute::UnknownLoc
            | Attribute::FileLoc(_)
            | Attribute::NameLoc { .. }
            | Attribute::CallLoc { .. }
            | Attribute::FusedLoc(_) => {
                self.out.write_str("loc(")?;
                self.location(id)?;
                self.out.write_str(")")
            }
        }
    }

    fn array<T>(
        &mut self,
        element: TypeId,
        values: &[T],
        one: impl Fn(&mut Limited<'_, '_>, &T) -> fmt::Result,
    ) -> fmt::Result {
        self.out.write_str("array<")?;
        self.ty(element)?;
        self.out.write_str(if values.is_empty() { "" } else { ": " })?;
        self.list(values, |p, v| one(&mut p.out, v))?;
        self.out.write_str(">")
    }

    /// The elements of a constant: the one that all are, or the bytes of all.
    fn elements(&mut self, ty: TypeId, splat: bool, data: &[u8]) -> fmt::Result {
        let element = match self.module.ty(ty) {
            Type::Vector { element, .. } | Type::Tensor { element, .. } => self.module.ty(*element),
            other => other,
        };
        if splat && data.len() <= 8 {
            let raw = data.iter().rev().fold(0, |word, byte| word << 8 | u64::from(*byte));
            match element {
                Type::Integer { bits: 1, .. } => return write!(self.out, "{}", raw != 0),
                Type::Integer { .. } | Type::Index => {
                    let unused = 64 - 8 * data.len();
                    return write!(self.out, "{}", (raw << unused) as i64 >> unused);
                }
                Type::Float(name) => {
                    if let Some(value) = floats::value(name, raw) {
                        return float(&mut self.out, value);
                    }
                }
                _ => {}
            }
        }
        self.out.write_str("\"0x")?;
        data.iter().try_for_each(|byte| write!(self.out, "{byte:02X}"))?;
        self.out.write_str("\"")
    }

    /// A location without the `loc(..)` around it.
    fn location(&mut self, id: AttrId) -> fmt::Result {
        match self.module.attr(id) {
            Attribute::FileLoc(place) => {
                quote(&mut self.out, &place.file)?;
                write!(self.out, ":{}:{}", place.line, place.column)
            }
            Attribute::NameLoc { name, child } => {
                quote(&mut self.out, name)?;
                if matches!(self.module.attr(*child), Attribute::UnknownLoc) {
                    return Ok(());
                }
                self.out.write_str("(")?;
                self.location(*child)?;
                self.out.write_str(")")
            }
            Attribute::CallLoc { callee, caller } => {
                self.out.write_str("callsite(")?;
                self.location(*callee)?;
                self.out.write_str(" at ")?;
                self.location(*caller)?;
                self.out.write_str(")")
            }
            Attribute::FusedLoc(all) => {
                self.out.write_str("fused[")?;
                self.list(all, |p, a| p.location(*a))?;
                self.out.write_str("]")
            }
            Attribute::Opaque(text) => self.out.write_str(text),
            _ => self.out.write_str("unknown"),
        }
    }
}

/// A number as MLIR prints it: with six decimals where these are exact, else in full.
fn float(out: &mut impl Write, v: f64) -> fmt::Result {
    let short = format!("{v:.6e}");
    let text = if short.parse() == Ok(v) { short } else { format!("{v:e}") };
    match text.split_once('e') {
        Some((digits, power)) => {
            let (sign, power) = power.strip_prefix('-').map_or(('+', power), |p| ('-', p));
            let point = if digits.contains('.') { "" } else { ".0" };
            write!(out, "{digits}{point}e{sign}{power:0>2}")
        }
        // Not a number, or infinite.
        None => out.write_str(&text),
    }
}

/// Text in quotes, as MLIR escapes it.
fn quote(out: &mut impl Write, text: &str) -> fmt::Result {
    out.write_str("\"")?;
    for c in text.chars() {
        match c {
            '\\' => out.write_str("\\\\")?,
            ' '..='~' if c != '"' => out.write_char(c)?,
            c => c.encode_utf8(&mut [0; 4]).bytes().try_for_each(|byte| write!(out, "\\{byte:02X}"))?,
        }
    }
    out.write_str("\"")
}

/// A name as it stands, or in quotes if it is no identifier.
fn key(out: &mut impl Write, name: &str) -> fmt::Result {
    let plain = |c: char| c.is_ascii_alphanumeric() || "_.$".contains(c);
    let first = name.chars().next().is_some_and(|c| c.is_ascii_alphabetic() || c == '_');
    if first && name.chars().all(plain) { out.write_str(name) } else { quote(out, name) }
}

fn symbol(out: &mut impl Write, name: &str) -> fmt::Result {
    out.write_str("@")?;
    key(out, name)
}

fn affine(out: &mut impl Write, e: &AffineExpr) -> fmt::Result {
    let (sign, both) = match e {
        AffineExpr::Dim(i) => return write!(out, "d{i}"),
        AffineExpr::Symbol(i) => return write!(out, "s{i}"),
        AffineExpr::Constant(n) => return write!(out, "{n}"),
        AffineExpr::Add(both) => ("+", both),
        AffineExpr::Mul(both) => ("*", both),
        AffineExpr::Mod(both) => ("mod", both),
        AffineExpr::FloorDiv(both) => ("floordiv", both),
        AffineExpr::CeilDiv(both) => ("ceildiv", both),
    };
    out.write_str("(")?;
    affine(out, &both.0)?;
    write!(out, " {sign} ")?;
    affine(out, &both.1)?;
    out.write_str(")")
}
