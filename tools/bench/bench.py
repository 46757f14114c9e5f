"""Measures what the documentation claims: ours beside the peer's, in one run. Called by `./x bench`."""

import argparse
import json
import os
import pathlib
import subprocess
import sys

import emit
import executor
import hub
import interpreters
import tpu_cycles

ROOT = pathlib.Path(__file__).resolve().parents[2]
SECTIONS = {
    "emit": (emit, "Rust to Mosaic bytecode, beside JAX's trace and lower of its own kernel (ms)"),
    "executor": (executor, "ragged_dot on the CPU, beside XLA:CPU and Pallas interpret mode (ms)"),
    "interpreters": (interpreters, "JAX's own Mosaic modules on the CPU, beside JAX's two interpreters (ms)"),
    "hub": (hub, "the hub and its client, beside huggingface_hub"),
    "tpu-cycles": (tpu_cycles, "cycles of the real compiler's schedule, beside Tokamax's and JAX's kernels"),
}


def show(title, rows):
    """A table of rows, which are dicts with the same keys."""
    print(f"\n{title}")
    if not rows:
        return
    keys = list(dict.fromkeys(k for r in rows for k in r))
    table = [keys] + [[cell(r.get(k)) for k in keys] for r in rows]
    widths = [max(len(r[i]) for r in table) for i in range(len(keys))]
    for row in table:
        print("  " + "  ".join(c.rjust(w) if i else c.ljust(w) for i, (c, w) in enumerate(zip(row, widths))))


def cell(value):
    """A number with the digits that matter."""
    if isinstance(value, float):
        return f"{value:.3g}" if abs(value) < 1000 else f"{value:.0f}"
    return "-" if value is None else str(value)


def main():
    parser = argparse.ArgumentParser(prog="./x bench", description=__doc__)
    parser.add_argument("sections", nargs="*", metavar="SECTION", help=f"of {', '.join(SECTIONS)} [default: all]")
    parser.add_argument("--json", action="store_true", help="print one JSON document instead of tables")
    args = parser.parse_args()
    if unknown := sorted(set(args.sections) - set(SECTIONS)):
        parser.error(f"there is no section {', '.join(unknown)}; there are {', '.join(SECTIONS)}")
    # Cargo and JAX talk on standard error; standard output is for the figures.
    subprocess.run(["cargo", "build", "--quiet", "--release", "-p", "kernels", "--benches"], cwd=ROOT, check=True)
    results = {}
    for name in args.sections or SECTIONS:
        section, title = SECTIONS[name]
        results[name] = section.rows(ROOT)
        if not args.json:
            show(title, results[name])
    if args.json:
        json.dump(results, sys.stdout, indent=2)
        print()


if __name__ == "__main__":
    os.environ.setdefault("JAX_PLATFORMS", "cpu")
    main()
