//! The program as a user meets it: text, JSON, exit codes.

use hub_cli::Result;
use serde_json::Value;

use crate::support::{Bench, run, toy_package};

const COMMANDS: [&str; 22] = [
    "build",
    "publish",
    "get",
    "lock",
    "verify",
    "versions",
    "info",
    "search",
    "diff",
    "bundle",
    "unbundle",
    "mirror",
    "cache",
    "keygen",
    "sign",
    "trust",
    "run",
    "show",
    "serve",
    "hub",
    "explain",
    "completions",
];

#[test]
fn every_command_has_help_with_an_example() {
    let main = run(&[], &["--help"]);
    assert_eq!(main.code, 0);
    for command in COMMANDS {
        assert!(main.out.contains(&format!("  {command}")), "{command} is not listed");
        let help = run(&[], &[command, "--help"]);
        assert_eq!(help.code, 0);
        assert!(
            help.out.contains("Example") && help.out.contains(&format!("kernels-cli {command}")),
            "{}",
            help.out
        );
        assert!(help.out.lines().all(|line| line.chars().count() <= 110), "{}", help.out);
    }
}

#[test]
fn a_package_goes_out_and_comes_back() -> Result<()> {
    let bench = Bench::new();
    let source = bench.folder.path().join("source");
    toy_package(&source, 1, "one");
    let path = source.to_str().unwrap();

    let published = bench.cli(&["publish", path, "acme/toy-kernel", "--version", "1", "--json"]);
    assert_eq!(published.code, 0, "{published:?}");
    let published = published.json();
    assert_eq!((published["version"].as_u64(), published["unchanged"].as_u64()), (Some(1), Some(0)));
    let commit = published["commit"].as_str().unwrap();

    let versions = bench.cli(&["versions", "acme/toy-kernel", "--json"]).json();
    assert_eq!(versions["versions"][0], serde_json::json!({"version": 1, "branch": "v1", "commit": commit}));

    let forms: [&[&str]; 4] = [
        &["acme/toy-kernel@v1"],
        &["acme/toy-kernel", "--version", "1"],
        &["acme/toy-kernel", "--revision", commit],
        &["acme/toy-kernel", "--revision", "v1", "--variant", "torch-tpu"],
    ];
    for form in forms {
        let args: Vec<_> = std::iter::once("get").chain(form.iter().copied()).chain(["--json"]).collect();
        let got = bench.cli(&args);
        assert_eq!(got.code, 0, "{got:?}");
        let got = got.json();
        assert_eq!(got["commit"], commit);
        let variant = &got["variants"][0];
        assert_eq!((variant["ops"][0].as_str(), variant["digest"].as_bool()), (Some("toy"), Some(true)));
        assert!(std::path::Path::new(variant["path"].as_str().unwrap()).join("metadata.json").is_file());
    }
    let text = bench.cli(&["get", "acme/toy-kernel@v1"]);
    assert_eq!(text.code, 0);
    assert!(text.out.contains("digest ok") && text.err.is_empty(), "{text:?}");
    let offline = bench.cli(&["get", "acme/toy-kernel@v1", "--offline"]);
    assert_eq!(text.out.lines().last(), offline.out.lines().last());
    Ok(())
}

#[test]
fn failures_have_a_code_a_help_and_an_exit_code() {
    let bench = Bench::new();
    let cases: [(&[&str], i32, &str); 8] = [
        (&["get", "acme/toy-kernel@v1"], 1, "H0202"),
        (&["get", "acme/toy-kernel"], 2, "H0108"),
        (&["get", "acme/toy-kernel@v1", "--version", "2"], 2, "H0108"),
        (&["get", "../x@v1"], 1, "H0101"),
        (&["get", "acme/toy-kernel@v1", "--offline"], 1, "H0211"),
        (&["get", "acme/toy-kernel@v1", "--endpoint", "ftp://x"], 1, "H0104"),
        (&["publish", "/nonexistent", "acme/x", "--version", "1"], 1, "H0409"),
        (&["explain", "H9999"], 1, "H0107"),
    ];
    for (args, exit, code) in cases {
        let text = bench.cli(args);
        assert_eq!(text.code, exit, "{text:?}");
        assert!(text.err.starts_with(&format!("error[{code}]: ")) && text.out.is_empty(), "{text:?}");
        assert!(text.err.contains(&format!("kernels-cli explain {code}")), "{text:?}");
        let json = bench.cli(&[args, &["--json"]].concat());
        assert_eq!((json.code, json.json()["error"]["code"].as_str()), (exit, Some(code)));
    }
    for usage in [
        &["get"][..],
        &["fetch"],
        &["get", "a/b", "--version", "one"],
        &["get", "a/b", "--version", "1", "--revision", "v1"],
    ] {
        assert_eq!(bench.cli(usage).code, 2, "{usage:?}");
    }
}

