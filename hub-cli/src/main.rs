//! Entry point of `kernels-cli`.
fn main() {}
