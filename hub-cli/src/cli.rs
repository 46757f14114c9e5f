//! The command line as clap types, and nothing else.

pub(crate) mod hub;

use std::net::IpAddr;
use std::path::PathBuf;

use clap::builder::styling::{AnsiColor, Styles};
use clap::{Args, Parser, Subcommand, ValueEnum};

mod fetching;
mod looking;
mod module;
mod publishing;
mod signing;

pub(crate) use fetching::*;
pub(crate) use looking::*;
pub(crate) use module::*;
pub(crate) use publishing::*;
pub(crate) use signing::*;

const STYLES: Styles = Styles::styled()
    .header(AnsiColor::Green.on_default().bold())
    .usage(AnsiColor::Green.on_default().bold())
    .literal(AnsiColor::Cyan.on_default().bold())
    .placeholder(AnsiColor::Cyan.on_default());

/// Build, publish, fetch and serve TPU kernel packages.
#[derive(Debug, Parser)]
#[command(name = "kernels-cli", version, styles = STYLES, after_help = "\
Environment:
  HF_ENDPOINT     the hub, https://huggingface.co by default
  HF_TOKEN        the access token (else the file HF_TOKEN_PATH, else $HF_HOME/token)
  HF_HUB_CACHE    the cache (KERNELS_CACHE and HF_HOME count too)
  HF_HUB_OFFLINE  1 to use the cache alone

Example: a hub of your own, a package on it, and the package back
  kernels-cli serve --root hub --port 8000 &
  export HF_ENDPOINT=http://127.0.0.1:8000
  kernels-cli build kernels/packages/ragged-dot-tpu
  kernels-cli publish kernels/packages/ragged-dot-tpu tengomucho/ragged-dot-tpu --version 1
  kernels-cli get tengomucho/ragged-dot-tpu@v1")]
pub(crate) struct Cli {
    #[command(flatten)]
    pub(crate) global: Global,
    #[command(subcommand)]
    pub(crate) command: Command,
}

/// Flags of every command.
#[derive(Debug, Args)]
pub(crate) struct Global {
    /// Print one JSON document instead of text
    #[arg(long, global = true)]
    pub(crate) json: bool,
    /// Print only what was asked for, and errors
    #[arg(long, short, global = true)]
    pub(crate) quiet: bool,
    /// The hub's address, instead of HF_ENDPOINT
    #[arg(long, global = true, value_name = "URL", help_heading = "Hub options")]
    pub(crate) endpoint: Option<String>,
    /// The cache folder, instead of HF_HUB_CACHE
    #[arg(long, global = true, value_name = "DIR", help_heading = "Hub options")]
    pub(crate) cache_dir: Option<PathBuf>,
    /// Use the cache alone, as HF_HUB_OFFLINE=1
    #[arg(long, global = true, help_heading = "Hub options")]
    pub(crate) offline: bool,
    /// Send the token over plain http to another machine
    #[arg(long, global = true, help_heading = "Hub options")]
    pub(crate) allow_http_token: bool,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    Build(Build),
    Publish(Publish),
    Get(Get),
    Lock(Lock),
    Verify(Verify),
    Versions(Versions),
    Info(Info),
    Search(Search),
    Diff(Diff),
    Bundle(Bundle),
    Unbundle(Unbundle),
    Mirror(Mirror),
    Cache(Cache),
    Keygen(Keygen),
    Sign(Sign),
    Trust(Trust),
    Run(Run),
    Show(Show),
    Serve(Serve),
    Hub(hub::Hub),
    Explain(Explain),
    Completions(Completions),
}

/// Compile a package into its variants
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  kernels-cli build kernels/packages/ragged-dot-tpu
  kernels-cli build kernels/packages/ragged-dot-tpu --out /var/tmp/ragged-dot")]
pub(crate) struct Build {
    /// The package: a folder with build.toml
    #[arg(value_name = "PACKAGE")]
    pub(crate) package: PathBuf,
    /// Where the variants go [default: PACKAGE/build]
    #[arg(long, value_name = "DIR")]
    pub(crate) out: Option<PathBuf>,
    /// Do not check the modules with libtpu; they then claim no TPU generation
    #[arg(long)]
    pub(crate) no_tpu_check: bool,
}

