"""Files that the hub wants through LFS: whole, in parts, with Xet installed and without."""

import io
import os
import pathlib

import pytest
from calls import call, raises
from counted import named
from huggingface_hub import CommitOperationAdd, HfApi, get_hf_file_metadata, hf_hub_url
from huggingface_hub.utils._runtime import is_xet_available

REPO, KIND = "python/large", {"repo_type": "kernel"}
WHOLE = os.urandom(100_000) if os.environ.get("HUB_RANDOM") else bytes(range(250)) * 400
PARTS = WHOLE * 3 + b"the end"


@pytest.fixture(scope="module")
def api(hub):
    api = HfApi(endpoint=hub.large)
    call(api.create_repo, REPO, exist_ok=True, **KIND)
    return api


def send(api, name, content):
    return call(api.upload_file, path_or_fileobj=content, path_in_repo=name, repo_id=REPO, **KIND)


@pytest.mark.skipif(is_xet_available(), reason="with Xet, huggingface_hub does not use LFS for files")
@pytest.mark.parametrize(("name", "content"), [("whole.bin", WHOLE), ("parts.bin", PARTS)])
def test_what_goes_up_comes_down(api, name, content, scratch):
    first = send(api, name, content)
    assert send(api, name, content).oid == first.oid, "the same file made another commit"
    [entry] = call(api.get_paths_info, REPO, [name], **KIND)
    assert (entry.size, entry.lfs.size) == (len(content), len(content))
    metadata = call(get_hf_file_metadata, hf_hub_url(REPO, name, endpoint=api.endpoint, **KIND))
    assert metadata.etag == entry.lfs.sha256
    down = call(api.hf_hub_download, REPO, name, cache_dir=scratch / "large-cache", **KIND)
    assert pathlib.Path(down).read_bytes() == content


@pytest.mark.skipif(is_xet_available(), reason="with Xet, huggingface_hub does not use LFS for files")
def test_small_and_large_files_share_a_commit(api, scratch):
    folder = scratch / "mixed"
    folder.mkdir()
    (folder / "small.txt").write_text("small")
    (folder / "large.bin").write_bytes(WHOLE)
    call(api.upload_folder, repo_id=REPO, folder_path=folder, path_in_repo="mixed", **KIND)
    files = {e.path: e for e in call(api.list_repo_tree, REPO, "mixed", into=list, **KIND)}
    assert files["mixed/small.txt"].lfs is None and files["mixed/large.bin"].lfs.size == len(WHOLE)


def test_a_stream_goes_through_lfs_also_with_xet(api):
    def upload():
        # A stream is read once, so each attempt has one of its own.
        addition = CommitOperationAdd("stream.bin", io.BufferedReader(io.BytesIO(PARTS)))
        return api.create_commit(REPO, [addition], commit_message="stream", **KIND)

    call(named("huggingface_hub HfApi.create_commit", upload))
    [entry] = call(api.get_paths_info, REPO, ["stream.bin"], **KIND)
    assert entry.lfs.size == len(PARTS)


@pytest.mark.skipif(not is_xet_available(), reason="needs Xet")
def test_xet_is_refused_with_what_to_do(api):
    addition = {"path_or_fileobj": WHOLE, "path_in_repo": "xet.bin", "repo_id": REPO}
    raises(Exception, api.upload_file, **addition, **KIND)
    assert not call(api.file_exists, REPO, "xet.bin", **KIND)
