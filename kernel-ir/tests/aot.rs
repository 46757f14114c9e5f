//! libtpu compiles what it should for every generation, and what it says otherwise comes back as a diagnostic.
//!
//! The modules are written by hand. Tests that need libtpu say so and pass when there is none; the others stand in
//! small programs for it.
#![cfg(feature = "aot")]

use std::io::Write as _;
use std::path::PathBuf;
use std::process::Command;
use std::slice;
use std::sync::{Mutex, OnceLock};
use std::time::{Duration, Instant};

use kernel_ir::aot::{AotError, Compiled, Compiler, Generation, Job, Options};
use kernel_ir::mosaic::call::{CallOperand, CustomCall, Index, Table, TensorType, backend_config};
use serde_json::{Value, json};
use sha2::{Digest, Sha256};

/// The compiler that all tests share, or `None` where libtpu is not installed.
fn compiler() -> Option<&'static Compiler> {
    static COMPILER: OnceLock<Option<Compiler>> = OnceLock::new();
    let compiler = COMPILER.get_or_init(|| match Compiler::new() {
        Ok(compiler) => Some(compiler),
        Err(error @ AotError::NoLibtpu { .. }) => {
            // Not `eprintln!`, which the test harness would swallow.
            let _unheard = writeln!(std::io::stderr(), "skipped, for want of libtpu: {}", error.diagnostic());
            None
        }
        Err(error) => panic!("{}", error.diagnostic()),
    });
    compiler.as_ref()
}

/// A body in plain MLIR: `args` then `body`, in one function, and transform functions behind it.
fn plain(args: &str, attributes: &str, body: &str, functions: &str) -> String {
    format!(
        "module @k {{\nfunc.func @k({args}) attributes {{tpu.core_type = #tpu.core_type<tc>{attributes}}} {{\n\
         %c0 = arith.constant 0 : index\n{body}\nreturn\n}}\n{functions}\n}}\n"
    )
}

/// `operation`, with its location, applied to one 8x128 tile of `element`.
fn unary(operation: &str, element: &str, location: &str) -> String {
    let memref = format!("memref<8x128x{element}, #tpu.memory_space<vmem>>");
    let vector = format!("vector<8x128x{element}>");
    let body = format!(
        "%v = vector.load %x[%c0, %c0] : {memref}, {vector}\n\
         %r = {operation} : {vector} {location}\n\
         vector.store %r, %o[%c0, %c0] : {memref}, {vector}"
    );
    plain(&format!("%x: {memref}, %o: {memref}"), "", &body, "")
}

/// A grid over blocks that does nothing with them.
fn blocks(rows: i64, columns: i64) -> String {
    let memref = format!("memref<{rows}x{columns}xf32, #tpu.memory_space<vmem>>");
    let window = format!("{{transform_indices = @t, window_bounds = array<i64: {rows}, {columns}>}}");
    plain(
        &format!("%i: i32, %j: i32, %x: {memref}, %o: {memref}"),
        &format!(
            ", dimension_semantics = [#tpu.dimension_semantics<arbitrary>, #tpu.dimension_semantics<arbitrary>], \
             iteration_bounds = array<i64: 2, 2>, window_params = [{window}, {window}]"
        ),
        "",
        "func.func @t(%i: i32, %j: i32) -> (i32, i32) {\nreturn %i, %j : i32, i32\n}",
    )
}

/// A call of a plain body whose arguments are `arguments` and whose result is `result`.
fn call(body: &str, arguments: &[TensorType], result: TensorType) -> String {
    let config = Table::from_iter([("needs_layout_passes", Value::Bool(true))]);
    CustomCall {
        kernel: "k".into(),
        arguments: arguments.to_vec(),
        operands: (0..arguments.len()).map(CallOperand::Argument).collect(),
        results: vec![result],
        backend_config: backend_config(body.as_bytes(), &config, &Table::new()),
    }
    .to_stablehlo()
    .expect("the call is well formed")
}

fn tile(dtype: &str) -> TensorType {
    TensorType::new(dtype, [8, 128])
}

fn job(generation: Generation, stablehlo: String) -> Job {
    Job { kernel: "k".into(), generation, stablehlo }
}

fn unary_job(generation: Generation, operation: &str, location: &str) -> Job {
    job(generation, call(&unary(operation, "f32", location), &[tile("float32")], tile("float32")))
}

fn code_and_text(result: Result<Compiled, AotError>) -> (&'static str, String) {
    let error = result.expect_err("libtpu must not accept this");
    (error.code(), error.diagnostic().to_string())
}

