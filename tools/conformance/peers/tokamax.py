"""Tokamax's `ragged_dot` by both of its Mosaic implementations."""

from functools import partial

import jax.numpy as jnp
import numpy as np
import tokamax

from peers import BF16, F32, Peer, noise, short
from peers.grouped import expected

# Tokamax's own tests of ragged_dot: 1e-2 and 5e-3 for bf16; JAX's grouped matmul for f32.
TOLERANCE = {F32: (1e-5, 1e-3), BF16: (1e-2, 5e-3)}


def from_operands(sizes, offset, lhs, rhs):
    """The results of the second kernel, which no interpreter runs: its copies reshape what they copy."""
    assert int(offset[0]) == 0
    ends = np.cumsum(sizes)
    out = np.zeros((lhs.shape[0], rhs.shape[2]), np.float32)
    for group, (size, end) in enumerate(zip(sizes, ends)):
        rows = slice(end - size, end)
        out[rows] = np.asarray(lhs[rows], np.float32) @ np.asarray(rhs[group], np.float32)
    return [out]


def both(implementation, lhs, rhs, sizes):
    """The kernel, and what it should be."""
    got = tokamax.ragged_dot(
        lhs, rhs, sizes, preferred_element_type=F32, implementation=implementation, bypass_device_check=True
    )
    return got, expected(lhs, rhs, sizes)


def peers():
    sizes = jnp.array([10, 100, 0, 146], jnp.int32)
    for dtype in (F32, BF16):
        lhs, rhs = noise(1, (256, 256), dtype), noise(2, (4, 256, 384), dtype)
        for name, implementation, reference in (("v1", "mosaic_tpu", None), ("v2", "mosaic_tpu_v2", from_operands)):
            run = partial(both, implementation, lhs, rhs, sizes)
            yield Peer(f"tokamax-ragged-dot-{name}-{short(dtype)}", run, *TOLERANCE[dtype], reference)
