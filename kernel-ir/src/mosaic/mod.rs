//! Mosaic, the TPU compiler's kernel dialect: how a published module is called.

pub mod call;
