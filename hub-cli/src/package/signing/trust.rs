//! The keys and the sigstore identities that a user trusts, by owner: a small file that only the user may write.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use fs_err as fs;
use serde::{Deserialize, Serialize};

use crate::atomic;
use crate::error::{Code, Error, Result};
use crate::hub::RepoId;

use super::key::PublicKey;
use super::sigstore::SigstoreTrust;

/// The keys and identities that a user trusts. Packages of an owner with keys here must be signed by one of them.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TrustStore {
    #[serde(default)]
    owners: BTreeMap<String, Vec<PublicKey>>,
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    sigstore: BTreeMap<String, Vec<SigstoreTrust>>,
    #[serde(skip)]
    path: PathBuf,
}

impl TrustStore {
    /// Reads the file at `path`; one that is not there trusts nobody.
    ///
    /// # Errors
    /// `H0113` if it is not valid, `H0114` if others may write it.
    pub fn read(path: &Path) -> Result<Self> {
        let text = match fs::read_to_string(path) {
            Ok(text) => text,
            Err(e) if e.kind() == std::io::ErrorKind::NotFound => String::new(),
            Err(e) => return Err(Error::io(path, e)),
        };
        if !text.is_empty() {
            atomic::require_private(path)?;
        }
        let store: Self = toml::from_str(&text).map_err(|e| {
            Error::new(Code::Key, format!("{} is not valid: {}", path.display(), e.message()))
        })?;
        Ok(Self { path: path.to_owned(), ..store })
    }

    /// The keys that are trusted for `owner`.
    pub fn keys(&self, owner: &str) -> &[PublicKey] {
        self.owners.get(owner).map_or(&[], Vec::as_slice)
    }

    /// All owners with their keys.
    pub fn owners(&self) -> impl Iterator<Item = (&str, &[PublicKey])> {
        self.owners.iter().map(|(owner, keys)| (owner.as_str(), keys.as_slice()))
    }

    /// The sigstore identities that are trusted for `owner`.
    pub fn identities(&self, owner: &str) -> &[SigstoreTrust] {
        self.sigstore.get(owner).map_or(&[], Vec::as_slice)
    }

    /// All owners with their sigstore identities.
    pub fn identified(&self) -> impl Iterator<Item = (&str, &[SigstoreTrust])> {
        self.sigstore.iter().map(|(owner, identities)| (owner.as_str(), identities.as_slice()))
    }

    /// The file.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Trusts `key` for `owner`, and writes the file.
    ///
    /// # Errors
    /// `H0101` for what cannot be an owner, `H0109` if the file cannot be written.
    pub fn add(&mut self, owner: &str, key: PublicKey) -> Result<()> {
        RepoId::new(owner, "x")?;
        let keys = self.owners.entry(owner.to_owned()).or_default();
        if !keys.contains(&key) {
            keys.push(key);
        }
        self.write()
    }

    /// Trusts an identity for `owner`, with the newest trusted root if it is known already, and writes the file.
    ///
    /// # Errors
    /// As [`TrustStore::add`].
    pub fn add_identity(&mut self, owner: &str, trust: SigstoreTrust) -> Result<()> {
        RepoId::new(owner, "x")?;
        let identities = self.sigstore.entry(owner.to_owned()).or_default();
        identities.retain(|known| known.identity != trust.identity || known.issuer != trust.issuer);
        identities.push(trust);
        self.write()
    }

    /// Trusts the sigstore identity `identity`, or without one any, for `owner` no more; whether there was one.
    ///
    /// # Errors
    /// `H0109` if the file cannot be written.
    pub fn remove_identity(&mut self, owner: &str, identity: Option<&str>) -> Result<bool> {
        let Some(identities) = self.sigstore.get_mut(owner) else { return Ok(false) };
        let before = identities.len();
        identities.retain(|known| identity.is_some_and(|identity| identity != known.identity.as_str()));
        let removed = identities.len() < before;
        if identities.is_empty() {
            self.sigstore.remove(owner);
        }
        self.write()?;
        Ok(removed)
    }

    /// Trusts `key`, or without one any key, for `owner` no more; whether there was one.
    ///
    /// # Errors
    /// `H0109` if the file cannot be written.
    pub fn remove(&mut self, owner: &str, key: Option<&PublicKey>) -> Result<bool> {
        let Some(keys) = self.owners.get_mut(owner) else { return Ok(false) };
        let before = keys.len();
        keys.retain(|known| key.is_some_and(|key| key != known));
        let removed = keys.len() < before;
        if keys.is_empty() {
            self.owners.remove(owner);
        }
        self.write()?;
        Ok(removed)
    }

    fn write(&self) -> Result<()> {
        atomic::make_folder(self.path.parent().unwrap_or(Path::new(".")))?;
        let text = toml::to_string(self).expect("owners and keys are strings");
        let text = format!(
            "# Keys and identities that packages of an owner must be signed by; `kernels-cli trust` writes it.\n{text}"
        );
        atomic::write_private(&self.path, text.as_bytes())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const KEY: &str = "ed25519:PUAXw+hDiVqStwqnTRt+vJyYLM8uxJaMwM1V8Sr0Zgw=";

    #[test]
    fn keys_come_and_go() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("config/trust.toml");
        let mut store = TrustStore::read(&path).unwrap();
        let key: PublicKey = KEY.parse().unwrap();
        store.add("acme", key.clone()).unwrap();
        store.add("acme", key.clone()).unwrap();
        assert_eq!(store.add("../x", key.clone()).unwrap_err().code(), Code::RepoId);
        let mut store = TrustStore::read(&path).unwrap();
        assert_eq!((store.keys("acme"), store.keys("other").len()), (&[key.clone()][..], 0));
        assert!(store.remove("acme", Some(&key)).unwrap());
        assert!(!store.remove("acme", None).unwrap());
        assert_eq!(TrustStore::read(&path).unwrap().owners().count(), 0);
    }

    #[test]
    fn a_file_that_others_may_write_is_not_believed() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("trust.toml");
        for bad in ["[owners]\nacme = [\"ed25519:AA\"]\n", "owner = 1", "["] {
            atomic::write_private(&path, bad.as_bytes()).unwrap();
            assert_eq!(TrustStore::read(&path).unwrap_err().code(), Code::Key, "{bad}");
        }
        #[cfg(unix)]
        {
            use std::os::unix::fs::PermissionsExt;
            atomic::write_private(&path, format!("[owners]\nacme = [\"{KEY}\"]\n").as_bytes()).unwrap();
            TrustStore::read(&path).unwrap();
            fs::set_permissions(&path, std::fs::Permissions::from_mode(0o666)).unwrap();
            assert_eq!(TrustStore::read(&path).unwrap_err().code(), Code::Exposed);
        }
    }
}
