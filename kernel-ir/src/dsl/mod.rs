//! What a kernel author touches.
//!
//! A kernel is an ordinary Rust function over [`In`], [`Out`], [`Scratch`], ... parameters. Running it once, while a
//! recorder listens, yields its IR. Rust's own `if`, `for`, closures and generics run *while recording*; [`when`],
//! `for k in range(..)` and [`while_loop`] run *on the TPU*. Element types are Rust types; shapes are values, checked
//! while recording, at the line that got them wrong.

mod arith;
mod compare;
mod control;
mod dims;
mod dma;
mod dot;
mod elem;
mod index;
pub mod k;
mod launch;
mod math;
mod refs;
mod shape;
mod value;

pub use control::{Range, range, when, while_loop};
pub use dims::{Dim, Size, dims};
pub use dma::{Copy, DmaSem, Hbm, HbmOut, SemSlot, copy, dma_sem, hbm};
pub use dot::{DotSide, dot, dot_at, dot_t, t_dot};
pub use elem::{Elem, Float, Int, Mxu, Num};
pub use index::{At, Place, Slice, ds};
pub use launch::{
    Array, Axis, BlockIndex, BlockSpec, Grid, Host, Param, Shape, Smem, Vmem, array, grid, par, seq, smem,
    vmem,
};
pub use math::{maximum, minimum, multiple_of, num_programs, program_id, select};
pub use refs::{In, Out, Prefetch, Scalars, Scratch, prefetch};
pub use shape::{concatenate, full, iota};
pub use value::{Idx, Like, Scalar, Tile};

/// Everything a kernel file needs: `use kernel_ir::prelude::*;`
pub mod prelude {
    pub use half::bf16;
    pub use kernel_macros::{tpu_fn, tpu_kernel};

    pub use super::k::HostStore as _;
    pub use super::*;
    pub use crate::diag::Report;
    pub use crate::ir::{DType, Kernel, Precision};
}
