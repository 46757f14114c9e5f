//! The operator's side: the check, garbage, backups, https, and what a monitor sees.

use std::process::Command;
use std::time::{Duration, SystemTime};

use hub_cli::hub::Version;
use hub_cli::{Code, Result};
use reqwest::Method;
use serde_json::json;

use crate::raw::{Process, file, title};
use crate::support::{Bench, Ran, client, repo, run};

fn hub(bench: &Bench, args: &[&str]) -> Ran {
    let root = bench.folder.path().join("hub");
    run(&[], &[&["hub"], args, &["--root", root.to_str().unwrap(), "--json"]].concat())
}

#[test]
fn fsck_finds_what_was_altered_and_nothing_else() -> Result<()> {
    let bench = Bench::new();
    bench.publish(1, "one")?;
    let sound = hub(&bench, &["fsck"]);
    assert_eq!(sound.code, 0, "{sound:?}");
    assert_eq!(sound.json()["repositories"], 1);

    let root = bench.folder.path().join("hub");
    let all = crate::support::contents(&root);
    let repos = all.keys().filter(|path| path.starts_with("repos")).collect::<Vec<_>>();
    for kind in ["objects", "trees", "commits", "refs"] {
        let victims = repos.iter().filter(|path| path.iter().nth(2).is_some_and(|part| part == kind));
        for victim in victims {
            let path = root.join(victim);
            let original = fs_err::read(&path).unwrap();
            let mut altered = original.clone();
            match altered.first_mut() {
                Some(first) => *first ^= 1,
                None => altered.push(b'x'),
            }
            fs_err::write(&path, altered).unwrap();
            let found = hub(&bench, &["fsck"]);
            assert_eq!(found.code, 1, "{} was altered: {found:?}", victim.display());
            assert_eq!(found.json()["error"]["code"], "H0505");
            fs_err::remove_file(&path).unwrap();
            let missing = hub(&bench, &["fsck", "--quick"]);
            // That there was a branch v1, nobody can know.
            let noticed = kind != "refs" || victim.ends_with("main");
            assert_eq!(missing.code, i32::from(noticed), "{} was removed", victim.display());
            fs_err::write(&path, original).unwrap();
        }
    }
    assert_eq!(hub(&bench, &["fsck"]).code, 0);
    Ok(())
}

#[test]
fn garbage_goes_when_it_is_old_and_nothing_else_does() -> Result<()> {
    let bench = Bench::new();
    let published = bench.publish(1, "one")?;
    // An upload whose commit is refused, a repository that is deleted, a branch that goes.
    let stale = [title(Some(&"f".repeat(40))), file("orphan", b"orphan")];
    assert_eq!(bench.commit(&stale).status(), 412);
    bench.post("/api/repos/create", json!({"type": "kernel", "organization": "acme", "name": "gone"}));
    let gone = json!({"type": "kernel", "organization": "acme", "name": "gone"}).to_string();
    assert_eq!(bench.send(Method::DELETE, "/api/repos/delete", gone).status(), 200);

    assert_eq!(hub(&bench, &["gc"]).json(), json!({"records": 0, "bytes": 0}), "all of it is young");
    let root = bench.folder.path().join("hub");
    let past = SystemTime::now() - Duration::from_secs(30 * 86_400);
    for path in crate::support::contents(&root).keys().filter(|path| path.starts_with("repos")) {
        std::fs::File::options().append(true).open(root.join(path)).unwrap().set_modified(past).unwrap();
    }
    let counted = hub(&bench, &["gc", "--dry-run"]).json();
    // The orphan, and the ref, commit and tree of the deleted repository.
    assert_eq!(counted["records"], 4);
    assert_eq!(hub(&bench, &["gc"]).json(), counted);
    assert_eq!(hub(&bench, &["gc"]).json()["records"], 0);
    assert_eq!(hub(&bench, &["fsck"]).code, 0);
    assert_eq!(bench.get(Version(1))?.commit, published.commit);
    // The same content can come back.
    assert_eq!(bench.commit(&[title(None), file("orphan", b"orphan")]).status(), 200);
    Ok(())
}

#[test]
fn a_backup_of_a_hub_in_use_is_a_hub() -> Result<()> {
    let bench = Bench::new();
    let one = bench.publish(1, "one")?;
    let copy = bench.folder.path().join("copy");
    let back_up = || hub(&bench, &["backup", "--to", copy.to_str().unwrap()]);
    let stop = std::sync::atomic::AtomicBool::new(false);
    std::thread::scope(|scope| {
        let writer = scope.spawn(|| {
            let mut count = 0_u32;
            while !stop.load(std::sync::atomic::Ordering::Relaxed) {
                bench.commit(&[title(None), file("counter", &count.to_le_bytes())]);
                count += 1;
            }
        });
        for _ in 0..3 {
            let ran = back_up();
            assert_eq!(ran.code, 0, "{ran:?}");
            let check = run(&[], &["hub", "fsck", "--root", copy.to_str().unwrap()]);
            assert_eq!(check.code, 0, "{check:?}");
        }
        stop.store(true, std::sync::atomic::Ordering::Relaxed);
        writer.join().unwrap();
    });
    let two = bench.publish(2, "two")?;
    bench.send(Method::DELETE, &format!("{}/branch/v1", crate::raw::REPO), "");
    assert_eq!(back_up().code, 0);
    assert_eq!(back_up().json()["records"], 0, "there is nothing more to copy");
    let process = Process::start(&copy, &[]);
    let heads = client(&process.endpoint).heads(&repo())?;
    assert_eq!(heads.versions().into_keys().collect::<Vec<_>>(), [Version(2)]);
    assert_eq!(heads.branches["v2"], two.commit);
    assert_eq!(heads.branches["main"], bench.head());
    // A commit that was pinned is there even though no branch leads to it any more.
    assert!(client(&process.endpoint).files(&repo(), &one.commit).is_ok());
    Ok(())
}

