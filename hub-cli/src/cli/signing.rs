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
signed. Once you trust a sigstore identity of an owner, `verify` refuses every variant of theirs without a
sigstore bundle that proves it; `get` does not look at bundles. What you trust is in
$XDG_CONFIG_HOME/tessera/trust.toml, which only you may read and write.

Examples:
  kernels-cli trust add acme ed25519:PUAXw+hDiVqStwqnTRt+vJyYLM8uxJaMwM1V8Sr0Zgw=
  kernels-cli trust sigstore acme --root trusted_root.json \\
    --identity 'https://github.com/acme/kernels/*' --issuer https://token.actions.githubusercontent.com
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
    /// Trust whom a sigstore certificate names to sign the packages of an owner
    #[command(after_help = "\
trusted_root.json holds the certificate authorities of a sigstore instance and the keys of its logs; whoever
runs the instance publishes it, for the public one through TUF. `verify` then checks of a bundle, in this
order: it is of this metadata.json; the signature; that Rekor logged it, and when (signed entry timestamp,
proof of inclusion, checkpoint); that the entry is of this signature; that an authority issued the certificate
for that time, and a log made it public; identity and issuer. Bundles of Rekor v2, whose time only an RFC 3161
timestamp tells, are refused.

Example:
  kernels-cli trust sigstore acme --root trusted_root.json \\
    --identity 'https://github.com/acme/kernels/*' --issuer https://token.actions.githubusercontent.com")]
    Sigstore {
        /// The owner of repositories
        owner: String,
        /// The trusted_root.json of the sigstore instance
        #[arg(long, value_name = "FILE")]
        root: PathBuf,
        /// The address of a workflow or a person, or its beginning, up to a `/` or `@`, and `*`
        #[arg(long, value_name = "ID")]
        identity: String,
        /// Who tells sigstore that it is them
        #[arg(long, value_name = "URL")]
        issuer: String,
    },
    /// Trust a key or an identity no more, or none of an owner's
    Rm {
        /// The owner of repositories
        owner: String,
        /// The public key, or the sigstore identity [default: all of them]
        #[arg(value_name = "ed25519:KEY|ID")]
        which: Option<String>,
    },
    /// List the keys and identities that you trust
    Ls,
}

/// Check a package that is here: digest, interface, provenance, signatures
#[derive(Debug, Args)]
#[command(after_help = "\
Nothing is asked of a network: a kernel comes from the cache, a package from its folder. A sigstore
bundle (metadata.json.sigstore) is verified against the identities that `kernels-cli trust sigstore` recorded
for the owner.

Examples:
  kernels-cli verify tengomucho/ragged-dot-tpu@v1
  kernels-cli verify tengomucho/ragged-dot-tpu@v1 --require-signature
  kernels-cli verify kernels/packages/ragged-dot-tpu --owner tengomucho --json")]
pub(crate) struct Verify {
    /// A kernel in the cache, or the folder of a built package
    #[arg(value_name = "OWNER/NAME@REV|PATH")]
    pub(crate) what: String,
    /// Whose the package in a folder is, and so what must have signed it
    #[arg(long)]
    pub(crate) owner: Option<String>,
    /// Fail unless every variant is signed with a key or by an identity that you trust
    #[arg(long)]
    pub(crate) require_signature: bool,
}
