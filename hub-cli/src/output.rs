//! All that is printed: results on standard output, words about them on standard error.

use std::io::{IsTerminal, Write};

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use serde_json::Value;

use crate::error::Error;
use crate::hub::Progress;

/// How much, and in which form.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Output {
    json: bool,
    quiet: bool,
}

impl Output {
    /// Output as the flags `--json` and `--quiet` ask for.
    pub(crate) fn new(json: bool, quiet: bool) -> Self {
        Self { json, quiet }
    }

    /// Prints a command's result: `json` with `--json`, else `text`.
    pub(crate) fn result(&self, json: Value, text: impl FnOnce() -> String) {
        if self.json {
            write(&format!("{json:#}"));
        } else {
            write(text().trim_end());
        }
    }

    /// Prints what a command did: `json` with `--json`, else `text` unless `--quiet`.
    pub(crate) fn summary(&self, json: Value, text: impl FnOnce() -> String) {
        if self.json || !self.quiet {
            self.result(json, text);
        }
    }

    /// Prints one line of JSON with `--json`, else `text`, at once. For commands that go on running.
    pub(crate) fn ready(&self, json: &Value, text: &str) {
        write(&if self.json { json.to_string() } else { text.to_owned() });
    }

    /// Says something that is not part of the result.
    pub(crate) fn note(&self, text: &str) {
        if !self.quiet && !self.json {
            complain(text);
        }
    }

    /// Reports a failure: on standard error, and as the one JSON document with `--json`.
    pub(crate) fn failure(&self, error: &Error) {
        if self.json {
            write(&format!("{:#}", error.to_json()));
        }
        complain(&error.render());
    }

    /// A bar for a download.
    pub(crate) fn progress(&self) -> Bar {
        Bar(self.bar("{bar:30} {bytes}/{total_bytes} {bytes_per_sec}"))
    }

    /// A bar for so many steps of so many, with what they are.
    #[cfg(feature = "aot")]
    pub(crate) fn steps(&self, what: &'static str) -> Box<dyn FnMut(usize, usize) + Send> {
        let bar = Bar(self.bar("{bar:30} {pos}/{len} {msg}"));
        Box::new(move |done, total| {
            if let Some(bar) = &bar.0 {
                bar.set_message(what);
                bar.set_length(total as u64);
                bar.set_position(done as u64);
            }
        })
    }

    /// A bar drawn as `template` says, on a terminal only.
    fn bar(&self, template: &str) -> Option<ProgressBar> {
        let drawn = !self.quiet && !self.json && std::io::stderr().is_terminal();
        let style = ProgressStyle::with_template(template).unwrap_or_else(|_| ProgressStyle::default_bar());
        drawn.then(|| ProgressBar::with_draw_target(None, ProgressDrawTarget::stderr()).with_style(style))
    }
}

/// A progress bar, or nothing.
pub(crate) struct Bar(Option<ProgressBar>);

impl Progress for Bar {
    fn start(&mut self, bytes: u64) {
        if let Some(bar) = &self.0 {
            bar.set_length(bytes);
        }
    }

    fn advance(&mut self, bytes: u64) {
        if let Some(bar) = &self.0 {
            bar.inc(bytes);
        }
    }
}

impl Drop for Bar {
    fn drop(&mut self) {
        if let Some(bar) = &self.0 {
            bar.finish_and_clear();
        }
    }
}

/// `1 file`, `2 files`.
pub(crate) fn count(number: usize, noun: &str) -> String {
    format!("{number} {noun}{}", if number == 1 { "" } else { "s" })
}

/// A size with the unit that suits it, such as `7.2 KB`.
pub(crate) fn size(bytes: u64) -> String {
    let (mut value, mut unit) = (bytes as f64, "bytes");
    for larger in ["KB", "MB", "GB", "TB"] {
        if value < 1000.0 {
            break;
        }
        (value, unit) = (value / 1000.0, larger);
    }
    if unit == "bytes" { format!("{bytes} bytes") } else { format!("{value:.1} {unit}") }
}

fn write(text: &str) {
    let mut out = anstream::stdout().lock();
    // A reader that has gone away, such as `head`, is no failure of ours.
    let _ = writeln!(out, "{text}").and_then(|()| out.flush());
}

fn complain(text: &str) {
    let _ = writeln!(anstream::stderr().lock(), "{text}");
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn amounts_read_well() {
        assert_eq!((count(1, "file"), count(0, "file")), ("1 file".into(), "0 files".into()));
        assert_eq!(
            (size(999), size(7_342), size(1_999_999)),
            ("999 bytes".into(), "7.3 KB".into(), "2.0 MB".into())
        );
    }
}
