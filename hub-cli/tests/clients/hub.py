"""Drives the hub with the unmodified `huggingface_hub`, through everything it offers for kernel repositories."""

import json
import pathlib
import tempfile

import huggingface_hub
from huggingface_hub import CommitOperationAdd, CommitOperationDelete, HfApi
from huggingface_hub.errors import (
    BadRequestError,
    EntryNotFoundError,
    HfHubHTTPError,
    RepositoryNotFoundError,
    RevisionNotFoundError,
)

REPO, KIND = "python/kernel", {"repo_type": "kernel"}
api = HfApi()
scratch = pathlib.Path(tempfile.mkdtemp())


def raises(kind, call, *args, status=None, **kwargs):
    """Checks that a call fails with this error, and this HTTP status."""
    try:
        call(*args, **kwargs)
    except kind as error:
        assert status is None or error.response.status_code == status, error
        return
    raise AssertionError(f"{call.__name__} did not raise {kind.__name__}")


# Repositories.
assert api.whoami()["name"] == "local"
raises(RepositoryNotFoundError, api.repo_info, REPO, **KIND)
url = api.create_repo(REPO, **KIND)
assert str(url).endswith("/kernels/python/kernel") and url.repo_id == REPO, url
assert api.create_repo(REPO, exist_ok=True, **KIND) == url
raises(HfHubHTTPError, api.create_repo, REPO, status=409, **KIND)
assert api.repo_exists(REPO, **KIND) and not api.repo_exists("python/none", **KIND)

# Branches and tags.
api.create_branch(REPO, branch="v3", **KIND)
api.create_branch(REPO, branch="v3", exist_ok=True, **KIND)
api.create_branch(REPO, branch="feature/x", **KIND)
raises(HfHubHTTPError, api.create_branch, REPO, branch="v3", status=409, **KIND)
raises(BadRequestError, api.create_branch, REPO, branch="refs/heads/y", **KIND)
raises(RevisionNotFoundError, api.create_branch, REPO, branch="y", revision="none", **KIND)
api.create_tag(REPO, tag="v0.1", tag_message="first", **KIND)
refs = api.list_repo_refs(REPO, **KIND)
assert [b.name for b in refs.branches] == ["feature/x", "main", "v3"], refs
assert [t.ref for t in refs.tags] == ["refs/tags/v0.1"], refs
api.delete_branch(REPO, branch="feature/x", **KIND)
api.delete_tag(REPO, tag="v0.1", **KIND)

# Uploads.
folder = scratch / "package" / "build" / "torch-cpu"
folder.mkdir(parents=True)
(folder / "__init__.py").write_text("__all__ = []\n")
(folder / "empty").write_bytes(b"")
(folder / "data.bin").write_bytes(bytes(range(256)) * 5000)
(folder / "old.txt").write_text("old")
(scratch / "package" / "README.md").write_text("---\nlibrary_name: kernels\n---\n# A kernel\n")
first = api.upload_folder(repo_id=REPO, folder_path=scratch / "package", revision="v3", **KIND)
again = api.upload_folder(repo_id=REPO, folder_path=scratch / "package", revision="v3", **KIND)
assert first.oid == again.oid, "the same files made another commit"
head = api.repo_info(REPO, revision="v3", **KIND).sha
assert head == first.oid
operations = [
    CommitOperationAdd("build/torch-cpu/new.txt", b"new"),
    CommitOperationDelete("build/torch-cpu/old.txt"),
]
second = api.create_commit(REPO, operations, commit_message="change", revision="v3", parent_commit=head, **KIND)
raises(
    HfHubHTTPError,
    api.create_commit,
    REPO,
    [CommitOperationAdd("late", b"")],
    commit_message="late",
    revision="v3",
    parent_commit=head,
    status=412,
    **KIND,
)
api.delete_file("build/torch-cpu/new.txt", REPO, revision="v3", **KIND)
api.upload_file(path_or_fileobj=b"# main\n", path_in_repo="README.md", repo_id=REPO, **KIND)
raises(BadRequestError, api.upload_file, path_or_fileobj=b"", path_in_repo="x.pyc", repo_id=REPO, **KIND)

# Reading.
files = ["README.md", "build/torch-cpu/__init__.py", "build/torch-cpu/data.bin", "build/torch-cpu/empty"]
assert api.list_repo_files(REPO, revision="v3", **KIND) == files
tree = list(api.list_repo_tree(REPO, "build", revision="v3", recursive=True, **KIND))
assert [entry.path for entry in tree] == ["build/torch-cpu", *files[1:]], tree
flat = list(api.list_repo_tree(REPO, revision="refs/heads/v3", **KIND))
assert [entry.path for entry in flat] == ["README.md", "build"], flat
raises(EntryNotFoundError, lambda: list(api.list_repo_tree(REPO, "none", revision="v3", **KIND)))
raises(RevisionNotFoundError, api.repo_info, REPO, revision="none", **KIND)
info = api.get_paths_info(REPO, ["build", files[2], "none"], revision="v3", **KIND)
assert [entry.path for entry in info] == ["build", files[2]], info
assert info[1].size == 256 * 5000
titles = [commit.title for commit in api.list_repo_commits(REPO, revision="v3", **KIND)]
assert titles[-1] == "initial commit" and "change" in titles and len(titles) == 4, titles
assert api.file_exists(REPO, files[1], revision="v3", **KIND)
assert not api.file_exists(REPO, "none", revision="v3", **KIND)
raises(EntryNotFoundError, api.hf_hub_download, REPO, "none", revision="v3", **KIND)
path = api.hf_hub_download(REPO, files[2], revision="v3", **KIND)
assert pathlib.Path(path).read_bytes() == bytes(range(256)) * 5000
snapshot = pathlib.Path(api.snapshot_download(REPO, revision="v3", **KIND))
assert sorted(str(p.relative_to(snapshot)) for p in snapshot.rglob("*") if p.is_file()) == files
local = pathlib.Path(api.snapshot_download(REPO, revision="v3", local_dir=scratch / "local", **KIND))
assert (local / files[1]).read_text() == "__all__ = []\n"
ours = pathlib.Path(api.snapshot_download("acme/toy-kernel", revision="v1", **KIND))
assert (ours / "build/torch-tpu/mosaic/toy-bf16.mlirbc").read_bytes() == b"ML\xefR toy module"
with huggingface_hub.HfFileSystem().open(f"kernels/{REPO}@v3/{files[2]}", "rb") as file:
    file.seek(300)
    assert file.read(4) == bytes([44, 45, 46, 47]), "a range of the file"

# Moving and deleting.
api.create_repo("python/short-lived", **KIND)
api.move_repo("python/short-lived", "python/moved", **KIND)
assert api.repo_exists("python/moved", **KIND) and not api.repo_exists("python/short-lived", **KIND)
api.delete_repo("python/moved", **KIND)
assert not api.repo_exists("python/moved", **KIND)
print(json.dumps({"ok": True, "commit": second.oid}))
