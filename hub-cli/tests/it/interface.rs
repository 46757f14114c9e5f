//! A version is a promise: what may be published under one that exists, and what may not.

use std::path::{Path, PathBuf};

use hub_cli::hub::{Plan, Version, publish};
use hub_cli::package::LocalPackage;
use hub_cli::package::build::build;
use hub_cli::{Code, Error, Result};
use serde_json::{Value, json};

use crate::support::{Bench, Ops, repo, toy_index, write_source};

/// The package with the ops of `index` and this `__init__.py`.
fn package(folder: &Path, version: u32, index: &Value, init: &str) -> LocalPackage {
    write_source(folder, version, "one");
    let ops: Vec<_> = index["ops"].as_object().unwrap().keys().map(|name| format!("\"{name}\"")).collect();
    let toml = folder.join("build.toml");
    let text = fs_err::read_to_string(&toml).unwrap().replace("[\"toy\"]", &format!("[{}]", ops.join(", ")));
    fs_err::write(toml, text).unwrap();
    fs_err::write(folder.join("python/__init__.py"), init).unwrap();
    build(folder, None, &Ops(index.clone()), None).unwrap().package
}

const INIT: &str = "__all__ = [\"greet\"]\n\n\ndef greet(name, loud=False):\n    return name\n";

/// A hub with version 1 of the toy, to publish other forms of it to.
struct Versioned {
    bench: Bench,
    count: std::cell::Cell<u32>,
}

impl Versioned {
    fn new() -> Self {
        let versioned = Self { bench: Bench::new(), count: 0.into() };
        versioned.publish(1, &toy_index(), INIT).unwrap();
        versioned
    }

    fn folder(&self) -> PathBuf {
        self.count.set(self.count.get() + 1);
        self.bench.folder.path().join(format!("source-{}", self.count.get()))
    }

    fn publish(&self, version: u32, index: &Value, init: &str) -> Result<()> {
        let package = package(&self.folder(), version, index, init);
        publish(&self.bench.client(), None, &package, &repo(), Version(version), false).map(drop)
    }

    /// What a change of the index is refused with, after a look that nothing was published.
    fn refused(&self, change: impl Fn(&mut Value), init: &str) -> Error {
        let mut index = toy_index();
        change(&mut index);
        let before = self.bench.client().heads(&repo()).unwrap();
        let error = self.publish(1, &index, init).expect_err("callers would break");
        assert_eq!(self.bench.client().heads(&repo()).unwrap(), before);
        assert_eq!(error.code(), Code::Breaks, "{error}");
        error
    }
}

fn module(index: &mut Value) -> &mut Value {
    &mut index["ops"]["toy"]["modules"][0]
}

#[test]
fn each_way_to_break_a_caller_is_refused_and_named() {
    let hub = Versioned::new();
    type Change = fn(&mut Value);
    let cases: [(Change, &str); 12] = [
        (
            |i| {
                let toy = i["ops"].as_object_mut().unwrap().remove("toy").unwrap();
                i["ops"]["other"] = toy;
            },
            "the op toy is gone: `toy(x: T[m, k])` fails",
        ),
        (
            |i| {
                i["ops"]["toy"]["arguments"][0]["name"] = json!("y");
                module(i)["operands"][1] = json!({"argument": "y"});
            },
            "`x: T[m, k]` becomes `y: T[m, k]`",
        ),
        (|i| i["ops"]["toy"]["results"][0]["shape"] = json!(["k", "m"]), "result: `out: T[m, k]` becomes"),
        (|i| i["ops"]["toy"]["results"][0]["dtype"] = json!("float32"), "becomes `out: float32[m, k]`"),
        (
            |i| {
                let argument = json!({"name": "y", "dtype": "T", "shape": ["m", "k"]});
                i["ops"]["toy"]["arguments"].as_array_mut().unwrap().push(argument);
            },
            "gets one more argument, `y: T[m, k]`",
        ),
        (|i| module(i)["dtypes"]["T"] = json!("float32"), "loses the dtype T = bfloat16"),
        (|i| module(i)["generations"] = json!(["v6e"]), "has no module on v5e any more"),
        (
            |i| module(i)["demands"] = json!([["==", ["mod", "k", 256], 0]]),
            "`toy(x: bfloat16[1,128])` on v5e fails: it would need mod(k, 256) == 0",
        ),
        (
            |i| module(i)["demands"].as_array_mut().unwrap().push(json!(["<=", "m", 4096])),
            "on v5e fails: it would need m <= 4096",
        ),
        (|i| module(i)["demands"] = json!([["==", "k", 128]]), "it would need k == 128"),
        (|i| module(i)["demands"] = json!([["==", ["mod", "k", 128], 0], [">", "m", "k"]]), "m > k"),
        (|i| module(i)["demands"] = json!([["==", ["mod", "k", 384], 0]]), "bfloat16[1,128]"),
    ];
    for (change, words) in cases {
        let shown = hub.refused(change, INIT).render();
        assert!(shown.contains(words), "{words}: {shown}");
        assert!(shown.contains("publish it as v2") && shown.contains("`version = 2`"), "{shown}");
    }
    for (init, words) in [
        ("__all__ = [\"hello\"]\n\n\ndef hello(): ...\n", "Python loses `greet`"),
        ("__all__ = [\"greet\"]\n\n\ndef greet(name): ...\n", "loses its parameter `loud`"),
        (
            "__all__ = [\"greet\"]\n\n\ndef greet(name, to, loud=False): ...\n",
            "needs one more parameter, `to`",
        ),
    ] {
        let shown = hub.refused(|_| {}, init).render();
        assert!(shown.contains(words), "{words}: {shown}");
    }
}

