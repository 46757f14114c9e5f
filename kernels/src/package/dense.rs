//! Matmul and attention: a large tile first, then one that fits every TPU.

use half::bf16;
use kernel_ir::prelude::*;

use super::{ArrayInterface, Builder, Element, PackagedOp, Variant};
use crate::flash_attention::{self, Attention};
use crate::matmul;

/// Tiles, and whether the module demands that `bk` divides K.
const MATMUL: [(matmul::Tile, bool); 3] = [
    (matmul::Tile { bm: 1024, bk: 1024, bn: 1024 }, true),
    (matmul::Tile { bm: 512, bk: 512, bn: 512 }, true),
    (matmul::Tile { bm: 512, bk: 512, bn: 512 }, false),
];

pub(super) fn matmul(name: &str) -> Result<PackagedOp, Report> {
    let arguments: [ArrayInterface; 2] = [("x", "T", &["m", "k"]), ("y", "T", &["k", "n"])];
    let mut builder = Builder::new(name, "x times y.", &["m", "k", "n"], &arguments, ("o", "T", &["m", "n"]));
    for element in [Element::Bf16, Element::F32] {
        for (tile, exact) in MATMUL {
            let kernel = match element {
                Element::Bf16 => matmul::kernel::<bf16>(tile, exact)?,
                Element::F32 => matmul::kernel::<f32>(tile, exact)?,
            };
            let sizes = [("bm", tile.bm), ("bk", tile.bk), ("bn", tile.bn), ("exact", usize::from(exact))];
            builder.add(Variant { element, tile: &sizes, demands: vec![], kernel })?;
        }
    }
    Ok(builder.op)
}

const HEAD_DIMS: [usize; 3] = [64, 128, 256];

/// Blocks, and the fewest queries and keys for which they are taken: with fewer, much of a larger block would stick out.
const ATTENTION: [(flash_attention::Tile, usize); 2] =
    [(flash_attention::Tile { bq: 1024, bk: 1024 }, 1024), (flash_attention::Tile { bq: 512, bk: 512 }, 0)];

pub(super) fn flash_attention(name: &str, causal: bool) -> Result<PackagedOp, Report> {
    let doc = "softmax(q k^T / sqrt(d)) v; query heads share key heads when there are fewer of them.";
    let keys: &[&str] = &["hkv", "t", "d"];
    let arguments: [ArrayInterface; 3] = [("q", "T", &["hq", "s", "d"]), ("k", "T", keys), ("v", "T", keys)];
    let dims_of_op = ["hq", "hkv", "s", "t", "d"];
    let mut builder = Builder::new(name, doc, &dims_of_op, &arguments, ("o", "T", &["hq", "s", "d"]));
    let [s, t, d] = dims(["s", "t", "d"]);
    for element in [Element::Bf16, Element::F32] {
        for head_dim in HEAD_DIMS {
            for (tile, fewest) in ATTENTION {
                let attention = Attention::new(head_dim, causal);
                let kernel = match element {
                    Element::Bf16 => flash_attention::kernel::<bf16>(tile, attention)?,
                    Element::F32 => flash_attention::kernel::<f32>(tile, attention)?,
                };
                let sizes = [("bq", tile.bq), ("bk", tile.bk), ("d", head_dim)];
                let mut demands = vec![d.exactly(head_dim)];
                if fewest > 0 {
                    demands.extend([s.at_least(fewest), t.at_least(fewest)]);
                }
                builder.add(Variant { element, tile: &sizes, demands, kernel })?;
            }
        }
    }
    Ok(builder.op)
}
