//! Diagnostics as a user sees them: in full, on one line, as JSON, and when the source is not at hand.

use insta::assert_snapshot;
use kernel_ir::diag::{Diagnostic, Report, SourceLoc, Style};

const KERNEL: &str = "kernel-ir/tests/verify_render/kernel.rs";

fn at(file: &str, line: u32, column: u32) -> SourceLoc {
    SourceLoc { file: file.into(), line, column }
}

fn never_written() -> Diagnostic {
    Diagnostic::error("K0201", "output `spare` is never written")
        .at(at(KERNEL, 3, 36), "declared here")
        .help("store to it, e.g. `spare[..] = value`, or take the parameter away")
}

fn contracts() -> Diagnostic {
    Diagnostic::error("K0105", "`dot` contracts 128 with 256")
        .at(at(KERNEL, 4, 32), "[128, 128] x [128, 256]")
        .at(at(KERNEL, 4, 45), "this side is [n, k]")
        .note("the first axis of the right operand is contracted")
}

#[test]
fn several_labels_share_one_snippet() {
    assert_snapshot!(contracts(), @r#"
    error[K0105]: `dot` contracts 128 with 256
     --> kernel-ir/tests/verify_render/kernel.rs:4:32
      |
    4 |     let été = "日本"; acc[..] += dot_t(x[..], été);
      |                                  ^^^^^        --- this side is [n, k]
      |                                  |
      |                                  [128, 128] x [128, 256]
      |
      = note: the first axis of the right operand is contracted
    "#);
}

#[test]
fn a_report_is_sorted_and_free_of_repetition() {
    let report = Report::new(vec![contracts(), never_written(), contracts()]);
    assert_snapshot!(report, @r#"
    error[K0201]: output `spare` is never written
     --> kernel-ir/tests/verify_render/kernel.rs:3:36
      |
    3 | fn größe(x: In<bf16>, o: Out<f32>, spare: Out<f32>) {
      |                                    ^^^^^ declared here
      |
      = help: store to it, e.g. `spare[..] = value`, or take the parameter away

    error[K0105]: `dot` contracts 128 with 256
     --> kernel-ir/tests/verify_render/kernel.rs:4:32
      |
    4 |     let été = "日本"; acc[..] += dot_t(x[..], été);
      |                                  ^^^^^        --- this side is [n, k]
      |                                  |
      |                                  [128, 128] x [128, 256]
      |
      = note: the first axis of the right operand is contracted
    "#);
    assert_snapshot!(report.concise(), @r#"
    kernel-ir/tests/verify_render/kernel.rs:3:36: error[K0201]: output `spare` is never written
    kernel-ir/tests/verify_render/kernel.rs:4:32: error[K0105]: `dot` contracts 128 with 256
    "#);
}

#[test]
fn a_tab_and_wide_characters_keep_the_underline_in_place() {
    let d = Diagnostic::warning("K0309", "`exp` is done in f32").at(at(KERNEL, 5, 18), "");
    assert_snapshot!(d, @r#"
    warning[K0309]: `exp` is done in f32
     --> kernel-ir/tests/verify_render/kernel.rs:5:18
      |
    5 |     o[..] = acc[..].exp();
      |                     ^^^
    "#);
}

#[test]
fn labels_in_two_files_make_two_snippets() {
    let d = contracts().at(at("kernel-ir/tests/verify_render.rs", 6, 1), "launched here");
    assert_snapshot!(d, @r#"
    error[K0105]: `dot` contracts 128 with 256
     --> kernel-ir/tests/verify_render/kernel.rs:4:32
      |
    4 |     let été = "日本"; acc[..] += dot_t(x[..], été);
      |                                  ^^^^^        --- this side is [n, k]
      |                                  |
      |                                  [128, 128] x [128, 256]
      |
     ::: kernel-ir/tests/verify_render.rs:6:1
      |
    6 | const KERNEL: &str = "kernel-ir/tests/verify_render/kernel.rs";
      | ----- launched here
      |
      = note: the first axis of the right operand is contracted
    "#);
}

#[test]
fn a_missing_source_still_gives_the_place() {
    let gone = Diagnostic::error("K0401", "index 9 of an axis of 8")
        .at(at("somewhere/else.rs", 7, 3), "read here")
        .help("clamp the index");
    assert_snapshot!(gone, @r#"
    error[K0401]: index 9 of an axis of 8
    --> somewhere/else.rs:7:3
     = note: read here
     = help: clamp the index
    "#);
    let stale = Diagnostic::error("K0401", "index 9 of an axis of 8").at(at(KERNEL, 99, 3), "");
    assert_snapshot!(stale, @r#"
    error[K0401]: index 9 of an axis of 8
    --> kernel-ir/tests/verify_render/kernel.rs:99:3
    "#);
    let whole = Diagnostic::error("K0601", "not a module").at(at("k.mlirbc", 0, 0), "");
    assert_snapshot!(whole, @r#"
    error[K0601]: not a module
    --> k.mlirbc
    "#);
    assert_snapshot!(Diagnostic::error("K0501", "libtpu is not installed"), @r#"
    error[K0501]: libtpu is not installed
    "#);
}

#[test]
fn colour_only_adds_escapes() {
    let report = Report::new(vec![never_written(), contracts()]);
    let coloured = report.render(Style::Colour);
    assert!(coloured.contains('\u{1b}'));
    let mut plain = String::new();
    let mut rest = coloured.as_str();
    while let Some(i) = rest.find('\u{1b}') {
        plain.push_str(&rest[..i]);
        rest = &rest[i..][rest[i..].find('m').unwrap() + 1..];
    }
    plain.push_str(rest);
    assert_eq!(plain, report.to_string());
}

#[test]
fn json_says_the_same() {
    let report = Report::new(vec![never_written()]);
    assert_snapshot!(serde_json::to_string_pretty(&report.to_json()).unwrap(), @r#"
    {
      "diagnostics": [
        {
          "code": "K0201",
          "help": "store to it, e.g. `spare[..] = value`, or take the parameter away",
          "labels": [
            {
              "column": 36,
              "file": "kernel-ir/tests/verify_render/kernel.rs",
              "line": 3,
              "text": "declared here"
            }
          ],
          "message": "output `spare` is never written",
          "notes": [],
          "severity": "error",
          "title": "an output is never written"
        }
      ],
      "errors": 1,
      "warnings": 0
    }
    "#);
}
