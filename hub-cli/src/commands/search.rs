//! `search`: kernels on the hub, by words of their names or by owner.

use serde_json::json;

use crate::cli::Search;
use crate::error::{Code, Error, Result};
use crate::output::{Output, count};
use crate::settings::HubSettings;

pub(super) fn run(args: &Search, hub: &HubSettings, output: &Output) -> Result<()> {
    if hub.offline {
        return Err(Error::new(Code::Offline, "what a hub holds is known to it only")
            .help("`kernels-cli cache ls` lists the cache"));
    }
    let found = hub.client()?.search(args.query.as_deref(), args.author.as_deref(), args.limit)?;
    output.result(json!({"kernels": found}), || {
        let lines: String = found
            .iter()
            .map(|kernel| {
                format!("{:<48} {}\n", kernel.repo.to_string(), kernel.changed.as_deref().unwrap_or_default())
            })
            .collect();
        format!("{lines}{} on {}", count(found.len(), "kernel"), hub.endpoint)
    });
    Ok(())
}
