"""The unmodified `kernels` package against our hub: finding, loading, locking, and loading offline."""

import contextlib
import io
import json
import os
import subprocess
import sys
from unittest import mock

import kernels
import kernels.cli
import pytest
from calls import call, raises
from conftest import OTHER, TRUSTED
from counted import named
from huggingface_hub import HfApi
from kernels._versions import _get_available_versions

OURS, THEIRS = f"{TRUSTED}/toy", f"{OTHER}/toy"
api = HfApi()


@pytest.fixture(scope="module", autouse=True)
def published(scratch):
    """Two versions of a kernel by a trusted owner, one by another."""
    for repo, version in [(OURS, 1), (OURS, 2), (THEIRS, 1)]:
        variant = scratch / repo / f"v{version}" / "build" / "torch-universal"
        variant.mkdir(parents=True)
        identity = f"_toy_{repo.split('/')[0]}_{version}"
        metadata = {
            "name": "toy", "id": identity, "version": version, "license": "apache-2.0", "backend": {"type": "cpu"},
            "python-depends": [],
        }  # fmt: skip
        (variant / "metadata.json").write_text(json.dumps(metadata))
        (variant / "__init__.py").write_text(f"from ._inner import say\n__all__ = ['say']\nversion = {version}\n")
        (variant / "_inner.py").write_text(f"def say():\n    return '{repo} {version}'\n")
        call(api.create_repo, repo, repo_type="kernel", exist_ok=True)
        call(api.create_branch, repo, branch=f"v{version}", repo_type="kernel", exist_ok=True)
        folder = scratch / repo / f"v{version}"
        call(api.upload_folder, repo_id=repo, folder_path=folder, revision=f"v{version}", repo_type="kernel")


def run(*args):
    """What the command `kernels` prints for these arguments."""
    out = io.StringIO()
    with mock.patch.object(sys, "argv", ["kernels", *map(str, args)]), contextlib.redirect_stdout(out):
        kernels.cli.main()
    return out.getvalue()


def command(name, *args):
    """The same, as one call."""
    return call(named(f"kernels {name}", lambda: run(name, *args)))


def test_versions_are_found():
    assert sorted(call(_get_available_versions, OURS, local_files_only=False)) == [1, 2]
    assert call(kernels.has_kernel, OURS, version=1)
    assert call(kernels.has_kernel, OURS, revision="v2")
    variants = call(kernels.get_kernel_variants, OURS, version=1)
    assert [v.variant.variant_str for v in variants] == ["torch-universal"], variants


def test_each_version_loads():
    for version in (1, 2):
        assert call(kernels.get_kernel, OURS, version=version).say() == f"{OURS} {version}"
    commit = call(api.repo_info, OURS, revision="v1", repo_type="kernel").sha
    assert call(kernels.get_kernel, OURS, revision=commit).say() == f"{OURS} 1"
    raises(Exception, kernels.get_kernel, OURS, version=9)


def test_only_trusted_owners_load_unasked():
    error = raises(Exception, kernels.get_kernel, THEIRS, version=1)
    assert "trust" in str(error), error
    loaded = call(kernels.get_kernel, THEIRS, version=1, trust_remote_code=[THEIRS])
    assert loaded.say() == f"{THEIRS} 1"


def test_the_folder_of_a_kernel_loads():
    path = call(kernels.install_kernel, OURS, version=1)
    assert call(kernels.get_local_kernel, path).say() == f"{OURS} 1"


def test_the_command_line_shows_versions_and_info():
    assert "1" in command("versions", OURS) and "2" in command("versions", OURS)
    info = json.loads(command("info", OURS, "--version", "2", "--json"))
    assert OURS in json.dumps(info), info


def test_a_locked_kernel_loads_offline(scratch):
    project = scratch / "project"
    project.mkdir()
    (project / "pyproject.toml").write_text(f'[tool.kernels.dependencies]\n"{OURS}" = 1\n')
    command("lock", project)
    [entry] = json.loads((project / "kernels.lock").read_text())
    commit = call(api.repo_info, OURS, revision="v1", repo_type="kernel").sha
    assert entry["lock"]["commit"] == commit
    command("download", project, "--all-variants")
    lockfile = project / "kernels.lock"
    code = f"import kernels, pathlib; print(kernels.load_kernel('{OURS}', lockfile=pathlib.Path('{lockfile}')).say())"
    offline = {**os.environ, "HF_HUB_OFFLINE": "1", "HF_ENDPOINT": "http://127.0.0.1:1"}
    program = [sys.executable, "-c", code]
    load = named("kernels load_kernel", lambda: subprocess.run(program, capture_output=True, text=True, env=offline))
    done = call(load)
    assert done.stdout.strip() == f"{OURS} 1", done.stderr
    locked = call(kernels.get_locked_kernel, OURS, lockfile=lockfile)
    assert locked.say() == f"{OURS} 1"
