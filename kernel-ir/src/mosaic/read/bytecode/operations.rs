//! The section of operations: regions, blocks, operations, and the values that they make and use.

use std::mem;
use std::sync::Arc;

use super::super::module::{AttrId, Attribute, Block, Operation, Region, Signedness, Type, TypeId, ValueId};
use super::cursor::Cursor;
use super::fault::{Budget, Fallible, Fault};
use super::file::{Dialects, Properties, Section, Strings};
use super::properties::{self, Property, SEGMENTS};

/// How deep operations may nest.
const DEEPEST: usize = 128;

/// The parts of an operation: bits of its mask.
mod mask {
    pub(super) const ATTRIBUTES: u8 = 1;
    pub(super) const RESULTS: u8 = 1 << 1;
    pub(super) const OPERANDS: u8 = 1 << 2;
    pub(super) const SUCCESSORS: u8 = 1 << 3;
    pub(super) const REGIONS: u8 = 1 << 4;
    pub(super) const USES: u8 = 1 << 5;
    pub(super) const PROPERTIES: u8 = 1 << 6;
}

/// The type of a value that was announced and is not yet made.
const UNMADE: TypeId = TypeId(u32::MAX);

/// What a value takes here and in what is made of the module later.
type PerValue = [u64; 8];

/// Reads operations, when attributes and types are known.
pub(super) struct Operations<'a, 'b> {
    pub(super) version: u64,
    pub(super) strings: &'a Strings<'b>,
    pub(super) dialects: &'a mut Dialects,
    pub(super) properties: &'a Properties<'b>,
    pub(super) budget: &'a mut Budget,
    pub(super) types: &'a mut Vec<Type>,
    pub(super) attributes: &'a [Attribute],
    /// Attributes made of properties; their ids follow those of `attributes`.
    pub(super) made: Vec<Attribute>,
    /// The type `i32`, once it was needed.
    pub(super) i32: Option<TypeId>,
    /// By value: its type.
    pub(super) values: Vec<TypeId>,
    /// The values that an operand may name, by the number that stands in the file.
    pub(super) scope: Vec<ValueId>,
    /// The values of the innermost region that are not yet made.
    pub(super) unmade: std::ops::Range<u32>,
}

