//! The rules for a package's Python files that loading alone would not show.

use std::collections::{BTreeMap, BTreeSet};

use crate::error::{Code, Error, Result};
use crate::hub::RepoPath;

use super::python_name;

/// Checks the Python files of a variant of the kernel `name`.
///
/// A package is imported under a generated name, so one file reaches another only by `from . import`;
/// and its public names must be readable without running it.
///
/// # Errors
/// `H0406`, with file and line.
pub(crate) fn check_python(files: &BTreeMap<RepoPath, Vec<u8>>, name: &str) -> Result<()> {
    let mut own: BTreeSet<String> = files.keys().filter_map(module_name).collect();
    own.insert(python_name(name));
    let mut has_entry = false;
    for (path, bytes) in files.iter().filter(|(path, _)| path.as_str().ends_with(".py")) {
        let wrong =
            |line: usize, why: String| Err(Error::new(Code::PythonRules, format!("{path}:{line} {why}")));
        let Ok(text) = std::str::from_utf8(bytes) else { return wrong(1, "is not UTF-8".to_owned()) };
        let code = without_strings(text);
        for (number, line) in code.lines().enumerate() {
            if let Some(module) = imported(line).find(|module| own.contains(*module)) {
                let why = format!(
                    "imports {module}, which is a file of this package: write `from . import {module}`"
                );
                return wrong(number + 1, why);
            }
        }
        if path.as_str() == "__init__.py" {
            has_entry = true;
            if public_names(text, &code).is_none() {
                return wrong(1, "has no `__all__ = [\"...\"]` of literal names".to_owned());
            }
        }
    }
    if has_entry { Ok(()) } else { Err(Error::new(Code::PythonRules, "the package has no __init__.py")) }
}

/// The name under which `path` could be imported from within its folder.
fn module_name(path: &RepoPath) -> Option<String> {
    let first = path.segments().next()?;
    let name = first.strip_suffix(".py").unwrap_or(first);
    (name != "__init__" && path.as_str().ends_with(".py")).then(|| name.to_owned())
}

/// The top-level modules that a line of code imports absolutely.
fn imported(line: &str) -> impl Iterator<Item = &str> {
    let line = line.trim_start();
    let names = match (line.strip_prefix("import "), line.strip_prefix("from ")) {
        (Some(list), _) => list,
        (_, Some(rest)) => rest.split(" import").next().unwrap_or_default(),
        _ => "",
    };
    names
        .split(',')
        .map(|name| name.split([' ', '.', ';']).find(|part| !part.is_empty()).unwrap_or_default())
        .filter(
            // A relative import starts with a dot.
            move |_| !names.trim_start().starts_with('.'),
        )
}

/// The names in a literal `__all__`.
pub(super) fn public_names<'a>(text: &'a str, code: &str) -> Option<Vec<&'a str>> {
    let at = code
        .match_indices("__all__")
        .map(|(at, _)| at)
        .find(|at| *at == 0 || code.as_bytes()[at - 1] == b'\n')?;
    let list = text[at..].strip_prefix("__all__")?.trim_start().strip_prefix('=')?.trim_start();
    let (items, _) = list.strip_prefix('[')?.split_once(']')?;
    let items = items.split(',').map(str::trim).filter(|item| !item.is_empty());
    let unquote = |item: &'a str| {
        let inner = item.strip_prefix('"').and_then(|i| i.strip_suffix('"'));
        let inner = inner.or_else(|| item.strip_prefix('\'').and_then(|i| i.strip_suffix('\'')))?;
        inner.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_').then_some(inner)
    };
    items.map(unquote).collect()
}

/// `text` with the bytes of comments and string contents turned into spaces, so that positions stay.
pub(super) fn without_strings(text: &str) -> String {
    let bytes = text.as_bytes();
    let mut code = vec![b' '; bytes.len()];
    let mut at = 0;
    while at < bytes.len() {
        match bytes[at] {
            b'#' => at = bytes[at..].iter().position(|b| *b == b'\n').map_or(bytes.len(), |n| at + n),
            quote @ (b'"' | b'\'') => {
                let triple = bytes[at..].starts_with(&[quote; 3]);
                let close: &[u8] = if triple { &[quote; 3] } else { &[quote] };
                at += close.len();
                while at < bytes.len() && !bytes[at..].starts_with(close) && (triple || bytes[at] != b'\n') {
                    if bytes[at] == b'\n' {
                        code[at] = b'\n';
                    }
                    at += if bytes[at] == b'\\' { 2 } else { 1 };
                }
                at += if triple || bytes.get(at) == Some(&quote) { close.len() } else { 0 };
            }
            other => {
                code[at] = if other.is_ascii() { other } else { b'_' };
                at += 1;
            }
        }
    }
    String::from_utf8_lossy(&code).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(files: &[(&str, &str)]) -> Result<()> {
        let files =
            files.iter().map(|(path, text)| (RepoPath::parse(path).unwrap(), text.as_bytes().to_vec()));
        check_python(&files.collect(), "add-one")
    }

    #[test]
    fn packages_with_relative_imports_and_literal_names_pass() {
        let init = "'''import _a'''\nimport sys, torch.nn as nn\nfrom . import _a\nfrom ._a import x\n# import _a\n__all__ = [\"f\", 'g',]\n";
        check(&[("__init__.py", init), ("_a.py", "x = \"\\\" import _a\"\n"), ("data.bin", "import _a")])
            .unwrap();
    }

    #[test]
    fn what_breaks_the_rules_is_named() {
        let good = "__all__ = []\n";
        for (init, file, words) in [
            (good, "import sys\nimport _a\n", "_a.py:2"),
            (good, "def f():\n    from _a.x import y\n", "_a.py:2"),
            (good, "import sys, add_one\n", "add_one"),
            ("__all__ = names\n", "", "__all__"),
            ("__all__ = [\"a\" + b]\n", "", "__all__"),
            ("x = 1 # __all__ = []\n'''\n__all__ = []\n'''\n", "", "__all__"),
            ("    __all__ = []\n", "", "__all__"),
        ] {
            let error = check(&[("__init__.py", init), ("_a.py", file)]).unwrap_err();
            assert_eq!(error.code(), Code::PythonRules);
            assert!(error.to_string().contains(words), "{error}");
        }
        assert!(check(&[("_a.py", "")]).is_err());
        assert!(check(&[("__init__.py", "\u{feff}é = '")]).is_err());
    }
}
