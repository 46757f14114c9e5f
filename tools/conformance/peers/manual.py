"""Kernels that move their data themselves: copies into two buffers by hand, and `emit_pipeline`."""

from functools import partial

import jax
import jax.numpy as jnp
from jax.experimental import pallas as pl
from jax.experimental.pallas import tpu as pltpu

from peers import BF16, F32, Peer, noise, short

ANY = pl.BlockSpec(memory_space=pl.ANY)
ROWS = 64


def double_buffered(x_hbm, o_hbm, buffers, out, arrived, left):
    """Fetches a block while the one before is computed; the next write waits for the last one."""
    steps = x_hbm.shape[0] // ROWS

    def fetch(i, slot):
        return pltpu.make_async_copy(x_hbm.at[pl.ds(i * ROWS, ROWS)], buffers.at[slot], arrived.at[slot])

    def write(i):
        return pltpu.make_async_copy(out, o_hbm.at[pl.ds(i * ROWS, ROWS)], left)

    fetch(0, 0).start()

    def step(i, _):
        slot = jax.lax.rem(i, 2)

        @pl.when(i + 1 < steps)
        def _():
            fetch(i + 1, 1 - slot).start()

        fetch(i, slot).wait()

        @pl.when(i > 0)
        def _():
            write(i - 1).wait()

        out[...] = buffers[slot] * 2 + 1
        write(i).start()

    jax.lax.fori_loop(0, steps, step, None)
    write(steps - 1).wait()


def copied(x):
    """2 x + 1 by hand-written copies."""
    return pl.pallas_call(
        double_buffered,
        out_shape=jax.ShapeDtypeStruct(x.shape, x.dtype),
        in_specs=[ANY],
        out_specs=ANY,
        scratch_shapes=[
            pltpu.VMEM((2, ROWS, x.shape[1]), x.dtype),
            pltpu.VMEM((ROWS, x.shape[1]), x.dtype),
            pltpu.SemaphoreType.DMA((2,)),
            pltpu.SemaphoreType.DMA,
        ],
    )(x)


def pipelined(x, y):
    """x @ y through a pipeline in the kernel, which accumulates over K in its output block."""
    (m, k), n = x.shape, y.shape[1]
    steps = (m // 128, n // 128, k // 128)

    def body(x_ref, y_ref, o_ref):
        @pl.when(pl.program_id(2) == 0)
        def _():
            o_ref[...] = jnp.zeros_like(o_ref)

        o_ref[...] += jnp.dot(x_ref[...], y_ref[...], preferred_element_type=jnp.float32)

    def kernel(x_hbm, y_hbm, o_hbm):
        pltpu.emit_pipeline(
            body,
            grid=steps,
            in_specs=[pl.BlockSpec((128, 128), lambda i, j, k: (i, k)), pl.BlockSpec((128, 128), lambda i, j, k: (k, j))],
            out_specs=[pl.BlockSpec((128, 128), lambda i, j, k: (i, j))],
        )(x_hbm, y_hbm, o_hbm)

    return pl.pallas_call(kernel, out_shape=jax.ShapeDtypeStruct((m, n), F32), in_specs=[ANY, ANY], out_specs=ANY)(x, y)


def product(x, y):
    """The pipeline's product, and XLA's."""
    return pipelined(x, y), jnp.matmul(x.astype(F32), y.astype(F32), precision="highest")


def peers():
    for dtype in (F32, BF16):
        x = noise(1, (256, 256), dtype)
        yield Peer(f"double-buffered-{short(dtype)}", lambda x=x: (copied(x), x * 2 + 1), 0, 0)
        # tests/pallas/tpu_pallas_pipeline_test.py compares products at 1e-5 relative; sums of 256 terms need an absolute part.
        yield Peer(f"emit-pipeline-{short(dtype)}", partial(product, x, noise(2, (256, 384), dtype)), 1e-5, 1e-3)
