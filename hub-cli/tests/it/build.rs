//! Building packages: what comes out, that it is the same everywhere, and what is refused.

use std::path::Path;

use hub_cli::package::build::build;
use hub_cli::package::{Candidate, GenerationCheck, LocalPackage, Refusal, Verdict};
use hub_cli::{Code, Error};
use kernel_ir::diag::{Diagnostic, Report};

use crate::support::{Toys, contents, toy_package, write_source};

fn fails(source: &Path) -> Error {
    build(source, None, &Toys, None).unwrap_err()
}

#[test]
fn two_checkouts_give_identical_bytes() {
    let (one, two) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    toy_package(&one.path().join("a/rather/deep/folder"), 1, "one");
    // The other checkout has Python's leavings, other times, and an older build to replace.
    let second = two.path().join("b");
    toy_package(&second, 2, "older");
    write_source(&second, 1, "one");
    fs_err::create_dir(second.join("python/__pycache__")).unwrap();
    fs_err::write(second.join("python/__pycache__/__init__.cpython-313.pyc"), "bytecode").unwrap();
    build(&second, None, &Toys, None).unwrap();
    let built = contents(&one.path().join("a/rather/deep/folder/build"));
    assert_eq!(built, contents(&second.join("build")));
    assert!(built.len() > 30 && built.keys().all(|path| !path.to_str().unwrap().contains("pycache")));
}

#[test]
fn variants_share_their_payload_and_have_ids_of_their_own() {
    let folder = tempfile::tempdir().unwrap();
    let package = toy_package(folder.path(), 1, "one");
    let names: Vec<_> = package.variants.iter().map(|v| v.name.as_str()).collect();
    assert_eq!(names, ["torch-cpu", "torch-tpu", "torch-universal"]);
    let kinds: Vec<_> = package.variants.iter().map(|v| v.metadata.backend.kind.as_str()).collect();
    assert_eq!(kinds, ["cpu", "tpu", "cpu"]);
    let mut ids: Vec<_> = package.variants.iter().map(|v| v.metadata.id.as_str()).collect();
    for (id, variant) in ids.iter().zip(["cpu", "tpu", "universal"]) {
        let hash = id.strip_prefix(&format!("_toy_kernel_{variant}_")).unwrap();
        assert!(hash.len() == 8 && hash.bytes().all(|b| b.is_ascii_hexdigit()), "{id}");
    }
    ids.dedup();
    assert_eq!(ids.len(), 3);
    let digests: Vec<_> = package.variants.iter().map(|v| v.metadata.digest.clone().unwrap()).collect();
    assert!(digests.windows(2).all(|pair| pair[0] == pair[1]));
    assert!(package.card.unwrap().ends_with("CARD.md"));
}

#[test]
fn another_content_is_another_id() {
    let folder = tempfile::tempdir().unwrap();
    let id = |content| toy_package(folder.path(), 1, content).variants[0].metadata.id.clone();
    assert_ne!(id("one"), id("two"));
}

#[test]
fn what_breaks_the_rules_of_packages_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let source = folder.path();
    let fresh = || write_source(source, 1, "one");
    assert_eq!(fails(source).code(), Code::Io);

    fresh();
    let toml = fs_err::read_to_string(source.join("build.toml")).unwrap();
    for (from, to, code) in [
        ("\"toy\"]", "\"toyy\"]", Code::UnknownOp),
        ("\"toy\"]", "\"broken\"]", Code::Kernel),
        ("license", "licence", Code::BuildToml),
        ("\"python\"", "\"absent\"", Code::Io),
    ] {
        fs_err::write(source.join("build.toml"), toml.replace(from, to)).unwrap();
        assert_eq!(fails(source).code(), code, "{to}");
    }

    for (file, text, code) in [
        ("_mine.py", "import _load\n", Code::PythonRules),
        ("_load.py", "", Code::File),
        ("metadata.json", "{}", Code::File),
        ("mosaic/x.mlirbc", "", Code::File),
        ("a\\b.py", "", Code::Path),
    ] {
        fresh();
        let path = source.join("python").join(file);
        fs_err::create_dir_all(path.parent().unwrap()).unwrap();
        fs_err::write(&path, text).unwrap();
        assert_eq!(fails(source).code(), code, "{file}");
        fs_err::remove_file(&path).unwrap();
    }
    fresh();
    fs_err::write(source.join("python/__init__.py"), "x = 1\n").unwrap();
    assert_eq!(fails(source).code(), Code::PythonRules);
}

