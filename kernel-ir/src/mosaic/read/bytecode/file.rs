//! The parts of a bytecode file: its sections, and the tables of strings, dialects, operation names and properties.

use std::sync::Arc;

use super::cursor::Cursor;
use super::fault::{Budget, Fallible, Fault};

/// What a bytecode file starts with.
pub(super) const MAGIC: [u8; 4] = *b"ML\xefR";

/// The newest version of the bytecode. From 1 on dialects may have versions, from 2 on isolated regions are sections, from 3
/// on the order of uses may be written, from 4 on unknown locations of block arguments are left out, from 5 on
/// operations may have properties, from 6 on these hold segment sizes in a form of their own.
const NEWEST: u64 = 6;

/// The longest file that is read. Offsets are kept in 32 bits.
const LARGEST: usize = 1 << 28;

/// The numbers of the sections. 5 and 6 are resources, which nothing here needs.
#[derive(Clone, Copy, Debug)]
pub(super) enum Section {
    String = 0,
    Dialect = 1,
    AttrType = 2,
    AttrTypeOffset = 3,
    Ir = 4,
    DialectVersions = 7,
    Properties = 8,
}

impl Section {
    const COUNT: usize = 9;
}

/// A file cut into sections.
pub(super) struct File<'b> {
    pub(super) version: u64,
    sections: [Option<Cursor<'b>>; Section::COUNT],
    end: usize,
}

impl<'b> File<'b> {
    pub(super) fn open(bytes: &'b [u8]) -> Fallible<Self> {
        let mut at = Cursor::new(bytes);
        if bytes.len() > LARGEST {
            return Err(Fault::limit(0, format!("the module has {} bytes; {LARGEST} are read", bytes.len())));
        }
        if !bytes.starts_with(&MAGIC) {
            let text = std::str::from_utf8(bytes).is_ok_and(|t| t.contains("module"));
            let what = if text {
                "the module is MLIR text; only bytecode is read"
            } else {
                "the module is not MLIR bytecode"
            };
            return Err(Fault::malformed(0, what));
        }
        at.bytes(MAGIC.len() as u64)?;
        let version = at.varint()?;
        if version > NEWEST {
            let message =
                format!("the module is of version {version} of MLIR's bytecode; 0 to {NEWEST} are read");
            return Err(Fault::unknown(MAGIC.len(), message));
        }
        // Who wrote it.
        at.text()?;
        let mut sections = [None; Section::COUNT];
        while !at.is_empty() {
            let start = at.at();
            let (id, data) = at.section()?;
            match sections.get_mut(id as usize) {
                None => return Err(Fault::malformed(start, format!("there is no section {id}"))),
                Some(Some(_)) => return Err(Fault::malformed(start, format!("section {id} stands twice"))),
                Some(empty) => *empty = Some(data),
            }
        }
        Ok(Self { version, sections, end: bytes.len() })
    }

    /// A section that every file has.
    pub(super) fn section(&self, which: Section) -> Fallible<Cursor<'b>> {
        self.optional(which)
            .ok_or_else(|| Fault::malformed(self.end, format!("section {} is missing", which as usize)))
    }

    pub(super) fn optional(&self, which: Section) -> Option<Cursor<'b>> {
        self.sections[which as usize]
    }
}

/// The table of strings; each is made once, when it is first needed.
pub(super) struct Strings<'b> {
    raw: Vec<&'b [u8]>,
    made: Vec<Option<Arc<str>>>,
}

impl<'b> Strings<'b> {
    pub(super) fn read(mut at: Cursor<'b>, budget: &mut Budget) -> Fallible<Self> {
        let count = at.count()?;
        let mut raw = budget.vec(at.at(), count)?;
        let mut made = budget.vec(at.at(), count)?;
        made.resize(count, None);
        // The lengths stand in reverse order, the strings behind them in order, each with a zero byte.
        let mut lengths: Vec<u64> = budget.vec(at.at(), count)?;
        for _ in 0..count {
            lengths.push(at.varint()?);
        }
        for length in lengths.into_iter().rev() {
            let text = at.bytes(length)?;
            let text = text.strip_suffix(&[0]).ok_or_else(|| at.malformed("a string does not end"))?;
            raw.push(text);
        }
        at.finish("the strings")?;
        Ok(Self { raw, made })
    }

    pub(super) fn len(&self) -> usize {
        self.raw.len()
    }

