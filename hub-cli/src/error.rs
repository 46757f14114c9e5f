//! The one error type of this crate: a stable code, one sentence, and often what to do next.

use std::fmt;
use std::path::Path;

use kernel_ir::diag::{self, Diagnostic, Report, SourceLoc};

pub use crate::codes::Code;

/// Shorthand for results of this crate.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// A failure that is shown to the user.
///
/// [`fmt::Display`] gives the bare message; [`Error::render`] the form of the command line.
#[derive(Debug)]
pub struct Error(Box<Inner>);

#[derive(Debug)]
struct Inner {
    code: Code,
    message: String,
    help: Option<String>,
    report: Option<String>,
    finding: Option<(String, String)>,
    place: Option<(SourceLoc, String)>,
    source: Option<Box<dyn std::error::Error + Send + Sync>>,
}

impl Error {
    /// An error of kind `code`; `message` names the user's things and says what is wrong with them.
    pub fn new(code: Code, message: impl Into<String>) -> Self {
        Self(Box::new(Inner {
            code,
            message: message.into(),
            help: None,
            report: None,
            finding: None,
            place: None,
            source: None,
        }))
    }

    /// The same with the reading or writing of `path` as the subject.
    pub(crate) fn io(path: &Path, source: std::io::Error) -> Self {
        // `fs_err` puts the path into its errors already.
        let message = source.to_string();
        let named = message.contains(&*path.to_string_lossy());
        Self::new(Code::Io, if named { message } else { format!("{}: {message}", path.display()) })
            .because(source)
    }

    /// A module that cannot be read or run, with what was found in it.
    pub(crate) fn refused(found: &Report) -> Self {
        let first = found.errors().next();
        let message = first.map_or_else(|| "the module is refused".to_owned(), |d| d.message.clone());
        let mut error = Self::new(Code::Refused, message).report(found.render(diag::Style::Colour));
        error.0.finding = first.map(|d| (d.code.to_owned(), d.message.clone()));
        error
    }

    /// The code and message of what was found in a module, for [`Code::Refused`].
    pub(crate) fn finding(&self) -> Option<(String, String)> {
        self.0.finding.clone()
    }

    /// Adds what the user can do.
    #[must_use]
    pub fn help(mut self, help: impl Into<String>) -> Self {
        self.0.help = Some(help.into());
        self
    }

    /// Adds a rendered report (source lines with marks), shown below the message.
    #[must_use]
    pub fn report(mut self, report: impl Into<String>) -> Self {
        self.0.report = Some(report.into());
        self
    }

    /// Points at a place in a file of the user's, with a remark; it is shown with its source line.
    #[must_use]
    pub(crate) fn at(mut self, place: SourceLoc, remark: impl Into<String>) -> Self {
        self.0.place = Some((place, remark.into()));
        self
    }

    /// Adds the underlying cause.
    #[must_use]
    pub fn because(mut self, source: impl Into<Box<dyn std::error::Error + Send + Sync>>) -> Self {
        self.0.source = Some(source.into());
        self
    }

    /// Which kind of error this is.
    pub fn code(&self) -> Code {
        self.0.code
    }

    /// What the user can do, if anything is known.
    pub fn help_text(&self) -> Option<&str> {
        self.0.help.as_deref()
    }

    /// The text for a terminal: `error[H0301]: ...` with help and report below it.
    pub fn render(&self) -> String {
        use anstyle::{AnsiColor, Style};
        let red = AnsiColor::Red.on_default().bold();
        let bold = Style::new().bold();
        let cyan = AnsiColor::Cyan.on_default().bold();
        let code = self.0.code.doc().code;
        let note = format!("\n  {cyan}note{cyan:#}: `kernels-cli explain {code}` says more");
        if let Some((place, remark)) = &self.0.place {
            let mut diagnostic = Diagnostic::error(code, &self.0.message).at(place.clone(), remark);
            diagnostic.help = self.0.help.clone();
            return diagnostic.render(diag::Style::Colour).trim_end().to_owned() + &note;
        }
        let mut text = format!("{red}error[{code}]{red:#}{bold}: {}{bold:#}", self.0.message);
        if let Some(report) = &self.0.report {
            text += &format!("\n{}", report.trim_end());
        }
        if let Some(help) = &self.0.help {
            text += &format!("\n  {cyan}help{cyan:#}: {help}");
        }
        text + &note
    }

    /// The same as one JSON document.
    pub fn to_json(&self) -> serde_json::Value {
        serde_json::json!({"error": {
            "code": self.0.code.doc().code,
            "message": self.0.message,
            "help": self.0.help,
            "finding": self.0.finding.as_ref().map(|(code, message)| serde_json::json!({"code": code, "message": message})),
            "at": self.0.place.as_ref().map(|(place, _)| place.to_string()),
        }})
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "[{}] {}", self.0.code.doc().code, self.0.message)
    }
}

impl std::error::Error for Error {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        self.0.source.as_deref().map(|e| e as _)
    }
}