impl<'a> Operations<'a, '_> {
    /// The operations of the section itself, which is a block.
    pub(super) fn read(&mut self, mut at: Cursor<'_>) -> Fallible<Vec<Operation>> {
        let block = self.block(&mut at, 1, 0)?;
        at.finish("the operations")?;
        Ok(block.operations)
    }

    fn region(&mut self, at: &mut Cursor<'_>, depth: usize) -> Fallible<Region> {
        let count = at.count()?;
        if count == 0 {
            return Ok(Region::default());
        }
        // A value takes the byte of its type at least.
        let values = at.count()?;
        self.budget.take::<PerValue>(at.at(), values)?;
        let first = self.values.len() as u32;
        self.values.resize(self.values.len() + values, UNMADE);
        let unmade = first..self.values.len() as u32;
        let visible = self.scope.len();
        self.scope.extend(unmade.clone().map(ValueId));
        let outer = mem::replace(&mut self.unmade, unmade);
        let mut blocks = self.budget.vec(at.at(), count)?;
        for _ in 0..count {
            blocks.push(self.block(at, count, depth)?);
        }
        if !self.unmade.is_empty() {
            return Err(at.malformed("a region announces more values than it makes"));
        }
        self.unmade = outer;
        self.scope.truncate(visible);
        Ok(Region { blocks })
    }

    /// A block of a region of `blocks`.
    fn block(&mut self, at: &mut Cursor<'_>, blocks: usize, depth: usize) -> Fallible<Block> {
        let (count, has_arguments) = at.flagged()?;
        let arguments = if has_arguments { self.arguments(at)? } else { vec![] };
        if has_arguments && self.version >= 3 && at.byte()? != 0 {
            uses(at, arguments.len())?;
        }
        let count = at.checked_count(count)?;
        let mut operations = self.budget.vec(at.at(), count)?;
        for _ in 0..count {
            operations.push(self.operation(at, blocks, depth)?);
        }
        Ok(Block { arguments, operations })
    }

    fn arguments(&mut self, at: &mut Cursor<'_>) -> Fallible<Vec<ValueId>> {
        let count = at.count()?;
        let mut all = self.budget.vec(at.at(), count)?;
        for _ in 0..count {
            let (ty, placed) = if self.version >= 4 { at.flagged()? } else { (at.varint()?, true) };
            let ty = TypeId(at.checked_index(ty, self.types.len(), "type")?);
            if placed {
                self.location(at)?;
            }
            all.push(self.make(at, ty, false)?);
        }
        Ok(all)
    }

    fn operation(&mut self, at: &mut Cursor<'_>, blocks: usize, depth: usize) -> Fallible<Operation> {
        let start = at.at();
        if depth > DEEPEST {
            return Err(Fault::limit(start, format!("operations nest more than {DEEPEST} deep")));
        }
        let index = at.index(self.dialects.operations(), "operation name")?;
        let name = self.dialects.operation_name(start, index, self.strings, self.budget)?;
        let has = at.byte()?;
        let location = Some(self.location(at)?);
        let mut attributes = None;
        if has & mask::ATTRIBUTES != 0 {
            attributes = Some(self.dictionary(at)?);
        }
        if has & mask::PROPERTIES != 0 {
            attributes = self.with_properties(at, index, &name, attributes)?;
        }
        let results = if has & mask::RESULTS != 0 { self.result_types(at)? } else { vec![] };
        let operands = if has & mask::OPERANDS != 0 { self.operands(at)? } else { vec![] };
        if has & mask::SUCCESSORS != 0 {
            // Where control goes next. An operation that has these is unknown to Mosaic, and refused by its name.
            for _ in 0..at.count()? {
                at.index(blocks, "block")?;
            }
        }
        if has & mask::USES != 0 && self.version >= 3 {
            uses(at, results.len())?;
        }
        let mut made = self.budget.vec(at.at(), results.len())?;
        for ty in results {
            made.push(self.make(at, ty, depth == 0)?);
        }
        let regions = if has & mask::REGIONS != 0 { self.regions(at, depth)? } else { vec![] };
        Ok(Operation { name, operands, results: made, attributes, regions, location })
    }

    fn regions(&mut self, at: &mut Cursor<'_>, depth: usize) -> Fallible<Vec<Region>> {
        let (count, isolated) = at.flagged()?;
        let count = at.checked_count(count)?;
        if !isolated {
            return self.region_list(at, count, depth);
        }
        // Nothing outside is visible within.
        let outer = mem::take(&mut self.scope);
        let regions = if self.version >= 2 && count > 0 {
            let (id, mut inner) = at.section()?;
            if id != Section::Ir as u8 {
                return Err(at.malformed("the section of a region is missing"));
            }
            let regions = self.region_list(&mut inner, count, depth)?;
            inner.finish("a region")?;
            regions
        } else {
            self.region_list(at, count, depth)?
        };
        self.scope = outer;
        Ok(regions)
    }

    fn region_list(&mut self, at: &mut Cursor<'_>, count: usize, depth: usize) -> Fallible<Vec<Region>> {
        let count = at.checked_count(count as u64)?;
        let mut all = self.budget.vec(at.at(), count)?;
        for _ in 0..count {
            all.push(self.region(at, depth + 1)?);
        }
        Ok(all)
    }

    fn result_types(&mut self, at: &mut Cursor<'_>) -> Fallible<Vec<TypeId>> {
        let count = at.count()?;
        let mut all = self.budget.vec(at.at(), count)?;
        for _ in 0..count {
            all.push(TypeId(at.index(self.types.len(), "type")?));
        }
        Ok(all)
    }

    fn operands(&mut self, at: &mut Cursor<'_>) -> Fallible<Vec<ValueId>> {
        let count = at.count()?;
        let mut all = self.budget.vec(at.at(), count)?;
        for _ in 0..count {
            all.push(self.scope[at.index(self.scope.len(), "value")? as usize]);
        }
        Ok(all)
    }

    /// Makes the next value. Those of the outermost operations are not announced.
    fn make(&mut self, at: &Cursor<'_>, ty: TypeId, outermost: bool) -> Fallible<ValueId> {
        let id = match self.unmade.next() {
            Some(id) => id,
            None if outermost => {
                self.budget.take::<PerValue>(at.at(), 1)?;
                self.values.push(UNMADE);
                self.values.len() as u32 - 1
            }
            None => return Err(at.malformed("a region makes more values than it announces")),
        };
        self.values[id as usize] = ty;
        Ok(ValueId(id))
    }

    fn attribute(&self, at: &mut Cursor<'_>) -> Fallible<AttrId> {
        at.index(self.attributes.len(), "attribute").map(AttrId)
    }

    fn location(&self, at: &mut Cursor<'_>) -> Fallible<AttrId> {
        let id = self.attribute(at)?;
        match &self.attributes[id.0 as usize] {
            Attribute::UnknownLoc
            | Attribute::FileLoc(_)
            | Attribute::NameLoc { .. }
            | Attribute::CallLoc { .. }
            | Attribute::FusedLoc(_)
            | Attribute::Opaque(_) => Ok(id),
            _ => Err(at.malformed(format!("attribute {} is no location", id.0))),
        }
    }

    fn dictionary(&self, at: &mut Cursor<'_>) -> Fallible<AttrId> {
        let id = self.attribute(at)?;
        self.entries(at, id)?;
        Ok(id)
    }

    fn entries(&self, at: &Cursor<'_>, id: AttrId) -> Fallible<&'a [(Arc<str>, AttrId)]> {
        match &self.attributes[id.0 as usize] {
            Attribute::Dictionary(entries) => Ok(entries),
            _ => Err(at.malformed(format!("attribute {} is no dictionary", id.0))),
        }
    }

    /// The attributes of an operation together with its properties.
    fn with_properties(
        &mut self,
        at: &mut Cursor<'_>,
        index: u32,
        name: &str,
        attributes: Option<AttrId>,
    ) -> Fallible<Option<AttrId>> {
        let entry = at.index(self.properties.all.len(), "properties")?;
        let mut data = self.properties.all[entry as usize];
        let found = if self.dialects.operation(index).registered {
            self.known(&mut data, name)?
        } else {
            let id = self.dictionary(&mut data)?;
            if attributes.is_none() {
                data.finish("properties")?;
                return Ok(Some(id));
            }
            let all = self.entries(&data, id)?.len();
            self.budget.take::<(Arc<str>, AttrId)>(at.at(), all)?;
            self.entries(&data, id)?.to_vec()
        };
        if !data.is_empty() {
            return Err(unknown_properties(data.at(), name));
        }
        if found.is_empty() {
            return Ok(attributes);
        }
        let old = match attributes {
            Some(id) => self.entries(at, id)?,
            None => &[],
        };
        let mut all = self.budget.vec(at.at(), old.len() + found.len())?;
        all.extend_from_slice(old);
        for (name, value) in found {
            if old.iter().any(|(n, _)| *n == name) {
                return Err(at.malformed(format!("`{}` is an attribute and a property", name.escape_debug())));
            }
            all.push((name, value));
        }
        self.push(at, Attribute::Dictionary(all)).map(Some)
    }

    /// An attribute that is not in the file's table.
    fn push(&mut self, at: &Cursor<'_>, attribute: Attribute) -> Fallible<AttrId> {
        // Growing takes the memory of the old and of twice as much.
        self.budget.take::<[Attribute; 3]>(at.at(), 1)?;
        self.made.push(attribute);
        Ok(AttrId((self.attributes.len() + self.made.len() - 1) as u32))
    }

    /// The properties of an operation of MLIR's own dialects.
    fn known(&mut self, data: &mut Cursor<'_>, name: &str) -> Fallible<Vec<(Arc<str>, AttrId)>> {
        let all = properties::of(name).ok_or_else(|| unknown_properties(data.at(), name))?;
        let mut found = vec![];
        let mut groups = None;
        for property in all {
            let (name, id) = match *property {
                Property::Segments(n) if self.version >= 6 => {
                    groups = Some(n);
                    continue;
                }
                Property::Segments(_) => (SEGMENTS, self.attribute(data)?),
                Property::Attribute(name) => (name, self.attribute(data)?),
                // An older MLIR has fewer of them.
                Property::Optional(_) if data.is_empty() => continue,
                Property::Optional(name) => match data.flagged()? {
                    (_, false) => continue,
                    (id, true) => (name, AttrId(data.checked_index(id, self.attributes.len(), "attribute")?)),
                },
            };
            self.budget.take::<(Arc<str>, AttrId)>(data.at(), 2)?;
            found.push((name.into(), id));
        }
        if let Some(groups) = groups {
            let values = segments(data, groups)?;
            let element = self.i32(data)?;
            let id = self.push(data, Attribute::DenseArray { element, values })?;
            found.push((SEGMENTS.into(), id));
        }
        Ok(found)
    }

    /// The type `i32`, which the file may not have.
    fn i32(&mut self, at: &Cursor<'_>) -> Fallible<TypeId> {
        if let Some(id) = self.i32 {
            return Ok(id);
        }
        let i32 = Type::Integer { bits: 32, signedness: Signedness::Signless };
        let index = match self.types.iter().position(|t| *t == i32) {
            Some(index) => index,
            None => {
                self.budget.take::<[Type; 3]>(at.at(), self.types.len() + 1)?;
                self.types.push(i32);
                self.types.len() - 1
            }
        };
        Ok(*self.i32.insert(TypeId(index as u32)))
    }
}

