"""Python's `kernels lock` as the oracle of ours: the same file for the same project, and each accepts the other's."""

import json
import os
import pathlib
import subprocess
import sys

import pytest
from calls import call, raises
from conftest import CLI, OTHER, TRUSTED
from counted import named
from huggingface_hub import CommitOperationAdd, HfApi

KIND = {"repo_type": "kernel"}
PYTHONS = pathlib.Path(sys.executable).with_name("kernels")
TOP, MIDDLE, LEAF, RING, BRANCH = (f"{TRUSTED}/{name}" for name in ("l-top", "l-middle", "Leaf.1", "l-ring", "l-branch"))
STRANGE = f"{OTHER}/l-strange"
api = HfApi()


def publish(repo, version, **variants):
    """A kernel whose variants depend on these."""
    files = []
    for variant, depends in variants.items():
        folder = f"build/torch-{variant}"
        identity = f"_locked_{repo.split('/')[1].lower()}_{variant}_{version}".replace("-", "_").replace(".", "_")
        metadata = {
            "name": "locked", "id": identity,
            "version": version, "license": "apache-2.0", "backend": {"type": "cpu"}, "python-depends": [],
            "kernel-depends": depends,
        }  # fmt: skip
        needed = "".join(f", *kernels.get_kernel_dep('{depend['repo-id']}').names()" for depend in depends)
        code = f"import kernels\n__all__ = ['names']\ndef names():\n    return NAMES\nNAMES = ['{repo} {version}'{needed}]\n"
        files.append(CommitOperationAdd(f"{folder}/metadata.json", json.dumps(metadata).encode()))
        files.append(CommitOperationAdd(f"{folder}/__init__.py", code.encode()))
    call(api.create_repo, repo, exist_ok=True, **KIND)
    call(api.create_branch, repo, branch=f"v{version}", exist_ok=True, **KIND)
    call(api.create_commit, repo, files, commit_message="publish", revision=f"v{version}", **KIND)


def on(repo, version):
    return {"repo-id": repo, "version": version}


@pytest.fixture(scope="module", autouse=True)
def published():
    publish(LEAF, 1, universal=[])
    publish(LEAF, 2, universal=[])
    publish(MIDDLE, 1, universal=[on(LEAF, 1)])
    # What any variant needs is locked, also what this machine's variant does not.
    commit = call(api.repo_info, MIDDLE, revision="v1", **KIND).sha
    publish(TOP, 1, universal=[on(MIDDLE, 1)], tpu=[on(LEAF, 2), {"repo-id": MIDDLE, "revision": commit}])
    publish(TOP, 2, universal=[on(MIDDLE, 1), on(LEAF, 1)])
    publish(RING, 1, universal=[on(RING, 1)])
    publish(BRANCH, 1, universal=[{"repo-id": LEAF, "revision": "v1"}])
    publish(STRANGE, 1, universal=[])


def run(*command, **environment):
    done = subprocess.run([*map(str, command)], capture_output=True, text=True, env={**os.environ, **environment})
    if done.returncode:
        # A fault of the proxy is known by its words.
        raise RuntimeError(done.stderr)
    return done.stdout


def ours(*args, **environment):
    return call(run, CLI, *args, **environment)


def theirs(name, *args):
    return call(named(f"kernels {name}", lambda: run(PYTHONS, name, *args)))


@pytest.fixture
def projects(tmp_path):
    """Two folders with a pyproject.toml for these kernels."""

    def make(*wanted):
        table = "".join(f'"{repo}" = {version}\n' for repo, version in wanted)
        folders = tmp_path / "theirs", tmp_path / "ours"
        for folder in folders:
            folder.mkdir(exist_ok=True)
            (folder / "pyproject.toml").write_text(f'[project]\nname = "app"\n\n[tool.kernels.dependencies]\n{table}')
        return folders

    return make


def names_in(folder):
    """What a program in Python gets from the kernel, with this lock file and without a hub."""
    lock = folder / "kernels.lock"
    return f"import kernels, pathlib; print(*kernels.load_kernel('{TOP}', lockfile=pathlib.Path('{lock}')).names(), sep=', ')"


@pytest.mark.parametrize(
    "wanted",
    [
        [(LEAF, 1)],
        [(TOP, 1)],
        [(TOP, 2), (LEAF, 2)],
        [(MIDDLE, 1), (LEAF, 2)],
        [(TOP, 1), (MIDDLE, 1), (LEAF, 1)],
    ],
    ids=lambda wanted: "+".join(f"{repo.split('/')[1]}-{version}" for repo, version in wanted),
)
def test_both_write_the_same_file(projects, wanted):
    a, b = projects(*wanted)
    theirs("lock", a)
    ours("lock", b)
    text = (b / "kernels.lock").read_bytes()
    assert text == (a / "kernels.lock").read_bytes()
    locked = {entry["dependency"]["repo-id"]: entry["lock"]["commit"] for entry in json.loads(text)}
    assert set(locked) >= {repo for repo, _ in wanted} and all(len(commit) == 40 for commit in locked.values())


def test_each_accepts_the_others(projects, tmp_path):
    a, b = projects((TOP, 1))
    theirs("lock", a)
    ours("lock", b)
    expected = f"{TOP} 1, {MIDDLE} 1, {LEAF} 1"
    offline = {"HF_HUB_OFFLINE": "1", "HF_ENDPOINT": "http://127.0.0.1:1"}
    # Their download with our file, and our download with theirs; then Python loads, without a hub.
    theirs("download", b, "--all-variants")
    assert run(sys.executable, "-c", names_in(b), **offline).strip() == expected
    home = {"HF_HOME": str(tmp_path / "home")}
    got = json.loads(ours("get", "--locked", "--lock-file", a / "kernels.lock", "--json", **home))
    commits = {entry["lock"]["commit"] for entry in json.loads((a / "kernels.lock").read_text())}
    assert {kernel["commit"] for kernel in got["kernels"]} == commits
    assert run(sys.executable, "-c", names_in(a), **home, **offline).strip() == expected
    assert "up to date" not in ours("lock", a, "--check")


@pytest.mark.parametrize(
    ("wanted", "code"), [((STRANGE, 1), "H0213"), ((RING, 1), "H0310"), ((LEAF, 9), "H0203"), ((f"{TRUSTED}/none", 1), "H0202")]
)
def test_what_one_refuses_the_other_does(projects, wanted, code):
    a, b = projects(wanted)
    raises(RuntimeError, theirs, "lock", a)
    error = raises(RuntimeError, ours, "lock", b)
    assert f"error[{code}]" in str(error), error
    assert not (a / "kernels.lock").exists() and not (b / "kernels.lock").exists()


def test_a_branch_that_a_kernel_names_is_pinned_by_ours_alone(projects):
    a, b = projects((BRANCH, 1))
    assert "Invalid git object id" in str(raises(RuntimeError, theirs, "lock", a))
    ours("lock", b)
    head = call(api.repo_info, LEAF, revision="v1", **KIND).sha
    [leaf, _] = json.loads((b / "kernels.lock").read_text())
    assert leaf == {"dependency": {"repo-id": LEAF, "revision": "v1"}, "lock": {"commit": head}}
