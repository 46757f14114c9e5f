//! `keygen`: a key to sign packages with.

use serde_json::json;

use crate::cli::Keygen;
use crate::error::Result;
use crate::output::Output;
use crate::package::signing::SecretKey;

pub(super) fn run(args: &Keygen, output: &Output) -> Result<()> {
    let key = if args.show { SecretKey::read(&args.file)? } else { SecretKey::create(&args.file)? };
    let public = key.public();
    output.result(json!({"path": args.file, "public": public}), || public.to_string());
    if !args.show {
        output.note(&format!("the secret half is in {}; keep it", args.file.display()));
    }
    Ok(())
}
