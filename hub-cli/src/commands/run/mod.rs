//! `run`: a Mosaic module, or an op of a package, runs on the CPU.

mod cases;
mod execute;
mod mesh;

use std::path::Path;

use serde_json::json;

use crate::arrays::{ArrayPath, Comparison, Tolerance, compare};
use crate::cli::Run;
use crate::error::{Code, Error, Result};
use crate::module::{Target, shown};
use crate::output::Output;
use crate::settings::HubSettings;

use execute::{Finished, Job};

pub(super) fn run(args: &Run, hub: impl FnOnce() -> Result<HubSettings>, output: &Output) -> Result<()> {
    if let Some(list) = &args.cases {
        return cases::run(list, output);
    }
    let named = args.target.as_deref().ok_or_else(|| {
        Error::new(Code::RunArguments, "nothing to run").help("name a module, a StableHLO text or a package")
    })?;
    let target = open(named, hub)?;
    let arrays = args.args.iter().map(ArrayPath::read).collect::<Result<Vec<_>>>()?;
    let expected = args.expect.iter().map(ArrayPath::read).collect::<Result<Vec<_>>>()?;
    let finished = execute::execute(
        &target,
        Job {
            choice: args.op.as_deref().or(args.call.as_deref()),
            arrays,
            results: args.results.iter().map(|r| r.0.clone()).collect(),
            aliases: args.aliases.iter().map(|a| (a.operand, a.result)).collect(),
            devices: args.devices.map(usize::from),
            exact: args.exact,
            threads: args.threads,
            repeat: args.repeat,
        },
    )?;
    if args.out.len() > finished.results.len() {
        let n = finished.results.len();
        let message = format!("{} output files are named, but the kernel makes {n}", args.out.len());
        return Err(Error::new(Code::RunArguments, message));
    }
    for (path, array) in args.out.iter().zip(&finished.results) {
        path.write(array)?;
    }
    let tolerance = Tolerance { rtol: args.rtol, atol: args.atol };
    let compared = compare_all(&finished, &expected, tolerance)?;
    report(args, &finished, &compared, output);
    match compared.iter().position(|c| c.wrong > 0) {
        None => Ok(()),
        Some(i) => Err(mismatch(i, &compared[i], tolerance)),
    }
}

/// Opens a file, a folder, or a kernel of a hub.
pub(super) fn open(named: &str, hub: impl FnOnce() -> Result<HubSettings>) -> Result<Target> {
    let path = Path::new(named);
    if path.exists() || !named.contains('@') {
        return Target::open(path);
    }
    let (repo, revision) = crate::hub::parse_spec(named)?;
    let revision = revision.ok_or_else(|| {
        Error::new(Code::Revision, format!("{named} names no revision")).help(format!("write {repo}@v1"))
    })?;
    let wanted = crate::hub::Wanted { repo, revision, variants: vec![] };
    let kernel = crate::kernel::Kernel::open(&hub()?, &wanted)?;
    Target::of_variants(kernel.variants().to_vec(), kernel.path())
}

fn compare_all(
    finished: &Finished,
    expected: &[kernel_ir::exec::Array],
    tolerance: Tolerance,
) -> Result<Vec<Comparison>> {
    if expected.len() > finished.results.len() {
        let n = finished.results.len();
        let message = format!("{} arrays are expected, but the kernel makes {n}", expected.len());
        return Err(Error::new(Code::RunArguments, message));
    }
    let pairs = finished.results.iter().zip(expected).enumerate();
    pairs
        .map(|(i, (made, expected))| {
            compare(made, expected, tolerance).map_err(|problem| {
                Error::new(Code::Differs, format!("result {i} cannot be compared: {problem}"))
            })
        })
        .collect()
}

fn mismatch(i: usize, c: &Comparison, tolerance: Tolerance) -> Error {
    let message = format!(
        "result {i} differs from what was expected in {} of {} elements; the worst is {:?}: {} instead of {}",
        c.wrong, c.elements, c.at, c.made, c.expected
    );
    Error::new(Code::Differs, message).help(format!(
        "numbers may be {} + {} * |expected| apart: --atol and --rtol say so",
        tolerance.atol, tolerance.rtol
    ))
}

fn report(args: &Run, finished: &Finished, compared: &[Comparison], output: &Output) {
    let results = || finished.results.iter().enumerate();
    let as_json = || {
        let results = results().map(|(i, array)| {
            json!({
                "type": shown(&execute::type_of(array)),
                "path": args.out.get(i).map(ToString::to_string),
                "comparison": compared.get(i),
            })
        });
        json!({
            "kernel": finished.kernel,
            "grid": finished.grid,
            "seconds": finished.seconds,
            "results": results.collect::<Vec<_>>(),
        })
    };
    output.summary(as_json(), || {
        let mut text = format!("{} ran in {:.3} ms\n", finished.kernel, finished.seconds * 1e3);
        for (i, array) in results() {
            text += &format!("  result {i}  {}", shown(&execute::type_of(array)));
            if let Some(path) = args.out.get(i) {
                text += &format!("  -> {path}");
            }
            match compared.get(i) {
                Some(c) if c.wrong == 0 => match c.worst {
                    Some(worst) => text += &format!("  as expected (at most {worst:.2e} apart)"),
                    None => text += "  as expected",
                },
                Some(c) => text += &format!("  {} of {} elements differ", c.wrong, c.elements),
                None => text += &format!("  {}", execute::statistics(array)),
            }
            text.push('\n');
        }
        text
    });
}