#[cfg(unix)]
#[test]
fn links_out_of_the_package_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let source = folder.path();
    write_source(source, 1, "one");
    fs_err::os::unix::fs::symlink("/etc/passwd", source.join("python/data.txt")).unwrap();
    assert_eq!(fails(source).code(), Code::File);
}

#[test]
fn a_broken_kernel_shows_its_report() {
    let folder = tempfile::tempdir().unwrap();
    write_source(folder.path(), 1, "one");
    let toml =
        fs_err::read_to_string(folder.path().join("build.toml")).unwrap().replace("\"toy\"]", "\"broken\"]");
    fs_err::write(folder.path().join("build.toml"), toml).unwrap();
    let shown = fails(folder.path()).render();
    assert!(shown.contains("K0110") && shown.contains("the window `out`"), "{shown}");
}

/// A TPU compiler that knows two generations and may dislike one or both.
struct Judge {
    accepted: &'static [&'static str],
}

impl GenerationCheck for Judge {
    fn check(&self, modules: &[Candidate<'_>]) -> Result<Vec<Verdict>, Report> {
        let verdict = |candidate: &Candidate<'_>| {
            assert!(candidate.body.starts_with(b"ML\xefR"));
            Verdict {
                accepted: self.accepted.iter().map(|name| (*name).to_owned()).collect(),
                refused: vec![Refusal {
                    generation: "v4".into(),
                    finding: Diagnostic::error("K0506", "v4 has no such type"),
                }],
            }
        };
        Ok(modules.iter().map(verdict).collect())
    }
}

#[test]
fn the_tpu_compiler_decides_which_generations_a_module_claims() {
    let folder = tempfile::tempdir().unwrap();
    write_source(folder.path(), 1, "one");
    let with = |accepted| build(folder.path(), None, &Toys, Some(&Judge { accepted }));
    let built = with(&["v5p", "v6e"]).unwrap();
    let index = built.package.variants[0].index.as_ref().unwrap();
    assert_eq!(index.op("toy").unwrap().modules[0].generations, ["v5p", "v6e"]);
    assert_eq!(built.refused[0].0, "mosaic/toy-bf16.mlirbc");

    let refused = with(&[]).unwrap_err();
    assert_eq!(refused.code(), Code::Tpu);
    assert!(refused.render().contains("v4 has no such type"));
}

#[test]
fn a_package_is_checked_before_it_is_used() {
    let folder = tempfile::tempdir().unwrap();
    toy_package(folder.path(), 1, "one");
    let build = folder.path().join("build");
    let cases: [(&str, &[u8], Code); 4] = [
        ("torch-tpu/_load.py", b"changed", Code::Digest),
        ("torch-tpu/added.py", b"", Code::Digest),
        ("torch-cpu/metadata.json", b"{}", Code::Metadata),
        ("torch-cpu/metadata.json", b"", Code::Metadata),
    ];
    for (file, content, code) in cases {
        let path = build.join(file);
        let old = fs_err::read(&path).ok();
        fs_err::write(&path, content).unwrap();
        assert_eq!(LocalPackage::open(folder.path()).unwrap_err().code(), code, "{file}");
        match old {
            Some(old) => fs_err::write(&path, old).unwrap(),
            None => fs_err::remove_file(&path).unwrap(),
        }
    }
    LocalPackage::open(&build).unwrap();
    assert_eq!(LocalPackage::open(&folder.path().join("python")).unwrap_err().code(), Code::NoVariant);
}

#[test]
fn a_variant_that_is_no_longer_named_goes_away() {
    let folder = tempfile::tempdir().unwrap();
    toy_package(folder.path(), 1, "one");
    let toml = fs_err::read_to_string(folder.path().join("build.toml"))
        .unwrap()
        .replace("[\"tpu\", \"cpu\"]", "[\"tpu\"]");
    fs_err::write(folder.path().join("build.toml"), toml).unwrap();
    fs_err::create_dir(folder.path().join("build/torch-mine")).unwrap();
    let built = build(folder.path(), None, &Toys, None).unwrap();
    assert_eq!(built.package.variants.len(), 2);
    assert!(!folder.path().join("build/torch-cpu").exists());
    assert!(folder.path().join("build/torch-mine").exists(), "it is not ours");
}
