"""JAX's counter-based generators as kernels; bits are compared exactly."""

import jax
import jax.numpy as jnp
import numpy as np
from jax.experimental.pallas.ops.tpu.random import philox, threefry

from peers import Peer

SHAPE = (64, 384)


def threefry_bits():
    """JAX's default generator says the same bits."""
    key = jnp.array([7, 11], jnp.uint32)
    with jax.threefry_partitionable(True):
        want = jax.random.bits(jax.random.wrap_key_data(key, impl="threefry2x32"), SHAPE, jnp.uint32)
    return threefry.plthreefry_random_bits(key, 32, SHAPE), want


def philox_bits():
    """Philox 4x32 with ten rounds, as its authors define it, of the counters 0, 1, 2..."""
    key = jnp.array([7, 11], jnp.uint32)
    return philox.philox_random_bits(key, 32, SHAPE), philox_numpy(np.asarray(key), SHAPE)


def philox_numpy(key, shape):
    """The first word of each block xor the second; the counter is in the second word."""
    count = np.arange(np.prod(shape), dtype=np.uint64)
    hi0, lo0, hi1, lo1 = np.zeros_like(count), count, np.zeros_like(count), np.zeros_like(count)
    k0, k1 = (np.uint64(k) for k in key)
    mask, shift = np.uint64(0xFFFFFFFF), np.uint64(32)
    for _ in range(10):
        a, b = np.uint64(philox.MUL_A) * hi1, np.uint64(philox.MUL_B) * hi0
        hi0, lo0, hi1, lo1 = (a >> shift) ^ lo0 ^ k0, a & mask, (b >> shift) ^ lo1 ^ k1, b & mask
        k0, k1 = (k0 + np.uint64(philox.K_HI_32)) & mask, (k1 + np.uint64(philox.K_LO_32)) & mask
    return (hi0 ^ lo0).astype(np.uint32).reshape(shape)


def peers():
    yield Peer("threefry", threefry_bits, 0, 0)
    yield Peer("philox", philox_bits, 0, 0)
