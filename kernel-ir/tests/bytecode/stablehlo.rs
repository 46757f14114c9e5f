//! Mosaic calls in StableHLO text, as the project's JAX prints it.

use kernel_ir::ir::{ArrayType, DType};
use kernel_ir::mosaic::read;
use kernel_ir::mosaic::read::stablehlo::{TpuCall, calls};

use super::jax::folder;

fn text(name: &str) -> Option<String> {
    Some(std::fs::read_to_string(folder()?.join(format!("{name}.stablehlo"))).unwrap())
}

fn array(dtype: DType, shape: &[usize]) -> ArrayType {
    ArrayType { dtype, shape: shape.iter().map(|n| (*n).into()).collect() }
}

#[test]
fn both_forms_of_a_call() {
    let (Some(pretty), Some(generic)) = (text("in_place"), text("in_place.generic")) else { return };
    let all = calls(&pretty).unwrap();
    let [call] = &all[..] else { panic!("one call") };
    let arrays = vec![array(DType::F32, &[8, 128]), array(DType::I8, &[8, 128])];
    assert_eq!((&call.operands, &call.results), (&arrays, &arrays));
    assert_eq!(call.aliases, [(1, 1), (0, 0)]);
    assert_eq!(
        (&*call.name, call.serialization_format, call.has_communication),
        ("in_place", Some(1), false)
    );
    let line = pretty.lines().position(|l| l.contains("@tpu_custom_call")).unwrap() + 1;
    assert_eq!(call.line as usize, line);
    assert!(read::mlir(&call.body).unwrap().contains("\"tpu.vector_store\""));
    let other = calls(&generic).unwrap();
    assert_eq!(TpuCall { line: call.line, ..other[0].clone() }, *call);
    assert_eq!(other.len(), 1);
}

#[test]
fn source_lines_are_put_back() {
    for name in ["matmul", "copies", "in_place"] {
        let (Some(apart), Some(inside)) = (text(name), text(&format!("{name}.inside"))) else { return };
        let kernel = |text: &str| calls(text).unwrap()[0].kernel().unwrap();
        let (apart_call, apart, inside) = (&calls(&apart).unwrap()[0], kernel(&apart), kernel(&inside));
        assert_eq!(apart.spans, inside.spans, "{name}");
        assert!(apart.spans.iter().any(|s| s.file.ends_with("modules.py") && s.line > 1), "{name}");
        assert_ne!(
            read::kernel(&apart_call.body, None).unwrap().spans,
            apart.spans,
            "{name} has none of its own"
        );
    }
}

#[test]
fn texts_without_calls() {
    for text in [
        "",
        "module {}",
        "// stablehlo.custom_call @tpu_custom_call(",
        "%0 = stablehlo.custom_call @Sharding(%arg0) : (tensor<f32>) -> tensor<f32>",
        "a = \"stablehlo.custom_call @tpu_custom_call(\"",
        "\"stablehlo.custom_call\"(%0) <{call_target_name = \"Sharding\"}> : (tensor<f32>) -> tensor<f32>",
    ] {
        assert_eq!(calls(text).unwrap(), [], "{text}");
    }
}

#[test]
fn malformed_calls() {
    let config = "backend_config = \"{\\22custom_call_config\\22: {\\22body\\22: \\22TUw=\\22}}\"";
    let types = "(tensor<8xf32>) -> tensor<8xf32>";
    let call = |attributes: &str, types: &str| {
        format!("module {{\n  %0 = stablehlo.custom_call @tpu_custom_call(%a) {{{attributes}}} : {types}\n}}")
    };
    let good = calls(&call(config, types)).unwrap();
    assert_eq!((&good[0].body[..], good[0].line, &*good[0].name), (&b"ML"[..], 2, "tpu_custom_call"));
    let alias = "output_operand_aliases = [#stablehlo.output_operand_alias<output_tuple_indices = [], operand_index = 1>]";
    for (text, says) in [
        (call("", types), "it has no `backend_config`"),
        (call("backend_config = \"{}\"", types), "its `backend_config` is malformed"),
        (call(&config.replace("TUw=", "?"), types), "its `body` is no base64"),
        (call("backend_config = 3", types), "its `backend_config` is no string"),
        (call(config, "(tensor<8xf16>) -> tensor<8xf32>"), "kernels take no `tensor<8xf16>`"),
        (call(config, "(tensor<?xf32>) -> tensor<8xf32>"), "kernels take no `tensor<?xf32>`"),
        (call(config, "tensor<8xf32>"), "its types are malformed"),
        (call(&format!("{config}, {alias}"), types), "its `output_operand_aliases` name no operand"),
        ("stablehlo.custom_call @tpu_custom_call(%a".into(), "the text ends within it"),
        ("stablehlo.custom_call @tpu_custom_call(%a]".into(), "its brackets do not match"),
        (format!("stablehlo.custom_call @tpu_custom_call{}", "(".repeat(100)), "its brackets nest too deep"),
    ] {
        let report = calls(&text).unwrap_err();
        let one = &report.diagnostics[0];
        assert!(one.code == "K0805" && one.message.contains(says), "{}: {text}", one.message);
    }
}

#[test]
fn long_texts_take_linear_time() {
    let start = std::time::Instant::now();
    for piece in
        ["stablehlo.custom_call @tpu_custom_call(", "\"stablehlo.custom_call\"(", "\"", "{", "\\\"", "é "]
    {
        let _calls = calls(&piece.repeat((1 << 20) / piece.len()));
    }
    assert!(start.elapsed().as_secs() < 20, "{:?}", start.elapsed());
}
