//! Flash attention on the CPU against a float64 softmax: lengths that no block divides, grouped queries, every head dim.
#![allow(clippy::unwrap_used, reason = "a test fails where it unwraps")]

mod common;

use common::{Number, array, error};
use half::bf16;
use kernel_ir::prelude::Mxu;
use kernels::flash_attention::{self, Attention, Tile};
use kernels::reference::{self, AttentionSizes};

fn check<T: Mxu<Acc = f32> + Number>(tolerance: f64) {
    for d in [64, 128, 256] {
        for causal in [false, true] {
            let what = Attention::new(d, causal);
            // With square blocks the diagonal goes from corner to corner, and a block is taken in two halves.
            for (bq, bk, cores) in [(64, 128, 1), (64, 64, 1), (128, 64, 1), (64, 64, 2)] {
                let kernel = flash_attention::kernel::<T>(Tile { bq, bk, cores }, what).unwrap();
                for (hkv, s, t) in [(1, 100, 100), (2, 130, 257), (4, 200, 70), (2, 64, 128), (1, 1, 5)] {
                    if hkv % cores != 0 {
                        continue;
                    }
                    let sizes = AttentionSizes { hq: 8, hkv, s, t, d };
                    let q = array::<T>(1, &[8, s, d]);
                    let (k, v) = (array::<T>(2, &[hkv, t, d]), array::<T>(3, &[hkv, t, d]));
                    let out = kernel.run(&[("q", &q), ("k", &k), ("v", &v)]);
                    let out = out.unwrap_or_else(|report| panic!("{sizes:?}\n{report}"));
                    let scale = f64::from(what.scale);
                    let want =
                        reference::attention(&q.to_f64(), &k.to_f64(), &v.to_f64(), sizes, scale, causal);
                    let e = error(&out["o"], &want);
                    assert!(
                        e < tolerance,
                        "{} {bq} x {bk}, {cores} cores, {sizes:?} causal {causal}: {e}",
                        T::NAME
                    );
                }
            }
        }
    }
}

#[test]
fn attention_of_f32_equals_a_float64_softmax() {
    check::<f32>(3e-6);
}

#[test]
fn attention_of_bf16_equals_a_float64_softmax() {
    // Weights are rounded to bfloat16 before they meet the values, and the result once more.
    check::<bf16>(1e-2);
}

#[test]
fn query_heads_that_share_no_key_head_are_refused() {
    let tile = Tile { bq: 64, bk: 64, cores: 2 };
    let kernel = flash_attention::kernel::<f32>(tile, Attention::new(64, true)).unwrap();
    for (hq, hkv, demand) in [(8, 6, "mod(hq, hkv) == 0"), (9, 3, "mod(hkv, 2) == 0")] {
        let (q, k) = (array::<f32>(1, &[hq, 10, 64]), array::<f32>(2, &[hkv, 10, 64]));
        let report = kernel.run(&[("q", &q), ("k", &k), ("v", &k)]).unwrap_err().to_string();
        assert!(report.contains(demand), "{report}");
    }
}
