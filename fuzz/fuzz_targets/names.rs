//! Any text as a path, a repository, a revision: what is accepted can be joined to a folder and written again.
#![no_main]

use std::path::{Component, Path};

use hub_cli::hub::{RepoId, RepoPath, Revision, parse_spec};

libfuzzer_sys::fuzz_target!(|text: &str| {
    if let Ok(path) = RepoPath::parse(text) {
        let joined = path.under(Path::new("/base"));
        assert!(joined.starts_with("/base/"));
        assert!(joined.components().skip(2).all(|part| matches!(part, Component::Normal(_))));
    }
    if let Ok(repo) = text.parse::<RepoId>() {
        assert_eq!(repo.to_string(), text);
        let joined = Path::new("/base").join(repo.owner()).join(repo.name());
        assert_eq!(joined.components().count(), 4);
    }
    if let Ok(revision) = text.parse::<Revision>() {
        assert_eq!(revision.to_string(), text);
    }
    let _spec = parse_spec(text);
});
