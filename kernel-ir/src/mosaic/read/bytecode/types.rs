//! Types: MLIR's own from their binary encoding or text, other dialects' as text.

use std::collections::HashMap;
use std::sync::Arc;

use super::super::floats;
use super::super::module::{AttrId, Signedness, Type, TypeId};
use super::cursor::Cursor;
use super::entries::Entry;
use super::fault::{Budget, Fallible, Fault};

/// The widest integer type of MLIR.
const WIDEST: u64 = 1 << 24;

/// Decodes types. `attributes` is the number of attributes that they may name.
pub(super) struct Types<'a> {
    pub(super) attributes: usize,
    pub(super) types: usize,
    pub(super) budget: &'a mut Budget,
    /// Names that were made.
    names: HashMap<&'static str, Arc<str>>,
}

impl<'a> Types<'a> {
    pub(super) fn new(attributes: usize, types: usize, budget: &'a mut Budget) -> Self {
        Self { attributes, types, budget, names: HashMap::new() }
    }

    /// Decodes a table of types.
    pub(super) fn read(&mut self, entries: &[Entry<'_>]) -> Fallible<Vec<Type>> {
        let mut all = self.budget.vec(0, entries.len())?;
        for entry in entries {
            let mut at = entry.data;
            let ty = match (entry.builtin, entry.binary) {
                (true, true) => self.builtin(&mut at)?,
                (builtin, false) => self.text(&mut at, builtin)?,
                (false, true) => return Err(foreign(&at, "type")),
            };
            at.finish("a type")?;
            all.push(ty);
        }
        Ok(all)
    }

    fn builtin(&mut self, at: &mut Cursor<'_>) -> Fallible<Type> {
        let start = at.at();
        let code = at.varint()?;
        Ok(match code {
            0 => integer(at)?,
            1 => Type::Index,
            2 => Type::Function { inputs: self.list(at)?, results: self.list(at)? },
            3 => self.float("bf16"),
            4 => self.float("f16"),
            5 => self.float("f32"),
            6 => self.float("f64"),
            7 => self.float("f80"),
            8 => self.float("f128"),
            9 => {
                self.ty(at)?;
                self.opaque("complex<..>")
            }
            10 => {
                let (shape, element) = (self.lengths(at)?, self.ty(at)?);
                Type::MemRef { shape, element, layout: Some(self.attribute(at)?), space: None }
            }
            11 => {
                let space = Some(self.attribute(at)?);
                let (shape, element) = (self.lengths(at)?, self.ty(at)?);
                Type::MemRef { shape, element, layout: Some(self.attribute(at)?), space }
            }
            12 => Type::None,
            13 => Type::Tensor { shape: self.lengths(at)?, element: self.ty(at)? },
            14 => {
                // How a compiler lays it out; the shape and the elements are the same.
                self.attribute(at)?;
                Type::Tensor { shape: self.lengths(at)?, element: self.ty(at)? }
            }
            15 => {
                self.list(at)?;
                self.opaque("tuple<..>")
            }
            16 => {
                self.ty(at)?;
                self.opaque("memref<*x..>")
            }
            17 => {
                self.attribute(at)?;
                self.ty(at)?;
                self.opaque("memref<*x..>")
            }
            18 => {
                self.ty(at)?;
                self.opaque("tensor<*x..>")
            }
            19 => Type::Vector { shape: self.static_lengths(at)?, element: self.ty(at)? },
            20 => {
                let scalable = at.count()?;
                at.bytes(scalable as u64)?;
                self.lengths(at)?;
                self.ty(at)?;
                self.opaque("vector<[..]x..>")
            }
            // MLIR 24 on; MLIR 22 writes them as text.
            21..=32 => self.float(floats::NAMES[floats::FIRST_SMALL + code as usize - 21]),
            _ => return Err(Fault::unknown(start, format!("the type has code {code}"))),
        })
    }

    /// A type as text.
    fn text(&mut self, at: &mut Cursor<'_>, builtin: bool) -> Fallible<Type> {
        let (start, raw) = (at.at(), at.text()?);
        let known = if builtin { floats::NAMES.iter().find(|n| n.as_bytes() == raw) } else { None };
        if let Some(name) = known {
            return Ok(self.float(name));
        }
        self.budget.take::<[u8; 3]>(start, raw.len())?;
        Ok(Type::Opaque(String::from_utf8_lossy(raw).into()))
    }

    fn name(&mut self, name: &'static str) -> Arc<str> {
        self.names.entry(name).or_insert_with(|| name.into()).clone()
    }

    fn float(&mut self, name: &'static str) -> Type {
        Type::Float(self.name(name))
    }

    /// A type that no kernel has; its text says the kind.
    fn opaque(&mut self, text: &'static str) -> Type {
        Type::Opaque(self.name(text))
    }

    fn ty(&self, at: &mut Cursor<'_>) -> Fallible<TypeId> {
        at.index(self.types, "type").map(TypeId)
    }

    fn attribute(&self, at: &mut Cursor<'_>) -> Fallible<AttrId> {
        at.index(self.attributes, "attribute").map(AttrId)
    }

    fn list(&mut self, at: &mut Cursor<'_>) -> Fallible<Vec<TypeId>> {
        let count = at.count()?;
        let mut all = self.budget.vec(at.at(), count)?;
        for _ in 0..count {
            all.push(self.ty(at)?);
        }
        Ok(all)
    }

    /// A shape; the lowest integer stands for a length that is not known.
    fn lengths(&mut self, at: &mut Cursor<'_>) -> Fallible<Vec<Option<i64>>> {
        let count = at.count()?;
        let mut shape = self.budget.vec(at.at(), count)?;
        for _ in 0..count {
            shape.push(match at.signed()? {
                i64::MIN => None,
                n if n < 0 => return Err(at.malformed(format!("an axis has length {n}"))),
                n => Some(n),
            });
        }
        Ok(shape)
    }

    fn static_lengths(&mut self, at: &mut Cursor<'_>) -> Fallible<Vec<i64>> {
        let count = at.count()?;
        let mut shape = self.budget.vec(at.at(), count)?;
        for _ in 0..count {
            shape.push(match at.signed()? {
                n if n < 0 => return Err(at.malformed(format!("an axis of a vector has length {n}"))),
                n => n,
            });
        }
        Ok(shape)
    }
}

fn integer(at: &mut Cursor<'_>) -> Fallible<Type> {
    let v = at.varint()?;
    let signedness = match v & 3 {
        0 => Signedness::Signless,
        1 => Signedness::Signed,
        2 => Signedness::Unsigned,
        _ => return Err(at.malformed("an integer type has no such signedness")),
    };
    match v >> 2 {
        bits @ 0..=WIDEST => Ok(Type::Integer { bits: bits as u32, signedness }),
        bits => Err(at.malformed(format!("an integer type has {bits} bits"))),
    }
}

/// The error for an entry in another dialect's binary encoding.
pub(super) fn foreign(at: &Cursor<'_>, what: &str) -> Fault {
    Fault::unknown(at.at(), format!("a {what} of another dialect is not written as text"))
}
