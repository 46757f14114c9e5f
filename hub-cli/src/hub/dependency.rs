//! One kernel that another kernel or a project depends on, in the form of metadata.json and kernels.lock.

use std::fmt;

use serde::{Deserialize, Serialize};

use super::repo::{RepoId, Revision, Version};

/// A repository, and a version or revision of it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(try_from = "Raw", into = "Raw")]
pub struct KernelDependency {
    /// The repository.
    pub repo: RepoId,
    /// Which state of it.
    pub pin: Pin,
}

/// How a dependency names a state of its repository. Versions sort before revisions, as in Python.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Pin {
    /// The branch `vN`.
    Version(Version),
    /// A branch, tag or commit.
    Revision(String),
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
struct Raw {
    repo_id: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    version: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    revision: Option<String>,
}

impl KernelDependency {
    /// The state that is meant, checked.
    ///
    /// # Errors
    /// `H0102` for a revision that cannot be one.
    pub fn revision(&self) -> crate::Result<Revision> {
        match &self.pin {
            Pin::Version(version) => Ok(Revision::Version(*version)),
            Pin::Revision(revision) => revision.parse(),
        }
    }
}

impl TryFrom<Raw> for KernelDependency {
    type Error = String;

    fn try_from(raw: Raw) -> Result<Self, String> {
        let pin = match (raw.version, raw.revision) {
            (Some(version), None) => Pin::Version(Version(version)),
            (None, Some(revision)) => Pin::Revision(revision),
            (Some(_), Some(_)) => return Err("`version` and `revision` are mutually exclusive".to_owned()),
            (None, None) => return Err("either `version` or `revision` must be given".to_owned()),
        };
        let dependency = Self { repo: raw.repo_id.parse().map_err(|e: crate::Error| e.to_string())?, pin };
        dependency.revision().map_err(|e| e.to_string())?;
        Ok(dependency)
    }
}

impl From<KernelDependency> for Raw {
    fn from(dependency: KernelDependency) -> Self {
        let (version, revision) = match dependency.pin {
            Pin::Version(version) => (Some(version.0), None),
            Pin::Revision(revision) => (None, Some(revision)),
        };
        Self { repo_id: dependency.repo.to_string(), version, revision }
    }
}

impl fmt::Display for KernelDependency {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.pin {
            Pin::Version(version) => write!(f, "{}@{version}", self.repo),
            Pin::Revision(revision) => write!(f, "{}@{revision}", self.repo),
        }
    }
}
