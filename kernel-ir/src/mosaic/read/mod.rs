//! From the bytes of a Mosaic module to a kernel: what JAX's Pallas writes and what [`super::emit`] writes.
//!
//! `bytecode` turns MLIR's bytecode into a [`module::Module`]; `lower` makes a kernel of it. No MLIR is needed.
//! Bytes are hostile until read: every length is checked, nesting is bounded, and memory grows with the input only.

mod module;
