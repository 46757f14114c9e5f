//! TPU generations as data: what a kernel may use on each, with the source of every number, and how much it uses.

mod generations;
mod vmem;

pub use generations::{Mxu, Target};
pub use vmem::{VmemItem, VmemUse, moves, padded_bytes};

use crate::ir::DType;

/// Elements in a row of a vector register, on every generation.
pub const LANES: usize = 128;

/// Rows of 32-bit elements in a vector register, on every generation.
pub const SUBLANES: usize = 8;

/// Bytes that the innermost contiguous piece of a DMA must be a multiple of (libtpu: "contiguous inner slice in the
/// DMA transfer must be divisible by 512 bytes").
pub const DMA_PIECE_BYTES: usize = 512;

/// A TPU generation that kernels are compiled for.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, PartialOrd, Ord)]
pub enum Generation {
    /// TPU v4.
    V4,
    /// TPU v5e, also called v5 lite.
    V5e,
    /// TPU v5p.
    V5p,
    /// TPU v6e, also called Trillium.
    V6e,
    /// TPU7x, also called Ironwood.
    V7x,
}

impl Generation {
    /// Every generation, oldest first.
    pub const ALL: [Self; 5] = [Self::V4, Self::V5e, Self::V5p, Self::V6e, Self::V7x];

    /// The name in `index.json` and on the command line: `v4`, `v5e`, `v5p`, `v6e`, `v7x`.
    pub const fn name(self) -> &'static str {
        self.target().name
    }

    /// The topology of one host, by the name that libtpu gives it: `v6e:2x2`.
    pub const fn topology(self) -> &'static str {
        self.target().topology
    }

    /// What it has.
    pub const fn target(self) -> &'static Target {
        match self {
            Self::V4 => &generations::V4,
            Self::V5e => &generations::V5E,
            Self::V5p => &generations::V5P,
            Self::V6e => &generations::V6E,
            Self::V7x => &generations::V7X,
        }
    }
}

impl std::fmt::Display for Generation {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.pad(self.name())
    }
}

impl std::str::FromStr for Generation {
    type Err = String;

    fn from_str(name: &str) -> Result<Self, String> {
        Self::ALL.into_iter().find(|g| g.name() == name).ok_or_else(|| {
            let known = Self::ALL.map(Self::name).join(", ");
            format!("`{}` is not a TPU generation: {known}", name.escape_debug())
        })
    }
}

/// Elements of `dtype` that share one 32-bit word of a register: 1, 2 or 4.
pub const fn packing(dtype: DType) -> usize {
    32 / dtype.bits()
}

/// Rows in a full tile of `dtype`: 8, 16 or 32. A tile is that many rows of [`LANES`] elements: 4096 bytes.
pub const fn tile_rows(dtype: DType) -> usize {
    SUBLANES * packing(dtype)
}
