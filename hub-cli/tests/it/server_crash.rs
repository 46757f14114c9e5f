//! `kill -9` of the hub and of its clients, at moments that a seed chooses.
//!
//! TESSERA_CRASH_ROUNDS says how many (25 by default), TESSERA_CRASH_SEED which. While clients publish and
//! get, one thread commits numbers, each in three files at once, and one reads them back. At no moment may
//! a reader see an older number than was confirmed before it asked, or three that differ.

use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use hub_cli::Result;
use hub_cli::hub::{CommitId, Revision, Version};
use reqwest::blocking::Client;
use serde_json::{Value, json};

use crate::raw::{Process, REPO, file, title};
use crate::support::{client, repo, run, toy_package};

/// The files that change together.
const NAMES: [&str; 3] = ["a", "b", "c"];

/// SplitMix64, so that a seed gives the same moments everywhere.
struct Moments(u64);

impl Moments {
    fn below(&mut self, limit: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (z ^ (z >> 31)) % limit
    }
}

fn variable(name: &str, default: u64) -> u64 {
    std::env::var(name).ok().and_then(|value| value.parse().ok()).unwrap_or(default)
}

/// The hub's place, its clients' cache, and the packages that are published in turn.
struct Scene {
    folder: tempfile::TempDir,
    packages: Vec<PathBuf>,
    endpoint: String,
}

impl Scene {
    fn root(&self) -> PathBuf {
        self.folder.path().join("hub")
    }

    /// A client's command: to publish a package, or to get what was published.
    fn command(&self, choice: u64) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_kernels-cli"));
        if choice % 3 == 2 {
            command.args(["get", "acme/toy-kernel@v1"]);
        } else {
            let package = &self.packages[choice as usize % self.packages.len()];
            command.arg("publish").arg(package).args(["acme/toy-kernel", "--version", "1"]);
        }
        command
            .arg("--json")
            .env("HF_ENDPOINT", &self.endpoint)
            .env("HF_HOME", self.folder.path().join("home"))
            // No Python to import what was published: it would take most of the time, and has nothing to lose.
            .env("PATH", self.folder.path())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        command
    }

    /// What a finished client says: the commit, or `None` if it failed, which it must do in order.
    fn outcome(child: Child) -> Option<String> {
        let output = child.wait_with_output().unwrap();
        let said = String::from_utf8_lossy(&output.stdout).into_owned();
        match output.status.code() {
            Some(0) => {
                let json: Value = serde_json::from_str(&said).unwrap_or_else(|e| panic!("{e}: {said}"));
                Some(json["commit"].as_str().unwrap().to_owned())
            }
            Some(1) => None,
            // Killed by us.
            None => None,
            Some(other) => panic!("exit code {other}: {said}{}", String::from_utf8_lossy(&output.stderr)),
        }
    }

    /// Reads every file of `v1`, and finds `commit` in its history.
    fn check(&self, commit: &str) -> Result<()> {
        let hub = client(&self.endpoint);
        let head = hub.resolve(&repo(), &Revision::Version(Version(1)))?;
        for file in hub.files(&repo(), &head)? {
            hub.download(&repo(), &head, &file, &mut std::io::sink())?;
        }
        let log = log(&self.endpoint, "v1");
        assert!(log.iter().any(|id| id == commit), "the confirmed commit {commit} is lost");
        Ok(())
    }

    fn fsck(&self) {
        let ran = run(&[], &["hub", "fsck", "--root", self.root().to_str().unwrap()]);
        assert_eq!(ran.code, 0, "{ran:?}");
    }
}

fn log(endpoint: &str, branch: &str) -> Vec<String> {
    let (http, mut log, mut next) = (Client::new(), Vec::new(), format!("{endpoint}{REPO}/commits/{branch}"));
    loop {
        let answer = http.get(&next).send().unwrap();
        let link = answer.headers().get("link").map(|link| link.to_str().unwrap().to_owned());
        let page: Vec<Value> = answer.json().unwrap();
        log.extend(page.iter().map(|commit| commit["id"].as_str().unwrap().to_owned()));
        match link {
            Some(link) => next = link[1..link.find('>').unwrap()].to_owned(),
            None => return log,
        }
    }
}

/// Commits one number after the other, in three files each, and says which was confirmed last.
fn write_numbers(endpoint: &str, stop: &AtomicBool, confirmed: &AtomicU64) {
    let http = Client::builder().timeout(Duration::from_secs(10)).build().unwrap();
    let mut number = 1;
    while !stop.load(Ordering::Relaxed) {
        let mut body = format!("{}\n", title(None));
        for name in NAMES {
            body += &format!("{}\n", file(name, format!("{number:020}").as_bytes()));
        }
        let sent = http.post(format!("{endpoint}{REPO}/commit/main")).body(body).send();
        if sent.is_ok_and(|answer| answer.status() == 200) {
            confirmed.store(number, Ordering::SeqCst);
            number += 1;
        }
        std::thread::sleep(Duration::from_millis(15));
    }
}

