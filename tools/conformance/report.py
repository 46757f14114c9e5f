"""docs/conformance.md: how many of the captured modules give JAX's result, by test file and operation, and why others not."""

import collections
import re
import subprocess


def chip_random(row):
    """Whether the module asks the chip for random bits, which no two implementations agree on."""
    return any(op.startswith("tpu.prng") for op in row["ops"])


def status(row):
    """passed, differs, refused; or why the case does not count: not accepted, random, unconfirmed."""
    verdict = row["verdict"]
    if verdict and not verdict["accepted"]:
        return "not accepted"
    if chip_random(row):
        return "random"
    if not row["said"]["ok"]:
        return "refused"
    if not row["said"]["problem"]:
        return "passed"
    # Where JAX's own test says that the interpreter is wrong, a difference from it says nothing.
    return "unconfirmed" if row["outcome"] == "failed" else "differs"


def counted(rows):
    """The cases that count: libtpu takes the module, and its result is defined."""
    return [row for row in rows if status(row) in ("passed", "differs", "refused")]


def cause(row):
    """A failure without what varies between cases of the same cause."""
    if status(row) == "differs":
        return "the result differs from JAX's"
    said = row["said"]
    message = re.sub(r"\s+", " ", said.get("message") or "").strip()
    message = re.sub(r"(/[\w./+-]+)?[\w-]+\.(py|rs)(:\d+)*", "FILE", message)
    return f"{said.get('code')}: {re.sub(r'[0-9]+', 'N', message)[:160]}"


def share(part, whole):
    """`9 of 10 (90.0 %)`."""
    return f"{part} of {whole}" + (f" ({100 * part / whole:.1f} %)" if whole else "")


def summary(rows):
    """One line."""
    good = counted(rows)
    return f"{share(sum(status(r) == 'passed' for r in good), len(good))} of the modules that libtpu accepts give JAX's result"


def table(head, lines):
    """A Markdown table."""
    return "\n".join(
        ["| " + " | ".join(head) + " |", "|" + "---|" * len(head), *("| " + " | ".join(map(str, x)) + " |" for x in lines)]
    )


def by_file(rows, tests):
    """A line a test file."""
    modules, outcomes = collections.defaultdict(list), collections.defaultdict(collections.Counter)
    for row in rows:
        modules[row["file"]].append(status(row))
    for test in tests:
        outcomes[test["file"]][test["status"]] += 1
    for stem in sorted(set(modules) | set(outcomes)):
        found, ran = collections.Counter(modules[stem]), outcomes[stem]
        good = found["passed"] + found["differs"] + found["refused"]
        ended = f"{ran['passed']} / {ran['failed']} / {ran['skipped']} / {ran['killed']}"
        yield stem, ended, len(modules[stem]), good, found["passed"], found["differs"], found["refused"]


def by_operation(rows):
    """A line an operation, of the modules that count."""
    total, passed = collections.Counter(), collections.Counter()
    for row in counted(rows):
        total.update(row["ops"].keys())
        if status(row) == "passed":
            passed.update(row["ops"].keys())
    return [(f"`{op}`", total[op], passed[op]) for op in sorted(total)]


def failures(rows):
    """A line a cause, the most frequent first, with a case to look at."""
    groups = collections.defaultdict(list)
    for row in counted(rows):
        if status(row) != "passed":
            groups[cause(row)].append(row)
    for why, group in sorted(groups.items(), key=lambda item: -len(item[1])):
        example = min(group, key=lambda r: r["bytes"])
        detail = example["said"].get("problem") or ""
        yield len(group), why.replace("|", "\\|"), f"`{example['test'].split(' ')[0]}` {detail}".strip().replace("|", "\\|")


def refusals(rows, others):
    """Why cases do not count."""
    groups = collections.Counter()
    for row in rows:
        if status(row) == "not accepted":
            why = row["verdict"]["why"].split(" at location")[0]
            why = re.sub(r"^.*?MLIR module name `[^`]*`( HLO name `[^`]*`)?: ", "", why)
            groups["libtpu does not compile it: " + re.sub(r"[0-9]+", "N", why)[:120]] += 1
        elif status(row) == "random":
            groups["it takes random bits from the chip, which are the chip's own"] += 1
        elif status(row) == "unconfirmed":
            groups["it differs from JAX's interpreter, and so does what JAX's test expects"] += 1
    for line in others:
        if "no_oracle" in line:
            groups["no interpreter of JAX's runs it: " + line["no_oracle"][:110]] += 1
        elif "refused" in line:
            groups["JAX does not lower it for this TPU: " + re.sub(r"[0-9]+", "N", line["refused"])[:110]] += 1
        else:
            groups["its arrays are too large to keep"] += 1
    return [(count, why.replace("|", "\\|")) for why, count in groups.most_common()]


def commit(checkout):
    """The checkout's commit, if Git knows."""
    done = subprocess.run(["git", "-C", checkout, "log", "-1", "--format=%h of %cs"], capture_output=True, text=True)
    return done.stdout.strip() or "an unknown commit"


INTRODUCTION = """\
`./x conformance --jax-tests DIR` runs the tests `tests/pallas/tpu_*` of a checkout of the public JAX repository, captures each
kernel that they run (its Mosaic module, its operands, its result), and runs the module from its own bytes with `kernels-cli
run`. This page is its output; nothing of the checkout is in this repository, and CI does not run it."""

METHOD = """\
The tests are of commit {commit}; JAX is {jax}. Of a test with many variants, {variants} ran, evenly spread. JAX's result is
that of `interpret=True`, or of `InterpretParams` for kernels with copies, semaphores or several devices (four, simulated).
Equal modules count once. libtpu compiled each for v6e, and what it refuses does not count.{unjudged} A result is JAX's if every
element is within what JAX's own tests allow on a TPU (relative and absolute: 1e-3 for f32, 1e-2 where bf16 is);
integers must be equal, and a NaN must be a NaN. Integers that `InterpretParams` says nobody wrote are not compared. Products of
f32 are in f32, as the interpreters take them."""

COLUMNS = ["file", "tests passed / failed / skipped / killed", "modules", "count", "as JAX", "differ", "refused"]


def page(rows, others, tests, checkout, variants):
    """The whole document."""
    import jax

    open_cases = sum(row["verdict"] is None for row in rows)
    unjudged = f" {open_cases} were not given to it, and count." if open_cases else ""
    method = METHOD.format(commit=commit(checkout), jax=jax.__version__, variants=variants, unjudged=unjudged)
    broken = [f"- `{test['file']}`: {test['why']}" for test in tests if test["status"] == "not imported"]
    parts = [
        "# Conformance",
        INTRODUCTION,
        f"**{summary(rows)}.**",
        method,
        "## By test file",
        table(COLUMNS, by_file(rows, tests)),
        "A test that fails under capture still gives modules: many expect an error or a time of a real TPU.",
        *(["Not imported with this JAX:\n" + "\n".join(dict.fromkeys(broken))] if broken else []),
        "## Failures, by cause",
        table(["modules", "cause", "an example"], failures(rows)),
        "## What does not count, and why",
        table(["modules", "why"], refusals(rows, others)),
        "## By operation",
        table(["operation", "modules with it", "of them as JAX"], by_operation(rows)),
    ]
    return "\n\n".join(parts) + "\n"
