//! Types, attributes and locations.

use std::fmt::{self, Write};

use super::super::floats;
use super::super::module::{AttrId, Attribute, Signedness, Type, TypeId, ValueId};
use super::words::{affine, float, key, quote, symbol};
use super::{Limited, Printer};

impl<'a> Printer<'a, '_> {
    pub(super) fn type_of(&mut self, v: ValueId) -> fmt::Result {
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

    pub(super) fn attribute(&mut self, id: AttrId) -> fmt::Result {
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
                let name = self.float_name(*ty);
                float(&mut self.out, *value, name)?;
                self.out.write_str(" : ")?;
                self.ty(*ty)
            }
            Attribute::String(text) => quote(&mut self.out, text),
            Attribute::Symbol(name) => symbol(&mut self.out, name),
            Attribute::Type(ty) => self.ty(*ty),
            Attribute::Array(all) => {
                self.out.write_str("[")?;
                self.list(all, |p, a| p.element(*a))?;
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
                let name = self.float_name(*element);
                self.array(*element, values, |out, v| float(out, *v, name))
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

    /// An element of an array, where the largest types need not be said.
    fn element(&mut self, id: AttrId) -> fmt::Result {
        match self.module.attr(id) {
            Attribute::Integer { ty, value }
                if matches!(
                    self.module.ty(*ty),
                    Type::Integer { bits: 64, signedness: Signedness::Signless }
                ) =>
            {
                write!(self.out, "{value}")
            }
            Attribute::Float { ty, value } if self.float_name(*ty) == "f64" => {
                float(&mut self.out, *value, "f64")
            }
            _ => self.attribute(id),
        }
    }

    fn float_name(&self, id: TypeId) -> &'a str {
        match self.module.ty(id) {
            Type::Float(name) => name,
            _ => "",
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
        let bits = match element {
            Type::Integer { bits, .. } => Some(*bits),
            Type::Index => Some(64),
            Type::Float(name) => floats::bits(name),
            _ => None,
        };
        let one = splat || bits.is_some_and(|bits| bits.max(1).div_ceil(8) as usize == data.len());
        if one && data.len() <= 8 {
            let raw = data.iter().rev().fold(0, |word, byte| word << 8 | u64::from(*byte));
            match element {
                Type::Integer { bits: 1, .. } => return write!(self.out, "{}", raw != 0),
                Type::Integer { .. } | Type::Index => {
                    let unused = 64 - 8 * data.len();
                    return write!(self.out, "{}", (raw << unused) as i64 >> unused);
                }
                Type::Float(name) => {
                    if let Some(value) = floats::value(name, raw) {
                        return float(&mut self.out, value, name);
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
    pub(super) fn location(&mut self, id: AttrId) -> fmt::Result {
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
