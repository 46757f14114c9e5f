"""What a model person does: load the published kernel by name, and call it. Prints one line of JSON."""

import json
import os
import sys

os.environ.setdefault("JAX_PLATFORMS", "cpu")

import jax
import jax.numpy as jnp
import kernels
import numpy as np
from jax.experimental import topologies

repo = sys.argv[1]
kernel = kernels.get_kernel(repo, version=1, trust_remote_code=[repo])

# 96 rows over 8 groups, two of them empty; the last rows belong to no group.
m, k, n, sizes = 96, 256, 384, np.array([20, 0, 7, 16, 1, 30, 0, 12], np.int32)
rng = np.random.default_rng(0)
lhs = jnp.asarray(rng.standard_normal((m, k)), jnp.bfloat16)
rhs = jnp.asarray(rng.standard_normal((len(sizes), n, k)), jnp.bfloat16)
got = np.asarray(kernel.ragged_dot(lhs, rhs, jnp.asarray(sizes)), np.float64)

want = np.zeros((m, n))
start = 0
for group, size in enumerate(sizes):
    rows = slice(start, start + size)
    want[rows] = np.asarray(lhs[rows], np.float64) @ np.asarray(rhs[group], np.float64).T
    start += size
error = float(np.abs(got - want).max() / np.abs(want).max())

compiled = []
if not os.environ.get("HF_HUB_OFFLINE"):
    for name, topology in (("v5e", "v5e:2x2"), ("v6e", "v6e:2x2"), ("v7x", "tpu7x:2x2x1")):
        device = topologies.get_topology_desc(topology_name=topology, platform="tpu").devices[0]
        place = jax.sharding.SingleDeviceSharding(device)
        arguments = [jax.ShapeDtypeStruct(a.shape, a.dtype, sharding=place) for a in (lhs, rhs, jnp.asarray(sizes))]
        lowered = jax.jit(kernel.ragged_dot).trace(*arguments).lower(lowering_platforms=("tpu",))
        assert "tpu_custom_call" in lowered.as_text(), "the TPU program does not call the packaged module"
        lowered.compile()
        compiled.append(name)

print(json.dumps({"error": error, "compiled": compiled}))
sys.exit(error > 4e-3)
