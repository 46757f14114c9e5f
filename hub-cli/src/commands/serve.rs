//! `serve`: a hub out of one folder, until it is told to stop.

use serde_json::json;

use crate::cli::Serve;
use crate::error::Result;
use crate::output::Output;
use crate::server::{Config, Hub};

pub(super) fn run(args: Serve, output: &Output) -> Result<()> {
    let defaults = Config::new(args.root);
    let config = Config {
        host: args.host,
        port: args.port,
        token_file: args.token_file,
        trusted: args.trusted.into_iter().collect(),
        page_size: args.page_size.unwrap_or(defaults.page_size).max(1),
        ..defaults
    };
    let root = config.root.clone();
    let protected = config.token_file.clone();
    let hub = Hub::start(config)?;
    let endpoint = hub.endpoint();
    output.ready(&json!({"endpoint": endpoint}), &format!("serving {} at {endpoint}", root.display()));
    match protected {
        Some(file) => output.note(&format!("writes need the token in {}", file.display())),
        None => output.note("anyone on this machine may write; --token-file changes that"),
    }
    output.note(&format!("clients use it with HF_ENDPOINT={endpoint}; Ctrl-C stops it"));
    hub.run_until_signal()
}
