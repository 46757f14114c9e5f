//! `flash_attention(q[hq, s, d], k[hkv, t, d], v[hkv, t, d]) -> [hq, s, d]`: softmax(q k^T / sqrt(d)) v in one pass.
//!
//! Query heads share key heads when `hkv < hq` (grouped queries); a batch is folded into the heads. With `causal`, query
//! row `i` sees keys `0..=i`, aligned at the top left. The running maximum and sum of a row are kept in VMEM while the
//! grid's last axis walks over key blocks (Milakov and Gimelshein, "Online normalizer calculation for softmax", 2018;
//! Dao et al., "FlashAttention", 2022). Key blocks that a causal mask hides altogether are neither fetched nor computed,
//! and only blocks that the diagonal or the end of the keys crosses pay for a mask.

use std::f32::consts::LOG2_E;

use kernel_ir::prelude::*;

use crate::edge_copy::keep;

/// Block sizes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Tile {
    /// Query rows of a block.
    pub bq: usize,
    /// Keys of a block.
    pub bk: usize,
}

/// What the kernel computes, beside its shapes.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Attention {
    /// Length of a head: static, since a block spans it.
    pub head_dim: usize,
    /// Whether query row `i` sees keys `0..=i` only.
    pub causal: bool,
    /// What scores are multiplied by; usually `1 / sqrt(head_dim)`.
    pub scale: f32,
}

impl Attention {
    /// The usual scale, `1 / sqrt(head_dim)`.
    #[allow(clippy::cast_precision_loss, reason = "head dims are small")]
    pub fn new(head_dim: usize, causal: bool) -> Self {
        Self { head_dim, causal, scale: 1.0 / (head_dim as f32).sqrt() }
    }
}

/// Stands for minus infinity in masked scores: differences of two of them are finite.
const MASKED: f32 = -0.7 * f32::MAX;

#[tpu_kernel]
fn flash_attention<T: Mxu<Acc = f32>>(
    q: In<T>,
    k: In<T>,
    v: In<T>,
    o: Out<T>,
    top: Scratch<f32>,
    sum: Scratch<f32>,
    acc: Scratch<f32>,
    keys: Dim,
    attention: Host<Attention>,
) {
    let Attention { causal, scale, .. } = attention.0;
    let (i, j) = (program_id(1), program_id(2));
    let (bq, bk) = (q.dims()[1], k.dims()[1]);
    let keys = keys.get();
    when(j == 0, || {
        top[..] = MASKED;
        sum[..] = 0.0;
        acc[..] = 0.0;
    });

    let step = |masked: bool| {
        // Scores in base 2: `exp2` is what the hardware has.
        let mut s = dot_t(q[0], k[0]) * (scale * LOG2_E);
        let mut values = v[0];
        if masked {
            let key = j * bk + iota([bq, bk], 1);
            let mut seen = key < keys;
            if causal {
                seen = seen & (key <= i * bq + iota([bq, bk], 0));
            }
            s = select(seen, s, MASKED);
            let [_, d] = values.shape();
            values = keep(j * bk + iota([bk, d], 0) < keys, values);
        }
        let new_top = maximum(top[..], s.max(1));
        let (p, fade) = ((s - new_top).exp2(), (top[..] - new_top).exp2());
        sum[..] = fade * sum[..] + p.sum(1);
        acc[..] = fade * acc[..] + dot(p.to::<T>(), values);
        top[..] = new_top;
    };

    let ends_inside = (j + 1) * bk > keys;
    if causal {
        let crosses = (j + 1) * bk > i * bq + 1;
        let visible = j * bk < (i + 1) * bq;
        when(visible & (ends_inside | crosses), || step(true));
        when(visible & !(ends_inside | crosses), || step(false));
    } else {
        when(ends_inside, || step(true));
        when(!ends_inside, || step(false));
    }
    when(j == num_programs(2) - 1, || o[0] = (acc[..] / sum[..]).to());
}

/// Records `flash_attention` for element type `T`; head counts and lengths are symbolic, `hq` a multiple of `hkv`.
///
/// # Errors
/// If the tile breaks a rule of the TPU, e.g. its VMEM budget.
pub fn kernel<T: Mxu<Acc = f32>>(tile: Tile, attention: Attention) -> Result<Kernel, Report> {
    let Tile { bq, bk } = tile;
    let Attention { head_dim: d, causal, .. } = attention;
    let [hq, hkv, s, t] = dims(["hq", "hkv", "s", "t"]);
    // A block that the causal mask hides is replaced by the last visible one, which is there already.
    let key_block = move |[h, i, j]: [Idx; 3]| {
        let j = if causal { j.min(((i + 1) * bq - 1) / bk) } else { j };
        (h * hkv.get() / hq.get(), j, 0)
    };
    flash_attention::<T, _> {
        grid: grid([par(hq), par(s.div_ceil(bq)), seq(t.div_ceil(bk))]),
        q: array((hq, s, d)).block([1, bq, d], |[h, i, _]| (h, i, 0)),
        k: array((hkv, t, d)).block([1, bk, d], key_block),
        v: array((hkv, t, d)).block([1, bk, d], key_block),
        o: array((hq, s, d)).block([1, bq, d], |[h, i, _]| (h, i, 0)),
        top: vmem([bq, 1]),
        sum: vmem([bq, 1]),
        acc: vmem([bq, d]),
        keys: t,
        attention,
    }
    .build()
}
