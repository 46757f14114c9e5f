"""Stand-ins for compiled modules, written by JAX's Pallas: simple, correct ragged products with a dynamic grid.

They let the Python files be tested, up to the real TPU compiler, where no built package is at hand. Each visits every
(tile of rows, group) pair and masks, so it is slow, but it has the operands that real modules have: dynamic grid bounds,
a vector of dimensions, the group sizes, and the two arrays. K (for tgmm also N) is the block, so it is fixed.
"""

import base64
import functools
import hashlib
import json
import re

import jax
import jax.numpy as jnp
from jax.experimental import pallas as pl
from jax.experimental.pallas import tpu as pltpu

K, BM, BN = 256, 128, 128
GENERATIONS = ["v4", "v5e", "v5p", "v6e", "v7x"]
DIMS = ["m", "k", "n", "g"]
SHAPES = {  # first, second, result
    "ragged_dot": (["m", "k"], ["g", "n", "k"], ["m", "n"]),
    "ragged_dot_gkn": (["m", "k"], ["g", "k", "n"], ["m", "n"]),
    "tgmm": (["m", "k"], ["m", "n"], ["g", "k", "n"]),
}


def _rows_of_group(dims, sizes, tile, group):
    """Which rows of a tile [BM, 1] belong to a group."""
    start = jax.lax.fori_loop(0, group, lambda i, sum: sum + sizes[i], 0)
    row = tile * BM + jax.lax.broadcasted_iota(jnp.int32, (BM, 1), 0)
    return (row >= start) & (row < start + sizes[group]) & (row < dims[0])


def _dot(a, b, contract):
    return jax.lax.dot_general(a, b, ((contract[:1], contract[1:]), ((), ())), preferred_element_type=jnp.float32)


def _forward(contract, dims, sizes, lhs, rhs, out, sums):
    group = pl.program_id(2)
    rows = _rows_of_group(dims, sizes, pl.program_id(1), group)

    @pl.when(group == 0)
    def _():
        sums[...] = jnp.zeros_like(sums)

    product = _dot(lhs[...], rhs[0], (1, contract))
    sums[...] += jnp.where(rows, product, 0)

    @pl.when(group == pl.num_programs(2) - 1)
    def _():
        out[...] = sums[...].astype(out.dtype)


def _weights(dims, sizes, lhs, grad, out, sums):
    tile = pl.program_id(1)
    rows = _rows_of_group(dims, sizes, tile, pl.program_id(0))

    @pl.when(tile == 0)
    def _():
        sums[...] = jnp.zeros_like(sums)

    zero = functools.partial(jnp.where, rows)
    sums[...] += _dot(zero(lhs[...], 0), zero(grad[...], 0), (0, 0))

    @pl.when(tile == pl.num_programs(1) - 1)
    def _():
        out[0] = sums[...].astype(out.dtype)


