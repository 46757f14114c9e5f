"""The main job, end to end, as a user would do it. Called by `./x demo`.

A ragged-dot kernel written in Rust is compiled, checked by the TPU compiler for five generations, run on the CPU against
float64, published to a hub on this machine, fetched in Rust and in unmodified Python, run there, and lowered for TPU.
Ends with a table; exits non-zero if a step failed.
"""

import contextlib
import json
import os
import pathlib
import shutil
import subprocess
import sys
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
TARGET = pathlib.Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target")) / "debug"
WORK = ROOT / "target" / "demo"
REPO = "tengomucho/ragged-dot-tpu"
PACKAGE = "kernels/packages/ragged-dot-tpu"


def run(*command, env=None):
    """Runs a command; its standard output. Fails with what it said."""
    done = subprocess.run(list(map(str, command)), cwd=ROOT, env=env, stdout=subprocess.PIPE, text=True)
    if done.returncode:
        raise RuntimeError(f"{' '.join(map(str, command[:3]))} ... failed with exit code {done.returncode}")
    return done.stdout


def cli(*args, env=None):
    """The JSON that a kernels-cli command prints."""
    return json.loads(run(TARGET / "kernels-cli", *args, "--json", env=env))


def build(_):
    """Compiles the package's kernels; libtpu compiles every module for every generation."""
    out = cli("build", PACKAGE, "--out", WORK / "package")
    modules = out["modules"]
    generations = sorted({g for m in modules for g in m["generations"]})
    if len(generations) != 5 or not all(m["generations"] for m in modules):
        raise RuntimeError(f"some modules compile for no generation, or not all five were covered: {generations}")
    small, large = min(m["bytes"] for m in modules), max(m["bytes"] for m in modules)
    return f"{len(modules)} modules of {small}-{large} bytes; accepted for {' '.join(generations)}"


def execute(_):
    """Runs both projections of Qwen3-30B-A3B's expert layer on the CPU."""
    lines = [json.loads(line) for line in run(TARGET / "ragged_dot").splitlines()]
    parts = [f"{r['projection']} {r['seconds']:.2f} s, error {r['error']:.1e}" for r in lines]
    return f"128 experts, {lines[0]['rows']} rows, bfloat16: " + "; ".join(parts)


def publish(env):
    """Publishes version 1, twice: the second time nothing is sent."""
    first = cli("publish", WORK / "package", REPO, "--version", 1, "--allow-dirty", env=env)
    again = cli("publish", WORK / "package", REPO, "--version", 1, "--allow-dirty", env=env)
    if again["uploaded"] or again["commit"] != first["commit"]:
        raise RuntimeError("publishing the same bytes again made another commit")
    return f"{first['uploaded']} files, {first['bytes']} bytes, commit {first['commit'][:12]}"


def fetch(env):
    """Fetches it with the CLI, and through the Rust API."""
    got = cli("get", f"{REPO}@v1", env=env)
    run(TARGET / "get_kernel", env=env)
    return f"{got['downloaded']['files']} files, every byte checked, commit {got['commit'][:12]}"


def load(env):
    """Loads it with the unmodified Python client, runs it on CPU arrays, and compiles it for TPUs through JAX."""
    out = json.loads(run(sys.executable, ROOT / "tools/demo/load.py", REPO, env=env))
    return f"error {out['error']:.1e} against float64; through JAX compiled for {' '.join(out['compiled'])}"


def load_offline(env):
    """Loads it again with the network switched off."""
    out = json.loads(run(sys.executable, ROOT / "tools/demo/load.py", REPO, env=dict(env, HF_HUB_OFFLINE="1")))
    return f"error {out['error']:.1e} from the cache that `get` filled"


STEPS = [
    ("build, checked by libtpu", build),
    ("run on the CPU", execute),
    ("publish", publish),
    ("get in Rust", fetch),
    ("load in Python", load),
    ("load offline", load_offline),
]


@contextlib.contextmanager
def hub():
    """A hub of our own on a free port; yields the environment that points clients at it."""
    command = [str(TARGET / "kernels-cli"), "serve", "--root", str(WORK / "hub"), "--port", "0", "--json"]
    server = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    try:
        endpoint = json.loads(server.stdout.readline())["endpoint"]
        home = str(WORK / "home")
        yield dict(os.environ, HF_ENDPOINT=endpoint, HF_HOME=home)
    finally:
        server.terminate()
        server.wait(timeout=20)


def main():
    shutil.rmtree(WORK, ignore_errors=True)
    WORK.mkdir(parents=True)
    print("==> building the programs", flush=True)
    run("cargo", "build", "--quiet", "-p", "hub-cli", "-p", "examples", "-p", "kernel-ir", "--bins")
    rows, failed = [], False
    with hub() as env:
        for name, step in STEPS:
            print(f"==> {name}", flush=True)
            start = time.perf_counter()
            try:
                rows.append((name, time.perf_counter() - start, "ok", step(env)))
            except Exception as e:  # A failed step is a row of the table, and the steps after it are tried too.
                failed = True
                rows.append((name, 0.0, "FAILED", str(e)))
            name, _, state, text = rows[-1]
            rows[-1] = (name, time.perf_counter() - start, state, text)
    width = max(len(r[0]) for r in rows)
    print()
    for name, seconds, state, text in rows:
        print(f"{name:<{width}}  {seconds:6.1f} s  {state:<6}  {text}")
    sys.exit(failed)


if __name__ == "__main__":
    main()
