"""Front ends: from a kernel's source to the module that the TPU compiler takes."""

import common


def rows(root):
    """One row a kernel: our time, JAX's time for the peer's kernel, and their ratio."""
    ours = {r["kernel"]: r for r in common.rust(root, "emit")}
    peers = {name: (label, f, args) for name, label, f, args in peer_kernels()}
    out = []
    for name, row in ours.items():
        label, f, args = peers[name]
        peer = trace_and_lower(f, args)
        ms = row["ms"]
        out.append({"kernel": name, "ours": ms, "bytes": row["bytes"], "peer": peer, "ratio": peer / ms, "peer kernel": label})
    return out


def trace_and_lower(f, args):
    """Milliseconds that a warm JAX takes to trace and lower `f` for a TPU, with nothing cached for it."""
    import jax
    from jax.experimental import topologies

    device = topologies.get_topology_desc(topology_name="v6e:2x2", platform="tpu").devices[0]
    place = jax.sharding.SingleDeviceSharding(device)
    args = [jax.ShapeDtypeStruct(a.shape, a.dtype, sharding=place) for a in args]
    # Kernels that ask which TPU they are traced for are told by an abstract mesh.
    kind = jax.sharding.AbstractDevice(device.device_kind, 1, "tpu")
    mesh = jax.sharding.AbstractMesh((1,), ("x",), abstract_device=kind)
    with jax.sharding.use_abstract_mesh(mesh):
        return common.milliseconds(lambda: jax.jit(f).trace(*args).lower(lowering_platforms=("tpu",)), before=jax.clear_caches)


def peer_kernels():
    """Name of ours, name of the peer's, function, arguments."""
    import jax
    import jax.numpy as jnp
    from jax.experimental import pallas as pl
    from jax.experimental.pallas import tpu as pltpu
    from jax.experimental.pallas.ops.tpu import flash_attention as fa
    from tokamax._src.ops.ragged_dot import base
    from tokamax._src.ops.ragged_dot import pallas_mosaic_tpu_v2 as v2

    def array(shape, dtype=jnp.bfloat16):
        return jax.ShapeDtypeStruct(shape, dtype)

    def matmul_body(x, y, o, acc):
        @pl.when(pl.program_id(2) == 0)
        def _():
            acc[...] = jnp.zeros_like(acc)

        acc[...] += jnp.dot(x[...], y[...], preferred_element_type=jnp.float32)

        @pl.when(pl.program_id(2) == pl.num_programs(2) - 1)
        def _():
            o[...] = acc[...].astype(o.dtype)

    def matmul(x, y):
        (m, k), n, b = x.shape, y.shape[1], 512
        return pl.pallas_call(
            matmul_body,
            out_shape=array((m, n)),
            grid=(m // b, n // b, k // b),
            in_specs=[pl.BlockSpec((b, b), lambda i, j, k: (i, k)), pl.BlockSpec((b, b), lambda i, j, k: (k, j))],
            out_specs=pl.BlockSpec((b, b), lambda i, j, k: (i, j)),
            scratch_shapes=[pltpu.VMEM((b, b), jnp.float32)],
        )(x, y)

    op = v2.PallasMosaicTpuV2RaggedDot(bypass_device_check=True)

    def ragged(lhs, rhs, sizes):
        numbers = base.DEFAULT_RAGGED_DOT_DIM_NUMS
        return op(
            lhs,
            rhs,
            group_sizes=sizes,
            ragged_dot_dimension_numbers=numbers,
            precision=None,
            preferred_element_type=jnp.bfloat16,
        )

    def flash(q, k, v):
        return fa.flash_attention(q, k, v, causal=True)

    head = array((1, 32, 4096, 128))
    return [
        ("matmul", "Pallas matmul, 512^3 tiles", matmul, [array((4096, 4096))] * 2),
        (
            "ragged_dot",
            "Tokamax ragged_dot v2",
            ragged,
            [array((512, 2048)), array((128, 2048, 768)), array((128,), jnp.int32)],
        ),
        ("flash_attention", "JAX flash_attention", flash, [head] * 3),
    ]