/// Reads the numbers; returns how often it could.
fn read_numbers(endpoint: &str, stop: &AtomicBool, confirmed: &AtomicU64) -> u64 {
    let http = Client::builder().timeout(Duration::from_secs(10)).build().unwrap();
    let mut reads = 0;
    while !stop.load(Ordering::Relaxed) {
        let least = confirmed.load(Ordering::SeqCst);
        let read = || -> Option<[u64; 3]> {
            let answer = http.get(format!("{endpoint}{REPO}/revision/main")).send().ok()?;
            let head: CommitId = answer.json::<Value>().ok()?["sha"].as_str()?.parse().ok()?;
            let mut numbers = [0; 3];
            for (number, name) in numbers.iter_mut().zip(NAMES) {
                let url = format!("{endpoint}/kernels/acme/toy-kernel/resolve/{head}/{name}");
                let answer = http.get(url).send().ok()?;
                // A connection that breaks is no answer; an answer that is no file is wrong.
                assert!(answer.status() == 200 || least == 0, "{name} is {} at {head}", answer.status());
                *number = answer.text().ok()?.parse().ok()?;
            }
            Some(numbers)
        };
        if let Some(numbers) = read() {
            assert!(numbers.iter().all(|number| *number == numbers[0]), "half a commit: {numbers:?}");
            assert!(numbers[0] >= least, "{} was read after {least} had been confirmed", numbers[0]);
            reads += 1;
        }
        std::thread::sleep(Duration::from_millis(5));
    }
    reads
}

fn stage(folder: &Path) -> Vec<PathBuf> {
    (0..3)
        .map(|n| {
            let package = folder.join(format!("package{n}"));
            toy_package(&package, 1, &format!("content {n}"));
            package
        })
        .collect()
}

#[test]
fn nothing_confirmed_is_lost_and_nothing_half_is_seen() -> Result<()> {
    let (rounds, seed) = (variable("TESSERA_CRASH_ROUNDS", 25), variable("TESSERA_CRASH_SEED", 1));
    let folder = tempfile::tempdir().unwrap();
    let packages = stage(folder.path());
    let first = Process::start(&folder.path().join("hub"), &[]);
    let port: u16 = first.endpoint.rsplit_once(':').unwrap().1.parse().unwrap();
    let scene = Scene { folder, packages, endpoint: first.endpoint.clone() };
    let mut hub = Some(first);
    let created = json!({"type": "kernel", "organization": "acme", "name": "toy-kernel"}).to_string();
    Client::new().post(format!("{}/api/repos/create", scene.endpoint)).body(created).send().unwrap();
    let begun = std::time::Instant::now();
    let mut confirmed_commit = Scene::outcome(scene.command(0).spawn().unwrap()).unwrap();
    // Moments are spread over the time that a client takes when nobody disturbs it, and a little more.
    let span = u64::try_from(begun.elapsed().as_millis()).unwrap() * 3 / 2 + 1;

    let (stop, confirmed) = (AtomicBool::new(false), AtomicU64::new(0));
    let mut moments = Moments(seed);
    std::thread::scope(|scope| -> Result<()> {
        let writer = scope.spawn(|| write_numbers(&scene.endpoint, &stop, &confirmed));
        let reader = scope.spawn(|| read_numbers(&scene.endpoint, &stop, &confirmed));
        // The threads end also if a check below fails.
        let _guard = StopWhenDropped(&stop);
        for round in 0..rounds {
            let choice = moments.below(1 << 32);
            let mut child = scene.command(choice).spawn().unwrap();
            std::thread::sleep(Duration::from_millis(moments.below(span)));
            if moments.below(2) == 0 {
                // The process is not asked; it stops between two instructions.
                drop(hub.take());
                if let Some(commit) = Scene::outcome(child) {
                    confirmed_commit = commit;
                }
                hub = Some(Process::start_at(&scene.root(), port, &[]));
            } else {
                // It may have ended by itself; what it said then counts.
                let _ = child.kill();
                if let Some(commit) = Scene::outcome(child) {
                    confirmed_commit = commit;
                }
            }
            scene.check(&confirmed_commit)?;
            let again = Scene::outcome(scene.command(choice).spawn().unwrap());
            confirmed_commit = again.unwrap_or_else(|| panic!("round {round}: the retry failed"));
            scene.check(&confirmed_commit)?;
            if round % 20 == 19 {
                scene.fsck();
            }
        }
        stop.store(true, Ordering::Relaxed);
        writer.join().unwrap();
        let reads = reader.join().unwrap();
        assert!(reads > rounds && confirmed.load(Ordering::SeqCst) > rounds, "{reads} reads");
        Ok(())
    })?;
    scene.fsck();
    let log = log(&scene.endpoint, "main");
    assert!(log.len() as u64 > confirmed.load(Ordering::SeqCst), "a confirmed number has no commit");
    // What a client that was killed left in the cache does no harm.
    let offline = ["get", "acme/toy-kernel@v1", "--offline"];
    let home = scene.folder.path().join("home").display().to_string();
    run(&[("HF_ENDPOINT", scene.endpoint.clone()), ("HF_HOME", home.clone())], &offline[..2]);
    assert_eq!(run(&[("HF_HOME", home)], &offline).code, 0);
    drop(hub);
    Ok(())
}

/// Tells the threads to stop.
struct StopWhenDropped<'a>(&'a AtomicBool);

impl Drop for StopWhenDropped<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}
