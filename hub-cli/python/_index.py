"""index.json: what operations a package has, and which compiled TPU module serves a call.

`_load` makes these objects from the file. Standard library only.
"""

import base64
import functools
import hashlib
import json
import pathlib
from dataclasses import dataclass

from . import _expr
from ._errors import BadArguments, BadIndex, NoModule

GENERATIONS = {  # the device kinds that libtpu reports, by the generation that index.json names
    "v4": ("TPU v4",),
    "v5e": ("TPU v5 lite", "TPU v5e"),
    "v5p": ("TPU v5", "TPU v5p"),
    "v6e": ("TPU v6 lite", "TPU v6e"),
    "v7x": ("TPU7x", "TPU v7x", "TPU v7"),
}


def generation(device_kind):
    """The TPU generation that a device kind names ("TPU v6 lite" -> "v6e"), or None when it is not known."""
    return next((name for name, kinds in GENERATIONS.items() if device_kind in kinds), None)


@dataclass(frozen=True)
class Array:
    """An argument or a result of an operation: a dtype (upper case: a variable) and a symbolic shape."""

    name: str
    dtype: str
    shape: tuple


@dataclass(frozen=True)
class Call:
    """One call of an operation: the sizes of its dimensions and the dtypes of its dtype variables, by name."""

    op: "Op"
    dims: dict
    dtypes: dict

    def results(self):
        """The (dtype, shape) of every result."""
        return [
            (
                self.dtypes.get(result.dtype, result.dtype),
                tuple(_expr.evaluate(size, self.dims) for size in result.shape),
            )
            for result in self.op.results
        ]

    def __str__(self):
        return ", ".join(filter(None, [_expr.describe(self.dtypes), _expr.describe(self.dims)]))


@dataclass(frozen=True)
class Module:
    """A compiled TPU module, and what must be true of a call that it serves."""

    folder: pathlib.Path
    file: str
    sha256: str
    bytes: int
    kernel: str
    dtypes: dict
    tile: dict
    demands: tuple
    operands: tuple
    results: tuple
    generations: tuple
    custom_call_config: dict
    extra_config: dict

    def serves(self, call, generation=None):
        """Whether this module can run `call`, on `generation` when that is known."""
        return (
            all(self.dtypes.get(name) == dtype for name, dtype in call.dtypes.items())
            and (generation is None or generation in self.generations)
            and all(_expr.holds(demand, call.dims) for demand in self.demands)
        )

    @functools.cached_property
    def backend_config(self):
        """The JSON text for XLA's `tpu_custom_call`. The module file is read and its sha256 checked at first use."""
        path = self.folder / self.file
        try:
            if path.stat().st_size != self.bytes:
                raise BadIndex(f"{self.file}: the file has {path.stat().st_size} bytes, index.json says {self.bytes}")
            body = path.read_bytes()
        except OSError as error:
            raise BadIndex(f"{self.file}: cannot be read: {error.strerror or error}") from error
        found = hashlib.sha256(body).hexdigest()
        if found != self.sha256:
            raise BadIndex(f"{self.file}: its sha256 is {found}, index.json says {self.sha256}; download the package again")
        custom_call = {"body": base64.b64encode(body).decode(), **self.custom_call_config}
        return json.dumps({"custom_call_config": custom_call, **self.extra_config})

    def __str__(self):
        terms = [f"{name}={dtype}" for name, dtype in self.dtypes.items()] + [_expr.render(demand) for demand in self.demands]
        return f"{' and '.join(terms) or 'any call'} ({', '.join(self.generations)})"


@dataclass(frozen=True)
class Op:
    """An operation: its interface, and its modules in order of preference."""

    name: str
    doc: str
    dims: tuple
    arguments: tuple
    results: tuple
    modules: tuple

    def bind(self, arguments):
        """The Call for arguments given as (dtype, shape) pairs; raises BadArguments when they do not fit the interface."""
        if len(arguments) != len(self.arguments):
            raise BadArguments(f"{self.name} takes {len(self.arguments)} arrays ({self._signature()}), not {len(arguments)}")
        dims, dtypes = {}, {}
        for want, (dtype, shape) in zip(self.arguments, arguments):
            if len(shape) != len(want.shape):
                raise BadArguments(f"{self.name}: {want.name} has shape {tuple(shape)}; the operation is {self._signature()}")
            variable = want.dtype[0].isupper()
            expected = dtypes.setdefault(want.dtype, dtype) if variable else want.dtype
            if dtype != expected:
                why = f"{want.dtype} is {expected} already" if variable else f"it must be {expected}"
                raise BadArguments(f"{self.name}: {want.name} is {dtype}; {why}")
            for symbol, size in zip(want.shape, shape):
                if isinstance(symbol, str) and dims.setdefault(symbol, size) != size:
                    raise BadArguments(
                        f"{self.name}: {symbol} is {dims[symbol]} and then {size}, in {want.name} of shape {tuple(shape)}; "
                        f"the operation is {self._signature()}"
                    )
        for want, (_, shape) in zip(self.arguments, arguments):
            for symbol, size in zip(want.shape, shape):
                if _expr.evaluate(symbol, dims) != size:
                    raise BadArguments(
                        f"{self.name}: {want.name} has shape {tuple(shape)}, where {_expr.render(symbol)} was expected"
                    )
        return Call(self, {name: dims[name] for name in self.dims}, dtypes)

    def select(self, call, generation=None):
        """The first module that serves `call`; raises NoModule, which says what the package has, when there is none."""
        for module in self.modules:
            if module.serves(call, generation):
                return module
        have = "; ".join(map(str, self.modules)) or "none"
        on = f" on {generation}" if generation else ""
        raise NoModule(f"{self.name}: no TPU module{on} for {call}. This package has modules for: {have}")

    def _signature(self):
        def array(a):
            return f"{a.name}: {a.dtype}[{', '.join(map(_expr.render, a.shape))}]"

        return f"({', '.join(map(array, self.arguments))}) -> {', '.join(map(array, self.results))}"


@dataclass(frozen=True)
class Index:
    """A checked index.json."""

    mosaic_version: int
    ops: dict

    def op(self, name):
        """The operation called `name`; raises NoModule when the package has no such operation."""
        if name not in self.ops:
            raise NoModule(f"this package has no operation {name!r}; it has {', '.join(self.ops) or 'none'}")
        return self.ops[name]
