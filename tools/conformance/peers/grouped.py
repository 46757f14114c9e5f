"""Grouped products: megablox `gmm` and `tgmm`."""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
from jax.experimental.pallas.ops.tpu.megablox.gmm import gmm, tgmm

from peers import BF16, F32, Peer, noise, short

# tests/pallas/tpu_gmm_test.py.
TOLERANCE = {F32: (1e-5, 1e-3), BF16: (1e-2, 1e-3)}


def expected(lhs, rhs, sizes, transposed=False):
    """Row by row, in float32."""
    rhs = jnp.swapaxes(rhs, 1, 2) if transposed else rhs
    return jax.lax.ragged_dot(lhs.astype(F32), rhs.astype(F32), sizes, precision="highest")


def by_gmm(lhs, rhs, sizes, transposed):
    """The kernel, and what it should be."""
    got = gmm(lhs, rhs, sizes, preferred_element_type=F32, transpose_rhs=transposed)
    return got, expected(lhs, rhs, sizes, transposed)


def by_tgmm(lhs, rhs, sizes):
    """The kernel of the gradient by `rhs`, and what it should be."""
    return tgmm(lhs, rhs, sizes, preferred_element_type=F32), expected_transposed(lhs, rhs, np.asarray(sizes))


def expected_transposed(lhs, rhs, sizes):
    """lhs[:, group] @ rhs[group, :] of each group."""
    ends = np.cumsum(sizes)
    parts = [(lhs[:, e - s : e].astype(F32), rhs[e - s : e].astype(F32)) for s, e in zip(sizes, ends)]
    return jnp.stack([jnp.matmul(a, b, precision="highest") for a, b in parts])


def peers():
    # Tiles that hold borders of groups, and an empty group.
    sizes = jnp.array([10, 100, 0, 146], jnp.int32)
    for dtype in (F32, BF16):
        lhs, rhs = noise(1, (256, 192), dtype), noise(2, (4, 192, 256), dtype)
        for transposed in (False, True):
            right = jnp.swapaxes(rhs, 1, 2) if transposed else rhs
            run = partial(by_gmm, lhs, right, sizes, transposed)
            text = (partial(gmm, preferred_element_type=F32, transpose_rhs=transposed), (lhs, right, sizes))
            yield Peer(f"gmm-{short(dtype)}" + ("-transposed" if transposed else ""), run, *TOLERANCE[dtype], text=text)
        run = partial(by_tgmm, lhs.T, noise(3, (256, 128), dtype), sizes)
        yield Peer(f"tgmm-{short(dtype)}", run, *TOLERANCE[dtype])
