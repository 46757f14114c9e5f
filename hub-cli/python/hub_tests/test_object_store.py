"""Two servers that share one object store: what one takes, the other gives."""

import json
import os
import pathlib
import subprocess
import threading
from concurrent.futures import ThreadPoolExecutor

import object_stores
import pytest
from conftest import CLI, MODE
from huggingface_hub import CommitOperationAdd, HfApi
from huggingface_hub.errors import HfHubHTTPError

pytestmark = pytest.mark.skipif(MODE != "plain", reason="once is enough")
REPO, KIND = "team/kernel", {"repo_type": "kernel"}
DATA = bytes(range(256)) * 40_000


@pytest.fixture(scope="module", params=[object_stores.s3, object_stores.azure], ids=["s3", "azure"])
def store(request):
    """The URL of an empty object store, and the variables with which a client reaches it."""
    with request.param() as store:
        yield store


@pytest.fixture(scope="module")
def servers(store, tmp_path_factory):
    """Two servers, each with a folder of its own."""
    (url, variables), folder = store, tmp_path_factory.mktemp("servers")
    processes, flags = [], ["--store", url, "--port", "0", "--json", "--log", "off"]
    for name in ("a", "b"):
        command = [CLI, "serve", "--root", folder / name, *flags]
        processes.append(subprocess.Popen(command, env={**os.environ, **variables}, stdout=subprocess.PIPE, text=True))
    apis = [HfApi(endpoint=json.loads(process.stdout.readline())["endpoint"]) for process in processes]
    yield folder, apis
    for process in processes:
        process.terminate()
        assert process.wait(30) == 0


def test_what_one_server_takes_the_other_gives(servers):
    folder, (a, b) = servers
    a.create_repo(REPO, **KIND)
    with pytest.raises(HfHubHTTPError):
        b.create_repo(REPO, **KIND)
    b.create_branch(REPO, branch="v1", **KIND)
    files = [CommitOperationAdd("small", b"small"), CommitOperationAdd("large", DATA)]
    a.create_commit(REPO, files, commit_message="both", revision="v1", **KIND)
    down = b.snapshot_download(REPO, revision="v1", cache_dir=folder / "cache", **KIND)
    assert pathlib.Path(down, "large").read_bytes() == DATA
    assert [branch.name for branch in a.list_repo_refs(REPO, **KIND).branches] == ["main", "v1"]
    b.delete_branch(REPO, branch="v1", **KIND)
    assert [branch.name for branch in a.list_repo_refs(REPO, **KIND).branches] == ["main"]
    a.create_branch(REPO, branch="v1", **KIND)


def race(apis, commit):
    """What `commit(api, n)` gives for eight that start together, half of them through each server."""
    start = threading.Barrier(8)

    def run(n):
        start.wait()
        return commit(apis[n % 2], n)

    with ThreadPoolExecutor(8) as pool:
        return sorted(pool.map(run, range(8)))


def test_of_those_that_commit_at_once_through_both_one_wins(servers):
    _, apis = servers

    def commit(api, n):
        addition = [CommitOperationAdd("who", f"{head} {n}".encode())]
        try:
            api.create_commit(REPO, addition, commit_message=str(n), parent_commit=head, **KIND)
        except HfHubHTTPError as error:
            return error.response.status_code
        return 200

    for _ in range(3):
        head = apis[0].repo_info(REPO, **KIND).sha
        assert race(apis, commit) == [200] + [412] * 7


def test_commits_that_name_no_parent_all_get_in(servers):
    _, apis = servers

    def upload(api, n):
        return api.upload_file(path_or_fileobj=b"x", path_in_repo=f"f{n}", repo_id=REPO, **KIND).oid

    race(apis, upload)
    assert {f"f{n}" for n in range(8)} < set(apis[1].list_repo_files(REPO, **KIND))


def test_the_operators_tools_find_the_store(servers, store):
    folder, _ = servers
    environment = {**os.environ, **store[1]}

    def hub(*command):
        command = [CLI, "hub", *command, "--json"]
        return json.loads(subprocess.run(command, env=environment, check=True, stdout=subprocess.PIPE).stdout)

    found = hub("fsck", "--root", folder / "a")
    assert found["repositories"] == 1 and found["commits"] > 10, found
    hub("gc", "--older-than", "1", "--root", folder / "a")
    hub("backup", "--to", folder / "copy", "--root", folder / "a")
    assert hub("fsck", "--root", folder / "copy") == found
