//! The table of generations.
//!
//! Sources: capacities, MXU sizes and peaks are those of JAX 0.12 (`jax/_src/tpu_info.py`, per TensorCore; a peak there
//! is a chip's divided by its cores). VMEM and SMEM capacities and the scoped defaults were confirmed by compiling
//! kernels of growing size with libtpu 0.0.52; so were the matrix products.

use super::Generation;
use crate::ir::DType;

/// What a generation has, per TensorCore.
#[derive(Debug)]
pub struct Target {
    /// The generation.
    pub generation: Generation,
    /// Its short name, e.g. `v5e`.
    pub name: &'static str,
    /// The PJRT topology to compile for when there is no chip, e.g. `v5e:2x2`.
    pub topology: &'static str,
    /// What PJRT calls the chip, e.g. `TPU v5 lite`.
    pub device_kind: &'static str,
    /// TensorCores on a chip.
    pub cores: usize,
    /// Vector memory, bytes.
    pub vmem_bytes: u64,
    /// What windows may take of VMEM unless the call asks for more (`scoped_memory_configs`), bytes.
    pub scoped_vmem_bytes: u64,
    /// Scalar memory, bytes.
    pub smem_bytes: u64,
    /// Main memory, bytes.
    pub hbm_bytes: u64,
    /// Main memory bandwidth, bytes a second.
    pub hbm_bytes_per_second: f64,
    /// The matrix units.
    pub mxu: Mxu,
    /// Peak of bfloat16 products, operations a second (a multiply and an add are two).
    pub bf16_ops_per_second: f64,
    /// Peak of int8 products, operations a second; `None` where the matrix unit has none.
    pub int8_ops_per_second: Option<f64>,
    /// Whether XLA lays 16-bit arrays out in HBM in tiles of 16 rows instead of 8 (`TpuInfo.get_sublane_tiling`).
    pub large_16_bit_tiles: bool,
}

/// The matrix units of a core.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Mxu {
    /// Rows and columns of the systolic array.
    pub side: usize,
    /// How many of them.
    pub count: usize,
}

const MIB: u64 = 1 << 20;

/// TPU v4. VMEM is small and int8 products are not there.
pub(super) static V4: Target = Target {
    generation: Generation::V4,
    name: "v4",
    topology: "v4:2x2x1",
    device_kind: "TPU v4",
    cores: 2,
    vmem_bytes: 16 * MIB,
    scoped_vmem_bytes: 16 * MIB,
    smem_bytes: MIB,
    hbm_bytes: 17_200_000_000,
    hbm_bytes_per_second: 0.615e12,
    mxu: Mxu { side: 128, count: 4 },
    bf16_ops_per_second: 137.5e12,
    int8_ops_per_second: None,
    large_16_bit_tiles: false,
};

/// TPU v5e.
pub(super) static V5E: Target = Target {
    generation: Generation::V5e,
    name: "v5e",
    topology: "v5e:2x2",
    device_kind: "TPU v5 lite",
    cores: 1,
    vmem_bytes: 128 * MIB,
    scoped_vmem_bytes: 16 * MIB,
    smem_bytes: MIB,
    hbm_bytes: 17_200_000_000,
    hbm_bytes_per_second: 0.82e12,
    mxu: Mxu { side: 128, count: 4 },
    bf16_ops_per_second: 197e12,
    int8_ops_per_second: Some(394e12),
    large_16_bit_tiles: false,
};

/// TPU v5p.
pub(super) static V5P: Target = Target {
    generation: Generation::V5p,
    name: "v5p",
    topology: "v5p:2x2x1",
    device_kind: "TPU v5",
    cores: 2,
    vmem_bytes: 64 * MIB,
    scoped_vmem_bytes: 16 * MIB,
    smem_bytes: MIB,
    hbm_bytes: 51_500_000_000,
    hbm_bytes_per_second: 1.23e12,
    mxu: Mxu { side: 128, count: 4 },
    bf16_ops_per_second: 229.5e12,
    int8_ops_per_second: Some(459e12),
    large_16_bit_tiles: false,
};

/// TPU v6e.
pub(super) static V6E: Target = Target {
    generation: Generation::V6e,
    name: "v6e",
    topology: "v6e:2x2",
    device_kind: "TPU v6 lite",
    cores: 1,
    vmem_bytes: 128 * MIB,
    scoped_vmem_bytes: 32 * MIB,
    smem_bytes: MIB,
    hbm_bytes: 34_400_000_000,
    hbm_bytes_per_second: 1.64e12,
    mxu: Mxu { side: 256, count: 2 },
    bf16_ops_per_second: 920e12,
    int8_ops_per_second: Some(1840e12),
    large_16_bit_tiles: false,
};

/// TPU7x. Its matrix unit has no int8; the compiler computes such products in floating point.
pub(super) static V7X: Target = Target {
    generation: Generation::V7x,
    name: "v7x",
    topology: "tpu7x:2x2x1",
    device_kind: "TPU7x",
    cores: 2,
    vmem_bytes: 64 * MIB,
    scoped_vmem_bytes: 32 * MIB,
    smem_bytes: MIB,
    hbm_bytes: 103_000_000_000,
    hbm_bytes_per_second: 3.7e12,
    mxu: Mxu { side: 256, count: 2 },
    bf16_ops_per_second: 1155e12,
    int8_ops_per_second: None,
    large_16_bit_tiles: true,
};

impl Target {
    /// Rows in a tile of a `dtype` array in HBM, as XLA lays it out (`TpuInfo.get_sublane_tiling`).
    pub const fn hbm_tile_rows(&self, dtype: DType) -> usize {
        match dtype.bits() {
            16 if !self.large_16_bit_tiles => super::SUBLANES,
            _ => super::tile_rows(dtype),
        }
    }

    /// Whether the compiler takes a product of these element types with this accumulator.
    ///
    /// Measured with libtpu 0.0.52 on 64x256x256 products. Floating-point sides mix freely everywhere; a product of
    /// integers is int8 by int8 into int32, and v4 has none.
    pub fn takes_dot(&self, lhs: DType, rhs: DType, accumulator: DType) -> bool {
        match accumulator {
            DType::F32 => lhs.is_float() && rhs.is_float(),
            DType::I32 => lhs == DType::I8 && rhs == DType::I8 && self.generation != Generation::V4,
            _ => false,
        }
    }
}