def _call(name, dtype):
    """The Pallas call of an operation at any shape, and the shapes at which to lower it."""
    m, g, n = 2 * BM, 4, 2 * BN
    sizes = {"m": m, "k": K, "n": K if name == "tgmm" else n, "g": g}
    shapes = [tuple(sizes[d] for d in shape) for shape in SHAPES[name]]
    if name == "tgmm":
        grid = [("g",), ("ceildiv", "m", BM)]
        blocks = [pl.BlockSpec((BM, K), lambda i, j, *_: (j, 0)), pl.BlockSpec((BM, K), lambda i, j, *_: (j, 0))]
        out, scratch, kernel = pl.BlockSpec((1, K, K), lambda i, j, *_: (i, 0, 0)), (K, K), _weights
    else:
        grid = [("ceildiv", "n", BN), ("ceildiv", "m", BM), ("g",)]
        transposed = name == "ragged_dot"
        second = (
            pl.BlockSpec((1, BN, K), lambda i, j, g, *_: (g, i, 0))
            if transposed
            else pl.BlockSpec((1, K, BN), lambda i, j, g, *_: (g, 0, i))
        )
        blocks = [pl.BlockSpec((BM, K), lambda i, j, g, *_: (j, 0)), second]
        out, scratch = pl.BlockSpec((BM, BN), lambda i, j, g, *_: (j, i)), (BM, BN)
        kernel = functools.partial(_forward, 1 if transposed else 0)

    def call(bounds, dims, group_sizes, first, second):
        return pl.pallas_call(
            kernel,
            out_shape=jax.ShapeDtypeStruct(shapes[2], dtype),
            grid_spec=pltpu.PrefetchScalarGridSpec(
                num_scalar_prefetch=2,
                grid=tuple(bounds),
                in_specs=blocks,
                out_specs=out,
                scratch_shapes=[pltpu.VMEM(scratch, jnp.float32)],
            ),
        )(dims, group_sizes, first, second)

    def int32(*shape):
        return jax.ShapeDtypeStruct(shape, jnp.int32)

    arrays = [jax.ShapeDtypeStruct(shape, dtype) for shape in shapes[:2]]
    return call, grid, ([int32()] * len(grid), int32(3), int32(g), *arrays)


def module(name, dtype):
    """The bytes of a module, the entry that index.json has for it, and the configuration that Pallas would have used."""
    call, grid, arguments = _call(name, dtype)
    text = jax.jit(call).trace(*arguments).lower(lowering_platforms=("tpu",)).as_text()
    escaped = re.search(r'backend_config = "((?:[^"\\]|\\.)*)"', text)[1]
    config = json.loads(re.sub(r"\\([0-9A-F]{2})", lambda m: chr(int(m[1], 16)), escaped))
    body = base64.b64decode(config["custom_call_config"].pop("body"))
    keep = ("serialization_format", "needs_layout_passes")
    file = f"mosaic/{name}-{jnp.dtype(dtype)}.mlirbc"
    entry = {
        "file": file,
        "sha256": hashlib.sha256(body).hexdigest(),
        "bytes": len(body),
        "kernel": name,
        "dtypes": {"T": str(jnp.dtype(dtype))},
        "tile": {"bm": BM, "bn": BN},
        "demands": [["==", "k", K]] + ([["==", "n", K]] if name == "tgmm" else []),
        "operands": [
            *({"expr": list(bound) if len(bound) > 1 else bound[0]} for bound in grid),
            {"exprs": ["m", "n", "g"]},
            {"argument": "group_sizes"},
            {"argument": "lhs"},
            {"argument": "grad" if name == "tgmm" else "rhs"},
        ],
        "results": ["out"],
        "vmem_bytes": 1 << 20,
        "custom_call_config": {key: config["custom_call_config"][key] for key in keep},
        "backend_config": {},
        "generations": GENERATIONS,
    }
    return body, entry


def interface(name):
    """What index.json says about an operation, without its modules."""
    first, second, out = SHAPES[name]
    return {
        "doc": f"{name}, by Pallas",
        "dims": DIMS,
        "arguments": [
            {"name": "lhs", "dtype": "T", "shape": first},
            {"name": "grad" if name == "tgmm" else "rhs", "dtype": "T", "shape": second},
            {"name": "group_sizes", "dtype": "int32", "shape": ["g"]},
        ],
        "results": [{"name": "out", "dtype": "T", "shape": out}],
        "modules": [],
    }


def write(folder):
    """Writes index.json and the module files into a variant folder."""
    (folder / "mosaic").mkdir()
    index = {"schema": 1, "mosaic_version": 15, "ops": {}}
    for name in SHAPES:
        index["ops"][name] = interface(name)
        for dtype in (jnp.bfloat16, jnp.float32):
            body, entry = module(name, dtype)
            (folder / entry["file"]).write_bytes(body)
            index["ops"][name]["modules"].append(entry)
    (folder / "index.json").write_text(json.dumps(index, indent=2) + "\n")
