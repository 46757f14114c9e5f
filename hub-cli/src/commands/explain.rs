//! `explain`: what an error code means, for this crate's codes and those of the kernel compiler.

use kernel_ir::diag::codes as kernel_codes;
use serde_json::json;

use crate::cli::Explain;
use crate::codes::{self, Code};
use crate::error::{Error, Result};
use crate::output::Output;

pub(super) fn run(args: &Explain, output: &Output) -> Result<()> {
    let Some(code) = args.code.as_deref() else {
        list(output);
        return Ok(());
    };
    let ours = codes::explain(code).map(|doc| (doc.code, doc.title, doc.explanation));
    let found = ours.or_else(|| kernel_codes::explain(code).map(|doc| (doc.code, doc.title, doc.text)));
    let Some((code, title, text)) = found else {
        let message = format!("there is no error code {code:?}");
        return Err(Error::new(Code::UnknownCode, message).help("`kernels-cli explain` lists all codes"));
    };
    output.result(json!({"code": code, "title": title, "explanation": text.trim()}), || {
        format!("{code}: {title}\n\n{}", wrapped(text))
    });
    Ok(())
}

fn list(output: &Output) {
    let kernel = kernel_codes::ALL.iter().map(|doc| (doc.code, doc.title));
    let hub = Code::ALL.iter().map(|code| (code.doc().code, code.doc().title));
    let all: Vec<_> = hub.chain(kernel).collect();
    let json = all.iter().map(|(code, title)| json!({"code": code, "title": title})).collect();
    output.result(json, || all.iter().map(|(code, title)| format!("{code}  {title}\n")).collect());
}

/// Prose filled to 100 columns: a paragraph's lines are joined first. Code and tables stay as they are.
fn wrapped(text: &str) -> String {
    let mut out = String::new();
    let mut paragraph: Vec<&str> = vec![];
    let mut in_code = false;
    for line in text.trim().lines().chain([""]) {
        in_code ^= line.starts_with("```");
        let fixed = line.is_empty() || line.starts_with("```") || line.starts_with(['|', '#', ' ', '-']);
        if !in_code && !fixed {
            paragraph.extend(line.split_whitespace());
            continue;
        }
        fill(&mut out, &paragraph);
        paragraph.clear();
        out += line;
        out.push('\n');
    }
    out.trim_end().to_owned()
}

fn fill(out: &mut String, words: &[&str]) {
    let mut column = 0;
    for word in words {
        if column > 0 && column + word.len() >= 100 {
            out.push('\n');
            column = 0;
        } else if column > 0 {
            out.push(' ');
            column += 1;
        }
        *out += word;
        column += word.chars().count();
    }
    if column > 0 {
        out.push('\n');
    }
}

#[cfg(test)]
mod tests {
    use super::wrapped;

    #[test]
    fn prose_is_filled_and_code_is_not() {
        let text = "one two\nthree\n\n```rust\nlet a = 1;\nlet b = 2;\n```\n\nfour";
        assert_eq!(wrapped(text), "one two three\n\n```rust\nlet a = 1;\nlet b = 2;\n```\n\nfour");
    }
}
