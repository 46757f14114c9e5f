//! Comparison of two texts of one module in MLIR's generic form.
//!
//! Values may have other names, attributes may stand in another order, and may be properties or not. Floats may have more
//! digits. Ours does not say which block comes next.

use std::collections::{BTreeSet, HashMap};

/// Asserts that our text says what MLIR's says, line by line. The first and last lines are the module's own.
pub(super) fn assert_same(name: &str, ours: &str, mlirs: &str) {
    let (ours, mlirs) = (normal(ours), normal(mlirs));
    for (ours, mlirs) in ours.iter().zip(&mlirs) {
        assert_eq!(ours, mlirs, "{name}");
    }
    assert_eq!(ours.len(), mlirs.len(), "{name}");
    assert!(!ours.is_empty(), "{name} is compared");
}

/// A line: its text without names and attributes, its values by order of appearance, and its attributes.
type Line = (String, Vec<usize>, BTreeSet<String>);

fn normal(text: &str) -> Vec<Line> {
    let mut values = HashMap::new();
    let lines: Vec<&str> = text.lines().map(|l| l.split("  // ").next().unwrap()).map(str::trim).collect();
    // Properties of an operation with regions stand before these, attributes behind: collected at the end of each.
    let mut open: Vec<BTreeSet<String>> = vec![];
    let mut all = vec![];
    for line in &lines[1..lines.len() - 1] {
        let mut line = line.replace("stable_mosaic.", "");
        if let Some((before, (_, after))) =
            line.split_once(")[^").and_then(|(b, a)| Some((b, a.split_once(']')?)))
        {
            line = format!("{before}){after}");
        }
        let (line, mut attributes) = without_attributes(&line);
        let (line, used) = without_values(&line, &mut values);
        if line.starts_with('}') {
            attributes.extend(open.pop().unwrap());
        }
        if line.ends_with('{') {
            open.push(std::mem::take(&mut attributes));
        }
        // The entry block is named where it has arguments only.
        if line != "^bb0():" {
            all.push((line, used, attributes));
        }
    }
    all
}

/// Takes names of values off a line, and says which they are.
fn without_values(line: &str, values: &mut HashMap<String, usize>) -> (String, Vec<usize>) {
    let (mut rest, mut text, mut used) = (line, String::new(), vec![]);
    while let Some((before, after)) = rest.split_once('%') {
        let end = after.find(|c: char| !c.is_ascii_alphanumeric() && c != '_').unwrap_or(after.len());
        let next = values.len();
        used.push(*values.entry(after[..end].to_owned()).or_insert(next));
        text = text + before + "%";
        rest = &after[end..];
    }
    // A block without arguments may have parentheses or not.
    ((text + rest).replace("():", ":"), used)
}

/// Takes attributes and properties off a line: what stands in braces, but not the brace that opens a region.
fn without_attributes(line: &str) -> (String, BTreeSet<String>) {
    let (mut text, mut all) = (String::new(), BTreeSet::new());
    let mut rest = line;
    while let Some(start) = rest.find('{').filter(|i| i + 1 < rest.len()) {
        let inner = &rest[start + 1..];
        let end = matching(inner);
        all.extend(split(&inner[..end]));
        text += rest[..start].trim_end_matches('<').trim_end();
        rest = inner[end + 1..].trim_start_matches('>');
    }
    (text + rest, all)
}

/// Where the brace closes that is open at the start.
fn matching(text: &str) -> usize {
    let (mut depth, mut quoted, mut escaped) = (0, false, false);
    for (i, c) in text.char_indices() {
        match c {
            _ if escaped => escaped = false,
            '\\' => escaped = true,
            '"' => quoted = !quoted,
            _ if quoted => {}
            '{' => depth += 1,
            '}' if depth == 0 => return i,
            '}' => depth -= 1,
            _ => {}
        }
    }
    panic!("a brace stays open: {text}");
}

/// Splits at commas outside of brackets.
fn split(text: &str) -> Vec<String> {
    let (mut depth, mut quoted, mut escaped, mut start, mut all) = (0, false, false, 0, vec![]);
    for (i, c) in text.char_indices() {
        match c {
            _ if escaped => escaped = false,
            '\\' => escaped = true,
            '"' => quoted = !quoted,
            _ if quoted => {}
            '(' | '[' | '{' | '<' => depth += 1,
            ')' | ']' | '}' => depth -= 1,
            '>' if !text[..i].ends_with('-') => depth -= 1,
            ',' if depth == 0 => {
                all.push(text[start..i].trim().to_owned());
                start = i + 1;
            }
            _ => {}
        }
    }
    let last = text[start..].trim();
    all.extend((!last.is_empty()).then(|| last.to_owned()));
    all.into_iter().map(same_number).collect()
}

/// An attribute that is a float with so many digits as tell it from others, as some way of writing it has more.
fn same_number(attribute: String) -> String {
    let number = attribute.strip_suffix(" : f32").and_then(|a| a.split_once(" = "));
    match number.and_then(|(name, n)| Some((name, n.parse::<f32>().ok()?))) {
        Some((name, n)) => format!("{name} = {n:e} : f32"),
        None => attribute,
    }
}
