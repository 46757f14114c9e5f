"""Kernels that other people wrote, with inputs small enough for a test, at the tolerances that their authors test them with."""

import dataclasses
from collections.abc import Callable

import jax.numpy as jnp
import numpy as np

F32, BF16 = jnp.float32, jnp.bfloat16


@dataclasses.dataclass
class Peer:
    """A function to run under capture. It returns (what it computed, what its reference says), both pytrees."""

    name: str
    run: Callable
    rtol: float
    atol: float
    # Computes the kernel's results from its operands, if none of JAX's interpreters can run it.
    reference: Callable | None = None
    # A function and its operands whose StableHLO text has the same calls, in the same order.
    text: tuple | None = None


def noise(seed, shape, dtype, scale=1.0):
    """Reproducible normal numbers."""
    return jnp.asarray(scale * np.random.default_rng(seed).standard_normal(shape), dtype)


def short(dtype):
    """`f32` or `bf16`."""
    return {F32: "f32", BF16: "bf16"}.get(dtype, jnp.dtype(dtype).name)
