//! Arguments of the commands that put something on a hub.

use std::path::PathBuf;

use clap::Args;

/// Put a built package on the hub as one version
#[derive(Debug, Args)]
#[command(after_help = "\
What is there already is compared first: the files, and the interface that callers of the version rely on.
A change that would break one of them is refused; it belongs into the next version. The version appears in
one step, or not at all; then it is fetched, every byte is checked, and Python imports it.

Examples:
  kernels-cli publish kernels/packages/ragged-dot-tpu tengomucho/ragged-dot-tpu --version 1
  kernels-cli publish . acme/add-one --version 1 --dry-run
  kernels-cli publish . acme/add-one --version 1 --create-pr
  HF_ENDPOINT=http://127.0.0.1:8000 kernels-cli publish . acme/add-one --version 2 --json")]
pub(crate) struct Publish {
    /// The package's folder, or the folder with its variants
    #[arg(value_name = "PATH")]
    pub(crate) path: PathBuf,
    /// The repository; it is made if it does not exist
    #[arg(value_name = "OWNER/NAME")]
    pub(crate) repo: String,
    /// The version, kept on the branch vN
    #[arg(long, value_name = "N")]
    pub(crate) version: u32,
    /// Make a new repository private
    #[arg(long)]
    pub(crate) private: bool,
    /// Say what would change, and change nothing
    #[arg(long)]
    pub(crate) dry_run: bool,
    /// Make a pull request instead of a commit on the branch
    #[arg(long, conflicts_with_all = ["dry_run", "private"])]
    pub(crate) create_pr: bool,
    /// Sign the variants with the secret key in this file
    #[arg(long, value_name = "FILE")]
    pub(crate) sign: Option<PathBuf>,
    /// Publish a package that was built from uncommitted changes
    #[arg(long)]
    pub(crate) allow_dirty: bool,
    /// Publish modules that libtpu has not accepted
    #[arg(long)]
    pub(crate) allow_unchecked: bool,
}

/// Copy versions of a kernel to another hub
#[derive(Debug, Args)]
#[command(after_help = "\
The kernel comes from the hub that HF_ENDPOINT names. Every byte is checked on the way; what is there already
is not sent again. Tags of these versions come along. Commits have other ids on the other hub.

Examples:
  kernels-cli mirror tengomucho/ragged-dot-tpu --to http://127.0.0.1:8000
  kernels-cli mirror acme/add-one --to https://hub.acme.dev --to-token-file ~/.acme-token --version 2")]
pub(crate) struct Mirror {
    /// The repository
    #[arg(value_name = "OWNER/NAME")]
    pub(crate) repo: String,
    /// The address of the other hub
    #[arg(long, value_name = "URL")]
    pub(crate) to: String,
    /// Its name there [default: the same]
    #[arg(long, value_name = "OWNER/NAME")]
    pub(crate) to_repo: Option<String>,
    /// The file with the token for the other hub
    #[arg(long, value_name = "FILE")]
    pub(crate) to_token_file: Option<PathBuf>,
    /// Only this version; can be repeated [default: all]
    #[arg(long = "version", value_name = "N")]
    pub(crate) versions: Vec<u32>,
    /// Make a new repository private, as it is anyway if it is private here
    #[arg(long)]
    pub(crate) private: bool,
}
