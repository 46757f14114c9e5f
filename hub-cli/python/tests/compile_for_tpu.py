"""Compiles a package's programs for a TPU topology, with no TPU: `compile_for_tpu.py FOLDER TOPOLOGY`.

It is a program of its own because libtpu may end the process that it is loaded in. For each case it prints a line of JSON:
how many custom calls the compiled program has, and how many it should have.
"""

import json
import pathlib
import sys

import jax
import jax.numpy as jnp
import numpy as np
import variant
from jax.experimental import topologies
from jax.sharding import Mesh, NamedSharding, SingleDeviceSharding
from jax.sharding import PartitionSpec as P

WEIGHTS = [(2048, 1536), (768, 2048)] if variant.BUILT else [(256, 256)]  # K, N


def cases(package, devices):
    """Yields name, function, arguments and the number of custom calls."""
    one = SingleDeviceSharding(devices[0])

    def array(*shape, dtype=jnp.bfloat16, sharding=one):
        return jax.ShapeDtypeStruct(shape, dtype, sharding=sharding)

    def loss(lhs, rhs, sizes):
        return (package.ragged_dot(lhs, rhs, sizes).astype(jnp.float32) ** 2).sum()

    gradient = jax.grad(loss, (0, 1))
    for k, n in WEIGHTS:
        for dtype in (jnp.bfloat16, jnp.float32):
            for m, g in ((1, 8), (1000, 8), (512, 128)):
                sizes, lhs, rhs = array(g, dtype=jnp.int32), array(m, k, dtype=dtype), array(g, n, k, dtype=dtype)
                yield f"ragged_dot m={m} k={k} n={n} g={g} {jnp.dtype(dtype)}", package.ragged_dot, (lhs, rhs, sizes), 1
            swapped = array(g, k, n, dtype=dtype)
            yield f"gmm k={k} n={n} {jnp.dtype(dtype)}", package.gmm, (lhs, swapped, sizes), 1
            yield f"tgmm k={k} n={n} {jnp.dtype(dtype)}", package.tgmm, (lhs, array(m, n, dtype=dtype), sizes), 1
        yield f"gradient k={k} n={n}", gradient, (array(512, k), array(8, n, k), array(8, dtype=jnp.int32)), 3

    mesh = Mesh(np.array(devices[:4]), ("x",))
    split, whole = NamedSharding(mesh, P("x")), NamedSharding(mesh, P())
    k, n = WEIGHTS[0]
    sharded = jax.shard_map(
        lambda lhs, rhs, sizes: package.ragged_dot(lhs, rhs, sizes[0]),
        mesh=mesh,
        in_specs=(P("x"), P(), P("x")),
        out_specs=P("x"),
    )
    arguments = array(2048, k, sharding=split), array(8, n, k, sharding=whole), array(4, 8, dtype=jnp.int32, sharding=split)
    yield "shard_map", sharded, arguments, 1


def main():
    package = variant.load(pathlib.Path(sys.argv[1]))
    devices = topologies.get_topology_desc(topology_name=sys.argv[2], platform="tpu").devices
    for name, function, arguments, expected in cases(package, devices):
        program = jax.jit(function).trace(*arguments).lower(lowering_platforms=("tpu",)).compile().as_text()
        found = program.count('custom_call_target="tpu_custom_call"')
        print(json.dumps({"case": name, "topology": sys.argv[2], "calls": found, "expected": expected}), flush=True)


if __name__ == "__main__":
    main()
