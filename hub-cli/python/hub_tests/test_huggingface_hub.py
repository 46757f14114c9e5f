"""The unmodified `huggingface_hub` against our hub: everything that it offers for kernel repositories."""

import json
import pathlib

import huggingface_hub
import pytest
from calls import call, raises
from conftest import TRUSTED
from counted import named
from huggingface_hub import (
    CommitOperationAdd,
    CommitOperationCopy,
    CommitOperationDelete,
    HfApi,
    get_hf_file_metadata,
    hf_hub_url,
)
from huggingface_hub.errors import (
    BadRequestError,
    EntryNotFoundError,
    HfHubHTTPError,
    RepositoryNotFoundError,
    RevisionNotFoundError,
)

REPO, KIND = "python/kernel", {"repo_type": "kernel"}
DATA = bytes(range(256)) * 1000
FILES = ["README.md", "build/torch-cpu/__init__.py", "build/torch-cpu/data.bin", "build/torch-cpu/empty"]
api = HfApi()


def tree(revision, path=None, **kwargs):
    return call(api.list_repo_tree, REPO, path, revision=revision, into=list, **KIND, **kwargs)


def head(revision):
    return call(api.repo_info, REPO, revision=revision, **KIND).sha


def test_who_is_asking():
    assert call(api.whoami)["name"] == "local"
    organization = call(api.get_organization_overview, TRUSTED)
    assert organization.name == TRUSTED
    raises(HfHubHTTPError, api.get_organization_overview, "nobody", status=404)


def test_repositories_are_made_once():
    raises(RepositoryNotFoundError, api.repo_info, REPO, **KIND)
    assert not call(api.repo_exists, REPO, **KIND)
    url = call(api.create_repo, REPO, exist_ok=True, **KIND)
    assert str(url).endswith(f"/kernels/{REPO}") and url.repo_id == REPO, url
    assert call(api.create_repo, REPO, exist_ok=True, **KIND) == url
    raises(HfHubHTTPError, api.create_repo, REPO, status=409, **KIND)
    assert call(api.repo_exists, REPO, **KIND)
    info = call(api.kernel_info, REPO)
    assert (info.id, info.author, info.private) == (REPO, "python", False)


def test_branches_and_tags():
    call(api.create_branch, REPO, branch="v3", exist_ok=True, **KIND)
    call(api.create_branch, REPO, branch="v3", exist_ok=True, **KIND)
    call(api.create_branch, REPO, branch="feature/x", exist_ok=True, **KIND)
    raises(HfHubHTTPError, api.create_branch, REPO, branch="v3", status=409, **KIND)
    raises(BadRequestError, api.create_branch, REPO, branch="refs/heads/y", **KIND)
    raises(RevisionNotFoundError, api.create_branch, REPO, branch="y", revision="none", **KIND)
    call(api.create_tag, REPO, tag="v0.1", tag_message="first", exist_ok=True, **KIND)
    refs = call(api.list_repo_refs, REPO, **KIND)
    assert [b.name for b in refs.branches] == ["feature/x", "main", "v3"], refs
    assert [t.ref for t in refs.tags] == ["refs/tags/v0.1"], refs
    assert call(api.revision_exists, REPO, "v0.1", **KIND) and call(api.revision_exists, REPO, "feature/x", **KIND)
    assert not call(api.revision_exists, REPO, "v9", **KIND)
    call(api.delete_branch, REPO, branch="feature/x", done=(404,), **KIND)
    call(api.delete_tag, REPO, tag="v0.1", done=(404,), **KIND)
    refs = call(api.list_repo_refs, REPO, **KIND)
    assert ([b.name for b in refs.branches], refs.tags) == (["main", "v3"], [])


def test_a_folder_goes_up_once(scratch):
    folder = scratch / "package" / "build" / "torch-cpu"
    folder.mkdir(parents=True)
    (folder / "__init__.py").write_text("__all__ = []\n")
    (folder / "empty").write_bytes(b"")
    (folder / "data.bin").write_bytes(DATA)
    (folder / "old.txt").write_text("old")
    (scratch / "package" / "README.md").write_text("---\nlibrary_name: kernels\n---\n# A kernel\n")
    upload = {"repo_id": REPO, "folder_path": scratch / "package", "revision": "v3", **KIND}
    first = call(api.upload_folder, **upload)
    again = call(api.upload_folder, **upload)
    assert first.oid == again.oid == head("v3"), "the same files made another commit"