#[test]
fn a_wrong_line_of_build_toml_is_shown() {
    let bench = Bench::new();
    let source = bench.folder.path().join("source");
    toy_package(&source, 1, "one");
    let toml = fs_err::read_to_string(source.join("build.toml")).unwrap().replace("license", "licence");
    fs_err::write(source.join("build.toml"), toml).unwrap();
    let failed = bench.cli(&["build", source.to_str().unwrap(), "--no-tpu-check"]);
    assert_eq!(failed.code, 1);
    if cfg!(feature = "emit") {
        assert!(failed.err.contains("error[H0401]: unknown field `licence`"), "{}", failed.err);
        assert!(
            failed.err.contains("build.toml:5:1") && failed.err.contains("licence = \"apache-2.0\""),
            "{}",
            failed.err
        );
    } else {
        assert!(failed.err.contains("error[H0413]"), "{}", failed.err);
    }
}

#[test]
fn every_code_is_explained() {
    let list = run(&[], &["explain", "--json"]);
    let codes = list.json();
    let codes: Vec<_> = codes.as_array().unwrap().iter().map(|c| c["code"].as_str().unwrap()).collect();
    assert!(codes.windows(2).all(|pair| pair[0] < pair[1]), "sorted, and each once");
    for code in ["H0301", "K0302"] {
        assert!(codes.contains(&code));
    }
    for code in codes {
        let explained = run(&[], &["explain", code, "--json"]).json();
        assert!(explained["explanation"].as_str().unwrap().len() > 60, "{code}");
    }
    let text = run(&[], &["explain", "h0301"]);
    assert!(
        text.out.starts_with("H0301: a file has another size than announced\n\nThe hub lists"),
        "{}",
        text.out
    );
    assert!(text.out.lines().all(|line| line.len() <= 100), "{}", text.out);
}

#[test]
fn completions_know_the_commands() {
    for shell in ["bash", "zsh", "fish", "powershell", "elvish"] {
        let script = run(&[], &["completions", shell]);
        assert_eq!(script.code, 0);
        assert!(COMMANDS.iter().all(|command| script.out.contains(command)), "{shell}");
    }
}

#[test]
fn a_token_is_not_sent_in_the_clear() {
    let variables =
        |endpoint: &str| [("HF_ENDPOINT", endpoint.to_owned()), ("HF_TOKEN", "hf_secret".to_owned())];
    let folder = tempfile::tempdir().unwrap();
    toy_package(folder.path(), 1, "one");
    let args = ["publish", folder.path().to_str().unwrap(), "acme/x", "--version", "1"];
    // 192.0.2.0/24 is nobody's: the refusal comes before any connection.
    let refused = run(&variables("http://192.0.2.1"), &args);
    assert_eq!(refused.code, 1);
    assert!(refused.err.contains("H0106") && !refused.err.contains("hf_secret"), "{refused:?}");
}

#[test]
fn a_served_hub_says_where_it_is() {
    let folder = tempfile::tempdir().unwrap();
    let mut child = std::process::Command::new(env!("CARGO_BIN_EXE_kernels-cli"))
        .args(["serve", "--port", "0", "--json", "--root"])
        .arg(folder.path().join("hub"))
        .stdout(std::process::Stdio::piped())
        .spawn()
        .unwrap();
    let mut line = String::new();
    std::io::BufRead::read_line(&mut std::io::BufReader::new(child.stdout.take().unwrap()), &mut line)
        .unwrap();
    let ready: Value = serde_json::from_str(&line).unwrap();
    let endpoint = ready["endpoint"].as_str().unwrap();
    let versions = run(&[("HF_ENDPOINT", endpoint.to_owned())], &["versions", "acme/x"]);
    assert!(versions.err.contains("H0202"), "{versions:?}");
    let again = run(&[], &["serve", "--root", folder.path().join("hub").to_str().unwrap(), "--port", "0"]);
    assert!(again.err.contains("H0502"), "{again:?}");

    #[cfg(unix)]
    {
        let pid = child.id().to_string();
        assert!(std::process::Command::new("kill").args(["-TERM", &pid]).status().unwrap().success());
        assert_eq!(child.wait().unwrap().code(), Some(0), "SIGTERM ends it in good order");
    }
    #[cfg(not(unix))]
    child.kill().unwrap();
}
