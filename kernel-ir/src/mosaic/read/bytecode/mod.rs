//! MLIR's bytecode, versions 0 to 6, as a [`Module`]: what MLIR 22 and JAX's MLIR 24 write, read without MLIR.
//!
//! A file is a list of sections: strings, dialects with the names of their operations, attributes and types, operations.
//! Everything refers to everything else by index. MLIR's own attributes and types are in binary, other dialects' mostly as
//! text, which is kept. The file is not trusted: every length is checked against the bytes that are there,
//! [`fault::Budget`] bounds memory, nesting is bounded, and what refers to itself is refused.

mod affine;
mod attributes;
mod cursor;
mod dense;
mod entries;
mod fault;
mod file;
mod graph;
mod operations;
mod properties;
mod types;

use super::locations::Locations;
use super::module::{AffineExpr, Attribute, Module, Operation, Type};
use crate::diag::Diagnostic;
use attributes::Attributes;
use entries::Entries;
use fault::{Budget, Fallible, Fault};
use file::{Dialects, File, MODULE, Properties, Section, Strings};
use operations::Operations;
use types::Types;

/// Versions of Mosaic's stable form that are read.
const VERSIONS: std::ops::RangeInclusive<i64> = 2..=20;

/// Whether bytes start as MLIR bytecode does.
pub fn is_bytecode(bytes: &[u8]) -> bool {
    bytes.starts_with(&file::MAGIC)
}

/// Reads a module. Its operations have the names of their own dialects, whichever form the file is in.
///
/// # Errors
/// `K0801` where the bytes are no bytecode, `K0802` where they are in a form that is not known, `K0803` where Mosaic's version
/// is not one of those that are read, `K0804` where the module is larger or deeper than is read.
pub(crate) fn parse(bytes: &[u8]) -> Result<Module, Diagnostic> {
    let (root, dialects, tables) = read(bytes)?;
    Ok(module(root, &dialects, tables)?)
}

/// Reads a module that holds the locations of another: a list of them, its attribute `tpu.locs`.
///
/// # Errors
/// As [`parse`].
pub(super) fn locations(bytes: &[u8]) -> Result<Locations, Diagnostic> {
    let (root, _, tables) = read(bytes)?;
    let Some(Attribute::Array(list)) = tables.attribute(&root, "tpu.locs") else {
        return Err(Fault::malformed(0, "the module holds no locations").into());
    };
    Ok(Locations { list: list.clone(), attributes: tables.attributes })
}

/// The operation around a module, and the tables that it refers to, without what is in the module.
fn read(bytes: &[u8]) -> Fallible<(Operation, Dialects, Module)> {
    let mut budget = Budget::of(bytes.len());
    let budget = &mut budget;
    let file = File::open(bytes)?;
    let mut strings = Strings::read(file.section(Section::String)?, budget)?;
    let mut dialects = Dialects::read(file.section(Section::Dialect)?, file.version, &strings, budget)?;
    let (offsets, data) = (file.section(Section::AttrTypeOffset)?, file.section(Section::AttrType)?);
    let entries = Entries::read(offsets, data, &dialects, &strings, budget)?;
    let mut types = Types::new(entries.attributes.len(), entries.types.len(), budget).read(&entries.types)?;
    let attributes = Attributes::new(&entries.attributes, &types, &mut strings, budget)?;
    let mut attributes = attributes.read(&entries.attributes)?;
    graph::check(data.at(), &types, &attributes, budget)?;
    drop_identity_layouts(&mut types, &attributes);
    let mut reader = Operations {
        version: file.version,
        strings: &strings,
        dialects: &mut dialects,
        properties: &Properties::read(file.optional(Section::Properties), budget)?,
        budget,
        types: &mut types,
        attributes: &attributes,
        made: vec![],
        i32: None,
        values: vec![],
        scope: vec![],
        unmade: 0..0,
    };
    let mut operations = reader.read(file.section(Section::Ir)?)?;
    let (made, values) = (reader.made, reader.values);
    attributes.reserve_exact(made.len());
    attributes.extend(made);
    let (Some(root), true) = (operations.pop(), operations.is_empty()) else {
        return Err(Fault::malformed(0, "the file does not hold one operation"));
    };
    Ok((root, dialects, Module { types, attributes, values, ..Module::default() }))
}

/// A layout that is the identity says nothing.
fn drop_identity_layouts(types: &mut [Type], attributes: &[Attribute]) {
    for ty in types {
        if let Type::MemRef { layout, .. } = ty {
            *layout = layout.filter(|l| !is_identity(&attributes[l.0 as usize]));
        }
    }
}

fn is_identity(map: &Attribute) -> bool {
    let Attribute::AffineMap { dims, symbols: 0, results } = map else { return false };
    results.len() == *dims && results.iter().enumerate().all(|(i, r)| *r == AffineExpr::Dim(i))
}

/// Takes the operation around a module off, and reads off it what the module is.
fn module(root: Operation, dialects: &Dialects, mut module: Module) -> Fallible<Module> {
    if *root.name != *MODULE {
        return Err(Fault::malformed(0, format!("the file holds no `{MODULE}`")));
    }
    if let Some(Attribute::String(name)) = module.attribute(&root, "sym_name") {
        module.name = Some(name.clone());
    }
    let version = match module.attribute(&root, "stable_mosaic.version") {
        Some(Attribute::Integer { value, .. }) => Some(*value),
        _ => None,
    };
    module.version = match (&dialects.stable, &dialects.plain, version) {
        (_, _, Some(v)) if !VERSIONS.contains(&v) => {
            let (oldest, newest) = (VERSIONS.start(), VERSIONS.end());
            let message =
                format!("the module is of version {v} of stable Mosaic; {oldest} to {newest} are read");
            return Err(Fault::version(message));
        }
        (Some(stable), Some(plain), _) => {
            let (stable, plain) = (stable.escape_debug(), plain.escape_debug());
            let message = format!("`{stable}` is in Mosaic's stable form, `{plain}` is not");
            return Err(Fault::version(message));
        }
        (Some(_), None, None) => {
            return Err(Fault::version(
                "the module is in Mosaic's stable form and does not say which version",
            ));
        }
        (Some(_), None, version) => version,
        // The form that compilers work on, which has no version.
        (None, _, _) => None,
    };
    let mut regions = root.regions.into_iter();
    let mut blocks = regions.next().unwrap_or_default().blocks.into_iter();
    module.body = blocks.next().unwrap_or_default().operations;
    if regions.next().is_some() || blocks.next().is_some() {
        return Err(Fault::malformed(0, "the module has more than one block"));
    }
    Ok(module)
}
