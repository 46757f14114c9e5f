//! The official crate `hf-hub`, unmodified, against our hub: all that it offers for kernels, also with pages of one.

use hf_hub::repository::{AddSource, CommitOperation, RepoTreeEntry};
use hf_hub::{HFClient, HFClientSync, HFError, RepoTypeKernel};
use hub_cli::hub::{Cache, Oid, Version, open_cached};
use hub_cli::{Code, Result};

use crate::support::{Bench, repo, wanted};

/// Their client, for this hub and with a cache of its own.
fn theirs(bench: &Bench) -> HFClientSync {
    let cache = bench.folder.path().join("theirs");
    HFClient::builder().endpoint(bench.hub.endpoint()).token("any").cache_dir(cache).build_sync().unwrap()
}

#[test]
fn hf_hub_reads_and_writes_our_hub() -> Result<()> {
    for page_size in [1000, 1] {
        let bench = Bench::with(|config| config.page_size = page_size);
        let published = bench.publish(1, "one")?;
        let folder = bench.folder.path();
        let hub = theirs(&bench);
        assert_eq!(hub.whoami().send().unwrap().username, "local");

        let kernel = hub.kernel("acme", "toy-kernel");
        let refs = kernel.list_refs().send().unwrap();
        assert_eq!(refs.branches.iter().map(|b| b.name.as_str()).collect::<Vec<_>>(), ["main", "v1"]);
        let ours = bench.client().files(&repo(), &published.commit)?;
        let tree = kernel.list_tree().revision("v1").recursive(true).send().unwrap();
        let files = tree.iter().filter(|entry| matches!(entry, RepoTreeEntry::File { .. })).count();
        assert_eq!(files, ours.len());
        assert_eq!(kernel.list_commits().revision("v1").send().unwrap().len(), 2);
        let snapshot = kernel.snapshot_download().revision("v1").send().unwrap();
        for file in &ours {
            let theirs = fs_err::read(file.path.under(&snapshot)).unwrap();
            assert_eq!(Oid::of_blob(&theirs), file.oid, "{}", file.path);
        }
        // What hf-hub put into its cache is complete and sound by our rules.
        open_cached(&Cache::new(folder.join("theirs")), &wanted(Version(1)))?;

        fs_err::create_dir(folder.join("upload")).unwrap();
        fs_err::write(folder.join("upload/notes.md"), "notes").unwrap();
        kernel.upload_folder().folder_path(folder.join("upload")).revision("main").send().unwrap();
        kernel.create_tag().tag("first").revision("v1").send().unwrap();
        let heads = bench.client().heads(&repo())?;
        assert_eq!(heads.tags["first"], published.commit);
        let main = bench.client().files(&repo(), &heads.branches["main"])?;
        assert!(main.iter().any(|f| f.path.as_str() == "notes.md"));
        kernel.delete_file().path_in_repo("notes.md").send().unwrap();
        hub.delete_repository().repo_id("acme/toy-kernel").repo_type(RepoTypeKernel).send().unwrap();
        assert_eq!(bench.client().heads(&repo()).unwrap_err().code(), Code::RepoNotFound);
    }
    Ok(())
}

#[test]
fn every_call_of_hf_hub_for_kernels_is_answered() -> Result<()> {
    for page_size in [1000, 1] {
        let bench = Bench::with(|config| {
            config.page_size = page_size;
            config.trusted.insert("acme".into());
        });
        let hub = theirs(&bench);
        let create = || hub.create_repository().repo_id("acme/theirs").repo_type(RepoTypeKernel);
        let url = create().send().unwrap().url;
        assert!(url.ends_with("/kernels/acme/theirs"), "{url}");
        assert!(matches!(create().send(), Err(HFError::Conflict { .. })));
        assert_eq!(create().exist_ok(true).send().unwrap().url, url);
        assert_eq!(hub.organization_overview().organization("acme").send().unwrap().name, "acme");

        let kernel = hub.kernel("acme", "theirs");
        assert!(kernel.exists().send().unwrap() && !hub.kernel("acme", "none").exists().send().unwrap());
        kernel.create_branch().branch("v1").send().unwrap();
        assert!(matches!(kernel.create_branch().branch("v1").send(), Err(HFError::Conflict { .. })));
        assert!(kernel.revision_exists().revision("v1").send().unwrap());
        assert!(!kernel.revision_exists().revision("v2").send().unwrap());

        let source = || AddSource::Bytes(b"0123456789".to_vec().into());
        kernel.upload_file().source(source()).path_in_repo("a/one").revision("v1").send().unwrap();
        let head = kernel.info().revision("v1").send().unwrap();
        assert_eq!((head.id.as_str(), head.trusted_publisher), ("acme/theirs", Some(true)));
        let operations = vec![
            CommitOperation::Add { path_in_repo: "a/two".into(), source: source() },
            CommitOperation::Delete { path_in_repo: "a/one".into() },
        ];
        let commit = || {
            let commit = kernel.create_commit().operations(operations.clone()).commit_message("swap");
            commit.revision("v1").parent_commit(head.sha.clone().unwrap()).send()
        };
        let made = commit().unwrap().commit_oid;
        assert_eq!(kernel.info().revision("v1").send().unwrap().sha, made);

        let exists = |name: &str| kernel.file_exists().filename(name).revision("v1").send().unwrap();
        assert!(exists("a/two") && !exists("a/one"));
        let paths = vec!["a".to_owned(), "a/two".to_owned(), "none".to_owned()];
        let found = kernel.get_paths_info().paths(paths).revision("v1").send().unwrap();
        let [RepoTreeEntry::Directory { .. }, RepoTreeEntry::File { size, .. }] = found.as_slice() else {
            panic!("{found:?}")
        };
        assert_eq!(*size, 10);
        let metadata = kernel.get_file_metadata().filepath("a/two").revision("v1").send().unwrap();
        assert_eq!((Some(metadata.commit_hash), metadata.file_size), (made.clone(), 10));
        let path = kernel.download_file().filename("a/two").revision("v1").send().unwrap();
        assert_eq!(fs_err::read(path).unwrap(), b"0123456789");
        let part = kernel.download_file_to_bytes().filename("a/two").revision("v1").range(3..6);
        assert_eq!(&part.send().unwrap()[..], b"345");
        let titles = kernel.list_commits().revision("v1").send().unwrap();
        assert_eq!((titles.len(), titles[0].title.as_str()), (3, "swap"));

        kernel.create_tag().tag("t").revision("v1").send().unwrap();
        let refs = kernel.list_refs().send().unwrap();
        assert_eq!((refs.branches.len(), Some(refs.tags[0].target_commit.clone())), (2, made));
        kernel.delete_tag().tag("t").send().unwrap();
        kernel.delete_folder().path_in_repo("a").revision("v1").send().unwrap();
        assert!(kernel.list_tree().revision("v1").send().unwrap().is_empty());
        kernel.delete_branch().branch("v1").send().unwrap();
        let refs = kernel.list_refs().send().unwrap();
        assert_eq!((refs.branches.len(), refs.tags.len()), (1, 0));

        let rename =
            hub.move_repository().from_id("acme/theirs").to_id("acme/moved").repo_type(RepoTypeKernel);
        assert!(rename.send().unwrap().url.ends_with("/kernels/acme/moved"));
        assert!(!kernel.exists().send().unwrap());
        hub.delete_repository().repo_id("acme/moved").repo_type(RepoTypeKernel).send().unwrap();
        assert!(!hub.kernel("acme", "moved").exists().send().unwrap());
    }
    Ok(())
}
