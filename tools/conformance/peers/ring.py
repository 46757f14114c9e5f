"""A ring all-gather over four devices: each sends what it got last to its right neighbour, after a barrier."""

import jax
import numpy as np
from jax.experimental import pallas as pl
from jax.experimental.pallas import tpu as pltpu
from jax.sharding import PartitionSpec

from peers import F32, Peer, noise

DEVICES = 4


def gather(x_ref, o_ref, copied, sent, received):
    """Three hops; hop k moves the shard that started k devices to the left."""
    me = jax.lax.axis_index("x")
    right, left = jax.lax.rem(me + 1, DEVICES), jax.lax.rem(me + DEVICES - 1, DEVICES)
    barrier = pltpu.get_barrier_semaphore()
    for neighbour in (left, right):
        pl.semaphore_signal(barrier, 1, device_id={"x": neighbour})
    pl.semaphore_wait(barrier, 2)
    own = pltpu.make_async_copy(x_ref, o_ref.at[me], copied)
    own.start()
    own.wait()
    for hop in range(DEVICES - 1):
        shard = o_ref.at[jax.lax.rem(me + DEVICES - hop, DEVICES)]
        send = pltpu.make_async_remote_copy(shard, shard, sent.at[hop], received.at[hop], device_id={"x": right})
        send.start()
        send.wait()


def all_gather():
    """The gather on a mesh of the simulated devices."""
    mesh = jax.sharding.Mesh(np.array(jax.devices()[:DEVICES]), ("x",))
    call = pl.pallas_call(
        gather,
        out_shape=jax.ShapeDtypeStruct((DEVICES, 8, 128), F32),
        in_specs=[pl.BlockSpec(memory_space=pl.ANY)],
        out_specs=pl.BlockSpec(memory_space=pl.ANY),
        scratch_shapes=[
            pltpu.SemaphoreType.DMA,
            pltpu.SemaphoreType.DMA((DEVICES - 1,)),
            pltpu.SemaphoreType.DMA((DEVICES - 1,)),
        ],
        compiler_params=pltpu.CompilerParams(collective_id=0, has_side_effects=True),
    )
    spec = PartitionSpec("x")
    return jax.jit(jax.shard_map(call, mesh=mesh, in_specs=spec, out_specs=spec, check_vma=False))


def peers():
    x = noise(1, (DEVICES * 8, 128), F32)
    # Every device ends with the shards of all, in order.
    want = np.tile(np.asarray(x).reshape(DEVICES, 8, 128), (DEVICES, 1, 1))
    yield Peer("ring-all-gather", lambda: (all_gather()(x), want), 0, 0, text=(lambda x: all_gather()(x), (x,)))
