//! `metadata.json`: what the Python package `kernels` reads of a variant before it loads it.

use serde::{Deserialize, Serialize};

use crate::error::{Code, Error, Result};

use crate::hub::KernelDependency;

use super::{Digest, GitState, check_name, python_name};

/// The largest metadata.json in bytes; it holds a line for every file.
const MAX_BYTES: usize = 32 << 20;
/// The most kernels that one may depend on.
const MAX_DEPENDS: usize = 64;

/// The metadata of one variant. Fields that this crate does not use are ignored when read.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct Metadata {
    /// The kernel's name, such as `ragged-dot-tpu`.
    pub name: String,
    /// The name under which Python registers the loaded module: `_NAME_BACKEND_HASH`.
    pub id: String,
    /// The version, that of the branch `vN`.
    pub version: u32,
    /// The licence's identifier.
    pub license: String,
    /// Where the kernel was first published.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub upstream: Option<String>,
    /// Where the source of this package is.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub source: Option<String>,
    /// Python packages that loading checks for; `kernels` knows a closed list of them.
    pub python_depends: Vec<String>,
    /// Kernels that this one loads.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub kernel_depends: Vec<KernelDependency>,
    /// What the variant runs on.
    pub backend: Backend,
    /// What it was built by, and from which commit.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub provenance: Option<Provenance>,
    /// The SHA-256 of every other file of the variant.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub digest: Option<Digest>,
}

/// What a variant runs on.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Backend {
    /// `tpu`, `cpu`, `cuda`, ...
    #[serde(rename = "type")]
    pub kind: String,
}

/// Where a build comes from, in the form of kernel-builder.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct Provenance {
    /// The program that built it.
    pub kernel_builder: Builder,
    /// The source that it was built from, if that is under git.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub kernel: Option<GitState>,
}

/// A program that builds packages.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Builder {
    /// Its name and version.
    pub version: String,
}

impl Provenance {
    /// Built by this program, from `source`.
    pub(super) fn ours(source: Option<GitState>) -> Self {
        let version = concat!("kernels-cli ", env!("CARGO_PKG_VERSION")).to_owned();
        Self { kernel_builder: Builder { version }, kernel: source }
    }
}

impl Metadata {
    /// Reads and checks a metadata.json; `at` names it in messages.
    ///
    /// # Errors
    /// `H0404` if it is not what `kernels` accepts, `H0402` if its name or id is not safe to load.
    pub fn parse(json: &[u8], at: &str) -> Result<Self> {
        let invalid = |why: String| Error::new(Code::Metadata, format!("{at} is not valid: {why}"));
        if json.len() > MAX_BYTES {
            return Err(invalid(format!("it is larger than {MAX_BYTES} bytes")));
        }
        let metadata: Self = serde_json::from_slice(json).map_err(|e| invalid(e.to_string()))?;
        check_name(&metadata.name)?;
        if !is_safe_id(&metadata.id, &metadata.name) {
            let message = format!(
                "{at} has the id {:?}, which is not `_{}_BACKEND_HASH`",
                metadata.id,
                python_name(&metadata.name)
            );
            return Err(Error::new(Code::Name, message));
        }
        if metadata.kernel_depends.len() > MAX_DEPENDS {
            return Err(invalid(format!("it depends on more than {MAX_DEPENDS} kernels")));
        }
        if !KNOWN_BACKENDS.contains(&metadata.backend.kind.as_str()) {
            return Err(invalid(format!("there is no backend {:?}", metadata.backend.kind)));
        }
        Ok(metadata)
    }

    /// The file's text: two spaces of indent, fields in a fixed order, a newline at the end.
    pub fn to_json(&self) -> String {
        serde_json::to_string_pretty(self).expect("metadata is strings and numbers") + "\n"
    }
}

/// The backends that `kernels` 0.17 knows.
const KNOWN_BACKENDS: [&str; 8] = ["cann", "cpu", "cuda", "metal", "neuron", "rocm", "tpu", "xpu"];

/// Whether Python may register a module under `id`: no module has a name like this.
fn is_safe_id(id: &str, name: &str) -> bool {
    let plain = id.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_');
    let rest = id.strip_prefix('_').and_then(|id| id.strip_prefix(&python_name(name))?.strip_prefix('_'));
    plain && id.len() <= 200 && rest.is_some_and(|rest| !rest.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    const GOOD: &str = r#"{"name": "add-one", "id": "_add_one_cpu_0123abcd", "version": 1, "license": "apache-2.0",
        "python-depends": [], "backend": {"type": "cpu", "archs": null}, "kernel-depends": [], "unknown": 1}"#;

    #[test]
    fn metadata_as_kernels_writes_it_is_read() {
        let metadata = Metadata::parse(GOOD.as_bytes(), "m").unwrap();
        assert_eq!((metadata.name.as_str(), metadata.version), ("add-one", 1));
        assert_eq!(Metadata::parse(metadata.to_json().as_bytes(), "m").unwrap(), metadata);
    }

    #[test]
    fn names_that_would_replace_other_modules_are_refused() {
        for (from, to, code) in [
            ("_add_one_cpu_0123abcd", "json", Code::Name),
            ("_add_one_cpu_0123abcd", "_add_one_", Code::Name),
            ("_add_one_cpu_0123abcd", "_other_cpu_1", Code::Name),
            ("_add_one_cpu_0123abcd", "_add_one_cpu.x", Code::Name),
            ("\"add-one\"", "\"Add_one\"", Code::Name),
            ("\"cpu\"", "\"abacus\"", Code::Metadata),
            ("\"version\": 1", "\"version\": -1", Code::Metadata),
            ("\"license\": \"apache-2.0\",", "", Code::Metadata),
        ] {
            let json = GOOD.replace(from, to);
            assert_ne!(json, GOOD);
            assert_eq!(Metadata::parse(json.as_bytes(), "m").unwrap_err().code(), code, "{to}");
        }
    }
}
