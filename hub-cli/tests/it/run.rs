//! `run` and `show`: a package's op, a bare module and a StableHLO text give the numbers that plain Rust gives.

use std::path::{Path, PathBuf};

use hub_cli::hub::{Version, publish};
use hub_cli::package::build::build;
use hub_cli::package::{LocalPackage, OpSource, PackagedOp};
use kernel_ir::diag::Report;
use kernel_ir::mosaic::call::{OpInterface, TensorType};
use npyz::WriterBuilder as _;
use tempfile::TempDir;

use crate::support::{Bench, Ran, run, write_source};

/// Sizes that fit no block.
const M: usize = 40;
const K: usize = 70;
const N: usize = 30;

/// The `matmul` of the kernels crate, as the program itself packages it.
struct Matmul;

impl OpSource for Matmul {
    fn op(&self, name: &str) -> Option<Result<PackagedOp, Report>> {
        let op = kernels::package::packaged_op(name)?;
        Some(op.map(|op| PackagedOp { interface: op.interface, files: op.files }))
    }

    fn names(&self) -> Vec<String> {
        vec!["matmul".into()]
    }
}

/// The types of `x` and `y`.
fn types() -> [TensorType; 2] {
    [TensorType::new("float32", [M as i64, K as i64]), TensorType::new("float32", [K as i64, N as i64])]
}

/// A built package with a matmul, inputs and what should come out.
struct Setting {
    folder: TempDir,
    package: LocalPackage,
}

impl Setting {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let source = folder.path().join("source");
        write_source(&source, 1, "one");
        let toml =
            fs_err::read_to_string(source.join("build.toml")).unwrap().replace("\"toy\"", "\"matmul\"");
        fs_err::write(source.join("build.toml"), toml).unwrap();
        let package = build(&source, None, &Matmul, None).unwrap().package;
        let x: Vec<f32> = (0..M * K).map(|i| (i % 7) as f32 - 3.0).collect();
        let y: Vec<f32> = (0..K * N).map(|i| (i % 5) as f32 - 2.0).collect();
        let z: Vec<f32> =
            (0..M * N).map(|i| (0..K).map(|k| x[i / N * K + k] * y[k * N + i % N]).sum()).collect();
        let at = Self { folder, package };
        at.save("x.npy", &[M, K], &x);
        at.save("y.npy", &[K, N], &y);
        at.save("z.npy", &[M, N], &z);
        at
    }

    fn path(&self, name: &str) -> String {
        self.folder.path().join(name).display().to_string()
    }

    fn save(&self, name: &str, shape: &[usize], numbers: &[f32]) {
        let shape: Vec<u64> = shape.iter().map(|n| *n as u64).collect();
        let file = fs_err::File::create(self.path(name)).unwrap();
        let options = npyz::WriteOptions::new().default_dtype().shape(&shape);
        let mut writer = options.writer(file).begin_nd().unwrap();
        writer.extend(numbers.iter().copied()).unwrap();
        writer.finish().unwrap();
    }

    fn load(&self, name: &str) -> (Vec<u64>, Vec<f32>) {
        let file = npyz::NpyFile::new(fs_err::File::open(self.path(name)).unwrap()).unwrap();
        (file.shape().to_vec(), file.into_vec().unwrap())
    }

    /// The op's interface, and the bytes of its module for `x` and `y`.
    fn module(&self) -> (OpInterface, Vec<u8>) {
        let variant = &self.package.variants[0];
        let op = variant.index.as_ref().unwrap().op("matmul").unwrap().clone();
        let binding = op.bind(&types()).unwrap();
        let file = op.select(&binding.dtypes, &binding.dims, None).unwrap().file.clone();
        let (_, path) = variant.files.iter().find(|(p, _)| p.as_str() == file).unwrap();
        (op, fs_err::read(path).unwrap())
    }

    fn cli(&self, args: &[&str]) -> Ran {
        let named = |a: &&str| match a.strip_prefix("@") {
            Some(name) => self.path(name),
            None => (*a).to_owned(),
        };
        let args: Vec<String> = args.iter().map(named).collect();
        let args: Vec<&str> = args.iter().map(String::as_str).collect();
        run(&[("HF_HOME", self.path("home"))], &args)
    }
}

