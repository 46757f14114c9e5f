//! The real TPU compiler as the judge of a package's modules.

use std::path::PathBuf;
use std::sync::Mutex;

use kernel_ir::aot::{AotError, Compiler, Generation, Job};
use kernel_ir::diag::{Diagnostic, Report};
use kernel_ir::ir::dims::Dims;
use kernel_ir::mosaic::call::CallError;

use super::memory::Memory;
use super::{Candidate, GenerationCheck, Refusal, Verdict};

/// Extents to try for a dim, in this order. A module serves every extent that its demands allow, and its
/// code does not depend on which one it is compiled with.
const EXTENTS: [i64; 12] = [256, 512, 1024, 128, 64, 2048, 768, 4096, 32, 16, 8, 1];
/// How many combinations of them are tried.
const MAX_TRIES: usize = 5_000_000;

/// Is told how many of how many programs are compiled.
pub(crate) type Steps = Box<dyn FnMut(usize, usize) + Send>;

/// Compiles each module for every generation that libtpu knows.
pub(crate) struct Libtpu {
    compiler: Compiler,
    memory: Memory,
    steps: Mutex<Steps>,
}

impl Libtpu {
    /// The judge that `compiler` makes, with what it said before remembered in the folder `memory`.
    pub(crate) fn new(compiler: Compiler, memory: PathBuf, steps: Steps) -> Self {
        let memory = Memory::new(memory, compiler.libtpu());
        Self { compiler, memory, steps: Mutex::new(steps) }
    }
}

impl GenerationCheck for Libtpu {
    fn check(&self, modules: &[Candidate<'_>]) -> Result<Vec<Verdict>, Report> {
        let mut jobs = Vec::new();
        for (at, candidate) in modules.iter().enumerate() {
            let stablehlo = program(candidate)?;
            let kernel = candidate.module.kernel.clone();
            let job =
                |generation| (at, Job { kernel: kernel.clone(), generation, stablehlo: stablehlo.clone() });
            jobs.extend(Generation::ALL.map(job));
        }
        let mut verdicts = vec![Verdict::default(); modules.len()];
        let mut decide = |at: usize, job: &Job, result: Result<(), Diagnostic>| match result {
            Ok(()) => verdicts[at].accepted.push(job.generation.to_string()),
            Err(finding) => {
                verdicts[at].refused.push(Refusal { generation: job.generation.to_string(), finding });
            }
        };
        let (mut owners, mut new) = (Vec::new(), Vec::new());
        for (at, job) in jobs {
            match self.memory.recall(&job) {
                Some(known) => decide(at, &job, known),
                None => {
                    owners.push(at);
                    new.push(job);
                }
            }
        }
        let results = self.compiler.compile_all(&new, &|progress| {
            self.memory.insert(progress.job, progress.result);
            if let Ok(mut steps) = self.steps.lock() {
                steps(progress.done, progress.total);
            }
        });
        for ((at, job), result) in owners.into_iter().zip(&new).zip(results) {
            match result {
                // Without a compiler there is no verdict on anything.
                Err(error @ (AotError::NoLibtpu { .. } | AotError::NoWorker { .. })) => {
                    return Err(error.into());
                }
                result => decide(at, job, result.map(drop).map_err(|e| e.diagnostic())),
            }
        }
        for verdict in &mut verdicts {
            verdict.accepted.sort();
        }
        Ok(verdicts)
    }
}

/// A StableHLO program that calls the module with dims it serves.
fn program(candidate: &Candidate<'_>) -> Result<String, Report> {
    let Candidate { op, module, body } = candidate;
    let failed = |e: CallError| Report::from(Diagnostic::error(e.code(), e.to_string()));
    let dims = served_dims(candidate).ok_or_else(|| {
        let message = format!("no dims are known that {} serves", module.file);
        Report::from(
            Diagnostic::error("K0706", message).note(format!("tried all of {EXTENTS:?} for each dim")),
        )
    })?;
    op.stablehlo(module, &dims, body).map_err(failed)
}

/// Dims that meet the module's demands: all alike if that will do, else the first that are found.
fn served_dims(candidate: &Candidate<'_>) -> Option<Dims> {
    let Candidate { op, module, .. } = candidate;
    let fits = |dims: &Dims| {
        let arrays = op.arguments.iter().chain(&op.results);
        module.refusal(&module.dtypes, dims, None).is_none()
            && arrays.flat_map(|array| &array.shape).all(|extent| extent.eval(dims).is_some_and(|n| n > 0))
    };
    let named = |extents: &[i64]| op.dims.iter().cloned().zip(extents.iter().copied()).collect::<Dims>();
    // What a demand is about is often a size of the tile.
    let tile = module.tile.iter().map(|(_, size)| *size).filter(|size| !EXTENTS.contains(size));
    let extents: Vec<i64> = EXTENTS.into_iter().chain(tile).collect();
    let alike = extents.iter().map(|n| vec![*n; op.dims.len()]);
    let all = extents.len().saturating_pow(u32::try_from(op.dims.len()).unwrap_or(u32::MAX));
    let mixed = (0..all.min(MAX_TRIES)).map(|mut at| {
        let digit = |_| {
            let extent = extents[at % extents.len()];
            at /= extents.len();
            extent
        };
        (0..op.dims.len()).map(digit).collect()
    });
    alike.chain(mixed).map(|extents: Vec<i64>| named(&extents)).find(fits)
}

#[cfg(test)]
mod tests {
    use kernel_ir::mosaic::call::Index;
    use serde_json::json;

    use super::*;

    fn dims_for(demands: &serde_json::Value) -> Option<Dims> {
        let index = json!({"schema": 1, "mosaic_version": 15, "ops": {"toy": {
            "doc": "Copies.", "dims": ["m", "k"],
            "arguments": [{"name": "x", "dtype": "bfloat16", "shape": ["m", "k"]}],
            "results": [{"name": "out", "dtype": "bfloat16", "shape": [["-", "m", 8], "k"]}],
            "modules": [{
                "file": "x.mlirbc", "sha256": "0".repeat(64), "bytes": 1, "kernel": "toy", "dtypes": {},
                "tile": {"bm": 1408}, "demands": demands, "operands": [{"argument": "x"}], "results": ["out"],
                "vmem_bytes": 1, "custom_call_config": {}, "backend_config": {}, "generations": [],
            }],
        }}});
        let index = Index::parse(index.to_string().as_bytes()).unwrap();
        let op = index.op("toy").unwrap();
        served_dims(&Candidate { op, module: &op.modules[0], body: b"" })
    }

    #[test]
    fn dims_meet_the_demands_and_leave_no_empty_array() {
        let found = |demands| dims_for(&demands).map(|dims| (dims["m"], dims["k"]));
        assert_eq!(found(json!([])), Some((256, 256)));
        assert_eq!(found(json!([["==", "k", 64]])), Some((64, 64)));
        assert_eq!(found(json!([["<=", "m", 16], [">", "k", 2048]])), Some((16, 4096)));
        assert_eq!(found(json!([["==", ["mod", "k", 1408], 0]])).map(|(_, k)| k), Some(1408));
        assert_eq!(found(json!([["<", "m", 8]])), None, "a result would be empty");
    }
}
