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

/// Breaks long lines of prose at 100 columns; Markdown that is broken already stays as it is.
fn wrapped(text: &str) -> String {
    let mut out = String::new();
    for line in text.trim().lines() {
        let mut column = 0;
        if line.len() <= 100 {
            out += line;
        } else {
            for word in line.split(' ') {
                if column > 0 && column + word.len() >= 100 {
                    out.push('\n');
                    column = 0;
                } else if column > 0 {
                    out.push(' ');
                    column += 1;
                }
                out += word;
                column += word.len();
            }
        }
        out.push('\n');
    }
    out
}