    /// A string as it stands in the file.
    pub(super) fn raw(&self, index: u32) -> &'b [u8] {
        self.raw[index as usize]
    }

    /// A string of the table. What is not UTF-8 is replaced.
    pub(super) fn get(&mut self, at: usize, index: u32, budget: &mut Budget) -> Fallible<Arc<str>> {
        let raw = self.raw[index as usize];
        let made = &mut self.made[index as usize];
        if let Some(text) = made {
            return Ok(text.clone());
        }
        // A byte that is not UTF-8 becomes three.
        budget.take::<[u8; 3]>(at, raw.len())?;
        let text: Arc<str> = String::from_utf8_lossy(raw).into();
        *made = Some(text.clone());
        Ok(text)
    }
}

/// An entry of the table of operation names.
pub(super) struct OpName {
    dialect: u32,
    name: u32,
    /// Whether whoever wrote the file knew the operation: its properties are then encoded by its dialect.
    pub(super) registered: bool,
    made: Option<Arc<str>>,
}

/// The tables of dialects and of operation names.
pub(super) struct Dialects {
    names: Vec<u32>,
    operations: Vec<OpName>,
    /// An operation that was named in Mosaic's stable form, and one that was not.
    pub(super) stable: Option<Arc<str>>,
    pub(super) plain: Option<Arc<str>>,
}

/// The dialect that operations of the stable form belong to; their own dialect is part of their name.
const STABLE: &[u8] = b"stable_mosaic";

/// The operation around a module, which has one name in both forms.
pub(super) const MODULE: &str = "builtin.module";

impl Dialects {
    pub(super) fn read(
        mut at: Cursor<'_>,
        version: u64,
        strings: &Strings<'_>,
        budget: &mut Budget,
    ) -> Fallible<Self> {
        let count = at.count()?;
        let mut names = budget.vec(at.at(), count)?;
        for _ in 0..count {
            let (name, versioned) = if version < 1 { (at.varint()?, false) } else { at.flagged()? };
            names.push(at.checked_index(name, strings.len(), "string")?);
            if versioned {
                let (id, _) = at.section()?;
                if id != Section::DialectVersions as u8 {
                    return Err(at.malformed("the version of a dialect is missing"));
                }
            }
        }
        if version >= 4 {
            // How many names follow; the section's end says so too.
            at.varint()?;
        }
        let mut operations = budget.vec(at.at(), at.remaining())?;
        while !at.is_empty() {
            let dialect = at.index(names.len(), "dialect")?;
            for _ in 0..at.count()? {
                let (name, registered) = if version < 5 { (at.varint()?, false) } else { at.flagged()? };
                let name = at.checked_index(name, strings.len(), "string")?;
                operations.push(OpName { dialect, name, registered, made: None });
            }
        }
        Ok(Self { names, operations, stable: None, plain: None })
    }

    pub(super) fn len(&self) -> usize {
        self.names.len()
    }

    /// The string that names a dialect.
    pub(super) fn name(&self, dialect: u32) -> u32 {
        self.names[dialect as usize]
    }

    /// The number of operation names.
    pub(super) fn operations(&self) -> usize {
        self.operations.len()
    }

    pub(super) fn operation(&self, index: u32) -> &OpName {
        &self.operations[index as usize]
    }

    /// The name of an operation with its own dialect's.
    pub(super) fn operation_name(
        &mut self,
        at: usize,
        index: u32,
        strings: &Strings<'_>,
        budget: &mut Budget,
    ) -> Fallible<Arc<str>> {
        let entry = &mut self.operations[index as usize];
        if let Some(name) = &entry.made {
            return Ok(name.clone());
        }
        let dialect = strings.raw(self.names[entry.dialect as usize]);
        let own = strings.raw(entry.name);
        budget.take::<[u8; 6]>(at, dialect.len() + own.len() + 1)?;
        let (prefix, own) = (String::from_utf8_lossy(dialect), String::from_utf8_lossy(own));
        let name: Arc<str> = match (dialect == STABLE, own.is_empty()) {
            (_, true) => prefix.into(),
            (true, _) => own.into(),
            _ => format!("{prefix}.{own}").into(),
        };
        if dialect == STABLE {
            self.stable = Some(name.clone());
        } else if *name != *MODULE {
            self.plain = Some(name.clone());
        }
        entry.made = Some(name.clone());
        Ok(name)
    }
}

/// The table of properties: the bytes of each entry, as its operation's dialect encoded them.
pub(super) struct Properties<'b> {
    pub(super) all: Vec<Cursor<'b>>,
}

impl<'b> Properties<'b> {
    pub(super) fn read(section: Option<Cursor<'b>>, budget: &mut Budget) -> Fallible<Self> {
        let Some(mut at) = section.filter(|s| !s.is_empty()) else {
            return Ok(Self { all: vec![] });
        };
        let count = at.count()?;
        let mut all = budget.vec(at.at(), count)?;
        for _ in 0..count {
            let length = at.varint()?;
            all.push(at.part(length)?);
        }
        at.finish("the properties")?;
        Ok(Self { all })
    }
}
