"""Reads and checks index.json.

It is checked whole when it is loaded, so that a damaged or hostile file is one BadIndex that names the place, and what
comes after may rely on its form. Standard library only.
"""

import json
import pathlib
import re

from . import _expr
from ._errors import BadIndex
from ._index import Array, Index, Module, Op

SCHEMA = 1
MAX_BYTES = 16 << 20
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,63}")
_DTYPE = re.compile(r"[a-z][a-z0-9_]{0,31}|[A-Z][A-Z0-9]{0,7}")


def load(folder):
    """Reads and checks `folder/index.json`; raises BadIndex, with the place in the file, when anything in it is wrong."""
    folder = pathlib.Path(folder)
    path = folder / "index.json"
    try:
        if path.stat().st_size > MAX_BYTES:
            raise BadIndex(f"index.json is larger than {MAX_BYTES} bytes")
        data = json.loads(path.read_text("utf-8"))
    except OSError as error:
        raise BadIndex(f"index.json cannot be read: {error.strerror or error}") from error
    except (ValueError, RecursionError) as error:
        if isinstance(error, BadIndex):
            raise
        raise BadIndex(f"index.json is not JSON: {error}") from error
    _is(data, dict, "index.json")
    if data.get("schema") != SCHEMA:
        raise BadIndex(f"index.json has schema {data.get('schema')!r}; this package reads schema {SCHEMA}")
    ops = _get(data, "ops", dict, "index.json")
    version = _get(data, "mosaic_version", int, "index.json")
    return Index(version, {_name(name, "ops"): _op(folder, name, op, f"ops.{name}") for name, op in ops.items()})


def _op(folder, name, data, where):
    _is(data, dict, where)
    dims = tuple(_name(dim, f"{where}.dims") for dim in _get(data, "dims", list, where))
    arguments = tuple(_array(a, dims, f"{where}.arguments[{i}]") for i, a in enumerate(_get(data, "arguments", list, where)))
    results = tuple(_array(a, dims, f"{where}.results[{i}]") for i, a in enumerate(_get(data, "results", list, where)))
    if not results:
        raise BadIndex(f"{where}.results: an operation needs at least one result")
    for what, arrays in (("arguments", arguments), ("results", results)):
        if len({array.name for array in arrays}) != len(arrays):
            raise BadIndex(f"{where}.{what}: two arrays have the same name")
    bound = {size for array in arguments for size in array.shape if isinstance(size, str)}
    if unbound := [dim for dim in dims if dim not in bound]:
        raise BadIndex(f"{where}.dims: no argument has a size {', '.join(unbound)}, so a call cannot tell it")
    variables = {array.dtype for array in arguments if array.dtype[0].isupper()}
    for array in results:
        if array.dtype[0].isupper() and array.dtype not in variables:
            raise BadIndex(f"{where}.results: no argument has the dtype {array.dtype} of {array.name}")
    op = Op(name, _get(data, "doc", str, where), dims, arguments, results, ())
    modules = [
        _module(folder, module, op, variables, f"{where}.modules[{i}]")
        for i, module in enumerate(_get(data, "modules", list, where))
    ]
    return Op(name, op.doc, dims, arguments, results, tuple(modules))


def _array(data, dims, where):
    _is(data, dict, where)
    dtype = _get(data, "dtype", str, where)
    if not _DTYPE.fullmatch(dtype):
        raise BadIndex(f"{where}.dtype: {dtype[:40]!r} is not a dtype name or a dtype variable")
    shape = tuple(_get(data, "shape", list, where))
    for size in shape:
        _expr.check(size, dims, f"{where}.shape")
    return Array(_name(data.get("name"), f"{where}.name"), dtype, shape)


def _module(folder, data, op, variables, where):
    _is(data, dict, where)
    dtypes = _get(data, "dtypes", dict, where)
    for name, dtype in dtypes.items():
        if name not in variables or not isinstance(dtype, str) or not _DTYPE.fullmatch(dtype) or dtype[0].isupper():
            raise BadIndex(
                f"{where}.dtypes: {str(name)[:40]!r} must be a dtype variable of the operation, and its value a dtype"
            )
    if missing := variables - dtypes.keys():
        raise BadIndex(f"{where}.dtypes: no dtype for {', '.join(sorted(missing))}")
    for demand in _get(data, "demands", list, where):
        _expr.check_demand(demand, op.dims, f"{where}.demands")
    results = tuple(_get(data, "results", list, where))
    if results != tuple(result.name for result in op.results):
        raise BadIndex(f"{where}.results: must be the operation's results, in order")
    generations = tuple(_get(data, "generations", list, where))
    if unknown := [g for g in generations if not isinstance(g, str) or not _NAME.fullmatch(g)]:
        raise BadIndex(f"{where}.generations: {str(unknown[0])[:40]!r} is not the name of a TPU generation")
    custom_call_config = _get(data, "custom_call_config", dict, where)
    extra_config = _get(data, "backend_config", dict, where)
    if "body" in custom_call_config or "custom_call_config" in extra_config:
        raise BadIndex(f"{where}: the configuration may not name the body or hold another custom_call_config")
    sha256 = _get(data, "sha256", str, where)
    if not re.fullmatch(r"[0-9a-f]{64}", sha256):
        raise BadIndex(f"{where}.sha256: not 64 hexadecimal digits")
    return Module(
        folder=folder,
        file=_file(data, where),
        sha256=sha256,
        bytes=_get(data, "bytes", int, where),
        kernel=_name(data.get("kernel"), f"{where}.kernel"),
        dtypes=dtypes,
        tile=_get(data, "tile", dict, where),
        demands=tuple(data["demands"]),
        operands=tuple(_operand(o, op, f"{where}.operands[{i}]") for i, o in enumerate(_get(data, "operands", list, where))),
        results=results,
        generations=generations,
        custom_call_config=custom_call_config,
        extra_config=extra_config,
    )


def _operand(data, op, where):
    """An operand as a pair: ("expr", e), ("exprs", (e, ...)) or ("argument", position)."""
    _is(data, dict, where)
    if len(data) == 1:
        ((kind, value),) = data.items()
        if kind == "expr":
            _expr.check(value, op.dims, where)
            return kind, value
        if kind == "exprs" and isinstance(value, list) and value:
            for expr in value:
                _expr.check(expr, op.dims, where)
            return kind, tuple(value)
        names = [argument.name for argument in op.arguments]
        if kind == "argument" and value in names:
            return kind, names.index(value)
    raise BadIndex(f'{where}: not {{"expr": e}}, {{"exprs": [e, ...]}} or {{"argument": name}} with an argument of {op.name}')


def _file(data, where):
    file = _get(data, "file", str, where)
    parts = file.split("/")
    if any(part in ("", ".", "..") for part in parts) or not re.fullmatch(r"[A-Za-z0-9._/+=-]+", file):
        raise BadIndex(f"{where}.file: {file[:80]!r} is not a path inside the package")
    return file


def _is(value, kind, where):
    if not isinstance(value, kind) or (kind is int and isinstance(value, bool)):
        raise BadIndex(f"{where}: expected {kind.__name__}, found {type(value).__name__}")
    return value


def _get(data, key, kind, where):
    if key not in data:
        raise BadIndex(f"{where}: {key!r} is missing")
    return _is(data[key], kind, f"{where}.{key}")


def _name(value, where):
    if not isinstance(value, str) or not _NAME.fullmatch(value):
        raise BadIndex(f"{where}: {str(value)[:40]!r} is not a name")
    return value
