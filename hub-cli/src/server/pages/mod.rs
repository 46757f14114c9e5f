//! The hub for people: plain pages, made on the server, without scripts.
//!
//! They show what a caller without a token may see, unless the request carries one.

mod catalog;
mod kernel;
mod layout;

pub(super) use catalog::list;
pub(super) use kernel::{files, kernel, pull};
