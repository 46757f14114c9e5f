//! Mosaic, the TPU compiler's kernel dialect: how a module is written from a kernel, how it is called, and how one is
//! read and run without a TPU.

pub mod call;
#[cfg(feature = "emit")]
pub mod emit;
pub mod read;
mod run;

/// Elements that a scalar-prefetch array of symbolic length is declared with: as many as SMEM holds.
///
/// libtpu takes no `?` there (its index maps then count one argument too many), and uses the length for nothing: the
/// final bundles for a declared length of 1, 128 and 1000000 are equal, and the copy to SMEM has the operand's length.
const SMEM_ELEMENTS: usize = 1 << 18;

#[cfg(feature = "emit")]
pub use emit::{Module, emit};
pub use run::Runnable;
