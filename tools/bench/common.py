"""What the sections share: running the Rust side, and timing the Python side."""

import json
import statistics
import subprocess
import time


def rust(root, bench, *args):
    """The JSON lines that a Rust benchmark of the `kernels` crate prints."""
    command = ["cargo", "bench", "--quiet", "-p", "kernels", "--bench", bench, "--", *map(str, args)]
    out = subprocess.run(command, cwd=root, check=True, stdout=subprocess.PIPE, text=True).stdout
    return [json.loads(line) for line in out.splitlines() if line.startswith("{")]


def milliseconds(f, runs=5, before=lambda: None):
    """The median time of `f()`, after one run that is not counted; `before()` is not timed."""
    times = []
    for _ in range(runs + 1):
        before()
        start = time.perf_counter()
        f()
        times.append(1e3 * (time.perf_counter() - start))
    return statistics.median(times[1:])
