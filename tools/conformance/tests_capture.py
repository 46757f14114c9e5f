"""Drives pallas_tests.py over a checkout: one child a file, killed when a test takes too long, restarted behind that test."""

import concurrent.futures
import json
import os
import pathlib
import subprocess
import sys
import time

HERE = pathlib.Path(__file__).parent
# Seconds that one test may take, and one file.
TEST_LIMIT, FILE_LIMIT = 150, 3000


def last_line(path):
    """The last entry of a log."""
    lines = path.read_text().splitlines() if path.exists() else []
    return json.loads(lines[-1]) if lines else {}


def run_file(checkout, file, out, variants):
    """Captures one file of tests; goes on where an earlier run stopped."""
    log = out / f"{file.stem}.tests.jsonl"
    if (out / f"{file.stem}.done").exists():
        return
    deadline = time.monotonic() + FILE_LIMIT
    while time.monotonic() < deadline:
        with (out / f"{file.stem}.log").open("a") as sink:
            command = [sys.executable, HERE / "pallas_tests.py", checkout, file.name, out, str(variants)]
            child = subprocess.Popen(command, stdout=sink, stderr=sink, env=os.environ | {"PYTHONPATH": str(HERE)})
        if wait(child, log, deadline) == 0:
            break
        stopped = last_line(log)
        if stopped.get("status") != "started":
            break
        with log.open("a") as sink:
            sink.write(
                json.dumps({"test": stopped["test"], "status": "killed", "why": f"took over {TEST_LIMIT} s or crashed"}) + "\n"
            )
    (out / f"{file.stem}.done").touch()


def wait(child, log, deadline):
    """The child's exit code; kills it when its log stands still."""
    size, since = -1, time.monotonic()
    while child.poll() is None:
        time.sleep(0.5)
        now = log.stat().st_size if log.exists() else 0
        if now != size:
            size, since = now, time.monotonic()
        if time.monotonic() - since > TEST_LIMIT or time.monotonic() > deadline:
            child.kill()
    return child.wait()


def run(checkout, out, variants, jobs):
    """Captures all files; `jobs` at a time."""
    out.mkdir(parents=True, exist_ok=True)
    files = sorted((checkout / "tests/pallas").glob("tpu_*_test.py"))
    with concurrent.futures.ThreadPoolExecutor(jobs) as pool:
        list(pool.map(lambda file: run_file(checkout, file, out, variants), files))
    return files


def read(out, kind):
    """All lines of the logs of a kind, "tests" or "cases", each with its file."""
    lines = []
    for path in sorted(out.glob(f"*.{kind}.jsonl")):
        stem = path.name.removesuffix(f".{kind}.jsonl")
        lines += [{"file": stem} | json.loads(line) for line in path.read_text().splitlines()]
    return lines
