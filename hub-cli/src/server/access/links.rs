//! Links that carry their own permission: uploads to them come without a token.

use std::time::{SystemTime, UNIX_EPOCH};

use hmac::{Hmac, KeyInit, Mac};
use sha2::Sha256;

use crate::error::{Code, Error, Result};

use super::super::store::Store;

/// The record in the store.
const RECORD: &str = "link-key";

/// How long a link works, in seconds.
const LIFETIME: u64 = 6 * 3600;

/// The key with which a hub signs links, kept in its folder for the operator alone.
#[derive(Clone)]
pub(crate) struct LinkKey([u8; 32]);

impl std::fmt::Debug for LinkKey {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("LinkKey(..)")
    }
}

/// The permission in a link's query.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub(crate) struct Permit {
    /// The size of the upload, in bytes.
    pub(crate) size: u64,
    /// The number of parts, of a content that is sent in parts.
    pub(crate) parts: u64,
    /// Which part this is, from 1; 0 for the whole.
    pub(crate) part: u64,
    /// Seconds since 1970.
    pub(crate) expires: u64,
    /// HMAC-SHA256 of the path and everything above.
    pub(crate) signature: String,
}

impl LinkKey {
    /// The key of a hub, made if missing; servers that share a store share it.
    ///
    /// # Errors
    /// `H0505` if it is damaged.
    pub(crate) fn of(store: &Store) -> Result<Self> {
        let mut key = [0; 32];
        getrandom::fill(&mut key).map_err(|e| Error::new(Code::Io, format!("no randomness: {e}")))?;
        store.swap_private(RECORD, None, &key)?;
        let damaged = || Error::new(Code::Stored, format!("{RECORD} is not a key of 32 bytes"));
        store.private(RECORD)?.and_then(|bytes| bytes.try_into().ok()).map(Self).ok_or_else(damaged)
    }

    /// A permission to send `size` bytes to `path`.
    pub(crate) fn permit(&self, path: &str, size: u64, (part, parts): (u64, u64)) -> Permit {
        let mut permit = Permit { size, parts, part, expires: now() + LIFETIME, signature: String::new() };
        permit.signature = hex::encode(self.mac(path, &permit).finalize().into_bytes());
        permit
    }

    /// Checks a permission for `path`, in constant time.
    ///
    /// # Errors
    /// `H0204` if it is not ours, or expired.
    pub(crate) fn check(&self, path: &str, permit: &Permit) -> Result<()> {
        let signature = hex::decode(&permit.signature).unwrap_or_default();
        let refused = |why| Err(Error::new(Code::NotAllowed, format!("this upload link {why}")));
        if self.mac(path, permit).verify_slice(&signature).is_err() {
            return refused("was not made by this hub");
        }
        if now() >= permit.expires { refused("has expired") } else { Ok(()) }
    }

    fn mac(&self, path: &str, permit: &Permit) -> Hmac<Sha256> {
        let mut mac = Hmac::new_from_slice(&self.0).expect("HMAC takes keys of any length");
        let Permit { size, parts, part, expires, .. } = permit;
        mac.update(format!("{path}\n{size}\n{part}/{parts}\n{expires}").as_bytes());
        mac
    }
}

fn now() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |d| d.as_secs())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_permission_is_for_one_path_size_part_and_time() {
        let root = tempfile::tempdir().unwrap();
        let store = Store::open(root.path()).unwrap();
        let key = LinkKey::of(&store).unwrap();
        let good = key.permit("/large/a/b/c", 10, (1, 2));
        assert!(LinkKey::of(&store).unwrap().check("/large/a/b/c", &good).is_ok());
        assert!(key.check("/large/a/b/d", &good).is_err());
        for bad in [
            Permit { size: 11, ..good.clone() },
            Permit { part: 2, ..good.clone() },
            Permit { parts: 3, ..good.clone() },
            Permit { expires: good.expires + 1, ..good.clone() },
            Permit { signature: String::new(), ..good.clone() },
            Permit { signature: "zz".into(), ..good.clone() },
        ] {
            assert!(key.check("/large/a/b/c", &bad).is_err(), "{bad:?}");
        }
        let mut old = Permit { expires: 1, ..good };
        old.signature = hex::encode(key.mac("/large/a/b/c", &old).finalize().into_bytes());
        assert!(key.check("/large/a/b/c", &old).unwrap_err().to_string().contains("expired"));
    }
}
