"""Compares the results that a run of cases wrote with JAX's: `compare.py CASES.json` fails if any differs, and says how."""

import json
import pathlib
import sys

import corpus


def main(path):
    path = pathlib.Path(path)
    cases = json.loads(path.read_text())
    problems = [(case["name"], corpus.compare(case, path.parent)) for case in cases]
    wrong = [(name, problem) for name, problem in problems if problem]
    for name, problem in wrong:
        print(f"{name}: {problem}")
    print(f"{len(cases)} cases, {len(wrong)} differ")
    return bool(wrong) or not cases


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
