//! `flash_attention(q[hq, s, d], k[hkv, t, d], v[hkv, t, d]) -> [hq, s, d]`: softmax(q k^T / sqrt(d)) v in one pass.
//!
//! Query heads share key heads when `hkv < hq` (grouped queries); a batch is folded into the heads. With `causal`, query
//! row `i` sees keys `0..=i`, aligned at the top left. The running maximum and sum of a row are kept in VMEM while the
//! grid's last axis walks over key blocks (Milakov and Gimelshein, "Online normalizer calculation for softmax", 2018;
//! Dao et al., "FlashAttention", 2022). Key blocks that a causal mask hides altogether are neither fetched nor computed,
//! and only blocks that the diagonal or the end of the keys crosses pay for a mask: with square blocks, the diagonal one
//! leaves out the quarter that nobody sees. Queries are scaled once, in their own type.

use std::f32::consts::LOG2_E;

use kernel_ir::prelude::*;

use crate::edge_copy::{LANES, PACKED, keep};

/// How the work is cut: block sizes, and who shares the heads.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Tile {
    /// Query rows of a block.
    pub bq: usize,
    /// Keys of a block.
    pub bk: usize,
    /// Cores that share the key heads: 2 demands that there are an even number of them, and is twice as fast on v4 and
    /// v5p, where libtpu shares parallel axes of static extent between the two cores of a chip.
    pub cores: usize,
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

/// `n` columns of `x`, whose columns are all the same.
fn lanes(x: kernel_ir::prelude::Tile<f32>, n: usize) -> kernel_ir::prelude::Tile<f32> {
    match n.div_ceil(LANES) {
        1 => x.slice(1, 0, n),
        times => concatenate(vec![x; times], 1).slice(1, 0, n),
    }
}

/// Which scores of a pass are masked.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Mask {
    /// None.
    Nothing,
    /// Those above the diagonal, which begins at the first key of the block and the first query row.
    Diagonal,
    /// Those of keys beyond the end, and with `causal` those above the diagonal, wherever it crosses the block.
    Any,
}

#[tpu_kernel]
fn flash_attention<T: Mxu<Acc = f32>>(
    q: In<T>,
    k: In<T>,
    v: In<T>,
    o: Out<T>,
    top: Scratch<f32>,
    sum: Scratch<f32>,
    acc: Scratch<f32>,
    scaled: Scratch<T>,
    keys: Dim,
    attention: Host<Attention>,
) {
    let Attention { causal, scale, head_dim: d } = attention.0;
    let (i, j) = (program_id(3), program_id(4));
    let (bq, bk) = (q.dims()[1], k.dims()[1]);
    let keys = keys.get();
    let rows = if bq.is_multiple_of(2 * PACKED) { bq / 2 } else { bq };
    when(j == 0, || {
        top[..] = MASKED;
        sum[..] = 0.0;
        acc[..] = 0.0;
        scaled[..] = (q[0].to::<f32>() * (scale * LOG2_E)).to();
    });

    // One pass over `rows` query rows from `first` on, and the first `width` keys of the block.
    let pass = |first: usize, width: usize, mask: Mask| {
        let at = || (ds(first, rows), ..);
        let mut s = dot_t(scaled[at()], k[(0, ds(0, width), ..)]);
        let mut values = v[(0, ds(0, width), ..)];
        match mask {
            Mask::Nothing => {}
            Mask::Diagonal => {
                let below = iota([rows, rows], 1) <= iota([rows, rows], 0);
                let corner = select(below, s.slice(1, first, rows), MASKED);
                s = if first == 0 { corner } else { concatenate([s.slice(1, 0, first), corner], 1) };
            }
            Mask::Any => {
                let key = j * bk + iota([rows, width], 1);
                let mut seen = key < keys;
                if causal {
                    seen = seen & (key <= i * bq + first + iota([rows, width], 0));
                }
                s = select(seen, s, MASKED);
                values = keep(j * bk + iota([width, d], 0) < keys, values);
            }
        }
        let old = top[at()];
        let new = maximum(old, s.max(1));
        let (p, fade) = ((s - lanes(new, width)).exp2(), (old - new).exp2());
        sum[at()] = fade * sum[at()] + p.sum(1);
        acc[at()] = lanes(fade, d) * acc[at()] + dot(p.to::<T>(), values);
        top[at()] = new;
    };
    // The passes of a step do not wait for each other: one multiplies while the other takes exponentials.
    let step = |mask: Mask| {
        for first in (0..bq).step_by(rows) {
            pass(first, if mask == Mask::Diagonal { first + rows } else { bk }, mask);
        }
    };

    let ends_inside = (j + 1) * bk > keys;
    if causal {
        let crosses = (j + 1) * bk > i * bq + 1;
        let visible = j * bk < (i + 1) * bq;
        if bq == bk {
            when(visible & ends_inside, || step(Mask::Any));
            when(visible & !ends_inside & crosses, || step(Mask::Diagonal));
        } else {
            when(visible & (ends_inside | crosses), || step(Mask::Any));
        }
        when(visible & !(ends_inside | crosses), || step(Mask::Nothing));
    } else {
        when(ends_inside, || step(Mask::Any));
        when(!ends_inside, || step(Mask::Nothing));
    }
    when(j == num_programs(4) - 1, || o[0] = (acc[..] / lanes(sum[..], d)).to());
}

