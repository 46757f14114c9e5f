//! What an author sees when a kernel is wrong: rendered reports of small kernels, pinned.
//!
//! Snapshots hold source lines; after a change here, run with `INSTA_UPDATE=always` and review the difference.

mod control;
mod copies;
mod dataflow;
mod launch;
mod shapes;

use kernel_ir::prelude::*;

/// The report of a launch that must not build.
#[track_caller]
fn report(launch: Result<Kernel, Report>) -> Report {
    launch.expect_err("this kernel is wrong")
}
