//! Attributes and locations: MLIR's own from their binary encoding or text, other dialects' as text.

use std::sync::Arc;

use super::super::floats;
use super::super::module::{AttrId, Attribute, Type, TypeId};
use super::affine::{self, Maps};
use super::cursor::Cursor;
use super::dense;
use super::entries::Entry;
use super::fault::{Budget, Fallible, Fault};
use super::file::Strings;
use super::types::foreign;
use crate::diag::SourceLoc;

/// Codes of the attributes that others refer to by content.
const STRING: u64 = 2;
const TYPED_STRING: u64 = 3;

/// The most entries of a dictionary: whoever looks for one goes through all.
const MOST_ENTRIES: usize = 1024;

/// Decodes attributes, when the types are known.
pub(super) struct Attributes<'a, 'b> {
    pub(super) types: &'a [Type],
    pub(super) strings: &'a mut Strings<'b>,
    pub(super) budget: &'a mut Budget,
    /// By attribute: which string it is, if it is one.
    names: Vec<Option<u32>>,
}

impl<'a, 'b> Attributes<'a, 'b> {
    /// Finds the strings among the attributes, since dictionaries and locations name them before they are decoded.
    pub(super) fn new(
        entries: &[Entry<'b>],
        types: &'a [Type],
        strings: &'a mut Strings<'b>,
        budget: &'a mut Budget,
    ) -> Fallible<Self> {
        let mut names = budget.vec(0, entries.len())?;
        for entry in entries {
            let mut at = entry.data;
            let is_string = entry.builtin && entry.binary && matches!(at.varint()?, STRING | TYPED_STRING);
            names.push(if is_string { Some(at.index(strings.len(), "string")?) } else { None });
        }
        Ok(Self { types, strings, budget, names })
    }

    /// Decodes the table of attributes.
    pub(super) fn read(mut self, entries: &[Entry<'b>]) -> Fallible<Vec<Attribute>> {
        let mut all = self.budget.vec(0, entries.len())?;
        for entry in entries {
            let mut at = entry.data;
            let attribute = match (entry.builtin, entry.binary) {
                (true, true) => self.builtin(&mut at)?,
                (builtin, false) => self.text(&mut at, builtin)?,
                (false, true) => return Err(foreign(&at, "attribute")),
            };
            at.finish("an attribute")?;
            all.push(attribute);
        }
        Ok(all)
    }

    fn builtin(&mut self, at: &mut Cursor<'b>) -> Fallible<Attribute> {
        let start = at.at();
        let code = at.varint()?;
        Ok(match code {
            0 => Attribute::Array(self.list(at)?),
            1 => self.dictionary(at)?,
            STRING => Attribute::String(self.string(at)?),
            TYPED_STRING => {
                let text = self.string(at)?;
                self.ty(at)?;
                Attribute::String(text)
            }
            4 => Attribute::Symbol(self.name(at)?),
            5 => {
                let root = self.name(at)?;
                self.list(at)?;
                self.opaque(start, &format!("@{root}::.."))?
            }
            6 => Attribute::Type(self.ty(at)?),
            7 => Attribute::Unit,
            8 => self.integer(at)?,
            9 => self.float(at)?,
            10 => Attribute::CallLoc { callee: self.attribute(at)?, caller: self.attribute(at)? },
            11 => {
                let file = self.name(at)?;
                let (line, column) = (at.varint()?, at.varint()?);
                place(file, line, column)
            }
            12 => Attribute::FusedLoc(self.list(at)?),
            13 => {
                let all = self.list(at)?;
                self.attribute(at)?;
                Attribute::FusedLoc(all)
            }
            14 => Attribute::NameLoc { name: self.name(at)?, child: self.attribute(at)? },
            15 => Attribute::UnknownLoc,
            16 => {
                self.ty(at)?;
                at.varint()?;
                self.opaque(start, "dense_resource<..>")?
            }
            17 => {
                let ty = self.ty(at)?;
                let count = at.varint()?;
                dense::array(at, self.types, ty, count, self.budget)?
            }
            18 => {
                let ty = self.ty(at)?;
                dense::elements(at, self.types, ty, self.budget)?
            }
            // Strings: the type, whether all are the same, and indices to the end.
            19 => {
                self.ty(at)?;
                at.rest();
                self.opaque(start, "dense<\"..\">")?
            }
            20 => {
                self.ty(at)?;
                self.attribute(at)?;
                self.attribute(at)?;
                self.opaque(start, "sparse<..>")?
            }
            21 => {
                self.attribute(at)?;
                self.opaque(start, "distinct<..>")?
            }
            22 => {
                let file = self.name(at)?;
                // Line, column, then where the range ends.
                let mut range = [0; 4];
                let count = at.count()?;
                for slot in range
                    .get_mut(..count)
                    .ok_or_else(|| at.malformed("a range of a file has no such form"))?
                {
                    *slot = at.varint()?;
                }
                place(file, range[0], range[1])
            }
            // MLIR 24 on; MLIR 22 writes these as text.
            23 => Maps { budget: self.budget }.map(at)?,
            24 => {
                Maps { budget: self.budget }.set(at)?;
                self.opaque(start, "affine_set<..>")?
            }
            25 => Maps { budget: self.budget }.strided(at)?,
            _ => return Err(Fault::unknown(start, format!("the attribute has code {code}"))),
        })
    }

    /// An attribute as text.
    fn text(&mut self, at: &mut Cursor<'b>, builtin: bool) -> Fallible<Attribute> {
        let (start, raw) = (at.at(), at.text()?);
        let text = String::from_utf8_lossy(raw);
        if builtin && let Some(map) = affine::text(&text, start, self.budget)? {
            return Ok(map);
        }
        self.opaque(start, &text)
    }

    fn opaque(&mut self, at: usize, text: &str) -> Fallible<Attribute> {
        self.budget.take::<u8>(at, text.len())?;
        Ok(Attribute::Opaque(text.into()))
    }

    fn ty(&self, at: &mut Cursor<'_>) -> Fallible<TypeId> {
        at.index(self.types.len(), "type").map(TypeId)
    }

    fn attribute(&self, at: &mut Cursor<'_>) -> Fallible<AttrId> {
        at.index(self.names.len(), "attribute").map(AttrId)
    }

    fn list(&mut self, at: &mut Cursor<'_>) -> Fallible<Vec<AttrId>> {
        let count = at.count()?;
        let mut all = self.budget.vec(at.at(), count)?;
        for _ in 0..count {
            all.push(self.attribute(at)?);
        }
        Ok(all)
    }

    /// A string of the file.
    fn string(&mut self, at: &mut Cursor<'_>) -> Fallible<Arc<str>> {
        let index = at.index(self.strings.len(), "string")?;
        self.strings.get(at.at(), index, self.budget)
    }

    /// The content of an attribute that must be a string.
    fn name(&mut self, at: &mut Cursor<'_>) -> Fallible<Arc<str>> {
        let id = self.attribute(at)?;
        match self.names[id.0 as usize] {
            Some(index) => self.strings.get(at.at(), index, self.budget),
            None => Err(at.malformed(format!("attribute {} is no string", id.0))),
        }
    }

    fn dictionary(&mut self, at: &mut Cursor<'_>) -> Fallible<Attribute> {
        let count = at.count()?;
        if count > MOST_ENTRIES {
            return Err(Fault::limit(at.at(), format!("a dictionary has {count} entries")));
        }
        let mut all: Vec<(Arc<str>, AttrId)> = self.budget.vec(at.at(), count)?;
        for _ in 0..count {
            all.push((self.name(at)?, self.attribute(at)?));
        }
        let mut names: Vec<&str> = self.budget.vec(at.at(), count)?;
        names.extend(all.iter().map(|(name, _)| &**name));
        names.sort_unstable();
        match names.windows(2).find(|two| two[0] == two[1]) {
            Some(two) => {
                Err(at.malformed(format!("`{}` stands twice in a dictionary", two[0].escape_debug())))
            }
            None => Ok(Attribute::Dictionary(all)),
        }
    }

    fn integer(&mut self, at: &mut Cursor<'_>) -> Fallible<Attribute> {
        let ty = self.ty(at)?;
        let bits = match self.types[ty.0 as usize] {
            Type::Index => 64,
            Type::Integer { bits, .. } => bits,
            _ => return Err(at.malformed("an integer is of a type that is none")),
        };
        let raw = match bits {
            0..=8 => u64::from(at.byte()?),
            9..=64 => at.signed()? as u64,
            _ => self.wide(at, bits)?,
        };
        Ok(Attribute::Integer { ty, value: dense::extend(raw, bits) })
    }

    /// The lowest word of an integer of more than 64 bits. The words above it must only extend its sign.
    fn wide(&mut self, at: &mut Cursor<'_>, bits: u32) -> Fallible<u64> {
        let start = at.at();
        let count = at.count()?;
        let lowest = if count == 0 { 0 } else { at.signed()? };
        let all = count as u32 == bits.div_ceil(64) && bits.is_multiple_of(64);
        let mut fits = lowest >= 0 || all;
        for _ in 1..count {
            fits &= at.signed()? == lowest >> 63;
        }
        if fits {
            Ok(lowest as u64)
        } else {
            Err(Fault::unknown(start, "an integer needs more than 64 bits"))
        }
    }

    fn float(&mut self, at: &mut Cursor<'_>) -> Fallible<Attribute> {
        let start = at.at();
        let ty = self.ty(at)?;
        let Type::Float(name) = &self.types[ty.0 as usize] else {
            return Err(at.malformed("a float is of a type that is none"));
        };
        let Some(bits) = floats::bits(name) else {
            return Err(Fault::unknown(start, format!("a constant of type {name}")));
        };
        let pattern = if bits <= 8 { u64::from(at.byte()?) } else { at.signed()? as u64 };
        let value = floats::value(name, pattern).unwrap_or(f64::NAN);
        Ok(Attribute::Float { ty, value })
    }
}

fn place(file: Arc<str>, line: u64, column: u64) -> Attribute {
    let clamp = |n: u64| u32::try_from(n).unwrap_or(u32::MAX);
    Attribute::FileLoc(SourceLoc { file, line: clamp(line), column: clamp(column) })
}
