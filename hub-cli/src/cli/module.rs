//! Arguments of the commands that run and show modules.

use std::path::PathBuf;

use clap::Args;

use crate::arrays::ArrayPath;
use crate::module::ResultType;

/// Run a module or an op of a package on the CPU
#[derive(Debug, Args)]
#[command(after_help = "\
TARGET is a file of Mosaic bytecode, a StableHLO text with `tpu_custom_call`s in it (what
`jax.jit(f).lower(..).as_text()` prints), a package's folder, or OWNER/NAME@REVISION.
Arguments are those of the op; for a module or a call, the operands of the custom call in order:
grid bounds, prefetched arrays, inputs.

Examples:
  kernels-cli run tengomucho/ragged-dot-tpu@v1 --op ragged_dot \\
      --arg lhs.npy --arg rhs.npy --arg sizes.npy --out out.npy
  kernels-cli run matmul.mlirbc --arg x.npy --arg y.npy --result-type f32[512,512] --expect z.npy
  kernels-cli run model.mlir --call 0 --arg inputs.safetensors#x --out out.npy")]
pub(crate) struct Run {
    /// A module, a program with modules in it, or a package
    #[arg(value_name = "TARGET", required_unless_present = "cases")]
    pub(crate) target: Option<String>,
    /// The op of a package
    #[arg(long, value_name = "NAME")]
    pub(crate) op: Option<String>,
    /// The call of a StableHLO text, by name or number
    #[arg(long, value_name = "NAME|N", conflicts_with = "op")]
    pub(crate) call: Option<String>,
    /// An argument: x.npy, x.safetensors or x.safetensors#TENSOR; repeat it, in order
    #[arg(long = "arg", value_name = "FILE")]
    pub(crate) args: Vec<ArrayPath>,
    /// Where a result goes; repeat it, in order
    #[arg(long, value_name = "FILE")]
    pub(crate) out: Vec<ArrayPath>,
    /// What a result should be; repeat it, in order
    #[arg(long, value_name = "FILE")]
    pub(crate) expect: Vec<ArrayPath>,
    /// Relative tolerance of --expect
    #[arg(long, value_name = "X", default_value_t = 1e-5)]
    pub(crate) rtol: f64,
    /// Absolute tolerance of --expect
    #[arg(long, value_name = "X", default_value_t = 1e-5)]
    pub(crate) atol: f64,
    /// The type of a result, for a module by itself; repeat it, in order
    #[arg(long = "result-type", value_name = "TYPE")]
    pub(crate) results: Vec<ResultType>,
    /// A result that starts with the contents of an operand, by their numbers
    #[arg(long = "alias", value_name = "OPERAND:RESULT")]
    pub(crate) aliases: Vec<Alias>,
    /// Run on a simulated mesh: the first axis of all arrays is the device
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=1024))]
    pub(crate) devices: Option<u16>,
    /// Multiply f32 exactly, where the TPU would make one bfloat16 pass
    #[arg(long)]
    pub(crate) exact: bool,
    /// Threads to use [default: all]
    #[arg(long, value_name = "N")]
    pub(crate) threads: Option<usize>,
    /// Run it so many times and tell the median time
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub(crate) repeat: usize,
    /// Run every case of a JSON list instead
    #[arg(long, value_name = "FILE", conflicts_with = "target")]
    pub(crate) cases: Option<PathBuf>,
}

/// An operand and a result that share memory.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Alias {
    pub(crate) operand: usize,
    pub(crate) result: usize,
}

impl std::str::FromStr for Alias {
    type Err = String;

    fn from_str(s: &str) -> Result<Self, String> {
        let parsed = s.split_once(':').and_then(|(o, r)| Some((o.parse().ok()?, r.parse().ok()?)));
        let (operand, result) = parsed.ok_or("write OPERAND:RESULT, such as 2:0")?;
        Ok(Self { operand, result })
    }
}

/// Print a module so that people can read it
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  kernels-cli show build/torch-tpu/mosaic/ragged_dot.mlirbc
  kernels-cli show model.mlir --call 0 --emit tir
  kernels-cli show tengomucho/ragged-dot-tpu@v1 --op ragged_dot --emit mlir")]
pub(crate) struct Show {
    /// A module, a program with modules in it, or a package
    #[arg(value_name = "TARGET")]
    pub(crate) target: String,
    /// The op of a package
    #[arg(long, value_name = "NAME")]
    pub(crate) op: Option<String>,
    /// The call of a StableHLO text, by name or number
    #[arg(long, value_name = "NAME|N", conflicts_with = "op")]
    pub(crate) call: Option<String>,
    /// Print it as text of our IR, as MLIR, or as JSON instead
    #[arg(long, value_name = "FORM", value_enum)]
    pub(crate) emit: Option<Form>,
}

/// A way to write a module down.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum Form {
    /// Our tile IR
    Tir,
    /// MLIR's generic form
    Mlir,
    /// The summary as JSON
    Json,
}
