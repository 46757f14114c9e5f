//! One file a command: it takes plain values, does its work, and reports through [`Output`].

mod build;
mod bundle;
mod cache;
mod completions;
mod diff;
mod explain;
mod get;
mod hub;
mod info;
mod keygen;
mod lock;
mod mirror;
mod publish;
mod run;
mod search;
mod serve;
mod show;
mod sign;
mod trust;
mod verify;
mod versions;

use crate::cli::{Cli, Command, Global};
use crate::error::Result;
use crate::output::Output;
use crate::settings::{Environment, HubFlags, HubSettings};

/// Runs the command of `cli`.
pub(crate) fn run(cli: Cli, environment: &Environment, output: &Output) -> Result<()> {
    let hub = || hub_settings(&cli.global, environment, output);
    match cli.command {
        Command::Build(args) => build::run(&args, &environment.own_cache(), output),
        Command::Publish(args) => publish::run(&args, &hub()?, output),
        Command::Get(args) => get::run(&args, &hub()?, output),
        Command::Lock(args) => lock::run(&args, &hub()?, output),
        Command::Info(args) => info::run(&args, &hub()?, output),
        Command::Search(args) => search::run(&args, &hub()?, output),
        Command::Diff(args) => diff::run(&args, &hub()?, output),
        Command::Bundle(args) => bundle::pack(&args, &hub()?, output),
        Command::Unbundle(args) => bundle::unpack(&args, &hub()?, output),
        Command::Mirror(args) => mirror::run(&args, &hub()?, cli.global.allow_http_token, output),
        Command::Verify(args) => verify::run(&args, &hub()?, output),
        Command::Keygen(args) => keygen::run(&args, output),
        Command::Sign(args) => sign::run(&args, output),
        Command::Trust(args) => trust::run(args, environment.trust()?, output),
        Command::Cache(args) => cache::run(&args, &hub()?, output),
        Command::Run(args) => run::run(&args, hub, output),
        Command::Show(args) => show::run(&args, hub, output),
        Command::Versions(args) => versions::run(&args, &hub()?, output),
        Command::Serve(args) => serve::run(args, output),
        Command::Hub(args) => hub::run(&args, hub, output),
        Command::Explain(args) => explain::run(&args, output),
        Command::Completions(args) => completions::run(&args, output),
    }
}

fn hub_settings(global: &Global, environment: &Environment, output: &Output) -> Result<HubSettings> {
    let flags = HubFlags {
        endpoint: global.endpoint.clone(),
        cache_dir: global.cache_dir.clone(),
        offline: global.offline,
        allow_http_token: global.allow_http_token,
    };
    let settings = HubSettings::resolve(&flags, environment)?;
    if settings.token_withheld {
        let hub = &settings.endpoint;
        output.note(&format!("note: {hub} is plain http on another machine, so the token is not sent to it"));
    }
    Ok(settings)
}