#[test]
fn an_op_of_a_package_runs_from_its_own_bytes() {
    let at = Setting::new();
    let ran = at.cli(&[
        "run", "@source", "--op", "matmul", "--arg", "@x.npy", "--arg", "@y.npy", "--out", "@o.npy",
        "--expect", "@z.npy", "--json",
    ]);
    assert_eq!(ran.code, 0, "{ran:?}");
    assert_eq!(ran.json()["results"][0]["type"], "f32[40, 30]");
    assert_eq!(ran.json()["results"][0]["comparison"]["wrong"], 0);
    let (shape, made) = at.load("o.npy");
    assert_eq!(shape, [M as u64, N as u64]);
    // Small whole numbers: the product is exact in any order.
    assert_eq!(made, at.load("z.npy").1);
}

#[test]
fn what_differs_is_said_with_its_place() {
    let at = Setting::new();
    let (_, mut z) = at.load("z.npy");
    z[N + 2] += 1.0;
    at.save("wrong.npy", &[M, N], &z);
    let inputs = ["run", "@source", "--arg", "@x.npy", "--arg", "@y.npy"];
    let ran = at.cli(&[&inputs[..], &["--expect", "@wrong.npy"]].concat());
    assert_eq!(ran.code, 1);
    assert!(
        ran.err.contains("H0603") && ran.err.contains("1 of 1200") && ran.err.contains("[1, 2]"),
        "{ran:?}"
    );
    let loose = at.cli(&[&inputs[..], &["--expect", "@wrong.npy", "--atol", "1"]].concat());
    assert_eq!(loose.code, 0, "{loose:?}");
}

#[test]
fn a_module_and_a_program_that_calls_it_run_alike() {
    let at = Setting::new();
    let (op, body) = at.module();
    fs_err::write(at.path("matmul.mlirbc"), &body).unwrap();
    let binding = op.bind(&types()).unwrap();
    let entry = op.select(&binding.dtypes, &binding.dims, None).unwrap();
    let text = op.stablehlo(entry, &binding.dims, &body).unwrap();
    fs_err::write(at.path("program.mlir"), text).unwrap();
    // A bare module is called as the compiler calls it: its grid bounds come first.
    let mut bounds = vec![];
    for (i, operand) in entry.operands.iter().enumerate() {
        match operand {
            kernel_ir::mosaic::call::Operand::Expr(e) => {
                let n = i32::try_from(e.eval(&binding.dims).unwrap()).unwrap();
                save_i32(Path::new(&at.path(&format!("{i}.npy"))), &[], &[n]);
                bounds.push(format!("@{i}.npy"));
            }
            kernel_ir::mosaic::call::Operand::Exprs(es) => {
                let all: Vec<i32> =
                    es.iter().map(|e| i32::try_from(e.eval(&binding.dims).unwrap()).unwrap()).collect();
                save_i32(Path::new(&at.path(&format!("{i}.npy"))), &[all.len() as u64], &all);
                bounds.push(format!("@{i}.npy"));
            }
            kernel_ir::mosaic::call::Operand::Argument(name) => bounds.push(format!("@{name}.npy")),
        }
    }
    let arguments: Vec<&str> = bounds.iter().flat_map(|b| ["--arg", b.as_str()]).collect();
    for target in [&["@matmul.mlirbc", "--result-type", "f32[40,30]"][..], &["@program.mlir"]] {
        let ran = at.cli(&[&["run"][..], target, &arguments, &["--expect", "@z.npy"]].concat());
        assert_eq!(ran.code, 0, "{ran:?}");
    }
    let silent = at.cli(&[&["run", "@matmul.mlirbc"][..], &arguments].concat());
    assert_eq!(silent.code, 2);
    assert!(silent.err.contains("--result-type"), "{silent:?}");
}

fn save_i32(path: &Path, shape: &[u64], numbers: &[i32]) {
    let file = fs_err::File::create(path).unwrap();
    let mut writer = npyz::WriteOptions::new().default_dtype().shape(shape).writer(file).begin_nd().unwrap();
    writer.extend(numbers.iter().copied()).unwrap();
    writer.finish().unwrap();
}

