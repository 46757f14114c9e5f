//! The interface of a package: what its callers rely on, and which of them a change would break.
//!
//! Under a version an op, a dtype, a shape, a TPU generation, an argument with a default or a Python name may
//! come; none may go or change.

mod coverage;
mod ops;
mod python;

use std::collections::BTreeMap;

use kernel_ir::mosaic::call::Index;

use crate::hub::RepoPath;

pub(crate) use ops::signature;
pub use python::PythonApi;

/// What callers of one variant see.
#[derive(Clone, Debug, Default)]
pub struct Interface {
    /// The ops, if Tessera built the package.
    pub ops: Option<Index>,
    /// The names that Python exports.
    pub python: PythonApi,
}

/// How two interfaces differ.
#[derive(Clone, Debug, Default, PartialEq, Eq, serde::Serialize)]
pub struct Comparison {
    /// What callers of the old one could not do any more, each in one line.
    pub breaking: Vec<String>,
    /// What is new.
    pub added: Vec<String>,
}

impl Interface {
    /// The interface of a variant with these files; what cannot be read is not part of it.
    pub fn of(files: &BTreeMap<RepoPath, Vec<u8>>) -> Self {
        let index = files.iter().find(|(path, _)| path.as_str() == "index.json");
        Self { ops: index.and_then(|(_, json)| Index::parse(json).ok()), python: PythonApi::of(files) }
    }

    /// Whether a file of a variant says something about its interface.
    pub(crate) fn is_told_by(path: &RepoPath) -> bool {
        path.as_str() == "index.json" || (path.as_str().ends_with(".py") && path.segments().count() == 1)
    }

    /// What changes for callers of `self` when `new` takes its place.
    pub fn compare(&self, new: &Interface) -> Comparison {
        let mut comparison = Comparison::default();
        let none = Index { schema: 0, mosaic_version: 0, ops: Default::default() };
        let (old_ops, new_ops) = (self.ops.as_ref().unwrap_or(&none), new.ops.as_ref().unwrap_or(&none));
        ops::compare(old_ops, new_ops, &mut comparison);
        python::compare(&self.python, &new.python, &mut comparison);
        comparison
    }
}

impl Comparison {
    /// Whether nothing changes.
    pub fn is_empty(&self) -> bool {
        self.breaking.is_empty() && self.added.is_empty()
    }

    pub(super) fn breaks(&mut self, what: String) {
        if !self.breaking.contains(&what) {
            self.breaking.push(what);
        }
    }

    pub(super) fn adds(&mut self, what: String) {
        if !self.added.contains(&what) {
            self.added.push(what);
        }
    }

    /// Adds the findings of another variant, each once.
    pub(crate) fn merge(&mut self, other: Comparison) {
        other.breaking.into_iter().for_each(|what| self.breaks(what));
        other.added.into_iter().for_each(|what| self.adds(what));
    }
}
