//! The digest of a variant: the SHA-256 of each of its files, kept in metadata.json.

use std::collections::BTreeMap;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256, Sha512};

use crate::error::{Code, Error, Result};
use crate::hub::RepoPath;

/// What metadata.json says about the other files of its variant, in the form of kernel-builder.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Digest {
    /// `sha256`, or `sha512` in packages of others.
    pub algorithm: String,
    /// Base64 of each file's hash, by path in the variant.
    pub files: BTreeMap<RepoPath, String>,
}

impl Digest {
    /// The SHA-256 digest of a variant with these files; those that no digest covers are left out.
    pub fn of(files: &BTreeMap<RepoPath, Vec<u8>>) -> Self {
        let covered = files.iter().filter(|(path, _)| is_covered(path));
        Self {
            algorithm: "sha256".to_owned(),
            files: covered
                .map(|(path, bytes)| (path.clone(), STANDARD.encode(Sha256::digest(bytes))))
                .collect(),
        }
    }

    /// Checks that the variant `variant` has exactly the files of this digest; `read` gives the content
    /// of one.
    ///
    /// # Errors
    /// `H0304`, naming the file that is missing, unknown or different.
    pub fn check(
        &self,
        variant: &str,
        files: impl IntoIterator<Item = RepoPath>,
        mut read: impl FnMut(&RepoPath) -> Result<Vec<u8>>,
    ) -> Result<()> {
        let differs = |what: String| {
            Err(Error::new(Code::Digest, format!("{variant} does not match its digest: {what}")))
        };
        let mut missing: BTreeMap<_, _> = self.files.iter().collect();
        for path in files.into_iter().filter(is_covered) {
            let Some(expected) = missing.remove(&path) else {
                return differs(format!("{path} is not part of it"));
            };
            let content = read(&path)?;
            let actual = match self.algorithm.as_str() {
                "sha256" => STANDARD.encode(Sha256::digest(content)),
                "sha512" => STANDARD.encode(Sha512::digest(content)),
                other => return differs(format!("the algorithm {other:?} is not known")),
            };
            if *expected != actual {
                return differs(format!("{path} has another content"));
            }
        }
        match missing.into_keys().next() {
            Some(path) => differs(format!("{path} is missing")),
            None => Ok(()),
        }
    }
}

/// Whether the digest covers the file `path` of a variant.
fn is_covered(path: &RepoPath) -> bool {
    !matches!(path.as_str(), "metadata.json" | "metadata.json.sigstore") && !path.is_bytecode()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn files(contents: &[(&str, &str)]) -> BTreeMap<RepoPath, Vec<u8>> {
        contents
            .iter()
            .map(|(path, text)| (RepoPath::parse(path).unwrap(), text.as_bytes().to_vec()))
            .collect()
    }

    fn check(digest: &Digest, files: &BTreeMap<RepoPath, Vec<u8>>) -> Result<()> {
        digest.check("torch-cpu", files.keys().cloned(), |path| Ok(files[path].clone()))
    }

    #[test]
    fn digests_are_those_of_kernel_builder() {
        let digest = Digest::of(&files(&[
            ("hello.txt", "hello world"),
            ("metadata.json", "{}"),
            ("metadata.json.sigstore", ""),
            ("sub/metadata.json", "hello world"),
            ("__pycache__/x.txt", ""),
            ("a.pyc", ""),
        ]));
        // The test vector of kernel-builder.
        let expected = "uU0nuZNNPgilLlLX2n2r+sSE7+N6U4DukIj3rOLvzek=";
        let found: Vec<_> = digest.files.iter().map(|(path, hash)| (path.as_str(), hash.as_str())).collect();
        assert_eq!(found, [("hello.txt", expected), ("sub/metadata.json", expected)]);
    }

    #[test]
    fn every_difference_is_found() {
        let good = files(&[("a", "1"), ("b", "2")]);
        let digest = Digest::of(&good);
        assert!(check(&digest, &good).is_ok());
        for bad in [&[("a", "1")][..], &[("a", "1"), ("b", "3")], &[("a", "1"), ("b", "2"), ("c", "")]] {
            assert_eq!(check(&digest, &files(bad)).unwrap_err().code(), Code::Digest);
        }
    }
}