def test_commits_add_change_copy_and_delete():
    start = head("v3")
    operations = [
        CommitOperationAdd("build/torch-cpu/new.txt", b"new"),
        CommitOperationCopy("build/torch-cpu/new.txt", "build/torch-cpu/copy.txt", src_revision="v3"),
        CommitOperationDelete("build/torch-cpu/old.txt"),
    ][::2]
    commit = {"commit_message": "change", "revision": "v3", "parent_commit": start, **KIND}
    second = call(api.create_commit, REPO, operations, **commit)
    assert head("v3") == second.oid != start
    late = [CommitOperationAdd("late", b"")]
    raises(HfHubHTTPError, api.create_commit, REPO, late, **{**commit, "commit_message": "late"}, status=412)
    copy = [CommitOperationCopy("build/torch-cpu/new.txt", "build/torch-cpu/copy.txt", src_revision="v3")]
    call(api.create_commit, REPO, copy, commit_message="copy", revision="v3", **KIND)
    assert "build/torch-cpu/copy.txt" in call(api.list_repo_files, REPO, revision="v3", **KIND)
    call(api.delete_file, "build/torch-cpu/new.txt", REPO, revision="v3", done=(404,), **KIND)
    call(api.delete_files, REPO, ["build/torch-cpu/c*.txt"], revision="v3", **KIND)
    call(api.upload_file, path_or_fileobj=b"# main\n", path_in_repo="README.md", repo_id=REPO, **KIND)
    call(api.upload_file, path_or_fileobj=b"x", path_in_repo="gone/x", repo_id=REPO, **KIND)
    call(api.delete_folder, "gone", REPO, done=(404,), **KIND)
    assert call(api.list_repo_files, REPO, **KIND) == ["README.md"]
    upload = {"path_or_fileobj": b"", "repo_id": REPO, **KIND}
    raises(BadRequestError, api.upload_file, path_in_repo="x.pyc", **upload)
    addition = CommitOperationAdd("ahead.bin", DATA)
    call(api.preupload_lfs_files, REPO, [addition], **KIND)
    assert addition._upload_mode == "regular"


def test_a_pull_request_waits_beside_the_branch():
    before = head("main")
    change = [CommitOperationAdd("proposal.txt", b"please")]
    proposed = call(api.create_commit, REPO, change, commit_message="propose", create_pr=True, **KIND)
    assert proposed.pr_revision.startswith("refs/pr/") and proposed.pr_num >= 1
    assert head("main") == before, "the branch stays as it was"
    assert call(api.list_repo_files, REPO, revision=proposed.pr_revision, **KIND) == ["README.md", "proposal.txt"]
    more = {"path_or_fileobj": b"more", "path_in_repo": "more.txt", "repo_id": REPO}
    call(api.upload_file, **more, revision=proposed.pr_revision, **KIND)
    refs = call(api.list_repo_refs, REPO, include_pull_requests=True, **KIND)
    assert proposed.pr_revision in [pull.ref for pull in refs.pull_requests]
    assert call(api.file_exists, REPO, "more.txt", revision=proposed.pr_revision, **KIND)


def test_listings():
    assert call(api.list_repo_files, REPO, revision="v3", **KIND) == FILES
    assert [e.path for e in tree("v3", "build", recursive=True)] == ["build/torch-cpu", *FILES[1:]]
    assert [e.path for e in tree("refs/heads/v3")] == ["README.md", "build"]
    raises(EntryNotFoundError, api.list_repo_tree, REPO, "none", revision="v3", into=list, **KIND)
    raises(RevisionNotFoundError, api.repo_info, REPO, revision="none", **KIND)
    info = call(api.get_paths_info, REPO, ["build", FILES[2], "none"], revision="v3", **KIND)
    assert [entry.path for entry in info] == ["build", FILES[2]] and info[1].size == len(DATA)
    titles = [c.title for c in call(api.list_repo_commits, REPO, revision="v3", **KIND)]
    assert titles[-1] == "initial commit" and "change" in titles, titles
    assert call(api.file_exists, REPO, FILES[1], revision="v3", **KIND)
    assert not call(api.file_exists, REPO, "none", revision="v3", **KIND)
    assert call(api.resolve_revision, REPO, revision="v3", **KIND).resolved == head("v3")


def test_downloads(scratch):
    raises(EntryNotFoundError, api.hf_hub_download, REPO, "none", revision="v3", **KIND)
    path = call(api.hf_hub_download, REPO, FILES[2], revision="v3", **KIND)
    assert pathlib.Path(path).read_bytes() == DATA
    metadata = call(get_hf_file_metadata, hf_hub_url(REPO, FILES[2], revision="v3", **KIND))
    assert (metadata.size, metadata.commit_hash, len(metadata.etag)) == (len(DATA), head("v3"), 40)
    snapshot = pathlib.Path(call(api.snapshot_download, REPO, revision="v3", **KIND))
    assert sorted(str(p.relative_to(snapshot)) for p in snapshot.rglob("*") if p.is_file()) == FILES
    local = call(api.snapshot_download, REPO, revision="v3", local_dir=scratch / "local", **KIND)
    assert (pathlib.Path(local) / FILES[2]).read_bytes() == DATA
    verified = call(api.verify_repo_checksums, REPO, revision="v3", **KIND)
    assert verified.checked_count == len(FILES) and not verified.mismatches, verified
    cached = huggingface_hub.try_to_load_from_cache(REPO, FILES[1], revision="v3", **KIND)
    assert pathlib.Path(cached).read_text() == "__all__ = []\n"
    scanned = huggingface_hub.scan_cache_dir(scratch / "home" / "hub")
    assert not scanned.warnings and REPO in {repo.repo_id for repo in scanned.repos}


