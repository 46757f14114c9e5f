"""A hub for the unmodified Python clients, in one of three moods, and the calls that are made to it.

HUB_MODE says which: `plain`, `one-a-page` (every listing has pages of one entry), or `faults` (a proxy in
between spoils one response in twenty). The clients read their settings when they are imported, so all of
it is set up before any test is.
"""

import hashlib
import json
import os
import pathlib
import shutil
import subprocess
import tempfile

import counted
import pytest
from proxy import FaultProxy

MODE = os.environ.get("HUB_MODE", "plain")
SEED = int(os.environ.get("HUB_SEED", "5"))
REPO_ROOT = pathlib.Path(__file__).parents[3]
CLI = os.environ.get("TESSERA_CLI") or REPO_ROOT / "target" / "debug" / "kernels-cli"
# An owner whose kernels the operator trusts, and one whose kernels nobody does.
TRUSTED, OTHER = "acme", "stranger"


class Setup:
    """The scratch folder, the hub, perhaps a proxy, and a second hub that wants files through LFS."""

    def __init__(self):
        self.scratch = pathlib.Path(tempfile.mkdtemp(prefix="hub-tests-"))
        page = ["--page-size", "1"] if MODE == "one-a-page" else []
        self.processes = {}
        self.hub = self.serve("hub", "--trust", TRUSTED, *page)
        self.proxy = FaultProxy(self.hub, SEED) if MODE == "faults" else None
        self.endpoint = self.proxy.endpoint if self.proxy else self.hub
        direct = self.serve("large", "--lfs-from", "100000", "--part-size", "70000", *page)
        self.large_proxy = FaultProxy(direct, SEED) if MODE == "faults" else None
        self.large = self.large_proxy.endpoint if self.large_proxy else direct

    def serve(self, name, *flags):
        command = [CLI, "serve", "--root", self.scratch / name, "--port", "0", "--json", "--log", "off", *flags]
        process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        self.processes[name] = process
        return json.loads(process.stdout.readline())["endpoint"]

    def stop(self):
        for process in self.processes.values():
            process.terminate()
        ends = {name: process.wait(30) for name, process in self.processes.items()}
        assert not any(ends.values()), f"not a graceful end: {ends}"
        for name in self.processes:
            subprocess.run([CLI, "hub", "fsck", "--root", self.scratch / name], check=True)
        shutil.rmtree(self.scratch)


def pytest_configure(config):
    config.hub = Setup()
    for name in [name for name in os.environ if name.startswith(("HF_", "KERNELS_")) and name != "HF_HUB_DISABLE_XET"]:
        del os.environ[name]
    os.environ["HF_ENDPOINT"] = config.hub.endpoint
    os.environ["HF_HOME"] = str(config.hub.scratch / "home")
    os.environ["HF_TOKEN"] = "hf_any"
    os.environ["HF_HUB_DISABLE_PROGRESS_BARS"] = "1"
    # On a busy machine ten seconds pass quickly.
    os.environ["HF_HUB_ETAG_TIMEOUT"] = os.environ["HF_HUB_DOWNLOAD_TIMEOUT"] = "120"


def pytest_runtest_setup():
    counted.a_test_begins()


def pytest_assertion_pass():
    counted.an_assertion_passed()


def pytest_sessionfinish(session):
    check_cache(session.config.hub.scratch / "home" / "hub")
    session.config.hub.stop()


def pytest_report_header(config):
    xet = "off" if os.environ.get("HF_HUB_DISABLE_XET") == "1" else "on"
    return f"hub mode: {MODE}, Xet {xet}"


def pytest_terminal_summary(terminalreporter, config):
    terminalreporter.write_line(f"{len(counted.ASSERTED)} different calls to clients were made, and what came of them asserted")
    if config.hub.proxy:
        seen, injected = config.hub.proxy.seen, config.hub.proxy.injected
        terminalreporter.write_line(f"faults injected: {dict(injected)} in {sum(seen.values())} requests")


def check_cache(cache):
    """Whatever went wrong on the way: every blob is what its name says, every link leads to one."""
    for path in cache.rglob("*"):
        if path.is_symlink():
            assert path.exists(), f"{path} leads nowhere"
        elif path.is_file() and path.parent.name == "blobs" and path.suffix != ".incomplete":
            content = path.read_bytes()
            git = hashlib.sha1(b"blob %d\0" % len(content) + content).hexdigest()
            assert path.name in (git, hashlib.sha256(content).hexdigest()), f"{path} is not what its name says"


@pytest.fixture(scope="session")
def hub(request):
    return request.config.hub


@pytest.fixture(scope="session")
def scratch(hub):
    return hub.scratch
