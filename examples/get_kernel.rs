//! Loads a published kernel in Rust: pinned to a version, every byte checked. `HF_ENDPOINT` says from which hub.
#![allow(clippy::print_stdout, reason = "an example talks to its reader")]

use hub_cli::{Version, get_kernel};

fn main() -> anyhow::Result<()> {
    let package = get_kernel("tengomucho/ragged-dot-tpu", Version(1))?;
    println!("{} at {}", package.metadata().name, package.path().display());
    for (name, op) in package.index()?.ops.iter() {
        println!("  {name}: {} modules; {}", op.modules.len(), op.doc);
    }
    Ok(())
}
