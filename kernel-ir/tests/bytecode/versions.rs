//! Versions of Mosaic's stable form, and files that no reader of modules takes.

use kernel_ir::diag::Report;
use kernel_ir::mosaic::read;

use super::jax::folder;

/// The code and message of what is wrong with bytes.
pub(super) fn fault(bytes: &[u8]) -> (&'static str, String) {
    let report: Report = read::mlir(bytes).unwrap_err();
    let one = &report.diagnostics[0];
    (one.code, one.message.clone())
}

#[test]
fn what_is_no_bytecode() {
    let (code, message) = fault(b"module {}");
    assert_eq!((code, &*message), ("K0801", "the module is not MLIR bytecode (byte 0)"));
    assert_eq!(fault(b"").0, "K0801");
    assert_eq!(fault(b"ML\xefR").0, "K0801");
    let (code, message) = fault(b"ML\xefR\x0fMLIR30\0");
    assert_eq!(
        (code, &*message),
        ("K0802", "the module is of version 7 of MLIR's bytecode; 0 to 6 are read (byte 4)")
    );
    assert!(read::is_bytecode(b"ML\xefR\x01") && !read::is_bytecode(b"module {}"));
}

/// Replaces the only occurrence of some bytes.
fn replaced(bytes: &[u8], from: &[u8], to: &[u8]) -> Vec<u8> {
    let at: Vec<_> = (0..bytes.len() - from.len()).filter(|i| bytes[*i..].starts_with(from)).collect();
    let [at] = at[..] else { panic!("{from:?} stands {} times", at.len()) };
    [&bytes[..at], to, &bytes[at + from.len()..]].concat()
}

#[test]
fn versions_of_the_stable_form() {
    let Some(folder) = folder() else { return };
    let bytes = std::fs::read(folder.join("structure-0.mlirbc")).unwrap();
    assert!(read::mlir(&bytes).unwrap().contains("stable_mosaic.version = 18 : i64"));
    // The attribute is code 8, a type, and a signed 18.
    let at = (0..bytes.len()).find(|i| bytes[*i] == 0x11 && bytes[i + 2] == 18 << 2 | 1).unwrap();
    let with = |version: u8| {
        let mut bytes = bytes.clone();
        bytes[at + 2] = version << 2 | 1;
        bytes
    };
    for version in [2, 20] {
        assert!(read::mlir(&with(version)).is_ok(), "{version}");
    }
    for version in [0, 1, 21] {
        let message = format!("the module is of version {version} of stable Mosaic; 2 to 20 are read");
        assert_eq!(fault(&with(version)), ("K0803", message));
    }
    let unversioned = replaced(&bytes, b"stable_mosaic.version", b"stable_mosaic.persion");
    let message = "the module is in Mosaic's stable form and does not say which version";
    assert_eq!(fault(&unversioned), ("K0803", message.to_owned()));
}
