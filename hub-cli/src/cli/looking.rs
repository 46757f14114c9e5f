//! Arguments of the commands that look at what hubs hold.

use clap::Args;

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

/// Show what a kernel offers: variants, ops, dtypes, TPU generations
#[derive(Debug, Args)]
#[command(after_help = "\
Only metadata.json and index.json are fetched.

Examples:
  kernels-cli info tengomucho/ragged-dot-tpu
  kernels-cli info tengomucho/ragged-dot-tpu@v1 --json")]
pub(crate) struct Info {
    /// The repository, perhaps with @vN, @BRANCH or @COMMIT [default: the newest version]
    #[arg(value_name = "OWNER/NAME")]
    pub(crate) repo: String,
}

/// Find kernels on the hub
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  kernels-cli search ragged
  kernels-cli search --author tengomucho")]
pub(crate) struct Search {
    /// Words of the name [default: any]
    #[arg(value_name = "WORDS", required_unless_present = "author")]
    pub(crate) query: Option<String>,
    /// Only of this owner
    #[arg(long, value_name = "OWNER")]
    pub(crate) author: Option<String>,
    /// The most kernels to list
    #[arg(long, value_name = "N", default_value_t = 20)]
    pub(crate) limit: usize,
}

/// Compare two versions: files, and what callers gain and lose
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  kernels-cli diff tengomucho/ragged-dot-tpu@v1 tengomucho/ragged-dot-tpu@v2
  kernels-cli diff acme/a@v1 acme/b@v1 --json")]
pub(crate) struct Diff {
    /// What callers use now
    #[arg(value_name = "OWNER/NAME@REV")]
    pub(crate) old: String,
    /// What would take its place
    #[arg(value_name = "OWNER/NAME@REV")]
    pub(crate) new: String,
}