#[test]
fn what_callers_gain_may_come_under_the_same_version() -> Result<()> {
    let hub = Versioned::new();
    let mut index = toy_index();
    let mut other = index["ops"]["toy"].clone();
    other["modules"][0]["file"] = json!("mosaic/other.mlirbc");
    index["ops"]["other"] = other;
    let mut float = module(&mut index).clone();
    float["dtypes"]["T"] = json!("float32");
    float["file"] = json!("mosaic/toy-f32.mlirbc");
    index["ops"]["toy"]["modules"].as_array_mut().unwrap().push(float);
    let bf16 = module(&mut index);
    bf16["generations"] = json!(["v5e", "v6e"]);
    // Weaker, though not among the old demands: every multiple of 128 is one of 64.
    bf16["demands"] = json!([["==", ["mod", "k", 64], 0]]);
    let init = "__all__ = [\"greet\", \"wave\"]\n\n\ndef greet(name, loud=False, *, tone=1): ...\n\n\ndef wave(): ...\n";

    let package = package(&hub.folder(), 1, &index, init);
    let plan = Plan::make(&hub.bench.client(), &package, &repo(), Version(1))?;
    assert_eq!(plan.interface.breaking, [""; 0]);
    let added = plan.interface.added.join("\n");
    for words in [
        "the op `other(x: T[m, k])`",
        "toy with T = float32",
        "toy with T = bfloat16 on v6e",
        "the Python name `wave`",
        "the parameter `tone` of `greet`",
    ] {
        assert!(added.contains(words), "{words}: {added}");
    }
    plan.publish(&hub.bench.client(), None, false)?;
    // What came has callers from now on.
    assert!(hub.refused(|_| {}, INIT).render().contains("the op other is gone"));
    Ok(())
}

#[test]
fn another_version_and_version_0_promise_nothing_to_old_callers() -> Result<()> {
    let hub = Versioned::new();
    let mut index = toy_index();
    module(&mut index)["generations"] = json!(["v6e"]);
    hub.publish(2, &index, INIT)?;
    hub.publish(0, &toy_index(), INIT)?;
    hub.publish(0, &index, "__all__ = []\n")?;
    // The next version is the one after the newest.
    let error = hub.refused(|i| module(i)["generations"] = json!(["v6e"]), INIT);
    assert!(error.help_text().unwrap().starts_with("publish it as v3"), "{error:?}");
    Ok(())
}

#[test]
fn a_package_of_others_is_held_to_its_python_names() -> Result<()> {
    let hub = Versioned::new();
    let package = package(&hub.folder(), 3, &toy_index(), INIT);
    // Without index.json only Python says what there is.
    for variant in &package.variants {
        let folder = variant.files.values().next().unwrap().parent().unwrap();
        let metadata = folder.join("metadata.json");
        let mut json: Value = serde_json::from_slice(&fs_err::read(&metadata).unwrap()).unwrap();
        let files = json["digest"]["files"].as_object_mut().unwrap();
        files.retain(|path, _| path.ends_with(".py"));
        fs_err::remove_file(folder.join("index.json")).unwrap();
        fs_err::remove_dir_all(folder.join("mosaic")).unwrap();
        fs_err::write(&metadata, json.to_string()).unwrap();
    }
    let build = package.variants[0].files.values().next().unwrap().ancestors().nth(2).unwrap().to_owned();
    let foreign = LocalPackage::open(&build)?;
    assert!(foreign.variants.iter().all(|variant| variant.index.is_none()));
    publish(&hub.bench.client(), None, &foreign, &repo(), Version(3), false)?;
    let error = hub.publish(3, &toy_index(), "__all__ = []\n").unwrap_err();
    assert!(error.render().contains("Python loses `greet`"), "{error:?}");
    hub.publish(3, &toy_index(), INIT)
}
