//! Arguments of the commands about keys, signatures and what they prove.

use std::path::PathBuf;

use clap::{Args, Subcommand};

/// Make a key to sign packages with
#[derive(Debug, Args)]
#[command(after_help = "\
The file is an Ed25519 key in PKCS#8 form that only you may read. Others need the public key that is printed.

Examples:
  kernels-cli keygen ~/.config/tessera/acme.key
  kernels-cli keygen ~/.config/tessera/acme.key --show")]
pub(crate) struct Keygen {
    /// The new file
    #[arg(value_name = "FILE")]
    pub(crate) file: PathBuf,
    /// Print the public half of a key that exists
    #[arg(long)]
    pub(crate) show: bool,
}

/// Sign the variants of a built package
#[derive(Debug, Args)]
#[command(after_help = "\
The signatures lie beside the variants, in signatures/, and are published with them. `publish --sign KEY` does
both at once.

Example:
  kernels-cli sign kernels/packages/ragged-dot-tpu --key ~/.config/tessera/acme.key")]
pub(crate) struct Sign {
    /// The package's folder, or the folder with its variants
    #[arg(value_name = "PATH")]
    pub(crate) path: PathBuf,
    /// The file with the secret key
    #[arg(long, value_name = "FILE")]
    pub(crate) key: PathBuf,
}

/// Say whose packages must be signed, and with which keys
#[derive(Debug, Args)]
#[command(after_help = "\
Once you trust a key of an owner, `get` and `verify` refuse every package of theirs that none of their keys
signed. The keys are in $XDG_CONFIG_HOME/tessera/trust.toml, which only you may read and write.

Examples:
  kernels-cli trust add acme ed25519:PUAXw+hDiVqStwqnTRt+vJyYLM8uxJaMwM1V8Sr0Zgw=
  kernels-cli trust ls
  kernels-cli trust rm acme")]
pub(crate) struct Trust {
    #[command(subcommand)]
    pub(crate) command: TrustCommand,
}

#[derive(Debug, Subcommand)]
pub(crate) enum TrustCommand {
    /// Trust a key for the packages of an owner
    Add {
        /// The owner of repositories
        owner: String,
        /// The public key
        #[arg(value_name = "ed25519:KEY")]
        key: String,
    },
    /// Trust a key no more, or none of an owner's
    Rm {
        /// The owner of repositories
        owner: String,
        /// The public key [default: all of them]
        #[arg(value_name = "ed25519:KEY")]
        key: Option<String>,
    },
    /// List the keys that you trust
    Ls,
}

/// Check a package that is here: digest, interface, provenance, signatures
#[derive(Debug, Args)]
#[command(after_help = "\
Nothing is asked of a network: a kernel comes from the cache, a package from its folder.

Examples:
  kernels-cli verify tengomucho/ragged-dot-tpu@v1
  kernels-cli verify tengomucho/ragged-dot-tpu@v1 --require-signature
  kernels-cli verify kernels/packages/ragged-dot-tpu --json")]
pub(crate) struct Verify {
    /// A kernel in the cache, or the folder of a built package
    #[arg(value_name = "OWNER/NAME@REV|PATH")]
    pub(crate) what: String,
    /// Fail unless every variant is signed with a key that you trust
    #[arg(long)]
    pub(crate) require_signature: bool,
}