/// Records `flash_attention` for element type `T`; head counts and lengths are symbolic, `hq` a multiple of `hkv`.
///
/// # Errors
/// If the tile breaks a rule of the TPU, e.g. its VMEM budget.
pub fn kernel<T: Mxu<Acc = f32>>(tile: Tile, attention: Attention) -> Result<Kernel, Report> {
    let Tile { bq, bk, cores } = tile;
    let Attention { head_dim: d, causal, .. } = attention;
    let [hq, hkv, s, t] = dims(["hq", "hkv", "s", "t"]);
    let key_head = |core: Idx, n: Idx| core * num_programs(1) + n;
    // Number `g` of the query heads that share a key head. The caller counts them: the scalar core has no divider.
    let query_head = move |core: Idx, n: Idx, g: Idx| key_head(core, n) * num_programs(2) + g;
    // At a step that the causal mask hides, the blocks of the next query row are fetched: nothing else would hide that.
    let hidden = move |i: Idx, j: Idx| (j * bk + 1 - (i + 1) * bq).max(0).min(1);
    let key_block = move |[core, n, _, i, j]: [Idx; 5]| {
        let j = if causal { j - j * hidden(i, j) } else { j };
        (key_head(core, n), j, 0)
    };
    let query_block = move |[core, n, g, i, j]: [Idx; 5]| {
        let i = if causal { i + hidden(i, j) * (s.get() - (i + 1) * bq).max(0).min(1) } else { i };
        (query_head(core, n, g), i, 0)
    };
    let mut axes = grid([
        par(cores),
        par(hkv.div_ceil(cores)),
        par(hq.div_floor(hkv)),
        par(s.div_ceil(bq)),
        seq(t.div_ceil(bk)),
    ])
    .demand(hq.multiple_of(hkv));
    if cores > 1 {
        axes = axes.demand(hkv.multiple_of(cores));
    }
    flash_attention::<T, _> {
        grid: axes,
        q: array((hq, s, d)).block([1, bq, d], query_block),
        k: array((hkv, t, d)).block([1, bk, d], key_block),
        v: array((hkv, t, d)).block([1, bk, d], key_block),
        o: array((hq, s, d)).block([1, bq, d], move |[core, n, g, i, _]| (query_head(core, n, g), i, 0)),
        top: vmem([bq, LANES]),
        sum: vmem([bq, LANES]),
        acc: vmem([bq, d]),
        scaled: vmem([bq, d]),
        keys: t,
        attention,
    }
    .build()
}
