//! Draws diagnostics: in full against the user's source, as rustc does, or one line a finding.

use std::fmt;

use annotate_snippets::renderer::DecorStyle;
use annotate_snippets::{Annotation, AnnotationKind, Element, Group, Level, Origin, Renderer, Snippet};

use super::source::Sources;
use super::{Diagnostic, Label, Report, Severity};

/// How a report is drawn.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Style {
    /// No escape codes.
    Plain,
    /// With terminal colours.
    Colour,
}

impl Style {
    const fn renderer(self) -> Renderer {
        match self {
            Self::Plain => Renderer::plain(),
            Self::Colour => Renderer::styled(),
        }
        .decor_style(DecorStyle::Ascii)
    }
}

impl Severity {
    /// The word for it: `error` or `warning`.
    pub const fn word(self) -> &'static str {
        match self {
            Self::Error => "error",
            Self::Warning => "warning",
        }
    }

    const fn level(self) -> Level<'static> {
        match self {
            Self::Error => Level::ERROR,
            Self::Warning => Level::WARNING,
        }
    }
}

impl Diagnostic {
    /// Draws the finding in full, with the source lines that its labels point at.
    pub fn render(&self, style: Style) -> String {
        self.draw(style, &mut Sources::default())
    }

    /// The finding on one line: `file:line:column: error[K0105]: message`.
    pub fn concise(&self) -> String {
        let what = format!("{}[{}]: {}", self.severity.word(), self.code, self.message);
        match self.labels.first() {
            Some(l) => format!("{}: {what}", l.loc),
            None => what,
        }
    }

    fn draw(&self, style: Style, sources: &mut Sources) -> String {
        for l in &self.labels {
            sources.load(&l.loc.file);
        }
        let title = self.severity.level().primary_title(&self.message);
        let group = Group::with_title(title.id(self.code))
            .elements(self.places(sources))
            .elements(self.notes.iter().map(|n| Level::NOTE.message(n)))
            .elements(self.help.iter().map(|h| Level::HELP.message(h)));
        style.renderer().render(&[group])
    }

    /// One snippet a source file, in order of first mention; a bare origin and the label's text when the source
    /// cannot be shown.
    fn places<'a>(&'a self, sources: &'a Sources) -> Vec<Element<'a>> {
        let mut elements = vec![];
        let mut drawn: Vec<&str> = vec![];
        for label in &self.labels {
            let file = &*label.loc.file;
            if sources.token(&label.loc).is_none() {
                elements.extend(bare(label));
                continue;
            }
            let Some(text) = sources.text(file).filter(|_| !drawn.contains(&file)) else {
                continue;
            };
            drawn.push(file);
            let snippet = Snippet::source(text).path(file);
            elements.push(snippet.annotations(self.in_file(file, sources)).into());
        }
        elements
    }

    fn in_file<'a>(&'a self, file: &str, sources: &Sources) -> Vec<Annotation<'a>> {
        let mut annotations = vec![];
        for (i, l) in self.labels.iter().enumerate() {
            if &*l.loc.file != file {
                continue;
            }
            let kind = match i {
                0 => AnnotationKind::Primary,
                _ => AnnotationKind::Context,
            };
            if let Some(token) = sources.token(&l.loc) {
                let a = kind.span(token);
                annotations.push(if l.text.is_empty() { a } else { a.label(&l.text) });
            }
        }
        annotations
    }
}

fn bare(label: &Label) -> Vec<Element<'_>> {
    let loc = &label.loc;
    let mut origin = Origin::path(&*loc.file);
    if loc.line > 0 {
        origin = origin.line(loc.line as usize).char_column(loc.column as usize);
    }
    let mut elements = vec![origin.into()];
    if !label.text.is_empty() {
        elements.push(Level::NOTE.message(&label.text).into());
    }
    elements
}

impl Report {
    /// Draws every finding in full, with a blank line between them.
    pub fn render(&self, style: Style) -> String {
        let mut sources = Sources::default();
        let drawn = self.diagnostics.iter().map(|d| d.draw(style, &mut sources));
        drawn.collect::<Vec<_>>().join("\n\n")
    }

    /// One line a finding.
    pub fn concise(&self) -> String {
        let lines = self.diagnostics.iter().map(Diagnostic::concise);
        lines.collect::<Vec<_>>().join("\n")
    }
}

impl fmt::Display for Diagnostic {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.render(Style::Plain))
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.render(Style::Plain))
    }
}
