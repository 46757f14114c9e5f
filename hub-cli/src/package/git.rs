//! The state of a source under git, asked of the `git` program.

use std::path::Path;
use std::process::Command;

use serde::{Deserialize, Serialize};

/// The commit that a folder stands at, and whether anything was changed since.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct GitState {
    /// The commit's id.
    #[serde(alias = "sha")]
    pub commit: String,
    /// Whether files under git differ from that commit.
    pub dirty: bool,
}

impl GitState {
    /// The state of the repository around `folder`; `None` if there is none, or no commit, or no `git`.
    pub fn of(folder: &Path) -> Option<Self> {
        let commit = git(folder, &["rev-parse", "--verify", "HEAD"])?.trim().to_owned();
        let is_id = matches!(commit.len(), 40 | 64) && commit.bytes().all(|b| b.is_ascii_hexdigit());
        let changes = git(folder, &["status", "--porcelain", "--untracked-files=no"])?;
        is_id.then_some(Self { commit, dirty: !changes.is_empty() })
    }
}

/// What `git` prints, if it succeeds.
fn git(folder: &Path, arguments: &[&str]) -> Option<String> {
    // A monitor that the repository names would be run.
    let output = Command::new("git")
        .args(["-c", "core.fsmonitor=false", "-C"])
        .arg(folder)
        .args(arguments)
        .env("GIT_OPTIONAL_LOCKS", "0")
        .output()
        .ok()?;
    output.status.success().then(|| String::from_utf8(output.stdout).ok()).flatten()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn changes_make_a_source_dirty() {
        let folder = tempfile::tempdir().unwrap();
        let at = folder.path();
        assert_eq!(GitState::of(at), None);
        if git(at, &["init", "-q"]).is_none() {
            return; // no git here
        }
        assert_eq!(GitState::of(at), None, "no commit yet");
        fs_err::write(at.join("a"), "1").unwrap();
        git(at, &["add", "a"]).unwrap();
        git(at, &["-c", "user.name=a", "-c", "user.email=a@b", "commit", "-qm", "one"]).unwrap();
        fs_err::write(at.join("untracked"), "1").unwrap();
        let clean = GitState::of(at).unwrap();
        assert!(!clean.dirty && clean.commit.len() == 40);
        fs_err::write(at.join("a"), "2").unwrap();
        assert!(GitState::of(at).unwrap().dirty);
    }
}
