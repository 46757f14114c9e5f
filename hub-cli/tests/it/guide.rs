//! The operator's guide is true: the commands of docs/hub.md run in their order, in one shell, and all succeed.

use std::net::TcpListener;
use std::path::Path;
use std::process::Command;

use crate::support::toy_package;

/// The commands of the page's `console` blocks, as one script. After a command in the background it waits for the port.
fn script(page: &str, port: u16) -> String {
    let blocks = page.split("```console\n").skip(1).filter_map(|rest| rest.split_once("```"));
    let commands = blocks.flat_map(|(block, _)| block.lines().filter_map(|line| line.strip_prefix("$ ")));
    let mut script = "set -euo pipefail\ntrap 'kill $(jobs -p)' EXIT\n".to_owned();
    for command in commands {
        let background = command.ends_with('&');
        let command = command.replace(":8000", &format!(":{port}"));
        script += &command.replace("serve --root hub", &format!("serve --root hub --port {port}"));
        script += "\n";
        if background {
            script +=
                &format!("until (exec 3<>/dev/tcp/127.0.0.1/{port}) 2>/dev/null; do sleep 0.05; done\n");
        }
    }
    script
}

#[test]
fn the_guide_for_operators_works_as_it_is_written() {
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap().join("docs/hub.md");
    let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let script = script(&fs_err::read_to_string(page).unwrap(), port);
    assert!(script.matches("kernels-cli ").count() > 15, "{script}");

    let folder = tempfile::tempdir().unwrap();
    toy_package(&folder.path().join("toy-kernel"), 1, "hello");
    let program = Path::new(env!("CARGO_BIN_EXE_kernels-cli"));
    let path = format!("{}:{}", program.parent().unwrap().display(), std::env::var("PATH").unwrap());
    let ran = Command::new("bash")
        .args(["-x", "-c", &script])
        .current_dir(&folder)
        .env_clear()
        .envs([("PATH", path), ("HOME", folder.path().display().to_string())])
        .output()
        .unwrap();
    let said = format!("{}{}", String::from_utf8_lossy(&ran.stdout), String::from_utf8_lossy(&ran.stderr));
    assert!(ran.status.success(), "{said}");
    let other = folder.path().join("other-machine/kernels--acme--toy-kernel/snapshots");
    assert_eq!(fs_err::read_dir(other).unwrap().count(), 1, "{said}");
}
