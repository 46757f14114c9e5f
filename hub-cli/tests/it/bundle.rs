//! Kernels in one file: packed, unpacked without a network, and what a hostile bundle comes to.

use std::path::{Path, PathBuf};

use hub_cli::hub::{
    Bundled, Cache, KernelDependency, Oid, Pin, Version, Wanted, bundle, fetch, open_cached, unbundle,
};
use hub_cli::{Code, Result};
use serde_json::{Value, json};
use tar::{EntryType, Header};

use crate::support::{Bench, contents, repo, wanted};

/// A bundle of version 1, made by us.
fn packed(bench: &Bench) -> Result<(PathBuf, Bundled)> {
    let fetched = bench.get_published()?;
    let file = bench.folder.path().join("kernels.tar");
    let dependency = KernelDependency { repo: repo(), pin: Pin::Version(Version(1)) };
    let done = bundle(&bench.cache(), &[(dependency, fetched)], &file)?;
    Ok((file, done))
}

#[test]
fn a_bundle_fills_a_cache_that_loads_offline() -> Result<()> {
    let bench = Bench::new();
    let (file, done) = packed(&bench)?;
    let again = packed(&bench)?;
    assert_eq!((again.1.contents, again.1.bytes), (done.contents, done.bytes));
    assert_eq!(fs_err::read(&again.0).unwrap(), fs_err::read(&file).unwrap(), "the same bytes again");

    let home = bench.folder.path().join("air-gapped");
    let cache = Cache::new(home.join("hub"));
    let unpacked = unbundle(&cache, fs_err::File::open(&file).unwrap())?;
    assert_eq!(unpacked.kernels, done.kernels);
    let opened = open_cached(&cache, &wanted(Version(1)))?;
    assert_eq!(opened.variants.len(), 3);
    // Once more, over what is there.
    unbundle(&cache, fs_err::File::open(&file).unwrap())?;
    let offline = [("HF_HUB_OFFLINE", "1"), ("HF_ENDPOINT", "http://127.0.0.1:1"), ("ONLY", "1")];
    if let Some(loaded) = crate::python::client(&bench, "load.py", &home, &offline) {
        assert_eq!(loaded["greetings"]["1"], "one");
    }
    Ok(())
}

#[test]
fn the_program_packs_a_locked_set() -> Result<()> {
    let bench = Bench::new();
    bench.publish(1, "one")?;
    bench.publish(2, "two")?;
    let path = |name: &str| bench.folder.path().join(name).to_str().unwrap().to_owned();
    fs_err::create_dir(path("app")).unwrap();
    let project = "[tool.kernels.dependencies]\n\"acme/toy-kernel\" = 2\n";
    fs_err::write(Path::new(&path("app")).join("pyproject.toml"), project).unwrap();
    let (file, lock) = (path("kernels.tar"), path("app/kernels.lock"));
    assert_eq!(bench.cli(&["lock", &path("app"), "--allow", "acme"]).code, 0);
    let packed = bench.cli(&["bundle", &file, "--lock-file", &lock, "--variant", "torch-cpu", "--json"]);
    assert_eq!(packed.code, 0, "{packed:?}");
    let cache = path("other");
    let there = ["--cache-dir", &cache, "--offline"];
    let unpacked = bench.cli(&[&["unbundle", &file, "--json"][..], &there].concat());
    assert_eq!(unpacked.json()["kernels"], packed.json()["kernels"]);
    for args in [&["get", "acme/toy-kernel@v2"][..], &["get", "--locked", "--lock-file", &lock]] {
        let got = bench.cli(&[args, &there].concat());
        assert_eq!(got.code, 0, "{got:?}");
    }
    let named = bench.cli(&["bundle", &file, "acme/toy-kernel@v1", "acme/toy-kernel@v2"]);
    assert_eq!(named.code, 0, "{named:?}");
    assert_eq!(bench.cli(&["bundle", &file, "acme/toy-kernel"]).code, 2);
    Ok(())
}

/// The members of a bundle, to be tampered with.
struct Bundle {
    index: Value,
    blobs: Vec<(String, Vec<u8>, EntryType)>,
    first: &'static str,
}

impl Bundle {
    fn read(file: &Path) -> Self {
        let mut archive = tar::Archive::new(fs_err::File::open(file).unwrap());
        let mut members = archive.entries().unwrap().map(|entry| {
            let mut entry = entry.unwrap();
            let name = entry.path().unwrap().to_str().unwrap().to_owned();
            let mut content = Vec::new();
            std::io::Read::read_to_end(&mut entry, &mut content).unwrap();
            (name, content, EntryType::Regular)
        });
        let (_, index, _) = members.next().unwrap();
        Self {
            index: serde_json::from_slice(&index).unwrap(),
            blobs: members.collect(),
            first: "bundle.json",
        }
    }

    fn bytes(&self) -> Vec<u8> {
        let mut tar = Vec::new();
        let index = self.index.to_string().into_bytes();
        let first = [(self.first.to_owned(), index, EntryType::Regular)];
        for (name, content, kind) in first.iter().chain(&self.blobs) {
            let mut header = Header::new_ustar();
            // The field itself: `set_path` would refuse what an attacker writes.
            header.as_old_mut().name[..name.len()].copy_from_slice(name.as_bytes());
            header.set_entry_type(*kind);
            if *kind == EntryType::Symlink {
                header.as_old_mut().linkname[..11].copy_from_slice(b"/etc/passwd");
            }
            header.set_mode(0o644);
            header.set_size(content.len() as u64);
            header.set_cksum();
            tar.extend_from_slice(header.as_bytes());
            tar.extend_from_slice(content);
            tar.resize(tar.len().next_multiple_of(512), 0);
        }
        tar.resize(tar.len() + 1024, 0);
        tar
    }

