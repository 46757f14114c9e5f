//! The operations that packages are built from: each an interface, and modules for its element types and tiles.

mod dense;
mod grouped;

use kernel_ir::ir::{Demand, DimExpr};
use kernel_ir::mosaic::call::{ArgumentInterface, OpInterface, Table};
use kernel_ir::prelude::*;

use crate::ragged_dot::RhsLayout;

/// An operation as a package carries it.
#[derive(Clone, Debug)]
pub struct PackagedOp {
    /// What `index.json` says of it; `generations` are filled in by whoever compiles the modules.
    pub interface: OpInterface,
    /// Its module files: path inside the variant, bytes.
    pub files: Vec<(String, Vec<u8>)>,
}

/// Names of all operations, in the order a list shows them.
pub const OPS: [&str; 6] =
    ["matmul", "ragged_dot", "ragged_dot_gkn", "tgmm", "flash_attention", "flash_attention_causal"];

/// Records and compiles an operation; `None` if there is none of this name.
pub fn packaged_op(name: &str) -> Option<Result<PackagedOp, Report>> {
    Some(match name {
        "matmul" => dense::matmul(name),
        "ragged_dot" => grouped::ragged_dot(name, RhsLayout::Gnk),
        "ragged_dot_gkn" => grouped::ragged_dot(name, RhsLayout::Gkn),
        "tgmm" => grouped::tgmm(name),
        "flash_attention" => dense::flash_attention(name, false),
        "flash_attention_causal" => dense::flash_attention(name, true),
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

/// An array of an interface: name, dtype or dtype variable, dims.
type ArrayInterface = (&'static str, &'static str, &'static [&'static str]);

/// One module to make: for which element type, under which tile sizes, and what it asks of dims beyond its kernel's demands.
struct Variant<'a> {
    element: Element,
    tile: &'a [(&'static str, usize)],
    demands: Vec<Demand>,
    kernel: Kernel,
}

/// Collects the modules of one operation.
struct Builder {
    name: String,
    op: PackagedOp,
}

impl Builder {
    fn new(
        name: &str,
        doc: &str,
        dims: &[&str],
        arguments: &[ArrayInterface],
        result: ArrayInterface,
    ) -> Self {
        let interface = |&(name, dtype, shape): &ArrayInterface| ArgumentInterface {
            name: name.to_owned(),
            dtype: dtype.to_owned(),
            shape: shape.iter().map(|d| DimExpr::dim(d)).collect(),
        };
        let interface = OpInterface {
            doc: doc.to_owned(),
            dims: dims.iter().map(|d| (*d).to_owned()).collect(),
            arguments: arguments.iter().map(interface).collect(),
            results: vec![interface(&result)],
            modules: vec![],
        };
        Self { name: name.to_owned(), op: PackagedOp { interface, files: vec![] } }
    }

    /// Compiles a kernel and adds its module; callers prefer those that were added earlier.
    fn add(&mut self, v: Variant<'_>) -> Result<(), Report> {
        let module = v.kernel.mosaic()?;
        let sizes: Vec<_> = v.tile.iter().map(|(_, n)| n.to_string()).collect();
        let file = format!("mosaic/{}-{}-{}.mlirbc", self.name, v.element.short(), sizes.join("x"));
        let mut dtypes = Table::new();
        dtypes.set("T", v.element.dtype().numpy().to_owned());
        let mut tile = Table::new();
        for (axis, n) in v.tile {
            tile.set(*axis, i64::try_from(*n).unwrap_or(i64::MAX));
        }
        let mut entry = module.entry(&*file, dtypes, tile, &[]);
        entry.demands.extend(v.demands);
        self.op.interface.modules.push(entry);
        self.op.files.push((file, module.bytecode));
        Ok(())
    }
}
