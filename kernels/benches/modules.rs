//! Writes StableHLO programs around our modules for a tool that prices them: `modules FOLDER`. One JSON line a program.
#![allow(clippy::print_stdout, reason = "the list of files is its output")]

use std::error::Error;
use std::path::Path;

use kernel_ir::mosaic::call::TensorType;
use kernels::packaged_op;

/// Name, operation, arguments, and the routing that argument 2 holds.
type Case = (&'static str, &'static str, Vec<TensorType>, Option<&'static str>);

fn main() -> Result<(), Box<dyn Error>> {
    let folder = std::env::args().skip(1).find(|a| !a.starts_with('-')).ok_or("usage: modules FOLDER")?;
    for (case, op, arguments, routing) in cases() {
        let packaged = packaged_op(op).ok_or("no such operation")??;
        let interface = &packaged.interface;
        let binding = interface.bind(&arguments)?;
        let module = interface.select(&binding.dtypes, &binding.dims, None)?;
        let body = packaged.files.iter().find(|(path, _)| *path == module.file).map(|(_, bytes)| bytes);
        let text = interface.stablehlo(module, &binding.dims, body.ok_or("no such module file")?)?;
        let file = Path::new(&folder).join(format!("{}.mlir", case.replace(' ', "_")));
        std::fs::write(&file, text)?;
        let routing =
            routing.map(|r| format!(", \"routing\": \"{r}\", \"routing_argument\": 2")).unwrap_or_default();
        println!("{{\"case\": \"{case}\", \"file\": {:?}{routing}}}", file.display().to_string());
    }
    Ok(())
}

fn cases() -> Vec<Case> {
    let bf16 = |shape: &[i64]| TensorType::new("bfloat16", shape);
    let ragged =
        |m: i64, k: i64, n: i64| vec![bf16(&[m, k]), bf16(&[128, n, k]), TensorType::new("int32", [128])];
    let square = bf16(&[4096, 4096]);
    let (queries, keys) = (bf16(&[32, 4096, 128]), bf16(&[8, 4096, 128]));
    vec![
        ("ragged_dot qwen3 up decode", "ragged_dot", ragged(512, 2048, 768), Some("qwen3_up_dec")),
        ("ragged_dot qwen3 down decode", "ragged_dot", ragged(512, 768, 2048), Some("qwen3_down_dec")),
        ("ragged_dot qwen3 up prefill", "ragged_dot", ragged(32768, 2048, 768), Some("qwen3_up_pre")),
        ("ragged_dot qwen3 down prefill", "ragged_dot", ragged(32768, 768, 2048), Some("qwen3_down_pre")),
        ("matmul 4096^3", "matmul", vec![square.clone(), square], None),
        ("flash_attention llama3 4096", "flash_attention_causal", vec![queries, keys.clone(), keys], None),
    ]
}
