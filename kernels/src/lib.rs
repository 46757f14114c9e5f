//! TPU kernels written with Tessera, one file a family: what it computes, the kernel, its tiles, its launch.

mod edge_copy;
pub mod flash_attention;
pub mod grouped_matmul;
pub mod matmul;
pub mod ragged_dot;
pub mod reference;
mod walk;
