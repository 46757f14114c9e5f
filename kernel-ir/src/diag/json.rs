//! The machine-readable view of a report, for editors and for `--json`.

use serde_json::{Value, json};

use super::{Diagnostic, Report};

impl Diagnostic {
    /// `{severity, code, title, message, labels: [{file, line, column, text}], notes, help}`; the first label is the
    /// primary one, `title` is the code's.
    pub fn to_json(&self) -> Value {
        let labels = self.labels.iter().map(|l| {
            json!({
                "file": &*l.loc.file,
                "line": l.loc.line,
                "column": l.loc.column,
                "text": l.text,
            })
        });
        json!({
            "severity": self.severity.word(),
            "code": self.code,
            "title": super::codes::explain(self.code).map(|c| c.title),
            "message": self.message,
            "labels": labels.collect::<Vec<_>>(),
            "notes": self.notes,
            "help": self.help,
        })
    }
}

impl Report {
    /// `{errors, warnings, diagnostics}`: two counts and the findings in source order.
    pub fn to_json(&self) -> Value {
        let errors = self.errors().count();
        json!({
            "errors": errors,
            "warnings": self.diagnostics.len() - errors,
            "diagnostics": self.diagnostics.iter().map(Diagnostic::to_json).collect::<Vec<_>>(),
        })
    }
}
