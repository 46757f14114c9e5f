//! The Python names that a variant exports, and the parameters of its functions, read without running it.

use std::collections::{BTreeMap, BTreeSet};

use crate::hub::RepoPath;
use crate::package::lint::{public_names, without_strings};

use super::Comparison;

/// What `from kernel import *` gives.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PythonApi {
    /// The names in `__all__`.
    pub names: BTreeSet<String>,
    /// The parameters of those that are functions of one file of the variant.
    functions: BTreeMap<String, Vec<Parameter>>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct Parameter {
    /// The name, with its stars; `*` and `/` alone are parameters too.
    name: String,
    has_default: bool,
}

impl PythonApi {
    /// The API of a variant with these files.
    pub(super) fn of(files: &BTreeMap<RepoPath, Vec<u8>>) -> Self {
        let sources: Vec<(&str, &str)> = files
            .iter()
            .filter(|(path, _)| path.as_str().ends_with(".py") && path.segments().count() == 1)
            .filter_map(|(path, bytes)| Some((path.as_str(), std::str::from_utf8(bytes).ok()?)))
            .collect();
        let Some((_, init)) = sources.iter().find(|(path, _)| *path == "__init__.py") else {
            return Self::default();
        };
        let names: BTreeSet<String> =
            public_names(init, &without_strings(init)).into_iter().flatten().map(str::to_owned).collect();
        let mut functions: BTreeMap<String, Vec<Parameter>> = BTreeMap::new();
        let mut unclear = BTreeSet::new();
        for (_, text) in &sources {
            let code = without_strings(text);
            for name in &names {
                let Some(parameters) = parameters(&code, name) else { continue };
                // Which of two definitions is exported is not known here.
                if functions.insert(name.clone(), parameters).is_some() {
                    unclear.insert(name);
                }
            }
        }
        functions.retain(|name, _| !unclear.contains(name));
        Self { names, functions }
    }
}

pub(super) fn compare(old: &PythonApi, new: &PythonApi, found: &mut Comparison) {
    for name in &old.names {
        if !new.names.contains(name) {
            found.breaks(format!("Python loses `{name}`: `kernel.{name}` fails"));
        } else if let (Some(before), Some(after)) = (old.functions.get(name), new.functions.get(name)) {
            compare_parameters(name, before, after, found);
        }
    }
    for name in new.names.difference(&old.names) {
        found.adds(format!("the Python name `{name}`"));
    }
}

fn compare_parameters(function: &str, old: &[Parameter], new: &[Parameter], found: &mut Comparison) {
    let positional = |list: &[Parameter]| -> Vec<String> {
        let before_star = list.iter().take_while(|p| !p.name.starts_with('*'));
        before_star.filter(|p| p.name != "/").map(|p| p.name.clone()).collect()
    };
    let (before, after) = (positional(old), positional(new));
    for parameter in old {
        let Some(same) = new.iter().find(|p| p.name == parameter.name) else {
            // Only how others may be given; those are compared by themselves.
            if !matches!(parameter.name.as_str(), "*" | "/") {
                found.breaks(format!("`{function}` loses its parameter `{}`", parameter.name));
            }
            continue;
        };
        if parameter.has_default && !same.has_default {
            found.breaks(format!("`{function}` needs `{}` now: calls without it fail", parameter.name));
        }
        let place = |list: &[String]| list.iter().position(|name| *name == parameter.name);
        if place(&before).is_some() && place(&before) != place(&after) {
            found.breaks(format!("`{function}` takes `{}` at another place", parameter.name));
        }
    }
    for parameter in new.iter().filter(|p| !old.iter().any(|o| o.name == p.name)) {
        if parameter.name == "/" {
            found.breaks(format!("`{function}` does not take its first parameters by name any more"));
        } else if !parameter.has_default && !parameter.name.starts_with('*') {
            found.breaks(format!("`{function}` needs one more parameter, `{}`", parameter.name));
        } else if parameter.name != "*" {
            found.adds(format!("the parameter `{}` of `{function}`", parameter.name));
        }
    }
}

/// The parameters of the top-level function `name` in `code`, which has no strings and comments any more.
fn parameters(code: &str, name: &str) -> Option<Vec<Parameter>> {
    let head = |line: &str| {
        let rest = line.strip_prefix("async ").unwrap_or(line).strip_prefix("def ")?.trim_start();
        rest.strip_prefix(name)?.trim_start().starts_with(['(', '[']).then_some(())
    };
    let mut at = 0;
    for line in code.split_inclusive('\n') {
        if head(line).is_some() {
            let list = split(&code[at + line.find('(')? + 1..])?;
            let parameters: Vec<_> = list.into_iter().filter_map(parameter).collect();
            let names: BTreeSet<_> = parameters.iter().map(|parameter| &parameter.name).collect();
            // Python takes no function with two parameters of one name: there is nothing to hold it to.
            return (names.len() == parameters.len()).then_some(parameters);
        }
        at += line.len();
    }
    None
}

