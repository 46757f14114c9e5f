//! Diagnostics: what is wrong, where in the user's source, and what to do about it.
//!
//! A message is one short phrase that names the user's things; it is all that a concise view shows. Labels point at
//! source, one primary label says where. Every diagnostic has a stable code that [`codes`] explains.

pub mod codes;
mod json;
mod render;
mod source;

use std::fmt;
use std::panic::Location;
use std::sync::Arc;

pub use render::Style;

/// A place in a source file. Line and column count from 1; a line of 0 means the file as a whole.
#[derive(Clone, PartialEq, Eq, Hash, Debug, PartialOrd, Ord)]
pub struct SourceLoc {
    /// Path as the compiler saw it.
    pub file: Arc<str>,
    /// Line, from 1.
    pub line: u32,
    /// Column in characters, from 1.
    pub column: u32,
}

impl From<&Location<'_>> for SourceLoc {
    fn from(l: &Location<'_>) -> Self {
        Self { file: l.file().into(), line: l.line(), column: l.column() }
    }
}

impl fmt::Display for SourceLoc {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}:{}", self.file, self.line, self.column)
    }
}

/// How bad a finding is.
#[derive(Clone, Copy, PartialEq, Eq, Debug, PartialOrd, Ord)]
pub enum Severity {
    /// The kernel is wrong; nothing is built.
    Error,
    /// The kernel works, but probably not as meant or not fast.
    Warning,
}

/// A piece of source with a remark.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Label {
    /// Where.
    pub loc: SourceLoc,
    /// What to see there.
    pub text: String,
}

/// One finding.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Diagnostic {
    /// How bad.
    pub severity: Severity,
    /// Stable code, e.g. `K0105`.
    pub code: &'static str,
    /// One phrase that names the user's things.
    pub message: String,
    /// The first label is the primary one.
    pub labels: Vec<Label>,
    /// Facts that help to understand.
    pub notes: Vec<String>,
    /// What to do.
    pub help: Option<String>,
}

impl Diagnostic {
    /// An error.
    pub fn error(code: &'static str, message: impl Into<String>) -> Self {
        Self::new(Severity::Error, code, message)
    }

    /// A warning.
    pub fn warning(code: &'static str, message: impl Into<String>) -> Self {
        Self::new(Severity::Warning, code, message)
    }

    fn new(severity: Severity, code: &'static str, message: impl Into<String>) -> Self {
        Self { severity, code, message: message.into(), labels: vec![], notes: vec![], help: None }
    }

    /// Points at a place; the first call makes the primary label.
    #[must_use]
    pub fn at(mut self, loc: SourceLoc, text: impl Into<String>) -> Self {
        self.labels.push(Label { loc, text: text.into() });
        self
    }

    /// Adds a fact.
    #[must_use]
    pub fn note(mut self, text: impl Into<String>) -> Self {
        self.notes.push(text.into());
        self
    }

    /// Says what to do.
    #[must_use]
    pub fn help(mut self, text: impl Into<String>) -> Self {
        self.help = Some(text.into());
        self
    }
}

/// Everything found in one run, in source order.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Report {
    /// The findings.
    pub diagnostics: Vec<Diagnostic>,
}

impl Report {
    /// A report of these findings, sorted by place and free of repetition.
    pub fn new(mut diagnostics: Vec<Diagnostic>) -> Self {
        diagnostics.sort_by_key(|d| d.labels.first().map(|l| l.loc.clone()));
        diagnostics.dedup();
        Self { diagnostics }
    }

    /// The findings that are errors.
    pub fn errors(&self) -> impl Iterator<Item = &Diagnostic> {
        let all = self.diagnostics.iter();
        all.filter(|d| d.severity == Severity::Error)
    }

    /// True when some finding is an error.
    pub fn has_errors(&self) -> bool {
        self.errors().next().is_some()
    }

    /// True when nothing was found.
    pub fn is_empty(&self) -> bool {
        self.diagnostics.is_empty()
    }
}

impl From<Diagnostic> for Report {
    fn from(d: Diagnostic) -> Self {
        Self { diagnostics: vec![d] }
    }
}

impl std::error::Error for Report {}
