//! One run: from arrays to arrays, with the time it took.

use std::time::Instant;

use kernel_ir::exec::{Array, Options};
use kernel_ir::ir::{ArrayType, DimExpr};
use kernel_ir::mosaic::Runnable;

use super::mesh;
use crate::error::{Code, Error, Result};
use crate::module::Target;

/// What is to be run.
pub(super) struct Job<'a> {
    /// An op, or a call's name or number.
    pub(super) choice: Option<&'a str>,
    /// The arguments; on a mesh each has the devices as its first axis.
    pub(super) arrays: Vec<Array>,
    /// Types of the results, for a module by itself.
    pub(super) results: Vec<ArrayType>,
    /// Results that start as an operand, for a module by itself: operand, result.
    pub(super) aliases: Vec<(usize, usize)>,
    /// Devices of a simulated mesh.
    pub(super) devices: Option<usize>,
    /// Multiply `f32` as `f32`, whatever precision the module asks for.
    pub(super) exact: bool,
    pub(super) threads: Option<usize>,
    /// How often; the time is the median.
    pub(super) repeat: usize,
}

/// What came of it.
pub(super) struct Finished {
    /// The kernel's name.
    pub(super) kernel: String,
    /// Extents of its grid, where the module fixes them.
    pub(super) grid: Vec<Option<i64>>,
    /// Seconds of one run.
    pub(super) seconds: f64,
    /// The results; on a mesh each has the devices as its first axis.
    pub(super) results: Vec<Array>,
}

/// Runs a job.
///
/// # Errors
/// `H0602` for arguments that say too little, `H0604` with the report of what went wrong in the module.
pub(super) fn execute(target: &Target, job: Job<'_>) -> Result<Finished> {
    let devices = mesh::split(job.arrays, job.devices)?;
    let mut chosen =
        devices.into_iter().map(|arrays| target.choose(job.choice, arrays)).collect::<Result<Vec<_>>>()?;
    let first = &chosen[0];
    let results = if first.results.is_empty() { job.results } else { first.results.clone() };
    if results.is_empty() {
        let message = "the module does not say how large its results are";
        return Err(Error::new(Code::RunArguments, message)
            .help("give their types in order: --result-type f32[512,768]"));
    }
    let aliases = if first.aliases.is_empty() { job.aliases } else { first.aliases.clone() };
    let refused = |report| Error::refused(&report);
    let lines = first.lines.as_deref();
    let runnable = Runnable::new(&first.body, lines, &first.operands, &results, &aliases).map_err(refused)?;
    let options = Options { exact_products: job.exact, threads: job.threads, ..Options::default() };
    let operands: Vec<Vec<Array>> = chosen.iter_mut().map(|c| std::mem::take(&mut c.operands)).collect();
    let (mut times, mut made) = (vec![], vec![]);
    for _ in 0..job.repeat.max(1) {
        let started = Instant::now();
        made = match job.devices {
            None => runnable.run(&operands[0], &options).map_err(refused)?,
            Some(_) => mesh::join(runnable.run_mesh(&operands, &options).map_err(refused)?)?,
        };
        times.push(started.elapsed().as_secs_f64());
    }
    times.sort_by(f64::total_cmp);
    let kernel = runnable.kernel();
    Ok(Finished {
        kernel: kernel.name.clone(),
        grid: kernel.grid.iter().map(|g| g.extent.known()).collect(),
        seconds: times[times.len() / 2],
        results: made,
    })
}

/// The type of an array.
pub(super) fn type_of(array: &Array) -> ArrayType {
    ArrayType { dtype: array.dtype(), shape: array.shape().iter().map(|n| DimExpr::from(*n)).collect() }
}

/// What an array holds, in a few words.
pub(super) fn statistics(array: &Array) -> String {
    let numbers = array.to_f64();
    let finite: Vec<f64> = numbers.iter().copied().filter(|x| x.is_finite()).collect();
    let odd = numbers.len() - finite.len();
    let low = finite.iter().copied().fold(f64::INFINITY, f64::min);
    let high = finite.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    match (finite.len(), odd) {
        (0, 0) => "empty".to_owned(),
        (0, odd) => format!("{odd} elements, none a finite number"),
        (_, 0) => format!("from {low:.6} to {high:.6}"),
        (_, odd) => format!("from {low:.6} to {high:.6}, and {odd} that are no finite numbers"),
    }
}
