"""What this package is: the folder it was loaded from, its metadata.json and its index.json, each read once."""

import functools
import importlib.util
import json
import pathlib
import re

from . import _load
from ._errors import BadIndex

FOLDER = pathlib.Path(__file__).parent


@functools.cache
def metadata():
    """metadata.json as a dict."""
    try:
        data = json.loads((FOLDER / "metadata.json").read_text("utf-8"))
    except (OSError, ValueError, RecursionError) as error:
        raise BadIndex(f"metadata.json cannot be read: {error}") from error
    if not isinstance(data, dict) or not isinstance(data.get("id"), str):
        raise BadIndex("metadata.json has no 'id'")
    return data


@functools.cache
def index():
    """index.json, checked."""
    return _load.load(FOLDER)


def namespace():
    """The package's id, in which its PyTorch operations live: `torch.ops.<id>`."""
    name = metadata()["id"]
    if not re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]*", name):
        raise BadIndex(f"metadata.json: the id {name[:40]!r} cannot be the namespace of PyTorch operations")
    return name


def info():
    """What the package holds and what this process can run it with, as a dict of plain values (for bug reports)."""
    data = metadata()
    return {
        "name": data.get("name"),
        "version": data.get("version"),
        "id": data["id"],
        "mosaic_version": index().mosaic_version,
        "ops": {name: {"doc": op.doc, "modules": [str(module) for module in op.modules]} for name, op in index().ops.items()},
        "found": {name: importlib.util.find_spec(name) is not None for name in ("jax", "torch", "torch_tpu", "libtpu")},
    }
