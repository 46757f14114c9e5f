//! The operations that packages are built from: each an interface, and modules for its element types and tiles.

use half::bf16;
use kernel_ir::ir::Demand;
use kernel_ir::mosaic::call::{ArgumentInterface, ModuleEntry, OpInterface, Table};
use kernel_ir::prelude::*;
use sha2::{Digest as _, Sha256};

use crate::grouped_matmul;
use crate::ragged_dot::{self, RhsLayout};

/// An operation as a package carries it.
#[derive(Clone, Debug)]
pub struct PackagedOp {
    /// What `index.json` says of it; `generations` are filled in by whoever compiles the modules.
    pub interface: OpInterface,
    /// Its module files: path inside the variant, bytes.
    pub files: Vec<(String, Vec<u8>)>,
}

/// Names of all operations, in the order a list shows them.
pub const OPS: [&str; 3] = ["ragged_dot", "ragged_dot_gkn", "tgmm"];

/// Records and compiles an operation; `None` if there is none of this name.
pub fn packaged_op(name: &str) -> Option<Result<PackagedOp, Report>> {
    Some(match name {
        "ragged_dot" => ragged(name, "Rows of lhs times their group's rhs, transposed.", RhsLayout::Gnk),
        "ragged_dot_gkn" => ragged(name, "Rows of lhs times their group's rhs.", RhsLayout::Gkn),
        "tgmm" => tgmm(name),
        _ => return None,
    })
}

/// The element types that modules are made for, as file names say them.
#[derive(Clone, Copy)]
enum Element {
    Bf16,
    F32,
}

impl Element {
    const fn short(self) -> &'static str {
        match self {
            Self::Bf16 => "bf16",
            Self::F32 => "f32",
        }
    }

    const fn dtype(self) -> DType {
        match self {
            Self::Bf16 => DType::Bf16,
            Self::F32 => DType::F32,
        }
    }
}

/// Collects the modules of one operation.
struct Builder {
    op: PackagedOp,
}

impl Builder {
    fn new(doc: &str, arguments: &[(&str, &str, &[&str])], results: &[(&str, &str, &[&str])]) -> Self {
        let interface = |list: &[(&str, &str, &[&str])]| {
            let entry = |&(name, dtype, shape): &(&str, &str, &[&str])| ArgumentInterface {
                name: name.to_owned(),
                dtype: dtype.to_owned(),
                shape: shape.iter().map(|d| kernel_ir::ir::DimExpr::dim(d)).collect(),
            };
            list.iter().map(entry).collect()
        };
        let interface = OpInterface {
            doc: doc.to_owned(),
            dims: ["m", "k", "n", "g"].map(str::to_owned).into(),
            arguments: interface(arguments),
            results: interface(results),
            modules: vec![],
        };
        Self { op: PackagedOp { interface, files: vec![] } }
    }

    /// Compiles a kernel and adds it; earlier modules are preferred.
    fn add(&mut self, name: &str, element: Element, tile: &[(&str, usize)], kernel: &Kernel) -> Result<(), Report> {
        let module = kernel.mosaic()?;
        let sizes: Vec<_> = tile.iter().map(|(_, n)| n.to_string()).collect();
        let file = format!("mosaic/{name}-{}-{}.mlirbc", element.short(), sizes.join("x"));
        let mut entry: ModuleEntry = module.entry(&file);
        entry.sha256 = hex::encode(Sha256::digest(&module.bytecode));
        entry.dtypes = Table::new();
        entry.dtypes.set("T", element.dtype().numpy().to_owned());
        entry.tile = Table::new();
        for (axis, n) in tile {
            entry.tile.set(*axis, i64::try_from(*n).unwrap_or(i64::MAX));
        }
        self.op.interface.modules.push(entry);
        self.op.files.push((file, module.bytecode));
        Ok(())
    }
}

const LHS: (&str, &str, &[&str]) = ("lhs", "T", &["m", "k"]);
const GROUP_SIZES: (&str, &str, &[&str]) = ("group_sizes", "int32", &["g"]);

/// A tile, and the calls that it is preferred for.
struct RaggedChoice {
    tile: ragged_dot::Tile,
    /// Column counts that are a multiple of this; 1 for all.
    columns: usize,
}

const fn choice(bm: usize, bn: usize, bk: usize, slots: usize, rows: &'static [usize], columns: usize) -> RaggedChoice {
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

fn ragged(name: &str, doc: &str, layout: RhsLayout) -> Result<PackagedOp, Report> {
    let rhs: &[&str] = match layout {
        RhsLayout::Gnk => &["g", "n", "k"],
        RhsLayout::Gkn => &["g", "k", "n"],
    };
    let arguments = [LHS, ("rhs", "T", rhs), GROUP_SIZES];
    let mut builder = Builder::new(doc, &arguments, &[("out", "T", &["m", "n"])]);
    let [n] = dims(["n"]);
    for (element, choices) in [(Element::Bf16, &RAGGED_BF16[..]), (Element::F32, &RAGGED_F32[..])] {
        for RaggedChoice { tile, columns } in choices {
            let demands: Vec<Demand> = (*columns > 1).then(|| n.multiple_of(*columns)).into_iter().collect();
            let kernel = match element {
                Element::Bf16 => ragged_dot::kernel::<bf16>(*tile, layout, &demands)?,
                Element::F32 => ragged_dot::kernel::<f32>(*tile, layout, &demands)?,
            };
            let sizes = [("bm", tile.bm), ("bn", tile.bn), ("bk", tile.bk)];
            builder.add(name, element, &sizes, &kernel)?;
        }
    }
    Ok(builder.op)
}

const TGMM_BF16: [grouped_matmul::Tile; 2] = [
    grouped_matmul::Tile { bm: 512, bk: 1024, bn: 1024, chunk: 256 },
    grouped_matmul::Tile { bm: 256, bk: 512, bn: 512, chunk: 128 },
];
const TGMM_F32: [grouped_matmul::Tile; 1] = [grouped_matmul::Tile { bm: 256, bk: 512, bn: 512, chunk: 128 }];

fn tgmm(name: &str) -> Result<PackagedOp, Report> {
    let doc = "For each group, the sum over its rows of the outer products of lhs and grad.";
    let arguments = [LHS, ("grad", "T", &["m", "n"][..]), GROUP_SIZES];
    let mut builder = Builder::new(doc, &arguments, &[("out", "T", &["g", "k", "n"])]);
    for (element, tiles) in [(Element::Bf16, &TGMM_BF16[..]), (Element::F32, &TGMM_F32[..])] {
        for tile in tiles {
            let kernel = match element {
                Element::Bf16 => grouped_matmul::tgmm_kernel::<bf16>(*tile)?,
                Element::F32 => grouped_matmul::tgmm_kernel::<f32>(*tile)?,
            };
            let sizes = [("bm", tile.bm), ("bk", tile.bk), ("bn", tile.bn)];
            builder.add(name, element, &sizes, &kernel)?;
        }
    }
    Ok(builder.op)
}
