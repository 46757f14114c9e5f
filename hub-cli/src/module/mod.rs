//! Mosaic modules outside a hub: what `run` and `show` are given, and what is said about it.

mod formula;
mod summary;
mod target;
mod types;

pub(crate) use summary::Summary;
pub(crate) use target::Target;
pub(crate) use types::{ResultType, shown};
