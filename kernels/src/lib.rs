//! TPU kernels written with Tessera, one file a family: what it computes, the kernel, its tiles, its launch.

mod edge_copy;
pub mod flash_attention;
pub mod grouped_matmul;
pub mod matmul;
#[cfg(feature = "emit")]
pub mod package;
pub mod ragged_dot;
pub mod reference;
mod walk;

#[cfg(feature = "emit")]
pub use package::{PackagedOp, packaged_op};
