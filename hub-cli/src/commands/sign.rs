//! `sign`: signatures beside the variants of a built package.

use serde_json::json;

use crate::cli::Sign;
use crate::error::Result;
use crate::output::Output;
use crate::package::LocalPackage;
use crate::package::signing::SecretKey;

pub(super) fn run(args: &Sign, output: &Output) -> Result<()> {
    let key = SecretKey::read(&args.key)?;
    let mut package = LocalPackage::open(&args.path)?;
    package.sign(&key)?;
    package.write_signatures()?;
    let variants: Vec<_> = package.signatures.keys().collect();
    output.summary(
        json!({"key": key.public(), "variants": variants, "path": package.build.join("signatures")}),
        || {
            let names: Vec<_> = variants.iter().map(|name| name.as_str()).collect();
            format!("{} signed {}", key.public(), names.join(", "))
        },
    );
    Ok(())
}
