"""Small kernels, one a kind of case that JAX's own Pallas tests have: copies, semaphores, scoped memory, and devices."""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
from jax.experimental import pallas as pl
from jax.experimental.pallas import tpu as pltpu
from jax.sharding import PartitionSpec

from peers import F32, Peer, noise
from peers.ring import DEVICES

ANY, SMEM = pl.BlockSpec(memory_space=pl.ANY), pl.BlockSpec(memory_space=pltpu.SMEM)
DMA = pltpu.SemaphoreType.DMA


def gathered(table, x):
    """Rows by a table, all copies at once on one semaphore each; the last is from HBM to HBM."""
    count = table.shape[0]

    def kernel(table_ref, x_ref, o_ref, block_ref, arrived, left):
        copies = [
            pltpu.make_async_copy(x_ref.at[pl.ds(table_ref[i] * 8, 8)], block_ref.at[pl.ds(i * 8, 8)], arrived.at[i])
            for i in range(count)
        ]
        for copy in copies:
            copy.start()
        direct = pltpu.make_async_copy(x_ref.at[pl.ds(0, 8)], o_ref.at[pl.ds(count * 8, 8)], left)
        direct.start()
        for copy in reversed(copies):
            copy.wait()
        direct.wait()
        pltpu.sync_copy(block_ref, o_ref.at[pl.ds(0, count * 8)])

    got = pl.pallas_call(
        kernel,
        out_shape=jax.ShapeDtypeStruct((count * 8 + 8, 128), F32),
        in_specs=[SMEM, ANY],
        out_specs=ANY,
        scratch_shapes=[pltpu.VMEM((count * 8, 128), F32), DMA((count,)), DMA],
    )(table, x)
    return got, jnp.concatenate([x[8 * t : 8 * t + 8] for t in map(int, table)] + [x[:8]])


