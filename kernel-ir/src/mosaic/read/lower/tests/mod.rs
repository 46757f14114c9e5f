//! Lowering, on modules made by hand.

mod build;
mod compute;
mod flow;
mod hostile;
mod old;
mod products;
mod refused;
