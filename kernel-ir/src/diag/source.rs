//! The user's source files: where they are on this machine, and which characters a place means.

use std::collections::HashMap;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::SourceLoc;

/// A source file beyond this size is not shown.
const LARGEST: u64 = 8 << 20;

/// Operators of Rust of more than one character, longest first.
const OPERATORS: [&str; 24] = [
    "..=", "...", "<<=", ">>=", "+=", "-=", "*=", "/=", "%=", "&=", "|=", "^=", "==", "!=", "<=", ">=", "&&",
    "||", "<<", ">>", "->", "=>", "::", "..",
];

/// Texts of the files that labels point at, read once each.
#[derive(Default)]
pub(super) struct Sources {
    files: HashMap<Arc<str>, Option<String>>,
}

impl Sources {
    /// Reads a file if it is source and can be found.
    pub(super) fn load(&mut self, file: &Arc<str>) {
        if !self.files.contains_key(file) {
            self.files.insert(file.clone(), read(Path::new(&**file)));
        }
    }

    /// The text of a loaded file.
    pub(super) fn text(&self, file: &str) -> Option<&str> {
        self.files.get(file)?.as_deref()
    }

    /// The bytes of the token at a place, or `None` if the text is not there or has no such place.
    pub(super) fn token(&self, loc: &SourceLoc) -> Option<Range<usize>> {
        token(self.text(&loc.file)?, loc.line, loc.column)
    }
}

/// Reads a path as the compiler wrote it: relative to the folder in which the compiler ran, in a workspace its root,
/// while a test runs in the folder of its package. Places may come from a file made elsewhere (a Mosaic module), so
/// nothing but source is opened.
fn read(file: &Path) -> Option<String> {
    if !file.extension().is_some_and(|e| e == "rs" || e == "py" || e == "toml") {
        return None;
    }
    let bases = [std::env::current_dir().ok(), std::env::var_os("CARGO_MANIFEST_DIR").map(PathBuf::from)];
    let ancestors = bases.iter().flatten().flat_map(|b| b.ancestors());
    let found = ancestors.map(|a| a.join(file)).find(|p| is_small_file(p))?;
    std::fs::read_to_string(found).ok()
}

fn is_small_file(path: &Path) -> bool {
    std::fs::metadata(path).is_ok_and(|m| m.is_file() && m.len() <= LARGEST)
}

/// The identifier, number, operator or index that starts at a column, which counts characters from 1.
fn token(text: &str, line: u32, column: u32) -> Option<Range<usize>> {
    let mut start = 0;
    for _ in 1..line {
        start += text[start..].find('\n')? + 1;
    }
    let rest = &text[start..];
    let rest = &rest[..rest.find('\n').unwrap_or(rest.len())];
    let column = column.checked_sub(1)? as usize;
    if line == 0 || column > rest.chars().count() {
        return None;
    }
    let skip = rest.char_indices().nth(column).map_or(rest.len(), |c| c.0);
    let at = start + skip;
    Some(at..at + token_len(&rest[skip..]))
}

fn token_len(rest: &str) -> usize {
    let word = rest.find(|c: char| !(c.is_alphanumeric() || c == '_'));
    match word.unwrap_or(rest.len()) {
        0 => {}
        n => return n,
    }
    if rest.starts_with('[') {
        return bracket_len(rest).unwrap_or(1);
    }
    match OPERATORS.iter().find(|op| rest.starts_with(**op)) {
        Some(op) => op.len(),
        None => rest.chars().next().map_or(0, char::len_utf8),
    }
}

/// An index with its brackets, if it ends on the line: that is what the compiler means by its place.
fn bracket_len(rest: &str) -> Option<usize> {
    let mut depth = 0_usize;
    for (i, c) in rest.char_indices() {
        match c {
            '[' => depth += 1,
            ']' => depth -= 1,
            _ => {}
        }
        if depth == 0 {
            return Some(i + 1);
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(text: &str, line: u32, column: u32) -> Option<&str> {
        token(text, line, column).map(|r| &text[r])
    }

    #[test]
    fn a_column_counts_characters() {
        let text = "let größe = \"日本\"; x += größe;\n\to[..] = y;\n";
        assert_eq!(at(text, 1, 5), Some("größe"));
        assert_eq!(at(text, 1, 21), Some("+="));
        assert_eq!(at(text, 1, 24), Some("größe"));
        assert_eq!(at(text, 2, 2), Some("o"));
        assert_eq!(at(text, 2, 4), Some(".."));
        assert_eq!(at(text, 2, 3), Some("[..]"));
        assert_eq!(at("x[i[0]] + y[", 1, 2), Some("[i[0]]"));
        assert_eq!(at("x[i[0]] + y[", 1, 12), Some("["));
    }

    #[test]
    fn a_place_outside_the_text_is_no_token() {
        assert_eq!(at("abc\n", 0, 1), None);
        assert_eq!(at("abc\n", 1, 0), None);
        assert_eq!(at("abc\n", 1, 9), None);
        assert_eq!(at("abc\n", 7, 1), None);
        assert_eq!(at("abc\n", 1, 4), Some(""));
        assert_eq!(at("", 1, 1), Some(""));
    }

    #[test]
    fn only_source_is_opened() {
        assert_eq!(read(Path::new("/etc/passwd")), None);
        assert_eq!(read(Path::new("no/such/file.rs")), None);
        assert!(read(Path::new("src/diag/source.rs")).is_some());
        assert!(read(Path::new("kernel-ir/src/diag/source.rs")).is_some());
    }
}
