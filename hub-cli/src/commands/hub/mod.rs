//! `hub`: what the operator of a hub does beside serving it.

mod accounts;
mod import;
mod upkeep;

use crate::cli::hub::{Hub, HubCommand};
use crate::error::Result;
use crate::output::Output;
use crate::settings::HubSettings;

pub(super) fn run(args: &Hub, source: impl FnOnce() -> Result<HubSettings>, output: &Output) -> Result<()> {
    match &args.command {
        HubCommand::Token(args) => accounts::token(args, output),
        HubCommand::Owner(args) => accounts::owner(args, output),
        HubCommand::Import(args) => import::run(args, &source()?, output),
        HubCommand::Fsck(args) => upkeep::fsck(args, output),
        HubCommand::Gc(args) => upkeep::gc(args, output),
        HubCommand::Backup(args) => upkeep::backup(args, output),
    }
}
