//! The corpus of the fuzz targets, replayed and varied: lines of commits, and names of all kinds.

use std::path::{Component, Path, PathBuf};

use hub_cli::hub::{RepoId, RepoPath, Revision, parse_spec};
use hub_cli::server::CommitRecord;
use proptest::prelude::*;

/// The seeds of a fuzz target by name.
fn seeds(target: &str) -> Vec<(String, Vec<u8>)> {
    let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../fuzz/corpus").join(target);
    let mut all: Vec<_> = fs_err::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap())
        .map(|entry| (entry.file_name().into_string().unwrap(), fs_err::read(entry.path()).unwrap()))
        .collect();
    all.sort();
    all
}

/// What the target `commit_record` checks.
fn check_record(line: &[u8]) -> bool {
    let record = CommitRecord::parse(line);
    if let Ok(CommitRecord::File { path, .. } | CommitRecord::Large { path, .. }) = &record {
        assert!(path.under(Path::new("/base")).starts_with("/base/"));
        assert!(!path.as_str().ends_with(".pyc"));
    }
    record.is_ok()
}

/// What the target `names` checks.
fn check_name(text: &str) {
    if let Ok(path) = RepoPath::parse(text) {
        let joined = path.under(Path::new("/base"));
        assert!(joined.starts_with("/base/"));
        assert!(joined.components().skip(2).all(|part| matches!(part, Component::Normal(_))));
    }
    if let Ok(repo) = text.parse::<RepoId>() {
        assert_eq!(repo.to_string(), text);
        assert_eq!(Path::new("/base").join(repo.owner()).join(repo.name()).components().count(), 4);
    }
    if let Ok(revision) = text.parse::<Revision>() {
        assert_eq!(revision.to_string(), text);
    }
    let _spec = parse_spec(text);
}

#[test]
fn the_fuzzers_lines_are_taken_or_refused_as_their_names_say() {
    let seeds = seeds("commit_record");
    assert!(seeds.len() >= 30, "the corpus is there");
    for (name, line) in seeds {
        assert_eq!(check_record(&line), name.starts_with("good-"), "{name}");
    }
}

#[test]
fn a_line_that_is_cut_off_is_no_line() {
    for (name, line) in seeds("commit_record") {
        for end in 0..line.len().min(300) {
            assert!(!check_record(&line[..end]), "{name} of {end} bytes");
        }
    }
}

#[test]
fn the_fuzzers_names() {
    let seeds = seeds("names");
    assert!(seeds.len() >= 30, "the corpus is there");
    for (_, name) in seeds {
        check_name(std::str::from_utf8(&name).unwrap());
    }
}

proptest! {
    #[test]
    fn changed_lines_are_taken_or_refused(seed in 0_usize..1000, at in 0_usize..300, byte: u8) {
        let seeds = seeds("commit_record");
        let mut line = seeds[seed % seeds.len()].1.clone();
        if let Some(place) = line.get_mut(at) {
            *place = byte;
        }
        check_record(&line);
    }

    #[test]
    fn names_of_telling_characters(text in "[a-z./\\\\:@~%\u{0}\u{202e} -]{0,24}") {
        check_name(&text);
    }
}
