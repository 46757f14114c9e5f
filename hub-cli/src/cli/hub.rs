//! The arguments of `hub`, the operator's side of a hub of one's own.

use std::path::PathBuf;

use clap::{Args, Subcommand, ValueEnum};

/// Look after a hub of your own: accounts, checks, garbage, backups
#[derive(Debug, Args)]
#[command(after_help = "\
All of it may be done while the hub is served; changes of accounts count at once.

Examples:
  kernels-cli hub token create --root hub --user alice --scope write
  kernels-cli hub owner acme --root hub --member alice --trust --quota 10000000000
  kernels-cli hub import kernels-community/activation --root hub
  kernels-cli hub fsck --root hub
  kernels-cli hub gc --root hub --older-than 7
  kernels-cli hub backup --root hub --to /backup/hub")]
pub(crate) struct Hub {
    #[command(subcommand)]
    pub(crate) command: HubCommand,
}

#[derive(Debug, Subcommand)]
pub(crate) enum HubCommand {
    /// Make, list and revoke access tokens
    Token(TokenArgs),
    /// Show or change a user or organisation
    Owner(OwnerArgs),
    /// Copy kernels from another hub with the ids of their commits
    Import(Import),
    /// Check that everything is there and is what its id says
    Fsck(Fsck),
    /// Remove what nothing leads to, such as uploads without a commit
    Gc(Gc),
    /// Bring a copy in another folder up to date
    Backup(Backup),
}

/// Which hub.
#[derive(Debug, Args)]
pub(crate) struct Root {
    /// The hub's folder, as given to `serve`
    #[arg(long, value_name = "DIR")]
    pub(crate) root: PathBuf,
}

#[derive(Debug, Args)]
pub(crate) struct TokenArgs {
    #[command(subcommand)]
    pub(crate) command: TokenCommand,
}

#[derive(Debug, Subcommand)]
pub(crate) enum TokenCommand {
    /// Make a token and print it; it cannot be shown again
    Create(TokenCreate),
    /// List the tokens, by the first digits of their SHA-256
    Ls(Root),
    /// Make a token worthless
    Revoke(TokenRevoke),
}

#[derive(Debug, Args)]
pub(crate) struct TokenCreate {
    #[command(flatten)]
    pub(crate) hub: Root,
    /// Whose token it is
    #[arg(long, value_name = "NAME")]
    pub(crate) user: String,
    /// What it lets its bearer do
    #[arg(long, value_enum, default_value_t = ScopeArg::Read)]
    pub(crate) scope: ScopeArg,
    /// Only this repository; can be repeated [default: all of the user's]
    #[arg(long = "repo", value_name = "OWNER/NAME")]
    pub(crate) repos: Vec<String>,
    /// For so many days [default: until it is revoked]
    #[arg(long, value_name = "N")]
    pub(crate) days: Option<u64>,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
pub(crate) enum ScopeArg {
    Read,
    Write,
}

#[derive(Debug, Args)]
pub(crate) struct TokenRevoke {
    #[command(flatten)]
    pub(crate) hub: Root,
    /// The first digits of its SHA-256, as `ls` shows them
    #[arg(value_name = "ID")]
    pub(crate) id: String,
}

#[derive(Debug, Args)]
pub(crate) struct OwnerArgs {
    /// The user or organisation
    #[arg(value_name = "NAME")]
    pub(crate) name: String,
    #[command(flatten)]
    pub(crate) hub: Root,
    /// Let this user write to its repositories; can be repeated
    #[arg(long = "member", value_name = "USER")]
    pub(crate) members: Vec<String>,
    /// Take that right away; can be repeated
    #[arg(long = "remove-member", value_name = "USER")]
    pub(crate) removed: Vec<String>,
    /// Let Python load its kernels without trust_remote_code
    #[arg(long, conflicts_with = "no_trust")]
    pub(crate) trust: bool,
    /// Trust it no longer
    #[arg(long)]
    pub(crate) no_trust: bool,
    /// The most bytes that its repositories may hold together
    #[arg(long, value_name = "BYTES", conflicts_with = "no_quota")]
    pub(crate) quota: Option<u64>,
    /// Limit it no longer
    #[arg(long)]
    pub(crate) no_quota: bool,
}

/// Copy kernels from another hub with the ids of their commits
#[derive(Debug, Args)]
#[command(after_help = "\
The kernels come from the hub that HF_ENDPOINT names, by way of this machine's cache, and are checked as `get`
checks them. A `kernels.lock` or a pinned revision from there holds on this hub too. Of the past of a version
only its newest commit comes. Repeated, it brings what is new.

Examples:
  kernels-cli hub import kernels-community/activation --root hub
  kernels-cli hub import tengomucho/ragged-dot-tpu --version 1 --root hub --private")]
pub(crate) struct Import {
    /// The repository; can be repeated
    #[arg(value_name = "OWNER/NAME", required = true)]
    pub(crate) repos: Vec<String>,
    #[command(flatten)]
    pub(crate) hub: Root,
    /// Only this version; can be repeated [default: all]
    #[arg(long = "version", value_name = "N")]
    pub(crate) versions: Vec<u32>,
    /// Make a new repository private, as it is anyway if it is private there
    #[arg(long)]
    pub(crate) private: bool,
}

#[derive(Debug, Args)]
pub(crate) struct Fsck {
    #[command(flatten)]
    pub(crate) hub: Root,
    /// Do not hash the files
    #[arg(long)]
    pub(crate) quick: bool,
}

#[derive(Debug, Args)]
pub(crate) struct Gc {
    #[command(flatten)]
    pub(crate) hub: Root,
    /// Spare what is younger than so many days
    #[arg(long, value_name = "DAYS", default_value_t = 7)]
    pub(crate) older_than: u64,
    /// Only say what would go
    #[arg(long)]
    pub(crate) dry_run: bool,
}

#[derive(Debug, Args)]
pub(crate) struct Backup {
    #[command(flatten)]
    pub(crate) hub: Root,
    /// The copy's folder; made if missing
    #[arg(long, value_name = "DIR")]
    pub(crate) to: PathBuf,
}
