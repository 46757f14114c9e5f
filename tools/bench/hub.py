"""The hub: many clients at once, `get` beside huggingface_hub.snapshot_download, and how fast the program starts."""

import base64
import hashlib
import json
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile
import time

FILES = 200
REPO = "bench/many-files"
FEATURES = ["-p", "hub-cli", "--no-default-features"]

# What the peer is timed with: the call alone, so that Python's own start does not count.
PEER = """
import json, sys, time
from huggingface_hub import snapshot_download
start = time.perf_counter()
snapshot_download(sys.argv[1], repo_type="kernel", revision="v1")
print(json.dumps(time.perf_counter() - start))
"""


def rows(root):
    """One row a measurement."""
    subprocess.run(["cargo", "build", "--quiet", "--release", *FEATURES, "--bin", "kernels-cli"], cwd=root, check=True)
    target = pathlib.Path(os.environ.get("CARGO_TARGET_DIR", root / "target"))
    program = target / "release/kernels-cli"
    with tempfile.TemporaryDirectory() as folder:
        out = downloads(program, pathlib.Path(folder))
    starts = [seconds([program, "explain", "H0301"]) for _ in range(21)]
    out.append({"case": "start of the program, ms (goal: < 15)", "ours": 1e3 * statistics.median(starts)})
    out += load(root)
    return out


def downloads(program, folder):
    """`get` of a package of 200 files from a hub on this machine, cold and warm, beside snapshot_download."""
    command = [program, "serve", "--root", folder / "hub", "--port", "0", "--json"]
    server = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    try:
        env = {**os.environ, "HF_ENDPOINT": json.loads(server.stdout.readline())["endpoint"]}
        env |= {"HF_HUB_DISABLE_TELEMETRY": "1", "HF_HUB_DISABLE_PROGRESS_BARS": "1", "HF_HUB_DISABLE_XET": "1"}
        package(folder / "package")
        publish = [program, "publish", folder / "package", REPO, "--version", "1", "--allow-dirty", "--quiet"]
        subprocess.run(publish, env=env, check=True)
        times = {"cold": ([], [], []), "warm": ([], [], [])}
        for run in range(6):
            ours_env = env | {"HF_HOME": str(folder / f"ours-{run}")}
            peer_env = env | {"HF_HOME": str(folder / f"peer-{run}")}
            for state in ("cold", "warm"):
                ours, whole, call = times[state]
                ours.append(seconds([program, "get", f"{REPO}@v1", "--quiet"], ours_env))
                start = time.perf_counter()
                said = subprocess.run(
                    [sys.executable, "-c", PEER, REPO], env=peer_env, check=True, stdout=subprocess.PIPE, text=True
                ).stdout
                whole.append(time.perf_counter() - start)
                call.append(json.loads(said.splitlines()[-1]))
    finally:
        server.terminate()
        server.wait()
    out = []
    for state, goal, of in (("cold", 3, ""), ("warm", 20, ", process against process")):
        # The first run warms the machine's own caches.
        ours, whole, call = (1e3 * statistics.median(t[1:]) for t in times[state])
        out.append(
            {
                "case": f"get, {FILES} files, {state}, ms (goal: {goal}x{of})",
                "ours": ours,
                "snapshot_download": call,
                "x faster": call / ours,
                "with Python's start": whole,
                "x faster than it": whole / ours,
            }
        )
    return out


def load(root):
    """64 clients publish 4,000 versions and read each back at once; the hub is a process of its own."""
    command = ["cargo", "bench", "--quiet", *FEATURES, "--bench", "hub"]
    out = subprocess.run(command, cwd=root, check=True, stdout=subprocess.PIPE, text=True).stdout
    lines = [json.loads(line) for line in out.splitlines() if line.startswith("{")]
    said = lines[-1]
    step = said["versions"] // len(said["server_mb"])
    grown = enumerate(said["server_mb"], 1)
    memory = [{"case": f"  memory of the hub after {step * at:,}, MB", "ours": mb} for at, mb in grown]
    return [
        {"case": f"{said['clients']} clients, {said['versions']:,} versions: errors", "ours": said["errors"]},
        {"case": "  versions published and read back a second", "ours": said["versions"] / said["seconds"]},
        *memory,
    ]


def package(folder):
    """A package of FILES small files, as `kernels-cli build` would lay it out."""
    variant = folder / "torch-universal"
    variant.mkdir(parents=True)
    (variant / "__init__.py").write_text("__all__ = []\n")
    for at in range(FILES - 2):
        (variant / f"_part{at}.py").write_text(f"# {at}\n" + "x = 1\n" * (50 + at))
    digest = {p.name: base64.b64encode(hashlib.sha256(p.read_bytes()).digest()).decode() for p in sorted(variant.iterdir())}
    metadata = {
        "name": "many-files",
        "id": "_many_files_cpu_0",
        "version": 1,
        "license": "apache-2.0",
        "python-depends": [],
        "backend": {"type": "cpu"},
        "digest": {"algorithm": "sha256", "files": digest},
    }
    (variant / "metadata.json").write_text(json.dumps(metadata))


def seconds(command, env=None):
    """How long a command takes."""
    start = time.perf_counter()
    subprocess.run(command, env=env, check=True, stdout=subprocess.DEVNULL)
    return time.perf_counter() - start
