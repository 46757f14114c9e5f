//! `signatures/VARIANT.json`: one Ed25519 signature of the bytes of a variant's metadata.json.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde::{Deserialize, Serialize};

use crate::error::{Code, Error, Result};
use crate::hub::RepoPath;

use super::key::{PublicKey, SecretKey};

/// The largest file of this kind, in bytes.
const MAX_BYTES: usize = 4 << 10;

/// Who signed a variant.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Signature {
    schema: u32,
    /// The key that it is made with.
    pub key: PublicKey,
    /// Base64 of the 64 bytes.
    signature: String,
}

impl Signature {
    /// Signs the bytes of a metadata.json.
    pub fn new(key: &SecretKey, metadata: &[u8]) -> Self {
        Self { schema: 1, key: key.public(), signature: STANDARD.encode(key.sign(metadata)) }
    }

    /// Reads the file of a signature; `at` names it in messages.
    ///
    /// # Errors
    /// `H0311` if it is none.
    pub fn parse(json: &[u8], at: &str) -> Result<Self> {
        let invalid = |why: String| Error::new(Code::Signature, format!("{at} is not a signature: {why}"));
        if json.len() > MAX_BYTES {
            return Err(invalid(format!("it is larger than {MAX_BYTES} bytes")));
        }
        let signature: Self = serde_json::from_slice(json).map_err(|e| invalid(e.to_string()))?;
        match signature.schema {
            1 => Ok(signature),
            other => Err(invalid(format!("its schema is {other}, and this program knows 1"))),
        }
    }

    /// The file's text.
    pub fn to_json(&self) -> String {
        serde_json::to_string_pretty(self).expect("a signature is strings") + "\n"
    }

    /// Checks that this is the signature of `metadata`; else says what it is not.
    pub(super) fn check(&self, metadata: &[u8]) -> Result<(), &'static str> {
        let bytes = STANDARD.decode(&self.signature).map_err(|_| "is not base64")?;
        if self.key.verifies(metadata, &bytes) { Ok(()) } else { Err("is not that of its metadata.json") }
    }

    /// Whether this is a signature of `metadata`, whoever made it.
    pub(crate) fn is_of(&self, metadata: &[u8]) -> bool {
        self.check(metadata).is_ok()
    }

    /// Where a repository keeps the signature of a variant.
    ///
    /// # Errors
    /// `H0103`, for a name that is none of a variant.
    pub(crate) fn path(variant: &str) -> Result<RepoPath> {
        RepoPath::parse(&format!("signatures/{variant}.json"))
    }
}

/// The variant that the file `path` of a repository is a signature of, if it is one.
pub fn signed_variant(path: &RepoPath) -> Option<&str> {
    let name = path.as_str().strip_prefix("signatures/")?.strip_suffix(".json")?;
    crate::package::is_variant_name(name).then_some(name)
}
