//! The TPU's own compiler accepts our modules: one ragged-dot file for all shapes, and the other kernels, on five generations.
#![allow(
    clippy::unwrap_used,
    clippy::print_stdout,
    reason = "a test fails where it unwraps, and says what it did"
)]
#![cfg(all(feature = "emit", feature = "aot"))]

use std::time::Instant;

use half::bf16;
use kernel_ir::aot::{AotError, Compiler, Job};
use kernel_ir::mosaic::call::{OpInterface, TensorType};
use kernel_ir::prelude::{DType, Kernel, Mxu};
use kernel_ir::target::Generation;
use kernels::ragged_dot::{self, RhsLayout, Tile};
use kernels::{PackagedOp, packaged_op};

/// A compiler, or `None` after saying why there is none.
fn compiler() -> Option<Compiler> {
    Compiler::new().map_err(|e| println!("skipped: {e}")).ok()
}

/// Compiles every program, and fails with all that was refused.
fn all_accepted(compiler: &Compiler, jobs: &[Job]) {
    let start = Instant::now();
    let results = compiler.compile_all(jobs, &|_| {});
    let refused: Vec<String> = jobs
        .iter()
        .zip(&results)
        .filter_map(|(job, r)| Some(format!("{} for {}: {}", job.kernel, job.generation, r.as_ref().err()?)))
        .collect();
    assert!(refused.is_empty(), "{} of {} refused:\n{}", refused.len(), jobs.len(), refused.join("\n"));
    println!("{} programs in {:.0} s", jobs.len(), start.elapsed().as_secs_f64());
}

/// The program of one module for given arguments, as a job for each generation.
fn jobs(name: &str, interface: &OpInterface, at: usize, body: &[u8], arguments: &[TensorType]) -> Vec<Job> {
    let binding = interface.bind(arguments).unwrap();
    let text = interface.stablehlo(&interface.modules[at], &binding.dims, body).unwrap();
    let shapes: Vec<String> = arguments.iter().map(|a| format!("{:?}", a.shape)).collect();
    let job = |generation| Job {
        kernel: format!("{name} {}", shapes.join(" ")),
        generation,
        stablehlo: text.clone(),
    };
    Generation::ALL.map(job).into()
}

const MS: [i64; 6] = [1, 7, 64, 512, 1000, 32768];
const GS: [i64; 3] = [1, 8, 128];
const KNS: [(i64, i64); 4] = [(2048, 1536), (768, 2048), (2816, 1408), (704, 2816)];

/// Calls in which each M, each G and each (K, N) meets several of the others; all of them with `TESSERA_ALL_SHAPES=1`.
fn shapes() -> Vec<[i64; 4]> {
    if std::env::var_os("TESSERA_ALL_SHAPES").is_some() {
        let all = MS
            .iter()
            .flat_map(|m| GS.iter().flat_map(move |g| KNS.iter().map(move |(k, n)| [*m, *k, *n, *g])));
        return all.collect();
    }
    let call = |i: usize| {
        let (k, n) = KNS[i % KNS.len()];
        [MS[i % MS.len()], k, n, GS[(i / 2) % GS.len()]]
    };
    (0..12).map(call).collect()
}

/// One file, whose bytes do not depend on the call, for every shape.
fn one_module<T: Mxu<Acc = f32>>(compiler: &Compiler, tile: Tile, dtype: DType) {
    let kernel: Kernel = ragged_dot::kernel::<T>(tile, RhsLayout::Gnk, &[]).unwrap();
    let module = kernel.mosaic().unwrap();
    let mut interface = packaged_op("ragged_dot").unwrap().unwrap().interface;
    let dtypes = [("T", dtype.numpy().to_owned())].into_iter().collect();
    interface.modules = vec![module.entry("module", dtypes, Default::default(), &[])];
    let mut all = vec![];
    for [m, k, n, g] in shapes() {
        let array = |shape: &[i64]| TensorType::new(dtype.numpy(), shape);
        let arguments = [array(&[m, k]), array(&[g, n, k]), TensorType::new("int32", [g])];
        all.extend(jobs("ragged_dot", &interface, 0, &module.bytecode, &arguments));
    }
    all_accepted(compiler, &all);
}

/// The tile that fits the 16 MiB of a v4 and serves every K of the shapes above.
const EVERYWHERE: Tile = Tile { bm: 256, bn: 256, bk: 2816, slots: 2, rows: &[128, 256] };
const EVERYWHERE_F32: Tile = Tile { bm: 128, bn: 128, bk: 2816, slots: 2, rows: &[128] };

#[test]
fn one_bf16_module_serves_every_shape_on_every_generation() {
    let Some(compiler) = compiler() else { return };
    one_module::<bf16>(&compiler, EVERYWHERE, DType::Bf16);
}

#[test]
fn one_f32_module_serves_every_shape_on_every_generation() {
    let Some(compiler) = compiler() else { return };
    one_module::<f32>(&compiler, EVERYWHERE_F32, DType::F32);
}

/// Compiles the modules of an operation, each for arguments that it prefers; says which generations take it.
fn accepted(compiler: &Compiler, name: &str, arguments: impl Fn(&str, usize) -> Vec<TensorType>) {
    let PackagedOp { interface, files } = packaged_op(name).unwrap().unwrap();
    for (at, module) in interface.modules.iter().enumerate() {
        let body = &files.iter().find(|(path, _)| *path == module.file).unwrap().1;
        let dtype = module.dtypes.get("T").unwrap();
        let jobs = jobs(&module.file, &interface, at, body, &arguments(dtype, at));
        let results = compiler.compile_all(&jobs, &|_| {});
        let taken = jobs.iter().zip(&results).filter(|(_, r)| r.is_ok()).map(|(j, _)| j.generation.name());
        let taken: Vec<_> = taken.collect();
        println!("{:<60} {}", module.file, taken.join(" "));
        let refused: Vec<String> =
            results.iter().filter_map(|r| r.as_ref().err()).map(AotError::to_string).collect();
        assert!(taken.contains(&"v6e"), "{}: {}", module.file, refused.join("\n"));
    }
}

#[test]
fn matmul_tgmm_and_attention_compile() {
    let Some(compiler) = compiler() else { return };
    accepted(&compiler, "matmul", |t, _| {
        vec![TensorType::new(t, [2048, 1024]), TensorType::new(t, [1024, 2048])]
    });
    accepted(&compiler, "tgmm", |t, _| {
        vec![TensorType::new(t, [300, 700]), TensorType::new(t, [300, 1000]), TensorType::new("int32", [5])]
    });
    for name in ["flash_attention", "flash_attention_causal"] {
        accepted(&compiler, name, |t, at| {
            let d = [64, 128, 256][at / 3 % 3];
            let (rows, keys) = if at % 3 < 2 { (1500, 2048) } else { (1000, 777) };
            let keys = TensorType::new(t, [2, keys, d]);
            vec![TensorType::new(t, [8, rows, d]), keys.clone(), keys]
        });
    }
}