/// The parts of a list between its outermost commas, up to the bracket that closes it.
fn split(list: &str) -> Option<Vec<&str>> {
    let (mut depth, mut from, mut parts) = (0_usize, 0, Vec::new());
    for (at, c) in list.char_indices() {
        match c {
            '(' | '[' | '{' => depth += 1,
            ')' if depth == 0 => {
                parts.push(&list[from..at]);
                return Some(parts);
            }
            ')' | ']' | '}' => depth = depth.checked_sub(1)?,
            ',' if depth == 0 => {
                parts.push(&list[from..at]);
                from = at + 1;
            }
            _ => {}
        }
    }
    None
}

/// `name: annotation = default` without the annotation.
fn parameter(part: &str) -> Option<Parameter> {
    let end = part.find([':', '=']).unwrap_or(part.len());
    let name: String = part[..end].split_whitespace().collect();
    let mut depth = 0_i32;
    let has_default = part.bytes().enumerate().any(|(at, byte)| {
        depth += i32::from(b"([{".contains(&byte)) - i32::from(b")]}".contains(&byte));
        let alone = |near: Option<&u8>| near.is_none_or(|b| !b"=!<>:".contains(b));
        let (before, after) =
            (at.checked_sub(1).and_then(|i| part.as_bytes().get(i)), part.as_bytes().get(at + 1));
        byte == b'=' && depth == 0 && alone(before) && alone(after)
    });
    (!name.is_empty()).then_some(Parameter { name, has_default })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn api(init: &str, other: &str) -> PythonApi {
        let files = [("__init__.py", init), ("_a.py", other)];
        let files = files.map(|(path, text)| (RepoPath::parse(path).unwrap(), text.as_bytes().to_vec()));
        PythonApi::of(&files.into_iter().collect())
    }

    fn breaking(old: &str, new: &str) -> Vec<String> {
        let init = "from ._a import f\n__all__ = [\"f\"]\n";
        let mut found = Comparison::default();
        compare(&api(init, old), &api(init, new), &mut found);
        found.breaking
    }

    #[test]
    fn functions_may_only_grow_parameters_with_defaults() {
        let old = "def f(x: dict[str, int], y=1, *, z: tuple[int, ...] = (1, 2)) -> int:\n    return 0\n";
        for fine in [
            old,
            "def f(x, y=2, w=None, *, z=0): ...\n",
            "async def f(\n    x,  # the first\n    y=1,\n    *,\n    z=3,\n    more=\"a, b)\",\n): ...\n",
            "def f(x, y=1, *rest, z=1, **names): ...\n",
        ] {
            assert_eq!(breaking(old, fine), [""; 0], "{fine}");
        }
        for (bad, words) in [
            ("def f(x, *, z=1): ...\n", "loses its parameter `y`"),
            ("def f(y=1, x=2, *, z=1): ...\n", "at another place"),
            ("def f(x, y, *, z=1): ...\n", "needs `y` now"),
            ("def f(x, y=1, *, z): ...\n", "needs `z` now"),
            ("def f(x, y=1, *, z=1, w): ...\n", "needs one more parameter, `w`"),
            ("def f(w, x, y=1, *, z=1): ...\n", "at another place"),
            ("def f(x, /, y=1, *, z=1): ...\n", "by name any more"),
            ("def f(x, *, y=1, z=1): ...\n", "at another place"),
        ] {
            let found = breaking(old, bad).join("; ");
            assert!(found.contains(words), "{bad}: {found}");
        }
    }

    #[test]
    fn what_python_does_not_take_promises_nothing() {
        let twice = "def f(z, /, y=1, *, z=3): ...\n";
        assert_eq!(breaking(twice, twice), [""; 0]);
    }

    #[test]
    fn names_may_only_come() {
        let mut found = Comparison::default();
        compare(&api("__all__ = [\"a\", \"b\"]\n", ""), &api("__all__ = ['b', 'c']\n", ""), &mut found);
        assert_eq!(found.breaking, ["Python loses `a`: `kernel.a` fails"]);
        assert_eq!(found.added, ["the Python name `c`"]);
    }

    #[test]
    fn what_is_defined_twice_is_not_compared() {
        assert_eq!(breaking("def f(x): ...\n", "def f(y): ...\n").len(), 2);
        let init = "def f(a): ...\n__all__ = [\"f\"]\n";
        assert!(api(init, "def f(b): ...\n").functions.is_empty());
    }
}
