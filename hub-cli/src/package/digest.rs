//! The digest of a variant: the SHA-256 of each of its files, kept in metadata.json.

use std::collections::BTreeMap;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use rayon::prelude::*;
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
    /// `H0304`, naming the first file that is missing, unknown or different.
    pub fn check(
        &self,
        variant: &str,
        files: impl IntoIterator<Item = RepoPath>,
        read: impl Fn(&RepoPath) -> Result<Vec<u8>> + Sync,
    ) -> Result<()> {
        let differs =
            |what: String| Error::new(Code::Digest, format!("{variant} does not match its digest: {what}"));
        let hash = match self.algorithm.as_str() {
            "sha256" => |content: &[u8]| STANDARD.encode(Sha256::digest(content)),
            "sha512" => |content: &[u8]| STANDARD.encode(Sha512::digest(content)),
            other => return Err(differs(format!("the algorithm {other:?} is not known"))),
        };
        let mut missing: BTreeMap<_, _> = self.files.iter().collect();
        let mut known = Vec::new();
        for path in files.into_iter().filter(is_covered) {
            let expected =
                missing.remove(&path).ok_or_else(|| differs(format!("{path} is not part of it")))?;
            known.push((path, expected));
        }
        if let Some(path) = missing.into_keys().next() {
            return Err(differs(format!("{path} is missing")));
        }
        let wrong = known.par_iter().find_map_first(|(path, expected)| match read(path) {
            Ok(content) if hash(&content) == **expected => None,
            Ok(_) => Some(differs(format!("{path} has another content"))),
            Err(error) => Some(error),
        });
        wrong.map_or(Ok(()), Err)
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
