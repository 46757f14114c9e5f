//! Ed25519 keys: the secret one in a PKCS#8 file as OpenSSL writes it, the public one as a line of text.

use std::fmt;
use std::path::Path;
use std::str::FromStr;

use aws_lc_rs::rand::SystemRandom;
use aws_lc_rs::signature::{ED25519, Ed25519KeyPair, KeyPair, UnparsedPublicKey};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use fs_err as fs;
use serde::{Deserialize, Serialize};

use crate::atomic;
use crate::error::{Code, Error, Result};

const PREFIX: &str = "ed25519:";
const BEGIN: &str = "-----BEGIN PRIVATE KEY-----";
const END: &str = "-----END PRIVATE KEY-----";
/// The length of an Ed25519 public key, in bytes.
const KEY_BYTES: usize = 32;

/// A public key: `ed25519:` and the base64 of its 32 bytes.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct PublicKey([u8; KEY_BYTES]);

/// A secret key. It shows itself to nobody.
pub struct SecretKey(Ed25519KeyPair);

impl PublicKey {
    /// Whether `signature` is this key's, of `message`.
    pub(super) fn verifies(&self, message: &[u8], signature: &[u8]) -> bool {
        UnparsedPublicKey::new(&ED25519, &self.0).verify(message, signature).is_ok()
    }
}

impl FromStr for PublicKey {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        let bytes = text.trim().strip_prefix(PREFIX).and_then(|base64| STANDARD.decode(base64).ok());
        let bytes = bytes.and_then(|bytes| bytes.try_into().ok());
        bytes.map(Self).ok_or_else(|| {
            Error::new(Code::Key, format!("{text:?} is not a public key"))
                .help("it is `ed25519:` and 44 characters of base64, as `kernels-cli keygen` prints it")
        })
    }
}

impl TryFrom<String> for PublicKey {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        text.parse().map_err(|e: Error| e.to_string())
    }
}

impl From<PublicKey> for String {
    fn from(key: PublicKey) -> Self {
        key.to_string()
    }
}

impl fmt::Display for PublicKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{PREFIX}{}", STANDARD.encode(self.0))
    }
}

impl SecretKey {
    /// A new key, written to `path`, which must not exist yet; only its owner may read it.
    ///
    /// # Errors
    /// `H0113` if there is a file already, `H0109` if it cannot be written.
    pub fn create(path: &Path) -> Result<Self> {
        if path.exists() {
            return Err(Error::new(Code::Key, format!("{} exists, and may hold a key", path.display()))
                .help("name a new file: a key that is lost cannot be made again"));
        }
        let failed = |_| Error::new(Code::Key, "the system gives no random numbers");
        let document = Ed25519KeyPair::generate_pkcs8v1(&SystemRandom::new()).map_err(failed)?;
        let text = format!("{BEGIN}\n{}\n{END}\n", STANDARD.encode(document.as_ref()));
        atomic::write_private(path, text.as_bytes())?;
        Self::parse(&text, path)
    }

    /// Reads the key in the file `path`.
    ///
    /// # Errors
    /// `H0113` if it holds no Ed25519 key, or others may read it.
    pub fn read(path: &Path) -> Result<Self> {
        atomic::require_private(path)?;
        Self::parse(&fs::read_to_string(path).map_err(|e| Error::io(path, e))?, path)
    }

    fn parse(text: &str, path: &Path) -> Result<Self> {
        let base64 = text.trim().strip_prefix(BEGIN).and_then(|rest| rest.strip_suffix(END));
        let der = base64.and_then(|lines| STANDARD.decode(lines.split_whitespace().collect::<String>()).ok());
        // OpenSSL's files hold the secret half alone.
        let key = der.and_then(|der| Ed25519KeyPair::from_pkcs8_maybe_unchecked(&der).ok());
        key.map(Self).ok_or_else(|| {
            Error::new(Code::Key, format!("{} holds no Ed25519 key in PKCS#8 form", path.display()))
                .help("`kernels-cli keygen FILE` makes one, and so does `openssl genpkey -algorithm ed25519`")
        })
    }

    /// The public half.
    pub fn public(&self) -> PublicKey {
        let bytes = self.0.public_key().as_ref().try_into().expect("an Ed25519 key has 32 bytes");
        PublicKey(bytes)
    }

    /// The signature of `message`; always the same for the same message.
    pub(super) fn sign(&self, message: &[u8]) -> Vec<u8> {
        self.0.sign(message).as_ref().to_vec()
    }
}

impl fmt::Debug for SecretKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("SecretKey(..)")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// RFC 8032, section 7.1, test 2, and its key as OpenSSL writes it.
    const PEM: &str = "-----BEGIN PRIVATE KEY-----\nMC4CAQAwBQYDK2VwBCIEIEzNCJso/5banbbDRuwRTg9bijGfNaumJNqM9u1PuKb7\n-----END PRIVATE KEY-----\n";
    const PUBLIC: &str = "3d4017c3e843895a92b70aa74d1b7ebc9c982ccf2ec4968cc0cd55f12af4660c";
    const SIGNATURE: &str = "92a009a9f0d4cab8720e820b5f642540a2b27b5416503f8fb3762223ebdb69da085ac1e43e15996e458f3613d0f11d8c387b2eaeb4302aeeb00d291612bb0c00";

    #[test]
    fn signatures_are_those_of_rfc_8032() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("key");
        atomic::write_private(&path, PEM.as_bytes()).unwrap();
        let key = SecretKey::read(&path).unwrap();
        assert_eq!(hex::encode(key.public().0), PUBLIC);
        assert_eq!(hex::encode(key.sign(&[0x72])), SIGNATURE);
        assert!(key.public().verifies(&[0x72], &hex::decode(SIGNATURE).unwrap()));
        assert!(!key.public().verifies(&[0x73], &hex::decode(SIGNATURE).unwrap()));
        assert_eq!(format!("{key:?}"), "SecretKey(..)");
    }

    #[test]
    fn a_new_key_is_private_and_is_not_overwritten() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("key");
        let made = SecretKey::create(&path).unwrap();
        assert_eq!(SecretKey::read(&path).unwrap().public(), made.public());
        assert_eq!(SecretKey::create(&path).unwrap_err().code(), Code::Key);
        let text = made.public().to_string();
        assert_eq!(text.parse::<PublicKey>().unwrap(), made.public());
        #[cfg(unix)]
        {
            use std::os::unix::fs::PermissionsExt;
            assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
            fs::set_permissions(&path, std::fs::Permissions::from_mode(0o644)).unwrap();
            assert_eq!(SecretKey::read(&path).unwrap_err().code(), Code::Exposed);
        }
    }

    #[test]
    fn what_is_no_key_is_refused() {
        for bad in ["", "ed25519:", "ed25519:AAAA", "rsa:AAAA", "ed25519:!"] {
            assert_eq!(bad.parse::<PublicKey>().unwrap_err().code(), Code::Key, "{bad}");
        }
        assert!(
            SecretKey::parse("-----BEGIN PRIVATE KEY-----\nAAAA\n-----END PRIVATE KEY-----", Path::new("k"))
                .is_err()
        );
    }
}