def test_the_file_system(scratch):
    files = huggingface_hub.HfFileSystem()
    root = f"kernels/{REPO}@v3"
    data = f"{root}/{FILES[2]}"
    assert sorted(e.split("/")[-1] for e in call(files.ls, root, detail=False)) == ["README.md", "build"]
    assert call(files.info, data)["size"] == len(DATA)
    assert sorted(p.split("@v3/")[1] for p in call(files.glob, f"{root}/**/*.py")) == [FILES[1]]
    assert sorted(p.split("@v3/")[1] for p in call(files.find, root)) == FILES
    assert [len(names) for _, _, names in call(files.walk, root, into=list)] == [1, 0, 3]
    assert call(files.isfile, data) and not call(files.isfile, f"{root}/build")
    assert call(files.isdir, f"{root}/build") and not call(files.isdir, data)
    assert call(files.exists, data) and not call(files.exists, f"{root}/none")

    def a_range():
        with files.open(data, "rb") as file:
            file.seek(300)
            return file.read(4)

    assert call(named("huggingface_hub HfFileSystem.open", a_range)) == bytes([44, 45, 46, 47]), "a range of the file"
    cat = named("huggingface_hub HfFileSystem.cat_file", lambda: files.cat_file(f"{root}/README.md"))
    assert call(cat).startswith(b"---")
    call(files.get_file, data, scratch / "got.bin")
    assert (scratch / "got.bin").read_bytes() == DATA


def test_the_file_system_writes(scratch):
    files = huggingface_hub.HfFileSystem()
    root = f"kernels/{REPO}"
    (scratch / "put.txt").write_text("put")
    put = named("huggingface_hub HfFileSystem.put_file", lambda: files.put_file(scratch / "put.txt", f"{root}/tmp/put.txt"))
    call(put)
    call(files.cp_file, f"{root}/tmp/put.txt", f"{root}/tmp/copy.txt")
    assert call(api.list_repo_files, REPO, **KIND) == ["README.md", "tmp/copy.txt", "tmp/put.txt"]
    path = call(api.hf_hub_download, REPO, "tmp/copy.txt", **KIND)
    assert pathlib.Path(path).read_text() == "put"
    call(api.delete_folder, "tmp", REPO, done=(404,), **KIND)
    assert call(api.list_repo_files, REPO, **KIND) == ["README.md"]


def test_the_head_of_a_safetensors_file_is_enough():
    header = json.dumps({"w": {"dtype": "F32", "shape": [2, 3], "data_offsets": [0, 24]}}).encode()
    content = len(header).to_bytes(8, "little") + header + bytes(24)
    upload = {"path_or_fileobj": content, "path_in_repo": "w.safetensors", "repo_id": REPO, "revision": "v3", **KIND}
    call(api.upload_file, **upload)
    found = call(api.parse_safetensors_file_metadata, REPO, "w.safetensors", revision="v3", **KIND)
    assert found.tensors["w"].shape == [2, 3] and found.parameter_count == {"F32": 6}
    call(api.delete_file, "w.safetensors", REPO, revision="v3", done=(404,), **KIND)
    assert not call(api.file_exists, REPO, "w.safetensors", revision="v3", **KIND)


def test_private_repositories_say_so():
    call(api.create_repo, "python/secret", private=True, exist_ok=True, **KIND)
    assert call(api.repo_info, "python/secret", **KIND).private


def test_repositories_move_and_go():
    call(api.create_repo, "python/short-lived", exist_ok=True, **KIND)
    call(api.move_repo, "python/short-lived", "python/moved", done=(404, 409), **KIND)
    assert call(api.repo_exists, "python/moved", **KIND) and not call(api.repo_exists, "python/short-lived", **KIND)
    call(api.delete_repo, "python/moved", done=(404,), **KIND)
    assert not call(api.repo_exists, "python/moved", **KIND)
    call(api.delete_repo, "python/moved", missing_ok=True, **KIND)


@pytest.mark.parametrize("name", ["../x", "a/b/c", "python/x.git", "python/a--b"])
def test_bad_names_are_refused_before_they_are_sent(name):
    raises(huggingface_hub.errors.HFValidationError, api.create_repo, name, **KIND)