/// List the versions of a kernel
#[derive(Debug, Args)]
#[command(after_help = "\
Example:
  kernels-cli versions tengomucho/ragged-dot-tpu --json")]
pub(crate) struct Versions {
    /// The repository
    #[arg(value_name = "OWNER/NAME")]
    pub(crate) repo: String,
}

/// Run a hub of your own out of one folder
#[derive(Debug, Args)]
#[command(after_help = "\
Python and Rust clients use it with HF_ENDPOINT set to its address. On 127.0.0.1 writes need no token
unless there is one: --token-file makes the operator's, `kernels-cli hub token create` those of users.
For any other host there must be one.

Examples:
  kernels-cli serve --root hub --port 8000
  kernels-cli serve --root hub --host 0.0.0.0 --port 8000 --token-file hub.token --trust acme
  kernels-cli serve --root hub --host 0.0.0.0 --port 443 --tls-cert hub.pem --tls-key hub.key")]
pub(crate) struct Serve {
    /// The folder that holds everything; made if missing
    #[arg(long, value_name = "DIR")]
    pub(crate) root: PathBuf,
    /// Share an object store with other servers: s3://BUCKET/FOLDER, gs://.. or az://..
    #[arg(long, value_name = "URL")]
    pub(crate) store: Option<String>,
    /// The port; 0 lets the system choose
    #[arg(long, value_name = "N", default_value_t = 8000)]
    pub(crate) port: u16,
    /// The address to listen on
    #[arg(long, value_name = "IP", default_value = "127.0.0.1")]
    pub(crate) host: IpAddr,
    /// The file with the operator's token, which may do everything; made if missing
    #[arg(long, value_name = "FILE")]
    pub(crate) token_file: Option<PathBuf>,
    /// Let Python load this owner's kernels without trust_remote_code; can be repeated
    #[arg(long = "trust", value_name = "OWNER")]
    pub(crate) trusted: Vec<String>,
    /// Serve https with this certificate, in PEM
    #[arg(long, value_name = "FILE", requires = "tls_key")]
    pub(crate) tls_cert: Option<PathBuf>,
    /// The certificate's private key, in PEM
    #[arg(long, value_name = "FILE", requires = "tls_cert")]
    pub(crate) tls_key: Option<PathBuf>,
    /// The most bytes that one owner may store, unless `hub owner` says otherwise
    #[arg(long, value_name = "BYTES")]
    pub(crate) quota: Option<u64>,
    /// Ask for files from this size on through LFS; their senders then set HF_HUB_DISABLE_XET=1
    #[arg(long, value_name = "BYTES")]
    pub(crate) lfs_from: Option<u64>,
    /// How requests are logged, on standard error
    #[arg(long, value_enum, value_name = "FORMAT", default_value_t = LogFormat::Text)]
    pub(crate) log: LogFormat,
    /// The size of a part of a file that is sent in parts
    #[arg(long, hide = true, value_name = "BYTES")]
    pub(crate) part_size: Option<u64>,
    /// Entries in a page of a listing
    #[arg(long, hide = true, value_name = "N")]
    pub(crate) page_size: Option<usize>,
}

/// How `serve` writes its log.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum LogFormat {
    Text,
    Json,
    /// Nothing but failures
    Off,
}

/// Say what an error code means
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  kernels-cli explain H0301
  kernels-cli explain K0302
  kernels-cli explain")]
pub(crate) struct Explain {
    /// The code, such as K0302; without one, all codes are listed
    #[arg(value_name = "CODE")]
    pub(crate) code: Option<String>,
}

/// Print completions for a shell
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  kernels-cli completions bash > ~/.local/share/bash-completion/completions/kernels-cli
  kernels-cli completions zsh > ~/.zfunc/_kernels-cli")]
pub(crate) struct Completions {
    /// The shell
    #[arg(value_name = "SHELL")]
    pub(crate) shell: clap_complete::Shell,
}
