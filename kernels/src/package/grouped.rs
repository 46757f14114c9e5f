//! The grouped matmuls: tiles for the shapes of today's Mixture-of-Experts models, and tiles that serve every shape.

use half::bf16;
use kernel_ir::ir::Demand;
use kernel_ir::prelude::*;

use super::{ArrayInterface, Builder, Element, PackagedOp, Variant};
use crate::grouped_matmul;
use crate::ragged_dot::{self, RhsLayout};

const DIMS: [&str; 4] = ["m", "k", "n", "g"];
const LHS: ArrayInterface = ("lhs", "T", &["m", "k"]);
const GROUP_SIZES: ArrayInterface = ("group_sizes", "int32", &["g"]);

/// A tile, and the calls that it is preferred for.
struct RaggedChoice {
    tile: ragged_dot::Tile,
    /// Column counts that are a multiple of this; 1 for all.
    columns: usize,
}

const fn choice(
    bm: usize,
    bn: usize,
    bk: usize,
    slots: usize,
    rows: &'static [usize],
    columns: usize,
) -> RaggedChoice {
    RaggedChoice { tile: ragged_dot::Tile { bm, bn, bk, slots, rows }, columns }
}

/// Whole columns in one tile for the shapes of Qwen3-30B-A3B and Gemma 4 26B-A4B, then tiles for every N by growing K. The
/// last one fits the 16 MiB of VMEM of a v4.
const RAGGED_BF16: [RaggedChoice; 8] = [
    choice(1024, 2048, 768, 3, &[128, 256, 384], 2048),
    choice(1024, 2816, 768, 3, &[128, 256, 384], 2816),
    choice(1024, 768, 2048, 3, &[128, 256, 384], 768),
    choice(512, 1408, 2816, 3, &[128, 256, 384], 1408),
    choice(512, 512, 4096, 3, &[128, 256, 384], 1),
    choice(256, 256, 8192, 3, &[128, 256], 1),
    choice(128, 128, 16384, 3, &[128], 1),
    choice(256, 256, 2816, 2, &[128, 256], 1),
];
const RAGGED_F32: [RaggedChoice; 4] = [
    choice(256, 256, 4096, 2, &[128, 256], 1),
    choice(128, 128, 8192, 2, &[128], 1),
    choice(128, 128, 16384, 2, &[128], 1),
    choice(128, 128, 2816, 2, &[128], 1),
];

pub(super) fn ragged_dot(name: &str, layout: RhsLayout) -> Result<PackagedOp, Report> {
    let (doc, rhs): (_, ArrayInterface) = match layout {
        RhsLayout::Gnk => {
            ("Rows of lhs times the transpose of their group's rhs.", ("rhs", "T", &["g", "n", "k"]))
        }
        RhsLayout::Gkn => ("Rows of lhs times their group's rhs.", ("rhs", "T", &["g", "k", "n"])),
    };
    let mut builder = Builder::new(name, doc, &DIMS, &[LHS, rhs, GROUP_SIZES], ("out", "T", &["m", "n"]));
    let [n] = dims(["n"]);
    for (element, choices) in [(Element::Bf16, &RAGGED_BF16[..]), (Element::F32, &RAGGED_F32[..])] {
        for RaggedChoice { tile, columns } in choices {
            let demands: Vec<Demand> = (*columns > 1).then(|| n.multiple_of(*columns)).into_iter().collect();
            let kernel = match element {
                Element::Bf16 => ragged_dot::kernel::<bf16>(*tile, layout, &demands)?,
                Element::F32 => ragged_dot::kernel::<f32>(*tile, layout, &demands)?,
            };
            let sizes = [("bm", tile.bm), ("bn", tile.bn), ("bk", tile.bk)];
            builder.add(Variant { element, tile: &sizes, demands: vec![], kernel })?;
        }
    }
    Ok(builder.op)
}

const TGMM_BF16: [grouped_matmul::Tile; 2] = [
    grouped_matmul::Tile { bm: 512, bk: 1024, bn: 1024, chunk: 256 },
    grouped_matmul::Tile { bm: 256, bk: 512, bn: 512, chunk: 128 },
];
const TGMM_F32: [grouped_matmul::Tile; 1] = [grouped_matmul::Tile { bm: 256, bk: 512, bn: 512, chunk: 128 }];

pub(super) fn tgmm(name: &str) -> Result<PackagedOp, Report> {
    let doc = "For each group, the sum over its rows of the outer products of lhs and grad.";
    let arguments = [LHS, ("grad", "T", &["m", "n"]), GROUP_SIZES];
    let mut builder = Builder::new(name, doc, &DIMS, &arguments, ("out", "T", &["g", "k", "n"]));
    for (element, tiles) in [(Element::Bf16, &TGMM_BF16[..]), (Element::F32, &TGMM_F32[..])] {
        for tile in tiles {
            let kernel = match element {
                Element::Bf16 => grouped_matmul::tgmm_kernel::<bf16>(*tile)?,
                Element::F32 => grouped_matmul::tgmm_kernel::<f32>(*tile)?,
            };
            let sizes = [("bm", tile.bm), ("bk", tile.bk), ("bn", tile.bn)];
            builder.add(Variant { element, tile: &sizes, demands: vec![], kernel })?;
        }
    }
    Ok(builder.op)
}