def scoped(x):
    """Memory and semaphores that live in a part of the kernel, in a loop."""

    def kernel(x_ref, o_ref):
        @pl.loop(0, x_ref.shape[0] // 8)
        def _(i):
            def body(buffer, arrived):
                rows = pl.ds(i * 8, 8)
                pltpu.async_copy(x_ref.at[rows], buffer, arrived).wait()
                buffer[...] = buffer[...] * (i + 1).astype(F32)
                pltpu.async_copy(buffer, o_ref.at[rows], arrived).wait()

            pl.run_scoped(body, pltpu.VMEM((8, 128), F32), DMA)

    call = pl.pallas_call(kernel, out_shape=jax.ShapeDtypeStruct(x.shape, F32), in_specs=[ANY], out_specs=ANY)
    return call(x), np.asarray(x) * np.repeat(np.arange(1, x.shape[0] // 8 + 1, dtype=np.float32), 8)[:, None]


def signalled(x):
    """A semaphore of one's own: raised in parts, lowered, and read."""

    def kernel(x_ref, o_ref, n_ref, semaphore):
        pl.semaphore_signal(semaphore, 3)
        pl.semaphore_signal(semaphore)
        pl.semaphore_wait(semaphore, 2)
        n_ref[0] = pl.semaphore_read(semaphore)
        pl.semaphore_wait(semaphore, 2)
        n_ref[1] = pl.semaphore_read(semaphore)
        o_ref[...] = x_ref[...]

    out = [jax.ShapeDtypeStruct(x.shape, F32), jax.ShapeDtypeStruct((2,), jnp.int32)]
    vmem = pl.BlockSpec(memory_space=pltpu.VMEM)
    call = pl.pallas_call(
        kernel, out_shape=out, in_specs=[vmem], out_specs=[vmem, SMEM], scratch_shapes=[pltpu.SemaphoreType.REGULAR]
    )
    return call(x), [x, np.array([2, 0])]


def rewritten(count):
    """An array in SMEM that two kernels of one core take turns to change in place."""

    def kernels():
        numbers = pl.empty_ref_like(pltpu.SMEM((count,), jnp.int32))
        on_core = pl.kernel(mesh=pltpu.TensorCoreMesh(axis_name="core", num_cores=1))

        def fill():
            @pl.loop(0, count)
            def _(i):
                numbers[i] = i * i

        def add():
            @pl.loop(1, count)
            def _(i):
                numbers[i] += numbers[i - 1]

        on_core(fill)()
        on_core(add)()
        return numbers[...]

    return jax.jit(kernels)(), np.cumsum(np.arange(count, dtype=np.int32) ** 2, dtype=np.int32)


def handed_on(x):
    """Two cores of one device: each adds to its half, and core 1 starts from what core 0 has made of its own."""

    def on_core(x_ref, o_ref, block_ref, row_ref, arrived, made):
        core = jax.lax.axis_index("core")
        rows = pl.ds(core * 8, 8)
        pltpu.async_copy(x_ref.at[rows], block_ref, arrived).wait()
        row_ref[...] = jnp.zeros_like(row_ref)

        @pl.when(core == 1)
        def _():
            pl.semaphore_wait(made, 1)
            pltpu.async_copy(o_ref.at[pl.ds(0, 8)], row_ref, arrived).wait()

        block_ref[...] = block_ref[...] + row_ref[...] + 1
        pltpu.async_copy(block_ref, o_ref.at[rows], arrived).wait()

        @pl.when(core == 0)
        def _():
            pl.semaphore_signal(made, 1, core_index=1)

    block = pltpu.VMEM((8, 128), F32)
    call = pl.kernel(
        on_core,
        out_type=jax.ShapeDtypeStruct(x.shape, F32),
        mesh=pltpu.TensorCoreMesh(axis_name="core", num_cores=2),
        scratch_types=[block, block, DMA, pltpu.SemaphoreType.REGULAR],
    )
    first = x[:8] + 1
    return jax.jit(call)(x), jnp.concatenate([first, x[8:] + first + 1])


def on_mesh(kernel, scratch, collective):
    """A kernel of one operand, on every device."""
    mesh = jax.sharding.Mesh(np.array(jax.devices()[:DEVICES]), ("x",))
    call = pl.pallas_call(
        kernel,
        out_shape=jax.ShapeDtypeStruct((8, 128), F32),
        scratch_shapes=scratch,
        compiler_params=pltpu.CompilerParams(collective_id=collective, has_side_effects=True),
    )
    spec = PartitionSpec("x")
    return jax.jit(jax.shard_map(call, mesh=mesh, in_specs=spec, out_specs=spec, check_vma=False))


def exchanged(x):
    """Each device and its neighbour in a pair swap what they have, after both are ready."""

    def kernel(x_ref, o_ref, sent, received):
        other = jax.lax.axis_index("x") ^ 1
        barrier = pltpu.get_barrier_semaphore()
        pl.semaphore_signal(barrier, 1, device_id={"x": other})
        pl.semaphore_wait(barrier, 1)
        swap = pltpu.make_async_remote_copy(x_ref, o_ref, sent, received, device_id={"x": other})
        swap.start()
        swap.wait()

    pairs = np.asarray(x).reshape(DEVICES // 2, 2, 8, 128)
    return on_mesh(kernel, [DMA, DMA], 1)(x), pairs[:, ::-1].reshape(x.shape)


def summed(x):
    """An all-reduce: what a device got last it adds and passes on, in two buffers whose owner says when they are free."""

    def kernel(x_ref, o_ref, buffers, sent, received, free):
        me = jax.lax.axis_index("x")
        right, left = jax.lax.rem(me + 1, DEVICES), jax.lax.rem(me + DEVICES - 1, DEVICES)
        barrier = pltpu.get_barrier_semaphore()
        for neighbour in (left, right):
            pl.semaphore_signal(barrier, 1, device_id={"x": neighbour})
        pl.semaphore_wait(barrier, 2)
        o_ref[...] = x_ref[...]
        buffers[0] = x_ref[...]
        for step in range(DEVICES - 1):
            here, there = step % 2, (step + 1) % 2
            if step:
                # The right neighbour has sent on what lies in the buffer that comes next.
                pl.semaphore_wait(free, 1)
            send = pltpu.make_async_remote_copy(
                buffers.at[here], buffers.at[there], sent.at[here], received.at[there], device_id={"x": right}
            )
            send.start()
            send.wait()
            o_ref[...] += buffers[there]
            if step < DEVICES - 2:
                pl.semaphore_signal(free, 1, device_id={"x": left})

    scratch = [pltpu.VMEM((2, 8, 128), F32), DMA((2,)), DMA((2,)), pltpu.SemaphoreType.REGULAR]
    total = np.asarray(x).reshape(DEVICES, 8, 128).sum(0)
    return on_mesh(kernel, scratch, 2)(x), np.tile(total, (DEVICES, 1))


def peers():
    x = noise(1, (DEVICES * 8, 128), F32)
    yield Peer("gathered", partial(gathered, jnp.array([5, 0, 3], jnp.int32), noise(2, (48, 128), F32)), 0, 0)
    yield Peer("scoped", partial(scoped, x), 0, 0)
    yield Peer("signalled", partial(signalled, x), 0, 0)
    yield Peer("rewritten", partial(rewritten, 12), 0, 0)
    # Sums of three in another order.
    yield Peer("handed-on", partial(handed_on, noise(3, (16, 128), F32)), 1e-6, 1e-6)
    yield Peer("exchanged", partial(exchanged, x), 0, 0)
    # Sums of four in another order.
    yield Peer("summed", partial(summed, x), 1e-5, 1e-5)
