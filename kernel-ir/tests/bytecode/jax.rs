//! Modules that the project's JAX writes while the tests run: see `modules.py`.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

use kernel_ir::mosaic::read;

use super::compare::assert_same;

/// The folder that `modules.py` filled, or `None` where there is no Python with JAX.
pub(super) fn folder() -> Option<&'static Path> {
    static FOLDER: OnceLock<Option<PathBuf>> = OnceLock::new();
    FOLDER.get_or_init(write).as_deref()
}

fn write() -> Option<PathBuf> {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    let venv = here.parent()?.join(".venv/bin/python");
    let python = std::env::var_os("TESSERA_PYTHON").map_or(venv, PathBuf::from);
    if !python.exists() {
        println!("skipped: no Python; set TESSERA_PYTHON or run `./x setup`");
        return None;
    }
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("bytecode-modules");
    let script = here.join("tests/bytecode/modules.py");
    let out = Command::new(python).arg(script).arg(&folder).output().unwrap();
    assert!(out.status.success(), "{}", String::from_utf8_lossy(&out.stderr));
    Some(folder)
}

/// Checks that a module reads as MLIR prints it.
fn check(name: &str) {
    let Some(folder) = folder() else { return };
    let file = |end: &str| folder.join(format!("{name}.{end}"));
    let text =
        read::mlir(&std::fs::read(file("mlirbc")).unwrap()).unwrap_or_else(|e| panic!("{name}: {e:?}"));
    assert_same(name, &text, &std::fs::read_to_string(file("mlir")).unwrap());
}

#[test]
fn every_attribute_in_every_version_of_the_bytecode() {
    (0..=6).for_each(|version| check(&format!("attributes-{version}")));
}

#[test]
fn regions_and_blocks_in_every_version_of_the_bytecode() {
    (0..=6).for_each(|version| check(&format!("structure-{version}")));
}

#[test]
fn properties_of_mlirs_own_operations_in_every_version_of_the_bytecode() {
    (0..=6).for_each(|version| check(&format!("plain-{version}")));
}
