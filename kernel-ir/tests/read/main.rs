//! Modules read back: whatever the emitter writes, in every operation and type, is the kernel that it was written from.
#![cfg(feature = "emit")]
#![allow(missing_docs, clippy::unwrap_used, dead_code, reason = "tests, which share builders with others")]

#[path = "../emit/build.rs"]
mod build;
#[path = "../emit/cases.rs"]
mod cases;
#[path = "../emit/elementwise.rs"]
mod elementwise;
#[path = "../emit/foreign.rs"]
mod foreign;
#[path = "../emit/kernels.rs"]
mod kernels;
#[path = "../emit/layout.rs"]
mod layout;
#[path = "../emit/memory.rs"]
mod memory;

mod again;
mod call;
mod trip;
