//! `build`: from a package's source to its variants.

use kernel_ir::mosaic::call::ModuleEntry;
use serde_json::{Value, json};

use crate::cli::Build;
use crate::compiler;
use crate::error::Result;
use crate::output::{Output, count, size};
use crate::package::Variant;
use crate::package::build::{Built, build};

pub(super) fn run(args: &Build, output: &Output) -> Result<()> {
    let built = build(&args.package, args.out.as_deref(), compiler::ops()?.as_ref(), None)?;
    output.result(as_json(&built), || as_text(&built));
    Ok(())
}

/// The modules with the names of their ops.
fn modules(built: &Built) -> Vec<(&str, &ModuleEntry)> {
    // Every variant carries the same index.
    let index = built.package.variants.iter().find_map(|variant| variant.index.as_ref());
    let ops = index.into_iter().flat_map(|index| index.ops.iter());
    ops.flat_map(|(name, op)| op.modules.iter().map(move |module| (name, module))).collect()
}

fn bytes(variant: &Variant) -> u64 {
    variant.files.values().filter_map(|file| Some(file.metadata().ok()?.len())).sum()
}

fn as_json(built: &Built) -> Value {
    let variants = built.package.variants.iter().map(|variant| {
        json!({
            "name": variant.name, "id": variant.metadata.id, "files": variant.files.len(), "bytes": bytes(variant),
            "path": built.out.join(&variant.name),
        })
    });
    let modules = modules(built).into_iter().map(|(op, module)| {
        json!({"op": op, "file": module.file, "bytes": module.bytes, "generations": module.generations})
    });
    json!({
        "name": built.manifest.name, "version": built.manifest.version, "path": built.out,
        "variants": variants.collect::<Vec<_>>(), "modules": modules.collect::<Vec<_>>(),
    })
}

fn as_text(built: &Built) -> String {
    let mut text = format!("{} {} in {}\n", built.manifest.name, built.manifest.version, built.out.display());
    for variant in &built.package.variants {
        let files = count(variant.files.len(), "file");
        text += &format!(
            "  {:<16} {files:>9} {:>9}  {}\n",
            variant.name,
            size(bytes(variant)),
            variant.metadata.id
        );
    }
    for (_, module) in modules(built) {
        let generations = match module.generations.as_slice() {
            [] => "not checked with libtpu".to_owned(),
            some => some.join(" "),
        };
        text += &format!("  {:<48} {:>9}  {generations}\n", module.file, size(module.bytes));
    }
    text
}
