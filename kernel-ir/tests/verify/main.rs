//! The verifier: what each rule lets pass and what it stops, on kernels built by hand.

#![allow(clippy::unwrap_used, reason = "a builder of tests: what it unwraps is what the test wrote")]

mod alignment;
mod builder;
mod copies;
mod dataflow;
mod facts;
mod launch;
mod mutation;
mod races;
mod shape;
mod structure;
