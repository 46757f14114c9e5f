//! Draws diagnostics the way rustc does, against the user's source.

use std::fmt;

use super::{Diagnostic, Report};

/// How a report is drawn.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Style {
    /// No escape codes.
    Plain,
    /// With terminal colours.
    Colour,
}

impl fmt::Display for Diagnostic {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "error[{}]: {}", self.code, self.message)?;
        for l in &self.labels {
            writeln!(f, "  --> {}: {}", l.loc, l.text)?;
        }
        for n in &self.notes {
            writeln!(f, "  = note: {n}")?;
        }
        if let Some(h) = &self.help {
            writeln!(f, "  = help: {h}")?;
        }
        Ok(())
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.diagnostics.iter().try_for_each(|d| writeln!(f, "{d}"))
    }
}
