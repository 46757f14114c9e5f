"""Small kernels, one a kind of case that JAX's own Pallas tests have: control flow, windows, aliases, scratch, and SMEM."""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
from jax.experimental import pallas as pl
from jax.experimental.pallas import tpu as pltpu

from peers import F32, Peer, noise

I32 = jnp.int32
SMEM, VMEM = pl.BlockSpec(memory_space=pltpu.SMEM), pl.BlockSpec(memory_space=pltpu.VMEM)


def like(*arrays):
    """The shapes of results."""
    return [jax.ShapeDtypeStruct(a.shape, a.dtype) for a in arrays]


def loops(count_ref, x_ref, o_ref, n_ref):
    """A counted loop that carries a vector, a loop with a condition, a choice of three, and scalars in SMEM."""

    def add(i, total):
        return total + x_ref[pl.ds(i, 1), :] * (i + 1).astype(F32)

    total = jax.lax.fori_loop(0, count_ref[0], add, jnp.zeros((1, 128), F32))
    halvings, _ = jax.lax.while_loop(lambda s: s[1] > 1, lambda s: (s[0] + 1, s[1] // 2), (0, count_ref[1]))
    branches = [lambda t: t, lambda t: -t, lambda t: t * t]
    o_ref[...] = jnp.broadcast_to(jax.lax.switch(halvings % 3, branches, total), o_ref.shape)

    @pl.loop(0, 4)
    def _(i):
        n_ref[i] = halvings * (i + 1)

    @pl.when(halvings > 100)
    def _():
        n_ref[0] = -1


def looped(x, count, start):
    """The kernel of `loops`, and NumPy's."""
    out = [jax.ShapeDtypeStruct((8, 128), F32), jax.ShapeDtypeStruct((4,), I32)]
    call = pl.pallas_call(loops, out_shape=out, in_specs=[SMEM, VMEM], out_specs=[VMEM, SMEM])
    total = sum(np.asarray(x)[i] * np.float32(i + 1) for i in range(count))
    halvings = start.bit_length() - 1
    total = [total, -total, total * total][halvings % 3]
    return call(jnp.array([count, start], I32), x), [np.tile(total, (8, 1)), np.arange(1, 5) * halvings]


def edges(x):
    """Blocks that stick out at both edges, and a block axis that the kernel does not see."""
    rows, columns = x.shape[1:]

    def kernel(x_ref, o_ref):
        o_ref[...] = x_ref[...] * 2 + 1

    block = pl.BlockSpec((None, 64, 128), lambda b, i, j: (b, i, j))
    grid = (x.shape[0], pl.cdiv(rows, 64), pl.cdiv(columns, 128))
    return pl.pallas_call(kernel, out_shape=like(x), grid=grid, in_specs=[block], out_specs=[block])(x), [x * 2 + 1]


def revisited(x):
    """An output block that stays for all steps of the inner axis, and one that goes backwards."""

    def kernel(x_ref, sum_ref, flipped_ref):
        @pl.when(pl.program_id(1) == 0)
        def _():
            sum_ref[...] = jnp.zeros_like(sum_ref)

        sum_ref[...] += x_ref[...]
        flipped_ref[...] = x_ref[...]

    steps = (x.shape[0] // 8, x.shape[1] // 128)
    out = [jax.ShapeDtypeStruct((x.shape[0], 128), F32), *like(x)]
    got = pl.pallas_call(
        kernel,
        out_shape=out,
        grid=steps,
        in_specs=[pl.BlockSpec((8, 128), lambda i, j: (i, j))],
        out_specs=[pl.BlockSpec((8, 128), lambda i, j: (i, 0)), pl.BlockSpec((8, 128), lambda i, j: (i, steps[1] - 1 - j))],
    )(x)
    blocks = np.asarray(x).reshape(x.shape[0], steps[1], 128)
    return got, [blocks.sum(1), blocks[:, ::-1].reshape(x.shape)]


def chosen(x, table, count):
    """Blocks that a prefetched table names, in a grid whose length only the call knows; what no step writes is undefined."""

    def kernel(table_ref, x_ref, o_ref):
        o_ref[...] = x_ref[...] + table_ref[pl.program_id(0)].astype(F32)

    spec = pltpu.PrefetchScalarGridSpec(
        num_scalar_prefetch=1,
        grid=(count,),
        in_specs=[pl.BlockSpec((8, 128), lambda i, table: (table[i], 0))],
        out_specs=pl.BlockSpec((8, 128), lambda i, table: (i, 0)),
    )
    got = pl.pallas_call(kernel, grid_spec=spec, out_shape=jax.ShapeDtypeStruct((8 * len(table), 128), F32))(table, x)
    want = jnp.concatenate([x[8 * t : 8 * t + 8] + t for t in map(int, table)])
    return got[: 8 * int(count)], want[: 8 * int(count)]


def overlapping(x):
    """Windows that begin at any row: each block is the mean of a row and the seven after it."""

    def kernel(x_ref, o_ref):
        o_ref[...] = jnp.broadcast_to(jnp.sum(x_ref[...], 0, keepdims=True) * 0.125, o_ref.shape)

    got = pl.pallas_call(
        kernel,
        out_shape=jax.ShapeDtypeStruct((32, 128), F32),
        grid=(4,),
        in_specs=[pl.BlockSpec((pl.Element(8), pl.Element(128)), lambda i: (i * 8 + 8, 0))],
        out_specs=pl.BlockSpec((8, 128), lambda i: (i, 0)),
    )(x)
    return got, np.repeat(np.asarray(x)[8:40].reshape(4, 8, 128).sum(1) * 0.125, 8, 0)


def in_place(x):
    """An output that starts as the operand: the kernel writes every other block."""

    def kernel(x_ref, o_ref):
        o_ref[...] = x_ref[...] * 10

    block = pl.BlockSpec((8, 128), lambda i: (2 * i, 0))
    call = pl.pallas_call(
        kernel, out_shape=like(x), grid=(x.shape[0] // 16,), in_specs=[block], out_specs=[block], input_output_aliases={0: 0}
    )
    want = np.array(x).reshape(-1, 2, 8, 128)
    want[:, 0] *= 10
    return call(x), [want.reshape(x.shape)]


def masked(x, row):
    """A store at a row of which only the lanes that its mask keeps lie inside."""

    def kernel(row_ref, x_ref, o_ref, scratch_ref):
        scratch_ref[...] = jnp.zeros_like(scratch_ref)
        rows = jax.lax.broadcasted_iota(jnp.int32, x_ref.shape, 0)
        start = pl.multiple_of(row_ref[0], 8)
        pltpu.store(scratch_ref.at[pl.ds(start, x_ref.shape[0])], x_ref[...], mask=rows + start < scratch_ref.shape[0])
        o_ref[...] = scratch_ref[...]

    got = pl.pallas_call(
        kernel,
        out_shape=jax.ShapeDtypeStruct((24, 128), F32),
        in_specs=[SMEM, VMEM],
        scratch_shapes=[pltpu.VMEM((24, 128), F32)],
        # The plain interpreter moves a store that sticks out.
        interpret=pltpu.InterpretParams(),
    )(jnp.array([row], I32), x)
    want = np.zeros((24, 128), np.float32)
    want[row:] = x[: 24 - row]
    return got, [want]


def reread(x):
    """An output that starts as the operand, whose blocks are read after others were made of them."""

    def kernel(x_ref, o_ref):
        o_ref[...] = x_ref[...] * 2 + 1

    n = x.shape[0] // 8
    call = pl.pallas_call(
        kernel,
        out_shape=like(x),
        grid=(n, n),
        in_specs=[pl.BlockSpec((8, 128), lambda i, j: (i, j))],
        out_specs=[pl.BlockSpec((8, 128), lambda i, j: (j, i))],
        input_output_aliases={0: 0},
        # The plain interpreter gives operand and output an array each.
        interpret=pltpu.InterpretParams(),
    )
    want = np.array(x).reshape(n, 8, n, 128)
    for i in range(n):
        for j in range(n):
            want[j, :, i] = want[i, :, j] * 2 + 1
    return call(x), [want.reshape(x.shape)]


def carried(x):
    """Scratch that lives from step to step: a running sum in VMEM, and a counter in SMEM."""

    def kernel(x_ref, o_ref, n_ref, sum_ref, counter_ref):
        @pl.when(pl.program_id(0) == 0)
        def _():
            sum_ref[...] = jnp.zeros_like(sum_ref)
            counter_ref[0] = 0

        sum_ref[...] += x_ref[...]
        counter_ref[0] += pl.program_id(0)
        o_ref[...] = sum_ref[...]
        n_ref[pl.program_id(0)] = counter_ref[0]

    steps = x.shape[0] // 8
    block = pl.BlockSpec((8, 128), lambda i: (i, 0))
    got = pl.pallas_call(
        kernel,
        out_shape=[*like(x), jax.ShapeDtypeStruct((steps,), I32)],
        grid=(steps,),
        in_specs=[block],
        out_specs=[block, SMEM],
        scratch_shapes=[pltpu.VMEM((8, 128), F32), pltpu.SMEM((1,), I32)],
    )(x)
    return got, [np.asarray(x).reshape(steps, 8, 128).cumsum(0).reshape(x.shape), np.arange(steps).cumsum()]


def booleans(x, keep):
    """Booleans are i32 in memory, and one bit in a vector."""

    def kernel(x_ref, keep_ref, o_ref, flag_ref):
        o_ref[...] = jnp.where(keep_ref[...], x_ref[...], -1.0)
        flag_ref[...] = keep_ref[...] & (x_ref[...] > 0)

    out = [*like(x), jax.ShapeDtypeStruct(x.shape, jnp.bool_)]
    return pl.pallas_call(kernel, out_shape=out)(x, keep), [jnp.where(keep, x, -1.0), keep & (x > 0)]


def peers():
    x = noise(1, (48, 128), F32)
    # tests/pallas/pallas_test.py compares sums of f32 at 1e-5; all else moves numbers, and is exact.
    yield Peer("loops", partial(looped, x, 11, 37), 1e-5, 1e-5)
    yield Peer("edges", partial(edges, noise(2, (2, 100, 200), F32)), 0, 0)
    yield Peer("revisited", partial(revisited, noise(3, (16, 384), F32)), 1e-5, 1e-5)
    yield Peer("chosen", partial(chosen, x, jnp.array([4, 0, 5, 5, 2], I32), jnp.int32(4)), 0, 0)
    yield Peer("overlapping", partial(overlapping, x), 1e-5, 1e-5)
    yield Peer("in-place", partial(in_place, x), 0, 0)
    yield Peer("masked", partial(masked, noise(5, (16, 128), F32), 16), 0, 0)
    yield Peer("reread", partial(reread, noise(6, (24, 384), F32)), 0, 0)
    yield Peer("carried", partial(carried, x), 1e-5, 1e-5)
    yield Peer("booleans", partial(booleans, x, noise(4, (48, 128), F32) > 0), 0, 0)
