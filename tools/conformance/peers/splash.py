"""JAX's splash attention: forward, and backward as two kernels and as one, under causal, local and segment masks."""

from functools import partial

import jax
import jax.numpy as jnp
from jax.experimental.pallas.ops.tpu.splash_attention import splash_attention_kernel as splash
from jax.experimental.pallas.ops.tpu.splash_attention import splash_attention_mask as masks

from peers import BF16, F32, Peer, noise, short

# tests/pallas/tpu_splash_attention_kernel_test.py: 3e-3 forward, 2e-2 and 3e-2 for gradients with bf16 values of 8 bits.
FORWARD = {F32: (3e-3, 3e-3), BF16: (1e-2, 1e-2)}
BACKWARD = {F32: (3e-2, 2e-2), BF16: (5e-2, 5e-2)}
LENGTH = 256


def blocks(fused):
    """Blocks of 128, which make several steps along each axis."""
    dq = {} if fused else {"block_q_dq": 128, "block_kv_dq": 128}
    return splash.BlockSizes(
        block_q=128,
        block_kv=128,
        block_kv_compute=128,
        block_q_dkv=128,
        block_kv_dkv=128,
        block_kv_dkv_compute=128,
        use_fused_bwd_kernel=fused,
        **dq,
    )


def operands(dtype, heads=2, kv_heads=2):
    """q, scaled as attention wants it, k and v."""
    q = noise(1, (heads, LENGTH, 128), dtype, 0.09)
    return q, noise(2, (kv_heads, LENGTH, 128), dtype), noise(3, (kv_heads, LENGTH, 128), dtype)


def mask(kind, heads=2):
    """The same mask for each head."""
    shape = (LENGTH, LENGTH)
    one = masks.CausalMask(shape) if kind == "causal" else masks.LocalMask(shape, (60, 30), 0)
    return masks.MultiHeadMask([one] * heads)


def run(args, kind, cap=None, segment_ids=None, backward=None):
    """The kernel, or its gradients if `backward` says how, and the plain form's."""
    which = mask(kind, args[0].shape[0])
    kernel = splash.make_splash_mha(
        which, head_shards=1, q_seq_shards=1, block_sizes=blocks(backward == "fused"), attn_logits_soft_cap=cap
    )
    plain = splash.make_masked_mha_reference(which)
    wide = [x.astype(F32) for x in args]
    run_plain = partial(plain, segment_ids=segment_ids, attn_logits_soft_cap=cap)
    run_kernel = partial(kernel, segment_ids=segment_ids)
    if backward:
        run_kernel, run_plain = gradients(run_kernel), gradients(run_plain)
    got = run_kernel(*args)
    with jax.default_matmul_precision("highest"):
        return got, run_plain(*wide)


def gradients(f):
    """Gradients of a weighted sum of f(q, k, v)."""
    return jax.grad(lambda q, k, v: (f(q, k, v).astype(F32) * noise(4, q.shape, F32)).sum(), (0, 1, 2))


def peers():
    for dtype in (F32, BF16):
        args = operands(dtype)
        yield Peer(f"splash-causal-{short(dtype)}", partial(run, args, "causal"), *FORWARD[dtype])
        for kind in ("split", "fused"):
            name = f"splash-backward-{kind}-{short(dtype)}"
            yield Peer(name, partial(run, args, "causal", backward=kind), *BACKWARD[dtype])
    grouped = operands(F32, heads=4)
    yield Peer("splash-local-grouped-cap-f32", partial(run, grouped, "local", cap=20.0), *FORWARD[F32])
    ids = jnp.repeat(jnp.array([0, 1]), jnp.array([100, 156]), total_repeat_length=LENGTH).astype(jnp.int32)
    segments = splash.SegmentIds(ids, ids)
    yield Peer("splash-segments-f32", partial(run, operands(F32), "causal", segment_ids=segments), *FORWARD[F32])
