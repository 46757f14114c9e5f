//! `build`: from a package's source to its variants.

use std::collections::BTreeMap;
use std::path::Path;

use kernel_ir::diag::Diagnostic;
use kernel_ir::mosaic::call::ModuleEntry;
use serde_json::{Value, json};

use crate::cli::Build;
use crate::compiler;
use crate::error::Result;
use crate::output::{Output, count, size};
use crate::package::Variant;
use crate::package::build::{Built, build};

pub(super) fn run(args: &Build, cache: &Path, output: &Output) -> Result<()> {
    let ops = compiler::ops()?;
    let check = if args.no_tpu_check { None } else { Some(compiler::tpu(cache, output)?) };
    let built = build(&args.package, args.out.as_deref(), ops.as_ref(), check.as_deref())?;
    for (generation, refused, finding) in by_generation(&built) {
        let all = modules(&built).len();
        output.note(&format!(
            "note: {generation} does not take {refused} of {all} modules; of the first it says"
        ));
        output.note(&format!("      {}", finding.concise()));
    }
    output.summary(as_json(&built), || as_text(&built));
    Ok(())
}

/// The modules with the names of their ops.
fn modules(built: &Built) -> Vec<(&str, &ModuleEntry)> {
    // Every variant carries the same index.
    let index = built.package.variants.iter().find_map(|variant| variant.index.as_ref());
    let ops = index.into_iter().flat_map(|index| index.ops.iter());
    ops.flat_map(|(name, op)| op.modules.iter().map(move |module| (name, module))).collect()
}

/// How many modules each generation does not take, and what it has against the first.
fn by_generation(built: &Built) -> Vec<(&str, usize, &Diagnostic)> {
    let mut found: BTreeMap<&str, (usize, &Diagnostic)> = BTreeMap::new();
    for (_, refusal) in &built.refused {
        found.entry(&refusal.generation).or_insert((0, &refusal.finding)).0 += 1;
    }
    found.into_iter().map(|(generation, (count, finding))| (generation, count, finding)).collect()
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
    let refused = built.refused.iter().map(|(file, refusal)| {
        let finding = &refusal.finding;
        json!({"file": file, "generation": refusal.generation, "code": finding.code, "message": finding.message})
    });
    json!({
        "name": built.manifest.name, "version": built.manifest.version, "path": built.out,
        "variants": variants.collect::<Vec<_>>(), "modules": modules.collect::<Vec<_>>(),
        "refused": refused.collect::<Vec<_>>(),
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
