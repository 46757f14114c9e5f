//! The contract of `index.json`: what is read back is what was written, and what breaks the contract is refused.

use kernel_ir::ir::dims::Dims;
use kernel_ir::ir::{Demand, DimExpr};
use kernel_ir::mosaic::call::{CallError, Index, Operand, Table, TensorType, evaluate};
use sha2::{Digest, Sha256};

const BODY: &[u8] = b"ML\xEFR a body";

/// The contract's own example, with a second module behind the first.
fn example() -> serde_json::Value {
    let module = |file: &str, dtype: &str, demands: serde_json::Value| {
        serde_json::json!({
            "file": file,
            "sha256": hex::encode(Sha256::digest(BODY)), "bytes": BODY.len(),
            "kernel": "ragged_dot",
            "dtypes": {"T": dtype},
            "tile": {"bm": 512, "bn": 768, "bk": 2048},
            "demands": demands,
            "operands": [
                {"expr": ["ceildiv", "n", 768]},
                {"expr": ["ceildiv", "m", 512]},
                {"exprs": ["m", "n", "g"]},
                {"argument": "group_sizes"}, {"argument": "lhs"}, {"argument": "rhs"}
            ],
            "results": ["out"],
            "vmem_bytes": 15_728_640,
            "custom_call_config": {"serialization_format": 1, "needs_layout_passes": true},
            "backend_config": {"scoped_memory_configs": [{"memory_space": 1, "offset": 0, "size": 25_165_824}]},
            "generations": ["v4", "v5e", "v5p", "v6e", "v7x"]
        })
    };
    serde_json::json!({
        "schema": 1,
        "mosaic_version": 15,
        "ops": {"ragged_dot": {
            "doc": "Multiplies each group of rows by its own matrix.",
            "dims": ["m", "k", "n", "g"],
            "arguments": [
                {"name": "lhs", "dtype": "T", "shape": ["m", "k"]},
                {"name": "rhs", "dtype": "T", "shape": ["g", "n", "k"]},
                {"name": "group_sizes", "dtype": "int32", "shape": ["g"]}
            ],
            "results": [{"name": "out", "dtype": "T", "shape": ["m", "n"]}],
            "modules": [
                module("mosaic/small-bf16.mlirbc", "bfloat16", serde_json::json!([["<=", "k", 2048]])),
                module("mosaic/large-bf16.mlirbc", "bfloat16", serde_json::json!([])),
                module("mosaic/large-f32.mlirbc", "float32", serde_json::json!([["==", ["mod", "k", 128], 0]]))
            ]
        }}
    })
}

