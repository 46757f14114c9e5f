"""Our own client, which writes through the crate `hf-hub`, against the same hub in the same moods."""

import base64
import hashlib
import json
import os
import subprocess

import pytest
from calls import call
from conftest import CLI, MODE
from huggingface_hub import HfApi
from proxy import FaultProxy

REPO, KIND = "rust/ours", {"repo_type": "kernel"}
api = HfApi()


def package(folder, content, version=1):
    """A package as `kernels-cli build` makes it, with a digest."""
    variant = folder / "build" / "torch-cpu"
    variant.mkdir(parents=True, exist_ok=True)
    (variant / "__init__.py").write_text(f"__all__ = ['say']\ndef say():\n    return '{content}'\n")
    digest = {
        path.name: base64.b64encode(hashlib.sha256(path.read_bytes()).digest()).decode()
        for path in sorted(variant.glob("*.py"))
    }
    metadata = {
        "name": "ours", "id": "_ours_cpu_1234567", "version": version, "license": "apache-2.0",
        "backend": {"type": "cpu"}, "python-depends": [], "digest": {"algorithm": "sha256", "files": digest},
    }  # fmt: skip
    (variant / "metadata.json").write_text(json.dumps(metadata))
    (folder / "build" / "CARD.md").write_text("---\nlibrary_name: kernels\n---\n# ours\n")
    return folder


@pytest.fixture
def run(tmp_path):
    """Runs `kernels-cli` with a cache of its own; what it answers as JSON."""

    def run(*args, **variables):
        environment = {**os.environ, "HF_HOME": str(tmp_path / "home"), **variables}
        command = [CLI, *map(str, args), "--json"]
        done = subprocess.run(command, capture_output=True, text=True, env=environment)
        if done.returncode:
            raise RuntimeError(done.stderr)
        return json.loads(done.stdout)

    return run


@pytest.fixture
def ours(run):
    """The same, as often as the proxy makes it necessary."""
    return lambda *args: call(run, *args)


def branches():
    return {branch.name: branch.target_commit for branch in call(api.list_repo_refs, REPO, **KIND).branches}


def test_a_package_is_published_changed_and_fetched(ours, tmp_path):
    folder = package(tmp_path / "package", "one")
    first = ours("publish", folder, REPO, "--version", "1")
    assert branches()["v1"] == first["commit"] and set(branches()) == {"main", "v1"}
    again = ours("publish", folder, REPO, "--version", "1")
    assert (again["commit"], again["uploaded"]) == (first["commit"], 0)
    changed = ours("publish", package(folder, "changed"), REPO, "--version", "1")
    assert branches()["v1"] == changed["commit"] != first["commit"]
    second = ours("publish", package(folder, "two", version=2), REPO, "--version", "2")
    assert branches() == {"main": branches()["main"], "v1": changed["commit"], "v2": second["commit"]}
    assert [found["version"] for found in ours("versions", REPO)["versions"]] == [1, 2]
    got = ours("get", f"{REPO}@v1")
    assert got["commit"] == changed["commit"]
    init = os.path.join(got["path"], "build", "torch-cpu", "__init__.py")
    with open(init) as file:
        assert "'changed'" in file.read()
    assert call(api.list_repo_files, REPO, **KIND) == ["README.md"]


class OneLoss(FaultProxy):
    """Loses one answer: the first to a request of this method whose path has these words in it."""

    def __init__(self, upstream, method, words):
        super().__init__(upstream, 0)
        self.method, self.words, self.lost = method, words, 0

    def fault(self, method, path):
        if self.lost or method != self.method or self.words not in path:
            return None
        self.lost += 1
        return "lose"


@pytest.mark.skipif(MODE != "plain", reason="the loss is one of its own")
@pytest.mark.parametrize(
    "lost",
    [
        ("POST", "repos/create"),
        ("POST", "branch/publishing"),
        ("POST", "/commit/"),
        ("POST", "branch/v1"),
        ("DELETE", "branch/"),
    ],
    ids="-".join,
)
def test_a_publication_survives_the_loss_of_any_answer(hub, run, tmp_path, lost):
    proxy = OneLoss(hub.endpoint, *lost)
    repo = f"rust/lost-{lost[0].lower()}-{len(lost[1])}"
    published = run("publish", package(tmp_path / "package", "one"), repo, "--version", "1", HF_ENDPOINT=proxy.endpoint)
    assert proxy.lost == 1
    found = {branch.name: branch.target_commit for branch in api.list_repo_refs(repo, **KIND).branches}
    assert found["v1"] == published["commit"] and set(found) == {"main", "v1"}
