"""A folder of captured calls: modules, arrays, and the list of cases that `kernels-cli run --cases` takes.

Paths in a case are relative to the folder.
"""

import collections
import json
import pathlib
import re

import ml_dtypes
import numpy as np

# NumPy files know no bfloat16 and no 8-bit floats: those are saved as raw bytes, and read with the type that the case names.
EXTENDED = {
    "bf16": ml_dtypes.bfloat16,
    "f8E4M3FN": ml_dtypes.float8_e4m3fn,
    "f8E5M2": ml_dtypes.float8_e5m2,
    "f8E4M3B11FNUZ": ml_dtypes.float8_e4m3b11fnuz,
    "i4": ml_dtypes.int4,
    "i2": ml_dtypes.int2,
}


class Corpus:
    """Cases in a folder. Nothing is on disk as a list until `save`."""

    def __init__(self, folder):
        self.folder = pathlib.Path(folder).resolve()
        for part in ("modules", "arrays", "out"):
            (self.folder / part).mkdir(parents=True, exist_ok=True)
        self.cases = []

    def add(self, name, call, rtol, atol, **more):
        """Writes one captured call. `more` goes into the case as it is."""
        module = call.module
        case = {
            "name": name,
            "module": self._module(name, module.bytecode),
            "args": [self._array(f"{name}.arg{i}", value) for i, value in enumerate(call.operands)],
            "outs": outs(name, len(call.results)),
            "results": module.results,
            "aliases": module.aliases,
            "devices": module.devices,
            # As JAX's interpreters multiply.
            "exact": True,
            "expected": [self._array(f"{name}.expected{i}", value) for i, value in enumerate(call.results)],
            "operands": module.operands,
            "oracle": call.oracle,
            "rtol": rtol,
            "atol": atol,
            "kernel": module.name,
            "config": module.config,
            **more,
        }
        (self.folder / "modules" / f"{name}.mlir").write_text(module.text)
        self.cases.append(case)
        return case

    def add_version(self, case, version, bytecode):
        """The same case, its module in an older serialized form."""
        name = f"{case['name']}@v{version}"
        self._again(case, name, module=self._module(name, bytecode))

    def add_text(self, name, text, cases):
        """The same cases, taken from a StableHLO text whose Mosaic calls they are, in order."""
        path = f"modules/{name}.stablehlo.mlir"
        (self.folder / path).write_text(text)
        for index, case in enumerate(cases):
            self._again(case, f"{name}.call{index}", module=path, call=index)

    def _again(self, case, name, **changed):
        self.cases.append(case | {"name": name, "outs": outs(name, len(case["outs"]))} | changed)

    def _module(self, name, bytecode):
        path = f"modules/{name}.mlirbc"
        (self.folder / path).write_bytes(bytecode)
        return path

    def _array(self, name, value):
        path = f"arrays/{name}.npy"
        # NumPy cannot read back the names that ml_dtypes gives its types.
        extended = value.dtype in {np.dtype(t) for t in EXTENDED.values()}
        np.save(self.folder / path, value.view(f"V{value.dtype.itemsize}") if extended else value)
        return path

    def save(self):
        """Writes `cases.json`, which lists the cases."""
        path = self.folder / "cases.json"
        path.write_text(json.dumps(self.cases, indent=1) + "\n")
        return path


def outs(name, count):
    """Where the results of a case go."""
    return [f"out/{name}.{i}.npy" for i in range(count)]


def tolerance(types):
    """(relative, absolute) for the narrowest float of a call: what JAX's tests allow on a TPU when they name no other."""
    kinds = {kind.split("[")[0] for kind in types}
    allowed = max(1e-1 if kind.startswith("f8") else {"bf16": 1e-2, "f16": 1e-3, "f32": 1e-3}.get(kind, 0) for kind in kinds)
    return allowed, allowed


def load(path, type_text):
    """An array of a case as float64 or integers, whatever way its type is saved."""
    value = np.load(path)
    name = type_text.split("[")[0]
    if value.dtype.kind == "V":
        value = value.view(EXTENDED[name])
    if name in EXTENDED or value.dtype.kind == "f":
        return value.astype(np.int8 if name in ("i4", "i2") else np.float64)
    return value


def undefined(want, oracle):
    """Which elements of an expected result no kernel wrote: a reference says NaN, and JAX's simulation the largest integer."""
    if oracle == "reference" and want.dtype.kind == "f":
        return np.isnan(want)
    if oracle == "InterpretParams" and want.dtype.kind in "iu":
        return want == np.iinfo(want.dtype).max
    return np.zeros(want.shape, bool)


def differs(got, want, rtol, atol, unwritten):
    """What is wrong with a result, or None. Integers must be equal, and a NaN must be a NaN, but where nothing was written."""
    if got.shape != want.shape:
        return f"shape {list(got.shape)} instead of {list(want.shape)}"
    worst = ""
    if want.dtype.kind != "f":
        bits = want.dtype.itemsize
        right = got.astype(f"u{bits}") == want.astype(f"u{bits}")
    else:
        with np.errstate(invalid="ignore"):
            distance = np.abs(got - want)
            right = (distance <= atol + rtol * np.abs(want)) | (got == want) | (np.isnan(got) & np.isnan(want))
        worst = f", largest difference {distance[np.isfinite(distance)].max(initial=0):.3g}"
    wrong = ~(right | unwritten)
    if not wrong.any():
        return None
    where = tuple(int(i) for i in np.argwhere(wrong)[0])
    return f"{int(wrong.sum())} of {wrong.size} elements differ{worst}; at {list(where)}: {got[where]} instead of {want[where]}"


def compare(case, folder):
    """What is wrong with the results that a run of the case wrote, or None."""
    for index, (out, expected, kind) in enumerate(zip(case["outs"], case["expected"], case["results"])):
        want = load(folder / expected, kind)
        unwritten = undefined(want, case["oracle"])
        if problem := differs(load(folder / out, kind), want, case["rtol"], case["atol"], unwritten):
            return f"result {index}: {problem}"
    return None


def operations(text):
    """How often each operation occurs in a module's text, as printed by MLIR."""
    found = re.findall(
        r'^\s*(?:[%\w:, #]+ = )?"?((?:arith|math|vector|memref|scf|cf|func|tpu)\.[a-z_0-9.]+|return\b)', text, re.M
    )
    return collections.Counter("func.return" if op == "return" else op for op in found)


def census(texts):
    """One line an operation: how often, in how many modules, and an example."""
    total, modules, example = collections.Counter(), collections.Counter(), {}
    for text in texts:
        counts = operations(text)
        total.update(counts)
        modules.update(counts.keys())
        for op in counts:
            needle = "return" if op == "func.return" else op
            line = next(line.strip() for line in text.splitlines() if re.search(rf"(?<![\w.]){re.escape(needle)}\b", line))
            if op not in example or len(line) < len(example[op]):
                example[op] = line
    return [f"{op:28} {total[op]:6} in {modules[op]:4} modules   {example[op][:400]}" for op in sorted(total)]
