//! Remembers what the TPU compiler said about a program, since asking it again takes seconds.
//!
//! One small file a program, named by a hash of all that the verdict depends on. Crashes and time-outs
//! are not remembered: they may not happen again.

use std::path::{Path, PathBuf};
use std::time::UNIX_EPOCH;

use fs_err as fs;
use kernel_ir::aot::{AotError, Compiled, Job};
use kernel_ir::diag::{Diagnostic, codes};
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use crate::atomic;

/// What one libtpu said about programs.
pub(crate) struct Memory {
    folder: PathBuf,
    /// Tells this libtpu from others: its path, size and time of change.
    libtpu: String,
}

#[derive(Serialize, Deserialize)]
enum Verdict {
    Accepted,
    Rejected { code: String, message: String },
}

impl Memory {
    /// The memory in `folder` about the compiler in the file `libtpu`.
    pub(crate) fn new(folder: PathBuf, libtpu: &Path) -> Self {
        let meta = fs::metadata(libtpu).ok();
        let changed = meta.as_ref().and_then(|m| m.modified().ok()?.duration_since(UNIX_EPOCH).ok());
        let size = meta.map_or(0, |m| m.len());
        let libtpu = format!("{} {size} {}", libtpu.display(), changed.map_or(0, |t| t.as_nanos()));
        Self { folder, libtpu }
    }

    /// Whether `job` compiles, if that is known; why not, if it does not.
    pub(crate) fn recall(&self, job: &Job) -> Option<Result<(), Diagnostic>> {
        let verdict = serde_json::from_slice(&fs::read(self.file(job)).ok()?).ok()?;
        Some(match verdict {
            Verdict::Accepted => Ok(()),
            Verdict::Rejected { code, message } => {
                Err(Diagnostic::error(codes::explain(&code)?.code, message))
            }
        })
    }

    /// Remembers what became of `job`. That it cannot be remembered costs time later, nothing else.
    pub(crate) fn insert(&self, job: &Job, result: &Result<Compiled, AotError>) {
        let verdict = match result {
            Ok(_) => Verdict::Accepted,
            Err(e @ AotError::Rejected(_)) => {
                Verdict::Rejected { code: e.code().to_owned(), message: e.to_string() }
            }
            Err(_) => return,
        };
        let Ok(json) = serde_json::to_vec(&verdict) else { return };
        let _ = atomic::make_folder(&self.folder).and_then(|()| atomic::write(&self.file(job), &json));
    }

    fn file(&self, job: &Job) -> PathBuf {
        let mut hasher = Sha256::new();
        for part in [self.libtpu.as_str(), job.generation.topology(), &job.stablehlo] {
            hasher.update((part.len() as u64).to_le_bytes());
            hasher.update(part);
        }
        self.folder.join(hex::encode(hasher.finalize()) + ".json")
    }
}

#[cfg(test)]
mod tests {
    use kernel_ir::aot::Generation;

    use super::*;

    #[test]
    fn a_verdict_holds_for_one_program_generation_and_compiler() {
        let folder = tempfile::tempdir().unwrap();
        let libtpu = folder.path().join("libtpu.so");
        fs::write(&libtpu, "one").unwrap();
        let memory = || Memory::new(folder.path().join("libtpu"), &libtpu);
        let job = |generation, text: &str| Job { kernel: "k".into(), generation, stablehlo: text.into() };
        let first = job(Generation::V6e, "a");
        assert!(memory().recall(&first).is_none());
        let compiled =
            Compiled { generation: Generation::V6e, code_bytes: 1, seconds: 1.0, libtpu: String::new() };
        memory().insert(&first, &Ok(compiled));
        assert_eq!(memory().recall(&first), Some(Ok(())));
        assert!(memory().recall(&job(Generation::V5e, "a")).is_none());
        assert!(memory().recall(&job(Generation::V6e, "b")).is_none());
        fs::write(&libtpu, "another").unwrap();
        assert!(memory().recall(&first).is_none());
    }

    #[test]
    fn only_what_will_happen_again_is_remembered() {
        let folder = tempfile::tempdir().unwrap();
        let memory = Memory::new(folder.path().to_path_buf(), Path::new("libtpu.so"));
        let job = Job { kernel: "k".into(), generation: Generation::V4, stablehlo: String::new() };
        memory.insert(&job, &Err(AotError::NoWorker { problem: "it is late".into() }));
        assert!(memory.recall(&job).is_none());
        let file = memory.file(&job);
        fs::write(&file, r#"{"Rejected": {"code": "K0505", "message": "too much VMEM"}}"#).unwrap();
        let refusal = memory.recall(&job).unwrap().unwrap_err();
        assert_eq!((refusal.code, refusal.message.as_str()), ("K0505", "too much VMEM"));
        fs::write(&file, "{").unwrap();
        assert!(memory.recall(&job).is_none(), "a damaged memory is none");
    }
}