    fn files(&mut self) -> &mut Vec<Value> {
        self.index["kernels"][0]["files"].as_array_mut().unwrap()
    }

    /// Replaces the content of the CPU variant's entry point, with ids that agree.
    fn replace_init(&mut self, content: &[u8]) {
        let oid = Oid::of_blob(content).to_string();
        for file in self.files() {
            if file["path"].as_str().unwrap().ends_with("torch-cpu/__init__.py") {
                (file["oid"], file["size"]) = (json!(oid), json!(content.len()));
            }
        }
        self.blobs.push((format!("blobs/{oid}"), content.to_vec(), EntryType::Regular));
    }
}

#[test]
fn a_hostile_bundle_leaves_nothing_behind() -> Result<()> {
    type Attack = fn(&mut Bundle);
    let attacks: [(&str, Attack, Code); 20] = [
        ("a name that climbs", |b| b.files()[0]["path"] = json!("build/../../../x"), Code::Bundle),
        ("an absolute name", |b| b.files()[0]["path"] = json!("/tmp/PWNED"), Code::Bundle),
        ("an id that climbs", |b| b.files()[0]["oid"] = json!("../../../x"), Code::Bundle),
        ("a commit that climbs", |b| b.index["kernels"][0]["commit"] = json!("../../x"), Code::Bundle),
        (
            "a repository that climbs",
            |b| b.index["kernels"][0]["dependency"]["repo-id"] = json!("../x"),
            Code::Bundle,
        ),
        (
            "a ref that climbs",
            |b| b.index["kernels"][0]["dependency"] = json!({"repo-id": "acme/x", "revision": "../../x"}),
            Code::Bundle,
        ),
        ("a blob that climbs", |b| b.blobs[0].0 = "../../../x".into(), Code::Bundle),
        ("an absolute blob", |b| b.blobs[0].0 = "/tmp/PWNED".into(), Code::Bundle),
        ("a link", |b| b.blobs[0].2 = EntryType::Symlink, Code::Bundle),
        ("a device", |b| b.blobs[0].2 = EntryType::Block, Code::Bundle),
        ("a long name", |b| b.blobs[0].2 = EntryType::GNULongName, Code::Bundle),
        (
            "an unlisted blob",
            |b| b.blobs.push((format!("blobs/{}", "a".repeat(40)), vec![], EntryType::Regular)),
            Code::Bundle,
        ),
        ("a blob twice", |b| b.blobs.push(b.blobs[0].clone()), Code::Bundle),
        ("a missing blob", |b| drop(b.blobs.pop()), Code::Bundle),
        ("another size", |b| b.blobs[0].1.push(b'x'), Code::Bundle),
        ("another content", |b| b.blobs[0].1[0] ^= 1, Code::Content),
        ("a file twice", |b| b.files().extend_from_within(..1), Code::Listing),
        ("a huge file", |b| b.files()[0]["size"] = json!(u64::MAX), Code::TooLarge),
        ("a changed package", |b| b.replace_init(b"__all__ = []\nimport os\n"), Code::Digest),
        ("no index first", |b| b.first = "readme.txt", Code::Bundle),
    ];
    let bench = Bench::new();
    let (file, _) = packed(&bench)?;
    for (name, attack, code) in attacks {
        let folder = tempfile::tempdir().unwrap();
        let cache = Cache::new(folder.path().join("cache"));
        let mut bundle = Bundle::read(&file);
        attack(&mut bundle);
        let error = unbundle(&cache, &bundle.bytes()[..]).expect_err(name);
        assert_eq!(error.code(), code, "{name}: {error}");
        for (path, content) in contents(folder.path()) {
            let text = path.to_str().unwrap();
            let harmless = text.starts_with("cache/.locks/") || text == "cache/CACHEDIR.TAG";
            let name_of = path.file_name().unwrap().to_str().unwrap();
            assert!(harmless || Oid::of_blob(&content).as_str() == name_of, "{name} left {text}");
        }
    }
    // Files that are cut anywhere, or are no tar at all.
    let whole = fs_err::read(&file).unwrap();
    for cut in (0..whole.len() - 1024).step_by(whole.len() / 23) {
        let folder = tempfile::tempdir().unwrap();
        let cache = Cache::new(folder.path());
        assert!(unbundle(&cache, &whole[..cut]).is_err(), "cut at {cut}");
        assert!(open_cached(&cache, &wanted(Version(1))).is_err());
    }
    for rubbish in [&b""[..], b"PK\x03\x04", &[0; 4096], &[0xff; 4096]] {
        assert_eq!(unbundle(&bench.cache(), rubbish).unwrap_err().code(), Code::Bundle);
    }
    Ok(())
}

#[test]
fn one_variant_makes_a_smaller_bundle() -> Result<()> {
    let bench = Bench::new();
    bench.publish(1, "one")?;
    let only = Wanted { variants: vec!["torch-tpu".into()], ..wanted(Version(1)) };
    let fetched = fetch(&bench.client(), &bench.cache(), &only, &mut hub_cli::hub::Silent)?;
    let file = bench.folder.path().join("one.tar");
    let dependency = KernelDependency { repo: repo(), pin: Pin::Version(Version(1)) };
    bundle(&bench.cache(), &[(dependency, fetched)], &file)?;
    let cache = Cache::new(bench.folder.path().join("other"));
    unbundle(&cache, fs_err::File::open(&file).unwrap())?;
    let opened = open_cached(&cache, &wanted(Version(1)))?;
    assert_eq!(opened.variants.iter().map(|v| v.name.as_str()).collect::<Vec<_>>(), ["torch-tpu"]);
    Ok(())
}