#[test]
fn tools_refuse_what_is_no_hub() {
    let folder = tempfile::tempdir().unwrap();
    for command in [&["fsck"][..], &["gc"], &["token", "ls"], &["backup", "--to", "x"]] {
        let ran =
            run(&[], &[&["hub"], command, &["--root", folder.path().to_str().unwrap(), "--json"]].concat());
        assert_eq!((ran.code, ran.json()["error"]["code"].as_str()), (1, Some("H0501")), "{command:?}");
    }
    assert_eq!(fs_err::read_dir(folder.path()).unwrap().count(), 0);
}

#[test]
fn a_monitor_sees_that_it_is_well_and_what_it_does() {
    let bench = Bench::new();
    bench.create();
    bench.send(Method::GET, "/api/kernels/acme/absent/refs", "");
    assert_eq!(bench.send(Method::GET, "/healthz", "").text().unwrap(), "ok\n");
    let metrics = bench.send(Method::GET, "/metrics", "").text().unwrap();
    for line in [
        "kernels_hub_requests_total{method=\"POST\",route=\"/api/repos/create\",status=\"200\"} 1",
        "kernels_hub_requests_total{method=\"GET\",route=\"/api/kernels/{owner}/{name}/refs\",status=\"404\"} 1",
        "kernels_hub_request_duration_seconds_count{route=\"/healthz\"} 1",
    ] {
        assert!(metrics.contains(line), "{line} in\n{metrics}");
    }
    assert!(!metrics.contains("absent"), "no names");
}

#[test]
fn https_with_a_certificate() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    let made = Command::new("openssl")
        .args([
            "req",
            "-x509",
            "-newkey",
            "ec",
            "-pkeyopt",
            "ec_paramgen_curve:prime256v1",
            "-nodes",
            "-days",
            "1",
        ])
        .args(["-subj", "/CN=localhost", "-addext", "subjectAltName=DNS:localhost,IP:127.0.0.1"])
        .args(["-addext", "basicConstraints=critical,CA:FALSE"])
        .args(["-keyout", &path("key.pem"), "-out", &path("cert.pem")])
        .output();
    assert!(made.is_ok_and(|made| made.status.success()), "openssl makes the certificate");
    let tls = hub_cli::server::Tls { certificate: path("cert.pem").into(), key: path("key.pem").into() };
    let bench = Bench::with(|config| config.tls = Some(tls.clone()));
    assert!(bench.hub.endpoint().starts_with("https://"));
    let certificate = fs_err::read(path("cert.pem")).unwrap();
    let trusting = reqwest::blocking::Client::builder()
        .tls_certs_merge([reqwest::Certificate::from_pem(&certificate).unwrap()])
        .build()
        .unwrap();
    let health = format!("{}/healthz", bench.hub.endpoint());
    assert_eq!(trusting.get(&health).send().unwrap().status(), 200);
    assert!(reqwest::blocking::get(&health).is_err(), "a client that does not know the certificate");
    // Links lead to https as well.
    let created = trusting
        .post(format!("{}/api/repos/create", bench.hub.endpoint()))
        .body(json!({"type": "kernel", "name": "x"}).to_string())
        .send()
        .unwrap();
    assert!(created.text().unwrap().contains("https://"));

    let swapped = hub_cli::server::Tls { certificate: path("key.pem").into(), key: path("cert.pem").into() };
    let mut config = hub_cli::server::Config::new(folder.path().join("other"));
    config.tls = Some(swapped);
    assert_eq!(hub_cli::server::Hub::start(config).unwrap_err().code(), Code::Tls);
}

#[test]
fn running_requests_end_before_the_hub_does() {
    let folder = tempfile::tempdir().unwrap();
    let mut process = Process::start(&folder.path().join("hub"), &[]);
    let client = reqwest::blocking::Client::new();
    let create = json!({"type": "kernel", "organization": "acme", "name": "toy-kernel"}).to_string();
    client.post(format!("{}/api/repos/create", process.endpoint)).body(create).send().unwrap();
    // A commit of which the first line has been sent when the hub is told to stop.
    let (sender, receiver) = std::sync::mpsc::channel::<Vec<u8>>();
    let url = format!("{}{}/commit/main", process.endpoint, crate::raw::REPO);
    let commit = std::thread::spawn(move || {
        client.post(url).body(reqwest::blocking::Body::new(Slow { receiver, rest: Vec::new() })).send()
    });
    sender.send(format!("{}\n", title(None)).into_bytes()).unwrap();
    std::thread::sleep(Duration::from_millis(300));
    let id = process.child.id().to_string();
    assert!(Command::new("kill").args(["-TERM", &id]).status().unwrap().success());
    std::thread::sleep(Duration::from_millis(300));
    sender.send(format!("{}\n", file("late", b"1")).into_bytes()).unwrap();
    drop(sender);
    assert_eq!(commit.join().unwrap().unwrap().status(), 200);
    assert!(process.child.wait().unwrap().success());
}

/// A body that arrives when the test says so.
struct Slow {
    receiver: std::sync::mpsc::Receiver<Vec<u8>>,
    rest: Vec<u8>,
}

impl std::io::Read for Slow {
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        if self.rest.is_empty() {
            self.rest = self.receiver.recv().unwrap_or_default();
        }
        let length = self.rest.len().min(buffer.len());
        buffer[..length].copy_from_slice(&self.rest[..length]);
        self.rest.drain(..length);
        Ok(length)
    }
}
