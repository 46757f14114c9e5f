//! Matmul and attention: a large tile first, then one that fits every TPU.

use half::bf16;
use kernel_ir::prelude::*;

use super::{ArrayInterface, Builder, Element, PackagedOp, Variant};
use crate::flash_attention::{self, Attention};
use crate::matmul;

const fn block(size: usize, cores: usize) -> matmul::Tile {
    matmul::Tile { bm: size, bk: size, bn: size, cores }
}

/// Tiles, and whether the module demands that `bk` divides K.
const MATMUL: [(matmul::Tile, bool); 5] = [
    (block(1024, 2), true),
    (block(1024, 1), true),
    (block(512, 2), true),
    (block(512, 1), true),
    (block(512, 1), false),
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
            let sizes = [
                ("bm", tile.bm),
                ("bk", tile.bk),
                ("bn", tile.bn),
                ("cores", tile.cores),
                ("exact", usize::from(exact)),
            ];
            builder.add(Variant { element, tile: &sizes, demands: vec![], kernel })?;
        }
    }
    Ok(builder.op)
}

const HEAD_DIMS: [usize; 3] = [64, 128, 256];

const fn square(size: usize, cores: usize) -> flash_attention::Tile {
    flash_attention::Tile { bq: size, bk: size, cores }
}

/// Tiles, and the fewest queries and keys for which they are taken: with fewer, much of a larger block would stick out.
const ATTENTION: [(flash_attention::Tile, usize); 3] =
    [(square(1024, 2), 1024), (square(1024, 1), 1024), (square(512, 1), 0)];

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
                let sizes = [("bq", tile.bq), ("bk", tile.bk), ("d", head_dim), ("cores", tile.cores)];
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
