//! The check of a whole hub: everything that a name leads to is there and is what its id says.

use std::collections::HashSet;
use std::io::Read;

use sha2::{Digest, Sha256};

use crate::error::Result;
use crate::hub::oid::{CommitId, Hasher, Oid};

use super::{RefKind, Repo, Store, StoredFile};

/// What a check found.
#[derive(Clone, Debug, Default, serde::Serialize)]
pub(crate) struct Findings {
    pub(crate) repositories: usize,
    pub(crate) commits: usize,
    pub(crate) objects: usize,
    /// Bytes of the objects.
    pub(crate) bytes: u64,
    /// One sentence a damage.
    pub(crate) damages: Vec<String>,
}

impl Store {
    /// Checks every repository; with `contents` it also hashes every file.
    ///
    /// It may run while the hub is served.
    ///
    /// # Errors
    /// If the folder cannot be read at all; damage is in the findings.
    pub(crate) fn check(&self, contents: bool) -> Result<Findings> {
        let mut findings = Findings::default();
        for owner in self.backend.names("names")? {
            match self.repos_of(&owner) {
                Ok(repos) => repos.iter().for_each(|repo| Check::of(repo, &mut findings, contents).run()),
                Err(e) => findings.damages.push(format!("the repositories of {owner}: {e}")),
            }
        }
        Ok(findings)
    }
}

/// The check of one repository.
struct Check<'a> {
    repo: &'a Repo<'a>,
    findings: &'a mut Findings,
    contents: bool,
    commits: HashSet<CommitId>,
    trees: HashSet<Oid>,
    objects: HashSet<(Oid, Oid)>,
}

impl<'a> Check<'a> {
    fn of(repo: &'a Repo<'a>, findings: &'a mut Findings, contents: bool) -> Self {
        findings.repositories += 1;
        let (commits, trees, objects) = Default::default();
        Self { repo, findings, contents, commits, trees, objects }
    }

    fn damage(&mut self, what: impl std::fmt::Display) {
        let damage = format!("{}: {what}", self.repo.id());
        self.findings.damages.push(damage);
    }

    fn run(mut self) {
        for kind in RefKind::ALL {
            match self.repo.refs(kind) {
                Ok(refs) => {
                    if kind == RefKind::Branch && !refs.contains_key("main") {
                        self.damage("it has no branch main");
                    }
                    refs.into_iter().for_each(|(name, head)| self.history(&name, head));
                }
                Err(e) => self.damage(e),
            }
        }
        if let Err(e) = self.repo.pulls() {
            self.damage(e);
        }
    }

    fn history(&mut self, name: &str, head: CommitId) {
        let mut next = Some(head);
        while let Some(id) = next.take() {
            if !self.commits.insert(id.clone()) {
                return;
            }
            self.findings.commits += 1;
            match self.repo.commit(&id) {
                Ok(commit) if commit.id != id || !commit.is_genuine() => {
                    self.damage(format!("commit {id} of {name:?} has been altered"));
                }
                Ok(commit) => {
                    self.tree(&commit.tree);
                    next = commit.parent;
                }
                Err(e) => self.damage(format!("commit {id} of {name:?}: {e}")),
            }
        }
    }

    fn tree(&mut self, id: &Oid) {
        if !self.trees.insert(id.clone()) {
            return;
        }
        match self.repo.tree_by_id(id) {
            Ok(tree) if tree.id() != *id => self.damage(format!("tree {id} has been altered")),
            Ok(tree) => {
                for (path, file) in &tree.files {
                    if self.objects.insert((file.sha256.clone(), file.oid.clone())) {
                        self.findings.objects += 1;
                        self.findings.bytes += file.size;
                        if let Err(e) = self.object(file) {
                            self.damage(format!("{path}: {e}"));
                        }
                    }
                }
            }
            Err(e) => self.damage(format!("tree {id}: {e}")),
        }
    }

    fn object(&self, file: &StoredFile) -> Result<(), String> {
        let mut content = self.repo.open_object(file).map_err(|e| e.to_string())?;
        if !self.contents {
            return Ok(());
        }
        let (mut sha256, mut git) = (Sha256::new(), Hasher::git(file.size));
        let mut block = vec![0; 1 << 20];
        loop {
            let read = content.read(&mut block).map_err(|e| e.to_string())?;
            if read == 0 {
                break;
            }
            sha256.update(&block[..read]);
            git.update(&block[..read]);
        }
        let oid = if file.lfs { StoredFile::large(file.sha256.clone(), file.size).oid } else { git.finish() };
        if hex::encode(sha256.finalize()) != file.sha256.as_str() || oid != file.oid {
            return Err(format!("the content {} has been altered", file.sha256));
        }
        Ok(())
    }
}