/// Doubles rows of 8, for any number of rows, plus the number of rows itself, read from the prefetched dims.
const SERIALIZED: &str = r#"module @double attributes {stable_mosaic.version = 15 : i64} {
  "stable_mosaic.func.func"() ({
  ^bb0(%i: i32, %dims: memref<1xi32, #tpu.memory_space<smem>>, %x: memref<8x128xf32, #tpu.memory_space<vmem>>, %o: memref<8x128xf32, #tpu.memory_space<vmem>>):
    %c0 = "stable_mosaic.arith.constant"() {value = 0 : index} : () -> index
    %m = "stable_mosaic.memref.load"(%dims, %c0) : (memref<1xi32, #tpu.memory_space<smem>>, index) -> i32
    %f = "stable_mosaic.arith.sitofp"(%m) : (i32) -> f32
    %b = "stable_mosaic.vector.broadcast"(%f) : (f32) -> vector<8x128xf32>
    %v = "stable_mosaic.vector.load"(%x, %c0, %c0) : (memref<8x128xf32, #tpu.memory_space<vmem>>, index, index) -> vector<8x128xf32>
    %d = "stable_mosaic.arith.addf"(%v, %v) {fastmath = #arith.fastmath<none>} : (vector<8x128xf32>, vector<8x128xf32>) -> vector<8x128xf32>
    %s = "stable_mosaic.arith.addf"(%d, %b) {fastmath = #arith.fastmath<none>} : (vector<8x128xf32>, vector<8x128xf32>) -> vector<8x128xf32>
    "stable_mosaic.tpu.vector_store"(%s, %o, %c0, %c0) {add = false, operandSegmentSizes = array<i32: 1, 1, 2, 0>, strides = array<i32>} : (vector<8x128xf32>, memref<8x128xf32, #tpu.memory_space<vmem>>, index, index) -> ()
    "stable_mosaic.func.return"() : () -> ()
  }) {dimension_semantics = [#tpu.dimension_semantics<parallel>], function_type = (i32, memref<1xi32, #tpu.memory_space<smem>>, memref<8x128xf32, #tpu.memory_space<vmem>>, memref<8x128xf32, #tpu.memory_space<vmem>>) -> (), iteration_bounds = array<i64: -9223372036854775808>, scalar_prefetch = 1 : i64, scratch_operands = 0 : i64, sym_name = "double", tpu.core_type = #tpu.core_type<tc>, window_params = [{transform_indices = @rows, window_bounds = array<i64: 8, 128>}, {transform_indices = @rows, window_bounds = array<i64: 8, 128>}]} : () -> ()
  "stable_mosaic.func.func"() ({
  ^bb0(%i: i32, %dims: memref<1xi32, #tpu.memory_space<smem>>):
    %z = "stable_mosaic.arith.constant"() {value = 0 : i32} : () -> i32
    "stable_mosaic.func.return"(%i, %z) : (i32, i32) -> ()
  }) {function_type = (i32, memref<1xi32, #tpu.memory_space<smem>>) -> (i32, i32), sym_name = "rows"} : () -> ()
}
"#;

#[test]
fn one_published_module_serves_every_shape_on_every_generation() {
    let Some(compiler) = compiler() else { return };
    let index = json!({"schema": 1, "mosaic_version": 15, "ops": {"double": {
        "doc": "Doubles.",
        "dims": ["m"],
        "arguments": [{"name": "x", "dtype": "T", "shape": ["m", 128]}],
        "results": [{"name": "out", "dtype": "T", "shape": ["m", 128]}],
        "modules": [{
            "file": "mosaic/double.mlir",
            "sha256": hex::encode(Sha256::digest(SERIALIZED)), "bytes": SERIALIZED.len(), "kernel": "double",
            "dtypes": {"T": "float32"}, "tile": {"bm": 8}, "demands": [],
            "operands": [{"expr": ["ceildiv", "m", 8]}, {"exprs": ["m"]}, {"argument": "x"}],
            "results": ["out"], "vmem_bytes": 16_384,
            "custom_call_config": {"serialization_format": 1, "needs_layout_passes": true},
            "backend_config": {"scoped_memory_configs": [{"memory_space": 1, "offset": 0, "size": 1_048_576}]},
            "generations": ["v4", "v5e", "v5p", "v6e", "v7x"]
        }]
    }}});
    let index = Index::parse(index.to_string().as_bytes()).unwrap();
    let op = index.op("double").unwrap();
    let mut jobs = Vec::new();
    for generation in Generation::ALL {
        for m in [1, 8, 1000] {
            let binding = op.bind(&[TensorType::new("float32", [m, 128])]).unwrap();
            let module = op.select(&binding.dtypes, &binding.dims, Some(generation.name())).unwrap();
            let stablehlo = op.stablehlo(module, &binding.dims, SERIALIZED.as_bytes()).unwrap();
            jobs.push(Job { kernel: "double".into(), generation, stablehlo });
        }
    }
    let told = Mutex::new(Vec::new());
    let results = compiler.compile_all(&jobs, &|progress| {
        assert!(progress.result.is_ok(), "{}", progress.result.as_ref().unwrap_err().diagnostic());
        told.lock().unwrap().push((progress.done, progress.total));
    });
    for (job, result) in jobs.iter().zip(results) {
        let compiled = result.unwrap();
        assert_eq!(compiled.generation, job.generation);
        assert!(compiled.code_bytes > 1000, "{compiled:?}");
        assert!(compiled.libtpu.contains("TPU"), "{compiled:?}");
    }
    let mut told = told.into_inner().unwrap();
    told.sort_unstable();
    assert_eq!(told, (1..=15).map(|done| (done, 15)).collect::<Vec<_>>());
}

#[test]
fn an_operation_that_is_rejected_points_at_its_rust_line() {
    let Some(compiler) = compiler() else { return };
    let location = r#"loc("cbrt"("kernels/src/root.rs":42:17))"#;
    let error = compiler.compile(&unary_job(Generation::V6e, "math.cbrt %v", location)).unwrap_err();
    let diagnostic = error.diagnostic();
    assert_eq!(diagnostic.code, "K0501");
    assert_eq!(diagnostic.message, "libtpu rejects `k` for v6e: failed to legalize operation 'math.cbrt'");
    assert_eq!(diagnostic.labels[0].loc.to_string(), "kernels/src/root.rs:42:17");
    assert!(diagnostic.notes.iter().any(|note| note.contains("\"math.cbrt\"(%")), "{diagnostic}");
}

#[test]
fn an_operation_in_a_helper_points_at_the_helper_and_its_caller() {
    let Some(compiler) = compiler() else { return };
    let location = r#"loc(callsite("helper"("a.rs":1:2) at "b.rs":3:4))"#;
    let error = compiler.compile(&unary_job(Generation::V5e, "math.cbrt %v", location)).unwrap_err();
    let labels: Vec<String> = error.diagnostic().labels.iter().map(|label| label.loc.to_string()).collect();
    assert_eq!(labels, ["a.rs:1:2", "b.rs:3:4"]);
}

#[test]
fn what_the_verifier_finds_points_at_its_line_too() {
    let Some(compiler) = compiler() else { return };
    let body = unary("arith.addf %v, %v", "i32", r#"loc("k.rs":7:9)"#);
    let error =
        compiler.compile(&job(Generation::V6e, call(&body, &[tile("int32")], tile("int32")))).unwrap_err();
    assert_eq!(error.diagnostic().labels[0].loc.to_string(), "k.rs:7:9");
    assert!(error.to_string().contains("must be floating-point-like"), "{error}");
}

#[test]
fn a_block_that_does_not_fit_the_tiling_is_rejected() {
    let Some(compiler) = compiler() else { return };
    let array = TensorType::new("float32", [16, 256]);
    let stablehlo = call(&blocks(4, 128), slice::from_ref(&array), array.clone());
    let (code, text) = code_and_text(compiler.compile(&job(Generation::V5e, stablehlo)));
    assert_eq!(code, "K0507");
    assert!(text.contains("E2002"), "{text}");
    assert!(text.contains("its block shape (..., 4, 128) is not divisible"), "{text}");
    assert!(text.contains("multiples of (8, 128)"), "{text}");
}

#[test]
fn blocks_beyond_vmem_are_rejected_with_both_sizes() {
    let Some(compiler) = compiler() else { return };
    let array = TensorType::new("float32", [8192, 8192]);
    // 8 MiB a block, two blocks, two buffers each: 32 MiB of v5e's 16 MiB of scoped VMEM.
    let stablehlo = call(&blocks(2048, 1024), slice::from_ref(&array), array.clone());
    let (code, text) = code_and_text(compiler.compile(&job(Generation::V5e, stablehlo)));
    assert_eq!(code, "K0505");
    assert!(text.contains("32.00M of VMEM are needed, 16.00M are allowed"), "{text}");
    // 256 MiB do not fit the chip at all, and then the compiler lists what takes the room.
    let stablehlo = call(&blocks(4096, 4096), slice::from_ref(&array), array.clone());
    let (code, text) = code_and_text(compiler.compile(&job(Generation::V6e, stablehlo)));
    assert_eq!(code, "K0505");
    assert!(text.contains("128.00M: input window allocation for operator input 0"), "{text}");
}

#[test]
fn an_index_that_is_not_provably_aligned_is_rejected_at_its_line() {
    let Some(compiler) = compiler() else { return };
    let wide = "memref<8x256xf32, #tpu.memory_space<vmem>>";
    let memref = "memref<8x128xf32, #tpu.memory_space<vmem>>";
    let body = format!(
        "%i = memref.load %s[%c0] : memref<1xi32, #tpu.memory_space<smem>>\n\
         %c = arith.index_cast %i : i32 to index\n\
         %v = vector.load %x[%c0, %c] : {wide}, vector<8x128xf32> loc(\"k.rs\":7:9)\n\
         vector.store %v, %o[%c0, %c0] : {memref}, vector<8x128xf32>"
    );
    let args = format!("%s: memref<1xi32, #tpu.memory_space<smem>>, %x: {wide}, %o: {memref}");
    let body = plain(&args, ", scalar_prefetch = 1 : i64", &body, "");
    let arguments = [TensorType::new("int32", [1]), TensorType::new("float32", [8, 256])];
    let stablehlo = call(&body, &arguments, tile("float32"));
    let error = compiler.compile(&job(Generation::V5e, stablehlo)).unwrap_err();
    assert_eq!(error.code(), "K0508");
    assert_eq!(error.diagnostic().labels[0].loc.to_string(), "k.rs:7:9");
}

#[test]
fn a_dtype_that_the_mxu_does_not_take_is_rejected() {
    let Some(compiler) = compiler() else { return };
    let matmul = matmul("f8E4M3FN");
    let arguments = [TensorType::new("float32", [64, 256]), TensorType::new("float8_e4m3fn", [256, 256])];
    let stablehlo = call(&matmul, &arguments, TensorType::new("float32", [64, 256]));
    let (code, text) = code_and_text(compiler.compile(&job(Generation::V4, stablehlo.clone())));
    assert_eq!(code, "K0506");
    assert!(text.contains("Unsupported matmul RHS type"), "{text}");
    compiler.compile(&job(Generation::V7x, stablehlo)).unwrap();
}

/// f32 times `element`: 64x256 by 256x256.
fn matmul(element: &str) -> String {
    let memref = |rows: u32, element: &str| format!("memref<{rows}x256x{element}, #tpu.memory_space<vmem>>");
    let (x, y) = (memref(64, "f32"), memref(256, element));
    let body = format!(
        "%a = vector.load %x[%c0, %c0] : {x}, vector<64x256xf32>\n\
         %b = vector.load %y[%c0, %c0] : {y}, vector<256x256x{element}>\n\
         %z = arith.constant dense<0.0> : vector<64x256xf32>\n\
         %v = \"tpu.matmul\"(%a, %b, %z) {{dimension_numbers = #tpu.dot_dimension_numbers<[1],[0],[0],[1],[0,0,1,1],[],[]>, \
         transpose_lhs = false, transpose_rhs = false, transpose_lhs_hint = false}} : \
         (vector<64x256xf32>, vector<256x256x{element}>, vector<64x256xf32>) -> vector<64x256xf32>\n\
         vector.store %v, %o[%c0, %c0] : {x}, vector<64x256xf32>"
    );
    plain(&format!("%x: {x}, %y: {y}, %o: {x}"), "", &body, "")
}

#[test]
fn a_crash_of_libtpu_is_a_diagnostic_and_the_next_job_compiles() {
    let Some(compiler) = compiler() else { return };
    let arguments = [TensorType::new("float32", [64, 256]), TensorType::new("int2", [256, 256])];
    let crash = call(&matmul("i2"), &arguments, TensorType::new("float32", [64, 256]));
    let good = unary_job(Generation::V4, "arith.addf %v, %v", "");
    let jobs =
        [good.clone(), job(Generation::V4, crash.clone()), good.clone(), job(Generation::V4, crash), good];
    let results = compiler.compile_all(&jobs, &|_| ());
    for (at, result) in results.into_iter().enumerate() {
        if at % 2 == 0 {
            result.unwrap();
            continue;
        }
        let (code, text) = code_and_text(result);
        assert_eq!(code, "K0502");
        assert!(text.contains("Unsupported B2 packed type 26 (llo_region_builder.cc:17431)"), "{text}");
        assert!(text.contains("signal 6 (SIGABRT)"), "{text}");
    }
}

#[test]
fn garbage_is_rejected() {
    let Some(compiler) = compiler() else { return };
    for body in ["garbage", "ML\u{0}garbage", ""] {
        let stablehlo = call(body, &[tile("float32")], tile("float32"));
        let (code, text) = code_and_text(compiler.compile(&job(Generation::V5p, stablehlo)));
        assert_eq!(code, "K0501", "{body}: {text}");
    }
    for stablehlo in ["", "module { nonsense }", "\u{0}\u{1}"] {
        let (code, text) = code_and_text(compiler.compile(&job(Generation::V5p, stablehlo.to_owned())));
        assert_eq!(code, "K0501", "{stablehlo}: {text}");
    }
}

#[test]
fn a_missing_libtpu_is_told_with_what_to_do() {
    let options = Options { libtpu: Some("/nowhere/libtpu.so".into()), ..Options::default() };
    let error = Compiler::with_options(options).unwrap_err();
    assert_eq!(error.code(), "K0503");
    let text = error.diagnostic().to_string();
    assert!(text.contains("looked at /nowhere/libtpu.so") && text.contains("pip install libtpu"), "{text}");
}

#[test]
fn a_library_that_is_not_libtpu_does_not_load() {
    let file = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(file.path(), "not an ELF file at all").unwrap();
    let options = Options { libtpu: Some(file.path().into()), ..Options::default() };
    let compiler = Compiler::with_options(options).unwrap();
    let error = compiler.compile(&unary_job(Generation::V4, "arith.addf %v, %v", "")).unwrap_err();
    assert_eq!(error.code(), "K0509");
    assert!(error.to_string().contains(&*file.path().to_string_lossy()), "{error}");
}

/// A compiler whose child is a shell script; what it "loads" is any file.
fn scripted(script: &str, limit: Duration) -> (Compiler, tempfile::TempDir) {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let worker: PathBuf = folder.path().join("worker");
    // Written by another process: a descriptor of ours, inherited by a child just being started, would make it "busy".
    let write = "printf '%s' \"$1\" > \"$0\" && chmod +x \"$0\"";
    let mut shell = Command::new("sh");
    shell.args(["-c", write]).arg(&worker).arg(format!("#!/bin/sh\n{script}\n"));
    assert!(shell.status().expect("sh runs").success());
    let options = Options { libtpu: Some(worker.clone()), worker: Some(worker), limit, ..Options::default() };
    (Compiler::with_options(options).expect("both files are there"), folder)
}

const LOADED: &str = "read line; echo noise; echo '@tessera-aot {\"Loaded\":{\"api\":\"0.1\"}}'; read line;";

#[test]
fn a_child_that_hangs_is_stopped_in_time() {
    let (compiler, _folder) = scripted(&format!("{LOADED} exec sleep 600"), Duration::from_millis(300));
    let start = Instant::now();
    let error = compiler.compile(&job(Generation::V4, String::new())).unwrap_err();
    assert_eq!(error.code(), "K0504");
    assert!(start.elapsed() < Duration::from_secs(20), "{:?}", start.elapsed());
}

#[test]
fn a_child_that_dies_is_told_with_its_last_words() {
    let script = format!("{LOADED} echo 'first' >&2; echo 'out of luck' >&2; kill -SEGV $$");
    let (compiler, _folder) = scripted(&script, Duration::from_secs(60));
    for _again in 0..2 {
        let (code, text) = code_and_text(compiler.compile(&job(Generation::V4, String::new())));
        assert_eq!(code, "K0502");
        assert!(text.contains("out of luck") && text.contains("SIGSEGV"), "{text}");
    }
}

#[test]
fn a_child_that_ended_between_jobs_is_replaced() {
    let compiled =
        "echo '@tessera-aot {\"Compiled\":{\"code_bytes\":7,\"seconds\":0.5,\"version\":\"none\"}}'";
    let (compiler, _folder) = scripted(&format!("{LOADED} {compiled}"), Duration::from_secs(60));
    for _job in 0..2 {
        assert_eq!(compiler.compile(&job(Generation::V4, String::new())).unwrap().code_bytes, 7);
        std::thread::sleep(Duration::from_millis(500));
    }
}

#[test]
fn a_child_that_is_no_worker_is_told() {
    let (compiler, _folder) = scripted("exit 3", Duration::from_secs(60));
    let (code, text) = code_and_text(compiler.compile(&job(Generation::V4, String::new())));
    assert_eq!(code, "K0509");
    assert!(text.contains("exit status: 3"), "{text}");
    let options = Options {
        worker: Some("/nowhere/worker".into()),
        libtpu: Some("/bin/sh".into()),
        ..Options::default()
    };
    let error =
        Compiler::with_options(options).unwrap().compile(&job(Generation::V4, String::new())).unwrap_err();
    assert_eq!(error.code(), "K0509");
}
