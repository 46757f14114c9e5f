//! Mosaic, the TPU compiler's kernel dialect: how a module is written from a kernel, and how it is called.

pub mod call;
#[cfg(feature = "emit")]
pub mod emit;
pub mod read;

#[cfg(feature = "emit")]
pub use emit::{Module, emit};