#[test]
fn a_published_kernel_runs_by_its_name() {
    let at = Setting::new();
    let hub = Bench::new();
    let repo = "acme/toy-kernel".parse().unwrap();
    publish(&hub.client(), None, &at.package, &repo, Version(1), false).unwrap();
    let (x, y, z) = (at.path("x.npy"), at.path("y.npy"), at.path("z.npy"));
    let ran = hub.cli(&["run", "acme/toy-kernel@v1", "--arg", &x, "--arg", &y, "--expect", &z]);
    assert_eq!(ran.code, 0, "{ran:?}");
    let shown = hub.cli(&["show", "acme/toy-kernel@v1"]);
    assert!(shown.out.contains("matmul") && shown.out.contains("VMEM"), "{shown:?}");
}

#[test]
fn a_module_is_shown_in_every_form() {
    let at = Setting::new();
    let (_, body) = at.module();
    fs_err::write(at.path("matmul.mlirbc"), &body).unwrap();
    let text = at.cli(&["show", "@matmul.mlirbc"]).out;
    for part in
        ["matmul", "Mosaic version 15", "grid", "parallel", "inputs", "outputs", "fits", "dot", "matmul.rs:"]
    {
        assert!(text.contains(part), "{part} is not in\n{text}");
    }
    let json = at.cli(&["show", "@matmul.mlirbc", "--json"]).json();
    assert_eq!(json["kernel"], "matmul");
    let names = json["parameters"].as_array().unwrap().iter().map(|p| p["name"].as_str().unwrap());
    assert_eq!(names.collect::<Vec<_>>(), ["prefetch0", "in0", "in1", "out0", "scratch0"]);
    let tir = at.cli(&["show", "@matmul.mlirbc", "--emit", "tir"]).out;
    assert!(tir.starts_with("kernel @matmul") && tir.contains("dot %"), "{tir}");
    let mlir = at.cli(&["show", "@matmul.mlirbc", "--emit", "mlir"]).out;
    assert!(mlir.contains("\"tpu.matmul\"(") || mlir.contains("\"stable_mosaic.tpu.matmul\"("), "{mlir}");
}

#[test]
fn what_cannot_be_run_is_told() {
    let at = Setting::new();
    let (_, body) = at.module();
    let file = |name: &str, bytes: &[u8]| -> PathBuf {
        let path = PathBuf::from(at.path(name));
        fs_err::write(&path, bytes).unwrap();
        path
    };
    file("cut.mlirbc", &body[..body.len() / 2]);
    file("text.mlir", b"module {}");
    file("no.npy", b"no array");
    for (args, code, says) in [
        (&["run", "@source", "--op", "gelu"][..], 1, "H0412"),
        (&["run", "@source", "--arg", "@x.npy"], 1, "H0412"),
        (&["run", "@source", "--arg", "@no.npy", "--arg", "@y.npy"], 1, "H0601"),
        (&["run", "@missing.mlirbc"], 1, "H0109"),
        (&["run", "@cut.mlirbc", "--result-type", "f32[8,8]"], 1, "K0801"),
        (&["run", "@text.mlir"], 1, "H0604"),
        (&["run", "@source", "--arg", "@x.npy", "--arg", "@y.npy", "--expect", "@x.npy"], 1, "H0603"),
        (&["run"], 2, "TARGET"),
        (&["show", "@cut.mlirbc"], 1, "K0801"),
    ] {
        let ran = at.cli(args);
        assert_eq!(ran.code, code, "{args:?} {ran:?}");
        assert!(ran.err.contains(says), "{args:?} {ran:?}");
    }
}

#[test]
fn a_list_of_cases_tells_of_each() {
    let at = Setting::new();
    let cases = serde_json::json!([
        {"name": "good", "module": "source", "args": ["x.npy", "y.npy"], "outs": ["made.npy"]},
        {"name": "bad", "module": "source", "args": ["x.npy", "x.npy"]},
    ]);
    fs_err::write(at.path("cases.json"), cases.to_string()).unwrap();
    let told = at.cli(&["run", "--cases", "@cases.json", "--json"]).json();
    assert_eq!((&told[0]["ok"], &told[1]["ok"]), (&true.into(), &false.into()));
    assert_eq!(told[1]["code"], "H0412");
    assert_eq!(at.load("made.npy").1, at.load("z.npy").1);
}
