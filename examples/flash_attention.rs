//! Causal attention with grouped queries, on the CPU, beside a float64 softmax.
#![allow(clippy::print_stdout, reason = "an example talks to its reader")]

use kernel_ir::exec::Array;
use kernels::flash_attention::{self, Attention, Tile};
use kernels::reference::{AttentionSizes, attention};

fn main() -> anyhow::Result<()> {
    let sizes = AttentionSizes { hq: 8, hkv: 2, s: 300, t: 300, d: 64 };
    let what = Attention::new(sizes.d, true);
    let kernel = flash_attention::kernel::<f32>(Tile { bq: 128, bk: 128, cores: 1 }, what)?;

    let wave = |n: usize, step: f32| (0..n).map(|i| (i as f32 * step).sin()).collect::<Vec<_>>();
    let q = Array::new([sizes.hq, sizes.s, sizes.d], wave(sizes.hq * sizes.s * sizes.d, 0.37))?;
    let k = Array::new([sizes.hkv, sizes.t, sizes.d], wave(sizes.hkv * sizes.t * sizes.d, 0.11))?;
    let v = Array::new([sizes.hkv, sizes.t, sizes.d], wave(sizes.hkv * sizes.t * sizes.d, 0.23))?;
    let out = kernel.run(&[("q", &q), ("k", &k), ("v", &v)])?;

    let want = attention(&q.to_f64(), &k.to_f64(), &v.to_f64(), sizes, f64::from(what.scale), true);
    let worst = out["o"].to_f64().iter().zip(&want).map(|(a, b)| (a - b).abs()).fold(0.0, f64::max);
    println!("{sizes:?}: largest error {worst:.1e} against float64");
    anyhow::ensure!(worst < 1e-5, "the error is larger than rounding explains");
    Ok(())
}
