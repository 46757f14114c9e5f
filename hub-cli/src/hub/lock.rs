//! `kernels.lock`: kernels and the commits that they are locked to, byte for byte as Python's `kernels lock` writes it.

use std::collections::BTreeMap;
use std::path::Path;

use fs_err as fs;
use serde::{Deserialize, Serialize};

use crate::atomic;
use crate::error::{Code, Error, Result};

use super::dependency::{KernelDependency, Pin};
use super::oid::CommitId;
use super::repo::{RepoId, Version};

/// The largest lock file and the largest pyproject.toml, in bytes.
const MAX_BYTES: u64 = 4 << 20;

/// Kernels and the commits that they are locked to.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LockFile {
    /// By kernel.
    pub locks: BTreeMap<KernelDependency, CommitId>,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Entry {
    dependency: KernelDependency,
    lock: Lock,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Lock {
    commit: String,
}

impl LockFile {
    /// Reads the lock file at `path`.
    ///
    /// # Errors
    /// `H0109` if it cannot be read, `H0110` if it is not valid.
    pub fn read(path: &Path) -> Result<Self> {
        let text = read_small(path).map_err(|e| {
            e.help("`kernels-cli lock` makes it from [tool.kernels.dependencies] in pyproject.toml")
        })?;
        Self::parse(text.as_bytes(), &path.display().to_string())
    }

    /// Reads a lock file's bytes; `at` names it in messages.
    ///
    /// # Errors
    /// `H0110`.
    pub fn parse(json: &[u8], at: &str) -> Result<Self> {
        let invalid = |why: String| Error::new(Code::LockFile, format!("{at} is not valid: {why}"));
        let entries: Vec<Entry> = serde_json::from_slice(json).map_err(|e| invalid(e.to_string()))?;
        let mut locks = BTreeMap::new();
        for Entry { dependency, lock } in entries {
            let commit =
                lock.commit.to_ascii_lowercase().parse().map_err(|e: Error| invalid(e.to_string()))?;
            let name = dependency.to_string();
            if locks.insert(dependency, commit).is_some() {
                return Err(invalid(format!("{name} is locked twice")));
            }
        }
        Ok(Self { locks })
    }

    /// The file's text: as Python writes it, two spaces of indent and no newline at the end.
    pub fn to_json(&self) -> String {
        let entries: Vec<_> = self
            .locks
            .iter()
            .map(|(dependency, commit)| Entry {
                dependency: dependency.clone(),
                lock: Lock { commit: commit.as_str().to_owned() },
            })
            .collect();
        serde_json::to_string_pretty(&entries).expect("names and ids are strings")
    }

    /// Writes the file, whole.
    ///
    /// # Errors
    /// `H0109`.
    pub fn write(&self, path: &Path) -> Result<()> {
        atomic::write(path, self.to_json().as_bytes())
    }

    /// The commit that `dependency` is locked to.
    ///
    /// # Errors
    /// `H0310` if it is not locked, naming what is.
    pub fn commit(&self, dependency: &KernelDependency) -> Result<&CommitId> {
        self.locks.get(dependency).ok_or_else(|| {
            let same: Vec<_> = self.of(&dependency.repo).map(|(other, _)| other.to_string()).collect();
            let error = Error::new(Code::Drift, format!("{dependency} is not locked"));
            error.help(match same.as_slice() {
                [] => "run `kernels-cli lock`".to_owned(),
                some => format!("the lock file has {}: run `kernels-cli lock`", some.join(", ")),
            })
        })
    }

    /// What is locked of the repository `repo`.
    pub fn of(&self, repo: &RepoId) -> impl Iterator<Item = (&KernelDependency, &CommitId)> {
        self.locks.iter().filter(move |(dependency, _)| dependency.repo == *repo)
    }
}

/// The table `[tool.kernels.dependencies]` of the pyproject.toml at `path`.
///
/// # Errors
/// `H0109` if it cannot be read, `H0111` if it has no such table, or one with something else than whole versions.
pub fn project_dependencies(path: &Path) -> Result<Vec<KernelDependency>> {
    let invalid = |why: String| {
        Error::new(Code::Project, format!("{}: {why}", path.display()))
            .help("write `[tool.kernels.dependencies]` and below it a line such as `\"acme/add-one\" = 1`")
    };
    let text = read_small(path)?;
    let document: toml::Table = text.parse().map_err(|e: toml::de::Error| invalid(e.message().to_owned()))?;
    let table = ["tool", "kernels", "dependencies"]
        .into_iter()
        .try_fold(&toml::Value::Table(document), |value, key| value.get(key).ok_or(()))
        .ok()
        .cloned();
    let Some(toml::Value::Table(table)) = table else {
        return Err(invalid("there is no table [tool.kernels.dependencies]".to_owned()));
    };
    let dependency = |(repo, version): (&String, &toml::Value)| {
        let version = version.as_integer().and_then(|n| u32::try_from(n).ok());
        let version =
            version.ok_or_else(|| invalid(format!("the version of {repo:?} is not a whole number")))?;
        let repo = repo.parse().map_err(|e: Error| invalid(e.to_string()))?;
        Ok(KernelDependency { repo, pin: Pin::Version(Version(version)) })
    };
    table.iter().map(dependency).collect()
}

/// Writes `dependency` into the table of the pyproject.toml at `path`, and leaves the rest as it is.
///
/// # Errors
/// `H0109` if the file cannot be read or written, `H0111` if it is not TOML or has something else there.
pub fn add_project_dependency(path: &Path, repo: &RepoId, version: Version) -> Result<()> {
    let invalid = |why: String| Error::new(Code::Project, format!("{}: {why}", path.display()));
    let text = if path.exists() { read_small(path)? } else { String::new() };
    let mut document: toml_edit::DocumentMut =
        text.parse().map_err(|e: toml_edit::TomlError| invalid(e.message().to_owned()))?;
    let mut table: &mut toml_edit::Item = document.as_item_mut();
    for (key, shown) in [("tool", false), ("kernels", false), ("dependencies", true)] {
        let entry =
            table.as_table_like_mut().ok_or_else(|| invalid(format!("what holds {key:?} is no table")))?;
        let implicit = || {
            let mut table = toml_edit::Table::new();
            table.set_implicit(!shown);
            toml_edit::Item::Table(table)
        };
        table = entry.entry(key).or_insert_with(implicit);
    }
    let table = table.as_table_like_mut().ok_or_else(|| invalid("`dependencies` is no table".to_owned()))?;
    table.insert(&repo.to_string(), toml_edit::value(i64::from(version.0)));
    atomic::write(path, document.to_string().as_bytes())
}

fn read_small(path: &Path) -> Result<String> {
    let size = fs::metadata(path).map_err(|e| Error::io(path, e))?.len();
    if size > MAX_BYTES {
        return Err(Error::new(
            Code::Io,
            format!("{} has {size} bytes, more than {MAX_BYTES}", path.display()),
        ));
    }
    fs::read_to_string(path).map_err(|e| Error::io(path, e))
}

#[cfg(test)]
mod tests {
    use super::*;

    const COMMIT: &str = "0123456789abcdef0123456789abcdef01234567";

    fn entry(dependency: &str, lock: &str) -> String {
        format!("{{\"dependency\": {dependency}, \"lock\": {lock}}}")
    }

    fn parse(text: &str) -> Result<LockFile> {
        LockFile::parse(text.as_bytes(), "kernels.lock")
    }

    #[test]
    fn the_file_is_the_one_that_python_writes() {
        // What `KernelLocks(...).to_json()` of kernels 0.17.2 gives for these three.
        let text = "[\n  {\n    \"dependency\": {\n      \"repo-id\": \"a/y\",\n      \"version\": 1\n    },\n    \"lock\": {\n      \
                    \"commit\": \"0000000000000000000000000000000000000000000000000000000000000000\"\n    }\n  },\n  {\n    \
                    \"dependency\": {\n      \"repo-id\": \"a/y\",\n      \"revision\": \"main\"\n    },\n    \"lock\": {\n      \
                    \"commit\": \"bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb\"\n    }\n  },\n  {\n    \"dependency\": {\n      \
                    \"repo-id\": \"b/x\",\n      \"version\": 2\n    },\n    \"lock\": {\n      \
                    \"commit\": \"aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa\"\n    }\n  }\n]";
        assert_eq!(parse(text).unwrap().to_json(), text);
        assert_eq!(parse("[]").unwrap().to_json(), "[]");
        let upper = entry(
            "{\"repo-id\": \"a/b\", \"version\": 1}",
            "{\"commit\": \"0123456789ABCDEF0123456789ABCDEF01234567\"}",
        );
        assert!(parse(&format!("[{upper}]")).unwrap().to_json().contains(COMMIT));
    }

    #[test]
    fn what_python_refuses_is_refused() {
        let commit = format!("{{\"commit\": \"{COMMIT}\"}}");
        let good = entry("{\"repo-id\": \"a/b\", \"version\": 1}", &commit);
        for bad in [
            "{}".to_owned(),
            "".to_owned(),
            format!("[{good}, {good}]"),
            format!("[{good}"),
            format!("[{}]", entry("{\"repo-id\": \"a/b\", \"version\": -1}", &commit)),
            format!("[{}]", entry("{\"repo-id\": \"a/b\", \"version\": 1, \"revision\": \"x\"}", &commit)),
            format!("[{}]", entry("{\"repo-id\": \"a/b\"}", &commit)),
            format!("[{}]", entry("{\"repo-id\": \"a/b\", \"version\": 1, \"x\": 1}", &commit)),
            format!("[{}]", entry("{\"repo-id\": \"a/b\", \"version\": 1}", "{\"commit\": \"abc\"}")),
            format!("[{}]", entry("{\"repo-id\": \"a/b\", \"version\": 1}", "{\"commit\": \"../../x\"}")),
            format!("[{}]", entry("{\"repo-id\": \"../../x\", \"version\": 1}", &commit)),
            format!("[{}]", entry("{\"repo-id\": \"a/b\", \"revision\": \"../x\"}", &commit)),
            "[".repeat(100_000),
        ] {
            assert_eq!(parse(&bad).unwrap_err().code(), Code::LockFile, "{bad:.100}");
        }
    }

    #[test]
    fn pyproject_names_kernels_and_keeps_the_rest() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("pyproject.toml");
        fs::write(&path, "# mine\n[project]\nname = \"x\" # stays\n").unwrap();
        assert_eq!(project_dependencies(&path).unwrap_err().code(), Code::Project);
        let repo: RepoId = "acme/add-one".parse().unwrap();
        add_project_dependency(&path, &repo, Version(1)).unwrap();
        add_project_dependency(&path, &repo, Version(2)).unwrap();
        let text = fs::read_to_string(&path).unwrap();
        let expected =
            "# mine\n[project]\nname = \"x\" # stays\n\n[tool.kernels.dependencies]\n\"acme/add-one\" = 2\n";
        assert_eq!(text, expected);
        assert_eq!(project_dependencies(&path).unwrap()[0].to_string(), "acme/add-one@v2");
        for bad in ["\"acme/x\" = \"1\"", "\"acme/x\" = -1", "acme = 1", "x"] {
            fs::write(&path, format!("[tool.kernels.dependencies]\n{bad}\n")).unwrap();
            assert_eq!(project_dependencies(&path).unwrap_err().code(), Code::Project, "{bad}");
        }
    }
}
