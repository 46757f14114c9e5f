"""Dense products: JAX's example matmul, and the kernel of the Pallas documentation with a `pl.when` at both ends."""

from functools import partial

import jax
import jax.numpy as jnp
from jax.experimental import pallas as pl
from jax.experimental.pallas import tpu as pltpu
from jax.experimental.pallas.ops.tpu import matmul as shipped

from peers import BF16, F32, Peer, noise, short

# tests/pallas/tpu_ops_test.py and the Pallas matmul tutorial compare f32 sums at 1e-4 and bf16 results at 1e-2.
TOLERANCE = {F32: (1e-4, 1e-3), BF16: (1e-2, 1e-2), jnp.int8: (0, 0)}


def accumulate(x_ref, y_ref, o_ref, acc_ref):
    """The documentation's kernel: clear at the first step of K, store at the last."""

    @pl.when(pl.program_id(2) == 0)
    def _():
        acc_ref[...] = jnp.zeros_like(acc_ref)

    acc_ref[...] += jnp.dot(x_ref[...], y_ref[...], preferred_element_type=jnp.float32)

    @pl.when(pl.program_id(2) == pl.num_programs(2) - 1)
    def _():
        o_ref[...] = acc_ref[...].astype(o_ref.dtype)


def documented(x, y, block=128):
    """x @ y with square blocks."""
    (m, k), n = x.shape, y.shape[1]
    return pl.pallas_call(
        accumulate,
        out_shape=jax.ShapeDtypeStruct((m, n), x.dtype),
        grid=(m // block, n // block, k // block),
        in_specs=[pl.BlockSpec((block, block), lambda i, j, k: (i, k)), pl.BlockSpec((block, block), lambda i, j, k: (k, j))],
        out_specs=pl.BlockSpec((block, block), lambda i, j, k: (i, j)),
        scratch_shapes=[pltpu.VMEM((block, block), jnp.float32)],
        compiler_params=pltpu.CompilerParams(dimension_semantics=("parallel", "parallel", "arbitrary")),
    )(x, y)


def reference(x, y, dtype):
    """The product, summed in the widest type."""
    wide = jnp.int32 if jnp.issubdtype(x.dtype, jnp.integer) else jnp.float32
    return jnp.matmul(x.astype(wide), y.astype(wide), precision="highest").astype(dtype)


def both(kernel, x, y, dtype):
    """The kernel's product, and XLA's."""
    return kernel(x, y), reference(x, y, dtype)


def operands(dtype, m=256, k=256, n=384):
    """Two matrices."""
    scale = 8.0 if jnp.issubdtype(dtype, jnp.integer) else 1.0
    return noise(1, (m, k), dtype, scale), noise(2, (k, n), dtype, scale)


def peers():
    for dtype in (F32, BF16):
        x, y = operands(dtype)
        yield Peer(
            f"matmul-{short(dtype)}", partial(both, documented, x, y, dtype), *TOLERANCE[dtype], text=(documented, (x, y))
        )
    for dtype, out in ((F32, F32), (BF16, BF16), (jnp.int8, jnp.int32)):
        x, y = operands(dtype)
        kernel = partial(shipped.matmul, block_shape=(128, 128), block_k=128, out_dtype=out)
        yield Peer(f"jax-matmul-{short(dtype)}", partial(both, kernel, x, y, out), *TOLERANCE[dtype])