/// The sizes of groups of operands: all of them in order, or only those that are not zero with their places.
fn segments(at: &mut Cursor<'_>, groups: usize) -> Fallible<Vec<i64>> {
    let mut sizes = vec![0; groups];
    let (count, sparse) = at.flagged()?;
    let count = at.checked_count(count)?;
    if count > groups {
        return Err(at.malformed(format!("{count} groups of operands are announced, and there are {groups}")));
    }
    let bits = if sparse && count > 0 { at.varint()? } else { 0 };
    if bits > 8 {
        return Err(at.malformed("the places of groups of operands are too wide"));
    }
    for i in 0..count {
        let v = at.varint()?;
        let (place, size) = if sparse { ((v & ((1 << bits) - 1)) as usize, v >> bits) } else { (i, v) };
        let slot = sizes.get_mut(place).ok_or_else(|| at.malformed("there is no such group of operands"))?;
        *slot = size.min(i64::MAX as u64) as i64;
    }
    Ok(sizes)
}

/// Steps over the order in which values are used, which says nothing about what a module does.
fn uses(at: &mut Cursor<'_>, values: usize) -> Fallible<()> {
    let count = if values > 1 { at.count()? } else { 1 };
    for _ in 0..count {
        if values > 1 {
            at.varint()?;
        }
        let (indices, _) = at.flagged()?;
        for _ in 0..at.checked_count(indices)? {
            at.varint()?;
        }
    }
    Ok(())
}

fn unknown_properties(at: usize, name: &str) -> Fault {
    let name = name.escape_debug();
    Fault::unknown(at, format!("the properties of `{name}` are in an encoding that is not known"))
}
