"""Runs JAX's own Pallas TPU tests as a conformance suite of the executor. Called by `./x conformance`.

Every kernel that a checkout's tests run is captured with its operands and JAX's result (tests_capture, pallas_tests), given to
libtpu (accept), and run by `kernels-cli run`; what differs is counted, by cause. A stopped run goes on where it was.
"""

import argparse
import json
import pathlib
import subprocess

import accept
import corpus
import report
import tests_capture

ROOT = pathlib.Path(__file__).resolve().parents[2]


def captured(work):
    """The modules that have operands and a result, one for each digest, and all the lines that say why another has none."""
    cases, others, seen = [], [], set()
    for line in tests_capture.read(work, "cases"):
        if line["digest"] in seen:
            continue
        seen.add(line["digest"])
        (cases if "module" in line and "no_oracle" not in line else others).append(line)
    return cases, others


def judge(cases, work):
    """libtpu's verdict on each case, by digest; kept in a file."""
    path = work / "verdicts.jsonl"
    known = {}
    for line in path.read_text().splitlines() if path.exists() else ():
        entry = json.loads(line)
        known[entry.pop("digest")] = entry
    with path.open("a") as file:
        for digest, verdict in accept.verdicts(cases, known, work):
            known[digest] = verdict
            file.write(json.dumps({"digest": digest} | verdict) + "\n")
            file.flush()
    return known


def run(cases, cli, work, batch=100, limit=300):
    """What `kernels-cli run --cases` says of each case, by name, with `problem` if a result is not JAX's."""
    for case in cases:
        case["rtol"], case["atol"] = corpus.tolerance(case["operands"] + case["results"])
        case["exact"] = True
    said = {}
    for start in range(0, len(cases), batch):
        said |= run_batch(cases[start : start + batch], cli, work, limit)
    for case in cases:
        answer = said[case["name"]]
        if answer["ok"]:
            try:
                answer["problem"] = corpus.compare(case, work)
            except (OSError, ValueError) as error:
                answer["problem"] = f"the result cannot be read: {error}"
    return said


def run_batch(cases, cli, work, limit):
    """One process for many cases; case by case if it dies, so that one bad case loses only itself."""
    path = work / "batch.json"
    path.write_text(json.dumps(cases))
    try:
        done = subprocess.run([cli, "run", "--cases", path, "--json"], capture_output=True, text=True, timeout=limit)
        return {answer["name"]: answer for answer in json.loads(done.stdout)}
    except (subprocess.TimeoutExpired, json.JSONDecodeError) as error:
        if len(cases) > 1:
            half = len(cases) // 2
            return run_batch(cases[:half], cli, work, limit) | run_batch(cases[half:], cli, work, limit)
        message = f"over {limit} s" if isinstance(error, subprocess.TimeoutExpired) else done.stderr.strip()[-300:]
        return {cases[0]["name"]: {"name": cases[0]["name"], "ok": False, "code": "crash", "message": message}}


def main():
    parser = argparse.ArgumentParser(prog="./x conformance", description=__doc__)
    parser.add_argument(
        "--jax-tests", type=pathlib.Path, required=True, metavar="DIR", help="a checkout of github.com/jax-ml/jax"
    )
    parser.add_argument("--work", type=pathlib.Path, default=ROOT / "target/conformance", help="where captured cases are kept")
    parser.add_argument("--variants", type=int, default=8, help="of a test with more variants, run so many, evenly spread")
    parser.add_argument("--jobs", type=int, default=2, help="test files captured at a time")
    parser.add_argument("--only-run", action="store_true", help="neither capture nor compile: run what is captured")
    parser.add_argument("--cli", type=pathlib.Path, default=ROOT / "target/release/kernels-cli", help="the command under test")
    parser.add_argument("--report", type=pathlib.Path, default=ROOT / "docs/conformance.md", help="the file to write")
    args = parser.parse_args()
    work = args.work.resolve()
    if not args.only_run:
        tests_capture.run(args.jax_tests.resolve(), work, args.variants, args.jobs)
    cases, others = captured(work)
    verdicts = judge([] if args.only_run else cases, work)
    said = run(cases, args.cli.resolve(), work)
    tests = tests_capture.read(work, "tests")
    outcomes = {test["test"]: test["status"] for test in tests}
    rows = [
        case
        | {
            "verdict": verdicts.get(case["digest"]),
            "said": said[case["name"]],
            "outcome": outcomes.get(case["test"]),
            "ops": corpus.operations((work / case["module"]).with_suffix(".mlir").read_text()),
        }
        for case in cases
    ]
    args.report.write_text(report.page(rows, others, tests, args.jax_tests, args.variants))
    (work / "results.json").write_text(json.dumps(rows, indent=1) + "\n")
    print(report.summary(rows))


if __name__ == "__main__":
    main()