fn index() -> Index {
    // `json!` sorts its keys; the tile's own order must survive.
    let text = example().to_string();
    let sorted = r#"{"bk":2048,"bm":512,"bn":768}"#;
    assert!(text.contains(sorted));
    let text = text.replace(sorted, r#"{"bm":512,"bn":768,"bk":2048}"#);
    Index::parse(text.as_bytes()).expect("the example is valid")
}

fn ragged(dtype: &str, m: i64, k: i64, n: i64, g: i64) -> [TensorType; 3] {
    [TensorType::new(dtype, [m, k]), TensorType::new(dtype, [g, n, k]), TensorType::new("int32", [g])]
}

#[test]
fn what_is_written_reads_back_in_the_order_of_the_schema() {
    let text = index().to_json().unwrap();
    assert_eq!(serde_json::from_str::<serde_json::Value>(&text).unwrap(), example());
    assert_eq!(Index::parse(text.as_bytes()).unwrap(), index());
    assert!(
        text.starts_with(
            "{\n  \"schema\": 1,\n  \"mosaic_version\": 15,\n  \"ops\": {\n    \"ragged_dot\": {"
        )
    );
    assert!(text.ends_with("}\n"));
    let order =
        ["file", "sha256", "bytes", "kernel", "dtypes", "tile", "bm", "bn", "bk", "demands", "operands"];
    let places: Vec<usize> = order.iter().map(|key| text.find(&format!("\"{key}\":")).unwrap()).collect();
    assert!(places.is_sorted(), "{places:?}");
}

#[test]
fn division_is_pythons() {
    for line in include_str!("data/division.txt").lines().skip(1) {
        let row: Vec<&str> = line.split(' ').collect();
        let (a, b) = (row[0], row[1]);
        for (op, expected) in ["floordiv", "ceildiv", "mod"].iter().zip(&row[2..]) {
            let json = format!("[\"{op}\", {a}, {b}]");
            let value = evaluate(&serde_json::from_str(&json).unwrap(), &Dims::new());
            match value {
                Ok(value) => assert_eq!(value.to_string(), *expected, "{json}"),
                Err(error) => assert_eq!(*expected, "-", "{json}: {error}"),
            }
        }
    }
}

#[test]
fn expressions_without_a_value_say_why() {
    let dims = Dims::from([("m".into(), i64::MAX)]);
    let eval = |json: &str| evaluate(&serde_json::from_str(json).unwrap(), &dims);
    let text = |json: &str| eval(json).unwrap_err().to_string();
    assert_eq!(
        text(r#"["mod", "m", 0]"#),
        "`mod(m, 0)` has no value: 9223372036854775807 cannot be divided by 0"
    );
    assert_eq!(text(r#"["+", "m", 1]"#), "`(m + 1)` has no value: the result does not fit in 64 bits");
    assert_eq!(text(r#"["min", "q", 1]"#), "`q` has no value: no dim is called `q`");
    assert_eq!(eval(r#"["max", ["-", "m", 9], 3]"#).unwrap(), i64::MAX - 9);
}

#[test]
fn malformed_expressions_are_refused() {
    for json in ["1.5", "true", "null", "{}", "[]", r#"["+", 1]"#, r#"["**", 2, 3]"#, "9223372036854775808"] {
        assert!(serde_json::from_str::<DimExpr>(json).is_err(), "{json}");
    }
    let deep = |depth: usize| format!("{}1{}", "[\"+\",1,".repeat(depth), "]".repeat(depth));
    assert!(serde_json::from_str::<DimExpr>(&deep(32)).is_ok());
    assert!(serde_json::from_str::<DimExpr>(&deep(33)).is_err());
    assert!(serde_json::from_str::<DimExpr>(&deep(100_000)).is_err());
    for json in [r#"["<=", "k"]"#, r#"["=", "k", 1]"#, r#"["<", "k", 1, 2]"#] {
        assert!(serde_json::from_str::<Demand>(json).is_err(), "{json}");
    }
}

#[test]
fn arguments_bind_dims_and_dtypes() {
    let index = index();
    let op = index.op("ragged_dot").unwrap();
    let binding = op.bind(&ragged("bfloat16", 7, 2048, 1536, 8)).unwrap();
    let expected =
        [("m", 7), ("k", 2048), ("n", 1536), ("g", 8)].map(|(name, value)| (name.to_owned(), value));
    assert_eq!(binding.dims, Dims::from(expected));
    assert_eq!(binding.dtypes.get("T").unwrap(), "bfloat16");
    assert_eq!(op.result_types(&binding).unwrap(), [TensorType::new("bfloat16", [7, 1536])]);
}

#[test]
fn arguments_that_do_not_fit_are_named() {
    let index = index();
    let op = index.op("ragged_dot").unwrap();
    let problem = |change: &dyn Fn(&mut Vec<TensorType>)| {
        let mut arguments = ragged("bfloat16", 7, 64, 32, 8).to_vec();
        change(&mut arguments);
        let error = op.bind(&arguments).unwrap_err();
        assert_eq!(error.code(), "K0703");
        error.to_string()
    };
    assert_eq!(
        problem(&|a| a[1].shape[2] = 65),
        "axis 2 of `rhs` is 65, but must be 64 (`k`, from `lhs`): the argument is bfloat16[8,32,65], the interface \
         `rhs: T[g, n, k]`"
    );
    assert_eq!(
        problem(&|a| a[1].dtype = "float32".into()),
        "`rhs` must be bfloat16 as `lhs` is, not float32"
    );
    assert_eq!(problem(&|a| a[2].dtype = "int8".into()), "`group_sizes` must be int32, not int8");
    assert_eq!(problem(&|a| a[0].dtype = "f32".into()), "`lhs` has dtype `f32`, which no module takes");
    assert_eq!(problem(&|a| a[0].shape = vec![7]), "`lhs` is bfloat16[7], but must be `lhs: T[m, k]`");
    assert_eq!(
        problem(&|a| drop(a.pop())),
        "2 arguments are given, but the operation takes 3: lhs, rhs, group_sizes"
    );
}

#[test]
fn the_first_module_that_serves_is_taken() {
    let index = index();
    let op = index.op("ragged_dot").unwrap();
    let select = |dtype: &str, k: i64, generation: Option<&str>| {
        let binding = op.bind(&ragged(dtype, 7, k, 32, 8)).unwrap();
        let module = index.select("ragged_dot", &binding.dtypes, &binding.dims, generation);
        module.map(|module| module.file.clone())
    };
    assert_eq!(select("bfloat16", 2048, None).unwrap(), "mosaic/small-bf16.mlirbc");
    assert_eq!(select("bfloat16", 2049, Some("v7x")).unwrap(), "mosaic/large-bf16.mlirbc");
    assert_eq!(select("float32", 128, Some("v4")).unwrap(), "mosaic/large-f32.mlirbc");
    let error = select("float32", 129, Some("v4")).unwrap_err();
    assert_eq!(error.code(), "K0704");
    assert_eq!(
        error.to_string(),
        "no module of `ragged_dot` serves this call:\n  mosaic/small-bf16.mlirbc: T is float32, the module's is bfloat16\
         \n  mosaic/large-bf16.mlirbc: T is float32, the module's is bfloat16\
         \n  mosaic/large-f32.mlirbc: it needs mod(k, 128) == 0, but k = 129"
    );
    assert!(select("bfloat16", 1, Some("v9")).unwrap_err().to_string().contains("not for v9"));
    assert!(
        index
            .select("gmm", &Table::new(), &Dims::new(), None)
            .unwrap_err()
            .to_string()
            .contains("ragged_dot")
    );
}

#[test]
fn the_backend_config_carries_the_body_and_only_the_right_body() {
    let index = index();
    let module = &index.op("ragged_dot").unwrap().modules[0];
    let config: serde_json::Value = serde_json::from_str(&module.backend_config(BODY).unwrap()).unwrap();
    let expected = serde_json::json!({
        "custom_call_config": {"body": "TUzvUiBhIGJvZHk=", "serialization_format": 1, "needs_layout_passes": true},
        "scoped_memory_configs": [{"memory_space": 1, "offset": 0, "size": 25_165_824}]
    });
    assert_eq!(config, expected);
    let error = module.backend_config(b"ML\xEFR a b0dy").unwrap_err();
    assert!(matches!(&error, CallError::Body { problem, .. } if problem.contains("SHA-256")), "{error}");
    assert_eq!(module.backend_config(&BODY[1..]).unwrap_err().code(), "K0705");
}

#[test]
fn stablehlo_passes_bounds_then_dims_then_arguments() {
    let index = index();
    let op = index.op("ragged_dot").unwrap();
    let binding = op.bind(&ragged("bfloat16", 1000, 2048, 1536, 8)).unwrap();
    let text = op.stablehlo(&op.modules[0], &binding.dims, BODY).unwrap();
    for line in [
        "func.func public @main(%arg0: tensor<1000x2048xbf16>, %arg1: tensor<8x1536x2048xbf16>, %arg2: tensor<8xi32>) -> (tensor<1000x1536xbf16>)",
        "%c0 = stablehlo.constant dense<2> : tensor<i32>",
        "%c1 = stablehlo.constant dense<2> : tensor<i32>",
        "%c2 = stablehlo.constant dense<[1000, 1536, 8]> : tensor<3xi32>",
        "%r = stablehlo.custom_call @tpu_custom_call(%c0, %c1, %c2, %arg2, %arg0, %arg1) {",
        "operand_layouts = [dense<> : tensor<0xindex>, dense<> : tensor<0xindex>, dense<[0]> : tensor<1xindex>, \
         dense<[0]> : tensor<1xindex>, dense<[1, 0]> : tensor<2xindex>, dense<[2, 1, 0]> : tensor<3xindex>]",
    ] {
        assert!(text.contains(line), "{line}\nis not in\n{text}");
    }
    let far = Dims::from_iter(binding.dims.into_iter().map(|(name, value)| (name, value << 22)));
    let error = op.stablehlo(&op.modules[1], &far, BODY).unwrap_err();
    assert_eq!(error.to_string(), "`m` has no value: 4194304000 does not fit in 32 bits");
}

#[test]
fn an_index_that_breaks_the_contract_is_refused() {
    type Change = fn(&mut serde_json::Value);
    let module = "/ops/ragged_dot/modules/0";
    let cases: &[(&str, &str, Change, &str)] = &[
        ("", "schema", |v| *v = 2.into(), "schema 1, not 2"),
        ("", "extra", |v| *v = 1.into(), "unknown field `extra`"),
        ("/ops/ragged_dot", "doc", |v| *v = "x".repeat(5000).into(), "doc is longer"),
        (
            "/ops/ragged_dot",
            "dims",
            |v| v.as_array_mut().unwrap().push("z".into()),
            "dim `z` is the extent of no argument",
        ),
        ("/ops/ragged_dot", "dims", |v| v.as_array_mut().unwrap().push("m".into()), "`m` is given twice"),
        ("/ops/ragged_dot/arguments/0", "name", |v| *v = "rhs".into(), "`rhs` is given twice"),
        ("/ops/ragged_dot/arguments/0", "name", |v| *v = "l hs".into(), "`l hs` is not an identifier"),
        ("/ops/ragged_dot/arguments/0", "dtype", |v| *v = "half".into(), "neither a dtype nor"),
        ("/ops/ragged_dot/results/0", "dtype", |v| *v = "U".into(), "result dtype `U`"),
        ("/ops/ragged_dot/results/0", "shape", |v| *v = vec!["m"; 17].into(), "rank 17"),
        (module, "file", |v| *v = "../evil".into(), "not a plain path"),
        (module, "file", |v| *v = "/etc/passwd".into(), "not a plain path"),
        (module, "file", |v| *v = "mosaic/a\\b".into(), "not a plain path"),
        (module, "file", |v| *v = "mosaic//a".into(), "not a plain path"),
        (module, "sha256", |v| *v = "AB".repeat(32).into(), "64 lower-case hex"),
        (module, "bytes", |v| *v = (1_u64 << 40).into(), "are more than"),
        (module, "bytes", |v| *v = (-1).into(), "invalid value"),
        (module, "kernel", |v| *v = "a\"b".into(), "is not an identifier"),
        (module, "dtypes", |v| *v = serde_json::json!({}), "dtypes must bind"),
        (module, "dtypes", |v| *v = serde_json::json!({"T": "T"}), "`T` is not a dtype"),
        (module, "demands", |v| *v = serde_json::json!([["<", "q", 1]]), "`q` is not a dim"),
        (module, "operands", |v| *v = serde_json::json!([{"argument": "nope"}]), "`nope` is not an argument"),
        (module, "operands", |v| *v = serde_json::json!([{"expr": 1, "argument": "lhs"}]), "expected"),
        (module, "operands", |v| *v = serde_json::json!([{"raw": 1}]), "unknown variant `raw`"),
        (module, "results", |v| *v = serde_json::json!([]), "results must be"),
        (module, "custom_call_config", |v| v["body"] = "AA==".into(), "`body` is the file's"),
        (module, "backend_config", |v| v["custom_call_config"] = 1.into(), "stands beside"),
        (module, "generations", |v| *v = serde_json::json!(["v4", "v4"]), "`v4` is given twice"),
    ];
    for (place, field, change, problem) in cases {
        let mut json = example();
        let object = json.pointer_mut(place).unwrap().as_object_mut().unwrap();
        change(object.entry(*field).or_insert(serde_json::Value::Null));
        let error = Index::parse(json.to_string().as_bytes()).expect_err(problem);
        assert_eq!(error.code(), "K0701");
        assert!(error.to_string().contains(problem), "{field}: {error} should say {problem}");
    }
    let twice = example().to_string().replacen("\"bk\":", "\"bm\":", 1);
    assert!(Index::parse(twice.as_bytes()).unwrap_err().to_string().contains("`bm` is given twice"));
    assert!(Index::parse(b"\xff\xfe").is_err());
    assert!(Index::parse(&vec![b' '; 9 << 20]).is_err());
}

#[test]
fn operands_are_one_of_three() {
    let json = r#"[{"expr":["ceildiv","n",768]},{"exprs":["m",4]},{"argument":"lhs"}]"#;
    let operands: Vec<Operand> = serde_json::from_str(json).unwrap();
    assert_eq!(serde_json::to_string(&operands).unwrap(), json);
}

#[test]
fn any_damage_to_an_index_is_an_error_or_a_valid_index() {
    let text = index().to_json().unwrap().into_bytes();
    for at in 0..text.len() {
        for byte in [0, b'"', b'-', b'9', b'[', b'}', 0xff] {
            let mut damaged = text.clone();
            damaged[at] = byte;
            if let Ok(index) = Index::parse(&damaged) {
                index.check().unwrap();
            }
        }
        // The last byte is the newline, which JSON does not need.
        assert!(at + 1 == text.len() || Index::parse(&text[..at]).is_err(), "cut at {at}");
    }
}
