//! Tessera's core: record a TPU kernel written in Rust, verify it, run it on the CPU, and turn it into a Mosaic module.
//!
//! This page is the specification: what the machine is, what a kernel is, and what each stage promises. A change to
//! the code is judged against it.
//!
//! # The machine
//!
//! A TPU core (a TensorCore) has three memories that a kernel sees, and two units that work on them:
//!
//! | memory | holds | reached by |
//! |---|---|---|
//! | HBM | the caller's arrays, in tiles of 8 rows and 128 lanes, padded to whole ones | copies (DMA) only |
//! | VMEM | blocks of arrays, scratch | vector loads and stores |
//! | SMEM | prefetched integers, scalar scratch | scalar loads and stores |
//!
//! The vector unit works on *tiles*, values of a static shape. The matrix unit multiplies two tiles of rank 2. The scalar
//! unit runs control flow, computes indices and starts copies; it goes on while they are under way. Sizes, limits and
//! what each generation has are data: [`target`].
//!
//! # A kernel
//!
//! A kernel ([`ir::Kernel`]) is a function that runs once for every step of a *grid*. Steps run in lexicographic order, the
//! last axis fastest; steps along a *parallel* axis may run on several cores, and must not see each other's effects.
//!
//! Its parameters are
//!
//! - *windows* ([`dsl::In`], [`dsl::Out`]): a step sees one *block* of the array, in VMEM. A block map takes the step's grid
//!   indices to the block's index, in units of blocks. A block at the array's edge may stick out: what lies outside is
//!   undefined when read, and dropped when written. An input block is fetched when its index changes from one step to
//!   the next. An output block starts undefined when its index changes, and is written back when it changes again or
//!   the grid ends; so it may be revisited only in consecutive steps.
//! - *arrays in HBM* ([`dsl::Hbm`], [`dsl::HbmOut`]): whole arrays, reached by copies that the kernel makes by hand. A copy is
//!   started, and its data is there after it was waited for. Between the two, the source must not change and the
//!   destination must not be touched. Every started copy must be waited for.
//! - *prefetched arrays* ([`dsl::Prefetch`]): integers in SMEM, there before the first step; block maps may read them.
//! - *scratch* ([`dsl::Scratch`], [`dsl::Scalars`], [`dsl::DmaSem`]): kept from one step to the next, undefined at first.
//!
//! Blocks and tiles have static shapes. Arrays and grids need not: their sizes are made of *dims* ([`dsl::Dim`]), which are
//! known when the kernel is called. The kernel may read a dim as an integer, and may *demand* something of the dims.
//! So one kernel, and one module, serves every shape that its demands allow.
//!
//! # Recording
//!
//! The kernel is an ordinary Rust function. It runs once, while a recorder listens: operators and functions of [`dsl`] append
//! operations. Rust's own `if`, `for`, closures and generics therefore run *while recording*. What runs *on the TPU* is
//! marked: [`dsl::when`], `for i in range(..)`, [`dsl::while_loop`]. A value that the TPU computes has type
//! [`dsl::Tile`] or [`dsl::Scalar`], and Rust's types keep it out of host control flow.
//!
//! ```
//! use kernel_ir::exec::Array;
//! use kernel_ir::prelude::*;
//!
//! #[tpu_kernel]
//! fn double(x: In<f32>, o: Out<f32>) {
//!     o[..] = x[..] * 2.0;
//! }
//!
//! let [rows] = dims(["rows"]);
//! let block = || array((rows, 128)).block([8, 128], |[i]| (i, 0));
//! let kernel = double { grid: grid([par(rows.div_ceil(8))]), x: block(), o: block() }.build()?;
//!
//! // 20 rows: the last block sticks out of the array by 4.
//! let x = Array::from_fn([20, 128], |i| i as f32);
//! let out = kernel.run(&[("x", &x)])?;
//! assert_eq!(out["o"].to_f64()[2559], 5118.0);
//! # Ok::<(), Report>(())
//! ```
//!
//! # What the stages promise
//!
//! - **Recording** checks shapes where they arise, and reports at the author's own line and column. One wrong operation is
//!   reported once; what depends on it is not.
//! - [`verify`] finds everything else that is wrong, in one report: data flow, blocks against arrays and tiles, races,
//!   memory. After it passes, later stages may return errors, but do not panic.
//! - [`exec`] runs a kernel on the CPU with the semantics above. It is the oracle: what is undefined is made NaN, and
//!   out-of-bounds accesses, unwaited copies and deadlocks are reported with the line and the grid step.
//! - [`mosaic`] makes the module that the TPU's compiler takes, and says how it is called.
//! - [`aot`] has libtpu compile it for a TPU that is not there, in a child process; its errors come back as ours.
//!
//! Findings are [`diag::Diagnostic`]s: a stable code, one phrase in the user's words, places, and what to do.
//!
//! # Features
//!
//! `emit` (MLIR 22) and `aot` (libtpu) are on by default. Without them the crate builds in seconds, records, verifies and
//! executes.

// The macros name this crate by its outside name, also in its own tests.
extern crate self as kernel_ir;

#[cfg(feature = "aot")]
pub mod aot;
pub mod diag;
pub mod dsl;
pub mod exec;
pub mod ir;
pub mod mosaic;
mod record;
pub mod target;
pub mod verify;

pub use dsl::{k, prelude};
