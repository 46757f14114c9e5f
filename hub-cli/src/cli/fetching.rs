//! Arguments of the commands that bring kernels here, pin them, and look after the cache.

use std::path::PathBuf;

use clap::{Args, Subcommand};

/// Fetch a kernel into the cache and check every byte
#[derive(Debug, Args)]
#[command(after_help = "\
With --locked the commit comes from kernels.lock, and anything that is not locked is an error; without
OWNER/NAME all that is locked is fetched. The cache is the one that Python's `kernels` loads from, also
offline; a folder made with --to serves as LOCAL_KERNELS=\"OWNER/NAME=DIR\".

Examples:
  kernels-cli get tengomucho/ragged-dot-tpu --version 1
  kernels-cli get tengomucho/ragged-dot-tpu@v1
  kernels-cli get tengomucho/ragged-dot-tpu --revision 7a1c9f0e5b2d4a6c8e0f1a3b5c7d9e1f2a4b6c8d
  kernels-cli get tengomucho/ragged-dot-tpu@v1 --variant torch-tpu --json
  kernels-cli get tengomucho/ragged-dot-tpu@v1 --to vendor/ragged-dot
  kernels-cli get --locked --offline")]
pub(crate) struct Get {
    /// The repository, perhaps with @vN, @BRANCH or @COMMIT
    #[arg(value_name = "OWNER/NAME", required_unless_present = "locked")]
    pub(crate) repo: Option<String>,
    /// The version
    #[arg(long, value_name = "N")]
    pub(crate) version: Option<u32>,
    /// A branch, tag or commit
    #[arg(long, value_name = "REV", conflicts_with = "version")]
    pub(crate) revision: Option<String>,
    /// Only this variant, such as torch-tpu; can be repeated [default: all]
    #[arg(long = "variant", value_name = "NAME")]
    pub(crate) variants: Vec<String>,
    /// Also copy the variants into this new folder, as ordinary files
    #[arg(long, value_name = "DIR", requires = "repo")]
    pub(crate) to: Option<PathBuf>,
    /// Take the commits from the lock file, and fail if it does not say all that is wanted
    #[arg(long)]
    pub(crate) locked: bool,
    /// The lock file
    #[arg(long, value_name = "FILE", default_value = "kernels.lock")]
    pub(crate) lock_file: PathBuf,
}

/// Pin the kernels of a project to commits, in kernels.lock
#[derive(Debug, Args)]
#[command(after_help = "\
Reads [tool.kernels.dependencies] of DIR/pyproject.toml and writes DIR/kernels.lock as Python's `kernels lock`
does, and also for publishers that the hub does not call trusted, if you name them.

Examples:
  kernels-cli lock
  kernels-cli lock --add tengomucho/ragged-dot-tpu@v1 --allow tengomucho
  kernels-cli lock --check")]
pub(crate) struct Lock {
    /// The project's folder
    #[arg(value_name = "DIR", default_value = ".")]
    pub(crate) project: PathBuf,
    /// Let the kernels of this owner, or this one, be locked; can be repeated
    #[arg(long = "allow", value_name = "OWNER[/NAME]")]
    pub(crate) allow: Vec<String>,
    /// Add this kernel to pyproject.toml first; can be repeated
    #[arg(long = "add", value_name = "OWNER/NAME@vN", conflicts_with = "check")]
    pub(crate) add: Vec<String>,
    /// Write nothing, and fail if the lock file would change
    #[arg(long)]
    pub(crate) check: bool,
}

/// Pack kernels into one file, for a machine without a network
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  kernels-cli bundle kernels.tar                       # all that kernels.lock pins
  kernels-cli bundle kernels.tar tengomucho/ragged-dot-tpu@v1")]
pub(crate) struct Bundle {
    /// The file to write
    #[arg(value_name = "FILE")]
    pub(crate) file: PathBuf,
    /// The kernels [default: all that the lock file pins]
    #[arg(value_name = "OWNER/NAME@REV")]
    pub(crate) kernels: Vec<String>,
    /// Only this variant, such as torch-tpu; can be repeated [default: all]
    #[arg(long = "variant", value_name = "NAME")]
    pub(crate) variants: Vec<String>,
    /// The lock file
    #[arg(long, value_name = "FILE", default_value = "kernels.lock")]
    pub(crate) lock_file: PathBuf,
}

/// Unpack a bundle into the cache, checked as if it came from a hub
#[derive(Debug, Args)]
#[command(after_help = "\
Python's `kernels` then loads the kernels offline, and so does `kernels-cli get --offline`.

Example:
  kernels-cli unbundle kernels.tar")]
pub(crate) struct Unbundle {
    /// The bundle
    #[arg(value_name = "FILE")]
    pub(crate) file: PathBuf,
}

/// Look after the cache
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  kernels-cli cache ls
  kernels-cli cache verify
  kernels-cli cache gc --dry-run
  kernels-cli cache gc --unreferenced --lock-file app/kernels.lock")]
pub(crate) struct Cache {
    #[command(subcommand)]
    pub(crate) command: CacheCommand,
}

#[derive(Debug, Subcommand)]
pub(crate) enum CacheCommand {
    /// List the kernels in the cache
    Ls,
    /// Read every file and compare it with its id
    Verify {
        /// Remove what is damaged; the next `get` fetches it again
        #[arg(long)]
        remove: bool,
    },
    /// Remove what nothing refers to
    Gc {
        /// Say what would go, and remove nothing
        #[arg(long)]
        dry_run: bool,
        /// Also remove commits that no branch stands at any more
        #[arg(long)]
        unreferenced: bool,
        /// Keep the commits that this lock file names; can be repeated
        #[arg(long = "lock-file", value_name = "FILE", requires = "unreferenced")]
        lock_files: Vec<PathBuf>,
    },
}
