//! `publish`: a built package becomes one version on the hub.

use serde_json::json;

use crate::cli::Publish;
use crate::error::Result;
use crate::hub::{Version, publish};
use crate::output::{Output, count, size};
use crate::package::LocalPackage;
use crate::settings::HubSettings;

pub(super) fn run(args: &Publish, hub: &HubSettings, output: &Output) -> Result<()> {
    let repo = args.repo.parse()?;
    let token = hub.token_for_writing()?;
    let package = LocalPackage::open(&args.path)?;
    let done = publish(&hub.client()?, token, &package, &repo, Version(args.version), args.private)?;
    let mut json = json!(done);
    json["url"] = json!(format!("{}/kernels/{repo}", hub.endpoint));
    output.summary(json, || {
        let mut text = format!("{repo} {} on {}\n  commit {}\n", done.version, hub.endpoint, done.commit);
        text += &format!(
            "  sent {} ({}), {} unchanged",
            count(done.uploaded, "file"),
            size(done.bytes),
            done.unchanged
        );
        if done.removed > 0 {
            text += &format!(", {} removed", done.removed);
        }
        text
    });
    Ok(())
}
