//! One ragged-dot kernel, run on the CPU for every shape and routing, equals `jax.lax.ragged_dot`.
#![allow(
    clippy::unwrap_used,
    clippy::print_stdout,
    reason = "a test fails where it unwraps, and says what it did"
)]

mod common;

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::Command;

use common::{Number, Routing, array};
use half::bf16;
use kernel_ir::exec::Array;
use kernel_ir::prelude::Mxu;
use kernels::ragged_dot::{self, RhsLayout, Tile};
use serde_json::json;

/// The interpreter that has JAX: `TESSERA_PYTHON`, else the repository's `.venv`.
fn python() -> Option<PathBuf> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent()?;
    let named = std::env::var_os("TESSERA_PYTHON").map(PathBuf::from);
    named.or(Some(root.join(".venv/bin/python"))).filter(|p| p.exists())
}

/// Rows to compare: the first and last, those beside group borders, and some in between.
fn sample(sizes: &[i32], m: usize) -> Vec<usize> {
    let mut rows = vec![0, m - 1];
    let mut end = 0;
    for size in sizes.iter().filter(|s| **s > 0) {
        end += *size as usize;
        rows.extend([end - 1, end]);
    }
    let step = rows.len().div_ceil(12);
    let mut rows: Vec<usize> =
        rows.into_iter().step_by(step).chain([m / 3, m / 2]).filter(|r| *r < m).collect();
    rows.sort_unstable();
    rows.dedup();
    rows
}

/// Runs every call, and writes the sampled rows with what Python needs to make them again.
fn run_all<T: Mxu<Acc = f32> + Number>(folder: &Path, tile: Tile, cases: &mut String) {
    let kernel = ragged_dot::kernel::<T>(tile, RhsLayout::Gnk, &[]).unwrap();
    let everything = std::env::var_os("TESSERA_ALL_SHAPES").is_some();
    for (k, n) in [(2048, 1536), (768, 2048), (2816, 1408), (704, 2816)] {
        for g in [1, 8, 128] {
            let rhs = array::<T>(2, &[g, n, k]);
            for m in [1, 7, 64, 512, 1000, 32768] {
                // Each M meets each routing, over the shapes; the largest M where it is likely, since it takes seconds.
                let likely = g == 128 && (T::NAME == "bfloat16" || k == 768);
                if m == 32768 && !likely && !everything {
                    continue;
                }
                let turn = (k + n) / 16 + g + m;
                let routings: &[Routing] =
                    if (m, g) == (64, 8) || everything { &Routing::ALL } else { &[Routing::ALL[turn % 4]] };
                let lhs = array::<T>(1, &[m, k]);
                for routing in routings {
                    let sizes = routing.sizes(m, g);
                    let group_sizes = Array::new([g], sizes.as_slice()).unwrap();
                    let out =
                        kernel.run(&[("lhs", &lhs), ("rhs", &rhs), ("group_sizes", &group_sizes)]).unwrap();
                    let out = out["out"].to_f64();
                    let rows = sample(&sizes, m);
                    let file = format!("{}-{m}-{k}-{n}-{g}-{routing:?}.bin", T::NAME);
                    let picked = rows.iter().flat_map(|r| &out[r * n..(r + 1) * n]);
                    let bytes: Vec<u8> = picked.flat_map(|x| (*x as f32).to_le_bytes()).collect();
                    std::fs::write(folder.join(&file), bytes).unwrap();
                    let case = json!({
                        "dtype": T::NAME, "m": m, "k": k, "n": n, "g": g, "routing": format!("{routing:?}"),
                        "sizes": sizes, "rows": rows, "file": file,
                    });
                    writeln!(cases, "{case}").unwrap();
                }
            }
        }
    }
}

#[test]
fn one_kernel_equals_jax_for_every_shape_and_routing() {
    let Some(python) = python() else {
        println!("skipped: there is no Python with JAX (./x setup makes one)");
        return;
    };
    let folder = tempfile::tempdir().unwrap();
    let mut cases = String::new();
    let wide = Tile { bm: 256, bn: 512, bk: 2816, slots: 2, rows: &[16, 128, 256] };
    run_all::<bf16>(folder.path(), wide, &mut cases);
    run_all::<f32>(folder.path(), wide, &mut cases);
    std::fs::write(folder.path().join("cases.jsonl"), cases).unwrap();
    let oracle = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/oracle.py");
    let out = Command::new(python).arg(oracle).arg(folder.path()).output().unwrap();
    let said = String::from_utf8_lossy(&out.stdout);
    assert!(out.status.success(), "{said}{}", String::from_utf8_lossy(&out.stderr));
    println!("{said}");
}
