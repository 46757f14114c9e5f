"""The ragged products on JAX arrays: the packaged module where the program is lowered for a TPU, the reference elsewhere."""

import functools

import jax
import jax.numpy as jnp

from . import _jax, _package, _reference_jax
from ._errors import NoModule, warn_once
from ._gradients import GRADIENTS, OUT

dtype = jnp.dtype


def widen(array, wanted):
    """`array` in the wider of its own dtype and `wanted`."""
    array = jnp.asarray(array)
    return array.astype(jnp.promote_types(array.dtype, wanted))


def cast(array, wanted):
    """`array` in the dtype `wanted`."""
    return array.astype(wanted)


def ragged_dot(lhs, rhs, group_sizes, transpose_rhs):
    """[m,k] by [g,n,k] (by [g,k,n] unless `transpose_rhs`), to [m,n]."""
    return _product("ragged_dot" if transpose_rhs else "ragged_dot_gkn", lhs, rhs, group_sizes)


def tgmm(lhs, grad, group_sizes):
    """[m,k] by [m,n], to [g,k,n]."""
    return _product("tgmm", lhs, grad, group_sizes)


def _product(name, first, second, group_sizes):
    arrays = [jnp.asarray(first), jnp.asarray(second), jnp.asarray(group_sizes).astype(jnp.int32)]
    _jax.bind(_package.index().op(name), arrays)
    return _differentiable(name)(*_jax.together(arrays))


@functools.cache
def _differentiable(name):
    """The product with its gradient."""
    product = jax.custom_vjp(_compiled(name))

    def forward(first, second, group_sizes):
        return product(first, second, group_sizes), (first, second, group_sizes)

    def backward(saved, out):
        arrays = {0: saved[0], 1: saved[1], OUT: out}
        gradients = [_differentiable(other)(arrays[a], arrays[b], saved[2]) for other, a, b in GRADIENTS[name]]
        return *gradients, None

    product.defvjp(forward, backward)
    return product


@functools.cache
def _compiled(name):
    """The product, compiled once for each set of shapes; JAX picks the branch when it knows the platform."""

    def product(*arrays):
        reference = _reference_jax.PRODUCTS[name]
        if any(0 in array.shape for array in arrays):
            return reference(*arrays)
        return jax.lax.platform_dependent(*arrays, tpu=functools.partial(_on_tpu, name), default=reference)

    product.__name__ = product.__qualname__ = name
    return jax.jit(product)


def _on_tpu(name, *arrays):
    try:
        return _jax.call(_package.index().op(name), arrays, _jax.generation())
    except NoModule as error:
        # JAX traces this branch for every platform; only on a TPU does it matter that there is no module.
        if jax.default_backend() == "tpu":
            warn_once(f"{error}. XLA's own ragged product is used instead, which may be slower.")
        return _reference_jax.xla(name, *arrays)
