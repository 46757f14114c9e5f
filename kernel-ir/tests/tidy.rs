//! House rules that clippy does not know: files open by saying what they are for, stay short, and codes are documented.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use kernel_ir::diag::codes::{ALL, explain};

/// Lines of the longest file.
const LONGEST: usize = 600;

/// The root of the workspace.
fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

/// Files below `dir` whose names end in one of `ends`, without build products.
fn files(dir: &Path, ends: &[&str]) -> Vec<PathBuf> {
    let mut all = vec![];
    let mut open = vec![dir.to_path_buf()];
    while let Some(dir) = open.pop() {
        for entry in fs::read_dir(&dir).into_iter().flatten().flatten() {
            let (path, name) = (entry.path(), entry.file_name().to_string_lossy().into_owned());
            if path.is_dir() {
                if !name.starts_with('.') && name != "target" {
                    open.push(path);
                }
            } else if ends.iter().any(|e| name.ends_with(e)) {
                all.push(path);
            }
        }
    }
    all.sort();
    all
}

/// Rust files of the workspace. The mistakes in `tests/ui` are what an author would write, without a preface.
fn rust_files() -> Vec<PathBuf> {
    let members = ["kernel-macros", "kernel-ir", "kernels", "hub-cli", "examples", "fuzz"];
    let all = members.iter().flat_map(|m| files(&root().join(m), &[".rs"]));
    all.filter(|p| !p.components().any(|c| c.as_os_str() == "ui")).collect()
}

fn read(path: &Path) -> String {
    fs::read_to_string(path).unwrap_or_else(|e| panic!("{}: {e}", path.display()))
}

#[test]
fn every_file_opens_by_saying_what_it_is_for() {
    let silent: Vec<_> = rust_files().into_iter().filter(|p| !read(p).starts_with("//! ")).collect();
    assert!(silent.is_empty(), "{silent:#?}");
}

#[test]
fn no_file_is_long() {
    let long: Vec<_> = rust_files().into_iter().filter(|p| read(p).lines().count() > LONGEST).collect();
    assert!(long.is_empty(), "{long:#?}");
}

#[test]
fn codes_are_sorted_unique_and_explained() {
    assert!(ALL.is_sorted_by(|a, b| a.code < b.code));
    for doc in ALL {
        let (code, number) = (doc.code, doc.code.strip_prefix('K').unwrap_or_default());
        assert!(number.len() == 4 && number.chars().all(|c| c.is_ascii_digit()), "{code}");
        assert!(!doc.title.is_empty() && !doc.title.ends_with('.'), "{code}: {}", doc.title);
        assert!(doc.text.split_whitespace().count() >= 20, "{code} wants a real explanation");
        assert_eq!(doc.text.matches("```").count() % 2, 0, "{code} leaves a code block open");
        assert_eq!(explain(&code.to_lowercase()), Some(doc));
    }
}

#[test]
fn every_explanation_is_in_the_table() {
    let listed: BTreeSet<_> = ALL.iter().map(|d| format!("{}.md", d.code)).collect();
    let written = files(&root().join("kernel-ir/src/diag/codes"), &[".md"]);
    let written: BTreeSet<_> =
        written.iter().filter_map(|p| Some(p.file_name()?.to_string_lossy().into_owned())).collect();
    assert_eq!(listed, written);
}

/// Codes that stand in quotes in a text: `"K0105"`.
fn quoted_codes(text: &str) -> impl Iterator<Item = &str> {
    let candidates = text.match_indices("\"K").filter_map(|(i, _)| text.get(i + 1..i + 7));
    candidates.filter_map(|c| c.strip_suffix('"')).filter(|c| c[1..].chars().all(|d| d.is_ascii_digit()))
}

#[test]
fn codes_that_are_raised_are_those_of_the_table() {
    let mut raised = BTreeSet::new();
    for path in rust_files() {
        let in_tests = path.components().any(|c| c.as_os_str() == "tests");
        if !in_tests && !path.ends_with("diag/codes.rs") {
            raised.extend(quoted_codes(&read(&path)).map(str::to_owned));
        }
    }
    let listed: BTreeSet<_> = ALL.iter().map(|d| d.code.to_owned()).collect();
    assert_eq!(raised, listed);
}

#[test]
fn messages_speak_the_users_language() {
    let tests = root().join("kernel-ir/tests");
    let goldens = files(&tests, &[".stderr", ".snap"]);
    assert!(goldens.len() >= 35, "20 compile-fail and 15 recording goldens, found {}", goldens.len());
    for path in goldens {
        let text = read(&path);
        for internal in ["Value(", "RefId", "kernel_ir::ir", "OpKind", "Span(", "unwrap()` on", "panicked"] {
            // A source line that rustc shows is the author's own.
            let shown = text.lines().any(|l| l.contains(internal) && !l.contains(" | "));
            assert!(!shown, "{} says `{internal}`", path.display());
        }
    }
}
