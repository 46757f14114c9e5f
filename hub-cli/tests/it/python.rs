//! The unmodified Python clients against our hub and our cache.
//!
//! They need a Python with `kernels` and `huggingface_hub`: the one that TESSERA_PYTHON names, else the
//! repository's `.venv`. Without one these tests say so and pass.

use std::path::{Path, PathBuf};
use std::process::Command;

use hub_cli::Result;
use hub_cli::hub::Version;
use serde_json::Value;

use crate::support::{Bench, repo, wanted};

#[allow(clippy::print_stdout, reason = "a test that did not run says so")]
pub(crate) fn python() -> Option<PathBuf> {
    let venv = Path::new(env!("CARGO_MANIFEST_DIR")).parent()?.join(".venv/bin/python");
    let found =
        std::env::var_os("TESSERA_PYTHON").map(PathBuf::from).or(Some(venv)).filter(|path| path.exists());
    if found.is_none() {
        println!("skipped: no Python; set TESSERA_PYTHON or run `./x setup`");
    }
    found
}

/// Runs `tests/clients/SCRIPT` against the hub; its last line of output is JSON.
pub(crate) fn client(bench: &Bench, script: &str, home: &Path, variables: &[(&str, &str)]) -> Option<Value> {
    let mut command = Command::new(python()?);
    command.arg(Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/clients").join(script));
    for (name, _) in
        std::env::vars().filter(|(name, _)| name.starts_with("HF_") || name.starts_with("KERNELS_"))
    {
        command.env_remove(name);
    }
    command.env("HF_ENDPOINT", bench.hub.endpoint());
    // On a busy machine ten seconds pass quickly.
    command.envs([("HF_HUB_ETAG_TIMEOUT", "120"), ("HF_HUB_DOWNLOAD_TIMEOUT", "120")]);
    command.env("HF_HOME", home).envs(variables.iter().copied());
    let output = command.output().unwrap();
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(output.status.success(), "{script}: {text}\n{}", String::from_utf8_lossy(&output.stderr));
    Some(serde_json::from_str(text.lines().last().unwrap()).unwrap())
}

#[test]
fn get_kernel_loads_what_we_published() -> Result<()> {
    let bench = Bench::new();
    let published = bench.publish(1, "one")?;
    bench.publish(2, "two")?;
    let home = bench.folder.path().join("home");
    let Some(loaded) = client(&bench, "load.py", &home, &[]) else { return Ok(()) };
    assert_eq!(loaded["greetings"], serde_json::json!({"1": "one", "2": "two"}));
    // A torch that was built for CUDA makes `kernels` look for torch-cuda, and settle for the universal variant.
    let variant = loaded["variant"].as_str().unwrap();
    assert!(["torch-cpu", "torch-universal"].contains(&variant), "{variant}");
    assert_eq!(loaded["versions"], serde_json::json!([1, 2]));
    assert_eq!(loaded["commit"], published.commit.as_str());
    assert!(loaded["untrusted"].as_str().unwrap().contains("not from a trusted publisher"), "{loaded}");
    assert!(loaded["missing"].as_str().unwrap().contains("available versions: 1, 2"), "{loaded}");
    Ok(())
}

#[test]
fn the_cache_we_filled_loads_offline() -> Result<()> {
    let bench = Bench::new();
    bench.publish(1, "one")?;
    bench.publish(2, "two")?;
    let home = bench.folder.path().join("home");
    let cache = hub_cli::hub::Cache::new(home.join("hub"));
    for version in [1, 2] {
        hub_cli::hub::fetch(&bench.client(), &cache, &wanted(Version(version)), &mut hub_cli::hub::Silent)?;
    }
    let offline = [("HF_HUB_OFFLINE", "1"), ("HF_ENDPOINT", "http://127.0.0.1:1")];
    let Some(loaded) = client(&bench, "load.py", &home, &offline) else { return Ok(()) };
    assert_eq!(loaded["greetings"], serde_json::json!({"1": "one", "2": "two"}));
    assert_eq!(loaded["versions"], serde_json::json!([1, 2]));
    // Python leaves bytecode beside what it ran.
    hub_cli::hub::open_cached(&cache, &wanted(Version(1)))?;
    Ok(())
}

#[test]
fn a_variant_alone_loads_offline_too() -> Result<()> {
    let bench = Bench::new();
    bench.publish(1, "one")?;
    let home = bench.folder.path().join("home");
    let only = hub_cli::hub::Wanted { variants: vec!["torch-universal".into()], ..wanted(Version(1)) };
    hub_cli::hub::fetch(
        &bench.client(),
        &hub_cli::hub::Cache::new(home.join("hub")),
        &only,
        &mut hub_cli::hub::Silent,
    )?;
    let offline = [("HF_HUB_OFFLINE", "1"), ("HF_ENDPOINT", "http://127.0.0.1:1"), ("ONLY", "1")];
    let Some(loaded) = client(&bench, "load.py", &home, &offline) else { return Ok(()) };
    assert_eq!(loaded["variant"], "torch-universal");
    Ok(())
}

#[test]
fn a_trusted_owner_needs_no_trust_remote_code() -> Result<()> {
    let bench = Bench::with(|config| {
        config.trusted.insert(repo().owner().to_owned());
    });
    bench.publish(1, "one")?;
    bench.publish(2, "two")?;
    let Some(loaded) = client(&bench, "load.py", &bench.folder.path().join("home"), &[]) else {
        return Ok(());
    };
    assert_eq!(loaded["untrusted"], "loaded");
    Ok(())
}

#[test]
fn huggingface_hub_reads_and_writes_our_hub() -> Result<()> {
    for (page_size, xet) in [(1000, "0"), (1, "1")] {
        let bench = Bench::with(|config| config.page_size = page_size);
        bench.publish(1, "one")?;
        let home = bench.folder.path().join("home");
        let Some(said) =
            client(&bench, "hub.py", &home, &[("HF_HUB_DISABLE_XET", xet), ("HF_TOKEN", "hf_any")])
        else {
            return Ok(());
        };
        assert_eq!(said["ok"], true);
        // What Python uploaded, we read.
        let theirs = "python/kernel".parse()?;
        let heads = bench.client().heads(&theirs)?;
        let files = bench.client().files(&theirs, &heads.branches["v3"])?;
        let paths: Vec<_> = files.iter().map(|file| file.path.as_str()).collect();
        assert_eq!(
            paths,
            ["README.md", "build/torch-cpu/__init__.py", "build/torch-cpu/data.bin", "build/torch-cpu/empty"]
        );
        for file in &files {
            bench.client().download(&theirs, &heads.branches["v3"], file, &mut std::io::sink())?;
        }
    }
    Ok(())
}
