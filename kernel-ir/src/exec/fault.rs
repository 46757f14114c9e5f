//! What goes wrong while a kernel runs, and how it is told to the user.

use crate::diag::Diagnostic;
use crate::ir::{Kernel, Span};

/// An error at one op of one grid step, before it is tied to the user's source.
#[derive(Debug)]
pub(super) struct Fault {
    code: &'static str,
    message: String,
    span: Span,
    label: String,
    notes: Vec<String>,
    help: Option<String>,
}

/// A result whose error is small enough to return from every op.
pub(super) type Checked<T> = Result<T, Box<Fault>>;

impl Fault {
    /// A fault at a place.
    pub(super) fn new(code: &'static str, span: Span, message: impl Into<String>) -> Box<Self> {
        Box::new(Self {
            code,
            message: message.into(),
            span,
            label: String::new(),
            notes: vec![],
            help: None,
        })
    }

    /// What to see at the place.
    pub(super) fn label(mut self: Box<Self>, text: impl Into<String>) -> Box<Self> {
        self.label = text.into();
        self
    }

    /// A fact that helps.
    pub(super) fn note(mut self: Box<Self>, text: impl Into<String>) -> Box<Self> {
        self.notes.push(text.into());
        self
    }

    /// What to do.
    pub(super) fn help(mut self: Box<Self>, text: impl Into<String>) -> Box<Self> {
        self.help = Some(text.into());
        self
    }

    /// A kernel that the verifier would have refused, or that this executor cannot run.
    pub(super) fn refused(span: Span, what: impl Into<String>) -> Box<Self> {
        Self::new("K0411", span, what).help("verify the kernel first: `kernel.verify()`")
    }

    /// A core that stops because another device of its mesh has failed; nobody is told.
    pub(super) fn stopped(span: Span) -> Box<Self> {
        Self::new("K0402", span, "another device of the mesh has stopped")
    }

    /// The diagnostic for the user: names the kernel, and the grid step when there is one.
    pub(super) fn diagnostic(self, kernel: &Kernel, step: Option<&[i32]>) -> Diagnostic {
        let mut d = Diagnostic::error(self.code, self.message).at(kernel.loc(self.span).clone(), self.label);
        d = match step {
            Some(step) if !step.is_empty() => {
                d.note(format!("in kernel `{}`, grid step {step:?}", kernel.name))
            }
            _ => d.note(format!("in kernel `{}`", kernel.name)),
        };
        d.notes.extend(self.notes);
        d.help = self.help;
        d
    }
}
