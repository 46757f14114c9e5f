//! Bytes that are almost modules: cut off, changed, or made to take much. They give an error or a module, in little time.

use std::path::PathBuf;
use std::time::{Duration, Instant};

use kernel_ir::mosaic::read;

/// The seeds of the fuzz targets, which hold small modules of every kind.
fn seeds(target: &str) -> Vec<(PathBuf, Vec<u8>)> {
    let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../fuzz/corpus").join(target);
    let mut all: Vec<_> = std::fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .map(|path| (path.clone(), std::fs::read(path).unwrap()))
        .collect();
    all.sort();
    all
}

/// Reads bytes as the fuzz target does.
fn read_all(bytes: &[u8]) -> bool {
    let _kernel = read::kernel(bytes, None);
    read::mlir(bytes).is_ok()
}

#[test]
fn the_fuzzers_corpus_of_modules() {
    let seeds = seeds("read_mosaic");
    assert!(seeds.len() >= 20, "the corpus is there");
    let good = seeds.iter().filter(|(_, bytes)| read_all(bytes)).count();
    assert!(good >= 20, "{good} seeds are modules");
}

#[test]
fn the_fuzzers_corpus_of_texts() {
    let seeds = seeds("stablehlo");
    let good = seeds.iter().filter(|(_, bytes)| {
        let calls = std::str::from_utf8(bytes).ok().map(read::stablehlo::calls);
        calls.is_some_and(|c| c.is_ok_and(|c| !c.is_empty()))
    });
    assert!(good.count() >= 2, "some texts call kernels");
}

/// Small modules, for exhaustive tests.
fn small() -> Vec<(PathBuf, Vec<u8>)> {
    let mut all = seeds("read_mosaic");
    all.retain(|(_, bytes)| read::mlir(bytes).is_ok());
    all.sort_by_key(|(_, bytes)| bytes.len());
    all.truncate(12);
    all.into_iter().step_by(3).collect()
}

#[test]
fn every_module_that_is_cut_off_is_refused() {
    for (path, bytes) in small() {
        for end in 0..bytes.len() {
            assert!(read::mlir(&bytes[..end]).is_err(), "{} of {end} bytes", path.display());
        }
    }
}

#[test]
fn every_module_with_one_byte_changed_is_read_or_refused() {
    for (_, bytes) in small() {
        let mut changed = bytes.clone();
        for i in 0..bytes.len() {
            for flip in [1, 2, 0x80] {
                changed[i] = bytes[i] ^ flip;
                read_all(&changed);
            }
            changed[i] = bytes[i];
        }
    }
}

#[test]
fn deep_nesting_is_refused() {
    let nested = super::memory::nested(2000);
    let (code, message) = super::versions::fault(&nested);
    assert_eq!(code, "K0804", "{message}");
    assert!(read::mlir(&super::memory::nested(100)).is_ok());
}

#[test]
fn large_inputs_take_little_time() {
    for (name, bytes) in super::memory::hostile() {
        let start = Instant::now();
        let _text = read::mlir(&bytes);
        assert!(start.elapsed() < Duration::from_secs(20), "{name} took {:?}", start.elapsed());
    }
}
