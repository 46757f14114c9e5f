//! TPU kernels written with Tessera, one file a family: what it computes, the kernel, its tiles, its launch.

pub mod matmul;
pub mod ragged_dot;
mod walk;
