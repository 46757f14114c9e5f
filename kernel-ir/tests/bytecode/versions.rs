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
    assert_eq!((code, &*message), ("K0801", "the module is MLIR text; only bytecode is read (byte 0)"));
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

/// What MLIR 22 writes as text, and MLIR 24 in binary.
const TEXT_IN_22: &str = r#"module @text {
  "x.op"() {
    a = affine_map<() -> ()>, b = affine_map<(d0, d1)[s0] -> (d1 mod 8, d0 floordiv 2 + s0)>,
    c = f8E4M3FN, d = vector<8xf8E5M2>, e = dense<1.0> : vector<8xf8E4M3FN>, f = -5.000000e-01 : f8E5M2,
    g = memref<4x8xf32, affine_map<(d0, d1) -> (d1, d0)>>, h = #tpu.tiled<(8,128)(2,1),[1,1]>, i = tf32
  } : () -> ()
}
"#;

/// Runs `mlir-opt-22` on a text; `None` where it is not installed.
fn mlir_opt(text: &str, arguments: &[&str]) -> Option<Vec<u8>> {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("module.mlir");
    std::fs::write(&file, text).unwrap();
    let mut command = std::process::Command::new("mlir-opt-22");
    let out = command.arg("--allow-unregistered-dialect").args(arguments).arg(file).output().ok()?;
    assert!(out.status.success(), "{}", String::from_utf8_lossy(&out.stderr));
    Some(out.stdout)
}

#[test]
fn what_mlir_22_writes_as_text() {
    let printing = ["--mlir-print-op-generic", "--mlir-print-local-scope"];
    let Some(printed) = mlir_opt(TEXT_IN_22, &printing) else {
        println!("skipped: there is no mlir-opt-22");
        return;
    };
    let printed = String::from_utf8(printed).unwrap();
    for version in 0..=6 {
        let version = format!("--emit-bytecode-version={version}");
        let bytes = mlir_opt(TEXT_IN_22, &["--emit-bytecode", &version]).unwrap();
        let text = read::mlir(&bytes).unwrap();
        // A sum that MLIR prints without its outer parentheses.
        let text = text
            .replace("((d0 floordiv 2) + s0)", "d0 floordiv 2 + s0")
            .replace("((d1 mod 8),", "(d1 mod 8,");
        super::compare::assert_same(&version, &text, &printed);
    }
}
