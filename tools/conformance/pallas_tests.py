"""Runs one file of JAX's own Pallas TPU tests with every kernel captured: `pallas_tests.py CHECKOUT FILE OUT VARIANTS`.

It writes a line to OUT/FILE.tests.jsonl when a test starts and when it ends, and one to OUT/FILE.cases.jsonl for each new
module, so that a run that was killed goes on with the next test.
"""

import hashlib
import importlib.util
import json
import os
import pathlib
import re
import sys
import unittest

# Two files want one device, the others several; and interpreted kernels take longer to compile than to run.
os.environ["XLA_FLAGS"] = " ".join(
    [
        f"--xla_force_host_platform_device_count={1 if 'interpret_t' in sys.argv[2] else 4}",
        "--xla_backend_optimization_level=0",
        "--xla_llvm_disable_expensive_passes=true",
        # A bfloat16 between two operations is one, as in the kernel.
        "--xla_allow_excess_precision=false",
    ]
)

import capture
import corpus
import jax
from jax._src import test_util as jtu
from jax.experimental.pallas import tpu as pltpu

# Test files that ask for a certain TPU.
KINDS = {"tpu_all_gather_test": "TPU v5 lite"}
# What the operands and results of a case may take, in bytes.
LARGEST = 48 << 20


class FromCheckout:
    """Finds JAX's test utilities, which are not in the wheel, in the checkout."""

    def __init__(self, checkout):
        self.checkout = checkout

    def find_spec(self, name, path=None, target=None):
        if not name.startswith("jax._src."):
            return None
        file = self.checkout / (name.replace(".", "/") + ".py")
        return importlib.util.spec_from_file_location(name, file) if file.exists() else None


def flatten(suite):
    """The tests of a suite, one by one."""
    for test in suite:
        yield from flatten(test) if isinstance(test, unittest.TestSuite) else (test,)


def chosen(tests, limit):
    """At most `limit` variants of each test method, evenly spread."""
    groups = {}
    for test in tests:
        base = re.sub(r"(\d+|_[^a-zA-Z].*)$", "", test._testMethodName)
        groups.setdefault((type(test).__name__, base), []).append(test)
    for variants in groups.values():
        count = min(len(variants), limit)
        yield from (variants[i * len(variants) // count] for i in range(count))


class Log:
    """Lines of JSON, each on disk before the next thing happens."""

    def __init__(self, path):
        self.file = path.open("a")

    def write(self, **line):
        self.file.write(json.dumps(line) + "\n")
        self.file.flush()


class Sink:
    """Keeps the first run of each module."""

    def __init__(self, folder, stem):
        self.corpus = corpus.Corpus(folder)
        self.path = folder / f"{stem}.cases.jsonl"
        self.seen = {json.loads(line)["digest"] for line in self.path.read_text().splitlines()} if self.path.exists() else set()
        self.log = Log(self.path)
        self.stem, self.test = stem, ""

    def __call__(self, call):
        digest = self.digest(call.module)
        if digest in self.seen:
            return
        self.seen.add(digest)
        size = sum(a.nbytes for a in call.operands + call.results)
        line = {"test": self.test, "file": self.stem, "digest": digest, "bytes": size}
        if size > LARGEST:
            return self.log.write(**line, name=call.module.name, skipped=f"{size >> 20} MiB of operands and results")
        rtol, atol = corpus.tolerance(call.module.operands + call.module.results)
        self.log.write(**self.corpus.add(f"{self.stem}.{digest}", call, rtol, atol, **line))

    def refused(self, name, error):
        """JAX does not lower the kernel for TPU."""
        digest = hashlib.sha256((self.test + summary(error)).encode()).hexdigest()[:16]
        self.log.write(test=self.test, file=self.stem, digest=digest, name=name, refused=summary(error))

    def uninterpreted(self, module, error):
        """JAX lowers the kernel, and has no interpreter for it: there is nothing to compare with."""
        digest = self.digest(module)
        if digest not in self.seen:
            self.seen.add(digest)
            call = capture.Call(module, [], [], "none")
            line = {"test": self.test, "file": self.stem, "digest": digest, "no_oracle": summary(error)}
            self.log.write(**self.corpus.add(f"{self.stem}.{digest}", call, 0, 0, **line))

    @staticmethod
    def digest(module):
        """Equal for equal modules, wherever their source lines are."""
        return hashlib.sha256((module.text + repr((module.operands, module.devices))).encode()).hexdigest()[:16]


def summary(error):
    """The first line of an error that says something."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return f"{type(error).__name__}: {lines[0][:300] if lines else ''}"


def outcome(result):
    """What a test said."""
    if result.skipped:
        return {"status": "skipped", "why": result.skipped[0][1][:200]}
    if problems := result.errors + result.failures:
        return {"status": "failed", "why": problems[0][1].strip().splitlines()[-1][:300]}
    return {"status": "passed"}


def main(checkout, file, out, limit):
    stem = pathlib.Path(file).stem
    sys.meta_path.append(FromCheckout(checkout))
    sys.path[:0] = [str(checkout / "tests"), str(checkout / "tests/pallas")]
    sys.argv = [file]
    if "interpret" not in stem:
        jtu.device_under_test = lambda: "tpu"
    finished = out / f"{stem}.tests.jsonl"
    done = {json.loads(line)["test"] for line in finished.read_text().splitlines()} if finished.exists() else set()
    log, sink = Log(finished), Sink(out, stem)
    with capture.capturing(sink, sink.refused, kind=KINDS.get(stem, "TPU v6 lite")) as recorder:
        recorder.on_uninterpreted = sink.uninterpreted
        spec = importlib.util.spec_from_file_location(stem, checkout / "tests/pallas" / file)
        module = importlib.util.module_from_spec(spec)
        sys.modules[stem] = module
        try:
            spec.loader.exec_module(module)
        except Exception as error:
            return log.write(test="import", status="not imported", why=summary(error))
        settle_hypothesis()
        tests = list(flatten(unittest.defaultTestLoader.loadTestsFromModule(module)))
        log.write(test="import", status="imported", tests=len(tests))
        for test in chosen(tests, limit):
            if test.id() in done:
                continue
            sink.test = test.id()
            log.write(test=test.id(), status="started")
            # The simulator keeps the devices and the failures of its last kernel.
            pltpu.reset_tpu_interpret_mode_state()
            result = unittest.TestResult()
            test.run(result)
            jax.effects_barrier()
            log.write(test=test.id(), **outcome(result))


def settle_hypothesis():
    """Few examples, always the same ones."""
    if "hypothesis" in sys.modules:
        from hypothesis import HealthCheck, settings

        settings.register_profile(
            "few", max_examples=4, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck)
        )
        settings.load_profile("few")


if __name__ == "__main__":
    main(pathlib.Path(sys.argv[1]).resolve(), sys.argv[2], pathlib.Path(sys.argv[3]).resolve(), int(sys.argv[4]))
