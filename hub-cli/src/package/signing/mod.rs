//! Signatures of packages: who vouches for a variant, and which owners' keys the user trusts.
//!
//! A signature covers the bytes of a variant's metadata.json, which holds the digest of every other file. It lies
//! beside the variants, as `signatures/VARIANT.json`, since a file more in a variant would not match its digest.

mod key;
mod signature;
mod sigstore;
mod trust;

pub use key::{PublicKey, SecretKey};
pub use signature::{Signature, signed_variant};
pub use sigstore::{Identity, Sigstore, SigstoreTrust, Verified};
pub use trust::TrustStore;

use crate::error::{Code, Error, Result};

use super::Variant;

/// What is known of a variant's signature.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Standing {
    /// It has none.
    Unsigned,
    /// It was signed with this key, which the user does not trust for the owner.
    Unknown(PublicKey),
    /// It was signed with this key, which the user trusts for the owner.
    Trusted(PublicKey),
}

impl TrustStore {
    /// What is known of the signature of `variant`, whose metadata.json is `metadata`.
    ///
    /// # Errors
    /// `H0311` for a signature that is not of these bytes; and, if the user trusts keys of `owner`, for a variant that
    /// none of them signed.
    pub fn standing(
        &self,
        owner: &str,
        variant: &str,
        metadata: &[u8],
        signature: Option<&Signature>,
    ) -> Result<Standing> {
        let keys = self.keys(owner);
        let refuse = |what: String| {
            Error::new(Code::Signature, format!("{variant} {what}")).help(format!(
                "ask {owner} which key is theirs: `kernels-cli trust ls` shows those that you trust"
            ))
        };
        let Some(signature) = signature else {
            return match keys {
                [] => Ok(Standing::Unsigned),
                _ => Err(refuse(format!("is not signed, and you trust keys of {owner}"))),
            };
        };
        signature.check(metadata).map_err(|why| {
            Error::new(Code::Signature, format!("the signature of {variant} {why}"))
                .help("the package was changed after it was signed, or signed for another build")
        })?;
        match keys {
            [] => Ok(Standing::Unknown(signature.key.clone())),
            keys if keys.contains(&signature.key) => Ok(Standing::Trusted(signature.key.clone())),
            _ => Err(refuse(format!("is signed with {}, which you do not trust for {owner}", signature.key))),
        }
    }

    /// The standing of each variant, in order; `signature` finds the one of a variant.
    ///
    /// # Errors
    /// Those of [`TrustStore::standing`].
    pub(crate) fn standings(
        &self,
        owner: &str,
        variants: &[Variant],
        mut signature: impl FnMut(&str) -> Result<Option<Signature>>,
    ) -> Result<Vec<Standing>> {
        let standing = |variant: &Variant| {
            self.standing(
                owner,
                &variant.name,
                &variant.metadata_bytes()?,
                signature(&variant.name)?.as_ref(),
            )
        };
        variants.iter().map(standing).collect()
    }
}
