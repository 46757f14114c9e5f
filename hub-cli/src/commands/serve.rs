//! `serve`: a hub out of one folder, until it is told to stop.

use serde_json::json;

use tracing_subscriber::filter::LevelFilter;

use crate::cli::{LogFormat, Serve};
use crate::error::Result;
use crate::output::Output;
use crate::server::{Config, Hub, Tls};

pub(super) fn run(args: Serve, output: &Output) -> Result<()> {
    let defaults = Config::new(args.root);
    let config = Config {
        store: args.store,
        host: args.host,
        port: args.port,
        tls: args.tls_cert.zip(args.tls_key).map(|(certificate, key)| Tls { certificate, key }),
        token_file: args.token_file,
        trusted: args.trusted.into_iter().collect(),
        quota: args.quota,
        lfs_from: args.lfs_from,
        part_size: args.part_size.unwrap_or(defaults.part_size).max(1),
        page_size: args.page_size.unwrap_or(defaults.page_size).max(1),
        ..defaults
    };
    start_log(args.log);
    let root = config.root.clone();
    let protected = config.token_file.clone();
    let hub = Hub::start(config)?;
    let endpoint = hub.endpoint();
    output.ready(&json!({"endpoint": endpoint}), &format!("serving {} at {endpoint}", root.display()));
    match protected {
        Some(file) => output.note(&format!("the operator's token is in {}", file.display())),
        None if hub.is_open() => {
            output.note("anyone on this machine may write; --token-file or `hub token create` changes that");
        }
        None => {}
    }
    output.note(&format!("clients use it with HF_ENDPOINT={endpoint}; Ctrl-C stops it"));
    hub.run_until_signal()
}

/// Writes what happens to standard error from here on.
fn start_log(format: LogFormat) {
    let level = if format == LogFormat::Off { LevelFilter::ERROR } else { LevelFilter::INFO };
    let log = tracing_subscriber::fmt().with_writer(std::io::stderr).with_max_level(level).with_target(false);
    let started = match format {
        LogFormat::Json => log.json().flatten_event(true).try_init(),
        LogFormat::Text | LogFormat::Off => {
            log.with_ansi(std::io::IsTerminal::is_terminal(&std::io::stderr())).try_init()
        }
    };
    // Only a program that has a log of its own has one already.
    let _ = started;
}
