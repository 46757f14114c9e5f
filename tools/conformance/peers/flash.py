"""JAX's flash attention: forward, and backward as its two kernels for dq and for dk and dv."""

from functools import partial

import jax
import jax.numpy as jnp
from jax.experimental.pallas.ops.tpu import flash_attention as flash

from peers import BF16, F32, Peer, noise, short

# Forward as tests/pallas/tpu_splash_attention_kernel_test.py; gradients as its 2e-2 and 3e-2. bf16 results have 8 bits.
FORWARD = {F32: (3e-3, 3e-3), BF16: (1e-2, 1e-2)}
BACKWARD = {F32: (3e-2, 2e-2), BF16: (3e-2, 5e-2)}


def reference(q, k, v, ab, segment_ids, causal):
    """Plain attention in float32."""
    q, k, v = (x.astype(F32) for x in (q, k, v))
    with jax.default_matmul_precision("highest"):
        return flash.mha_reference_no_custom_vjp(q, k, v, ab, segment_ids, causal=causal, sm_scale=0.125)


def backward(q, k, v):
    """Gradients by the kernels, and of the plain form."""
    plain = partial(reference, ab=None, segment_ids=None, causal=True)
    return gradients(kernel)(q, k, v), gradients(plain)(q, k, v)


def operands(dtype, batch=1, heads=2, length=256, dim=64):
    """q, k and v."""
    return tuple(noise(seed, (batch, heads, length, dim), dtype) for seed in (1, 2, 3))


def forward(q, k, v, ab=None, segment_ids=None, causal=False):
    """The kernel, and what it should be."""
    out = flash.flash_attention(q, k, v, ab, segment_ids, causal=causal, sm_scale=0.125)
    return out, reference(q, k, v, ab, segment_ids, causal)


def gradients(f):
    """Gradients of a weighted sum of f(q, k, v)."""
    return jax.grad(lambda q, k, v: (f(q, k, v).astype(F32) * noise(4, q.shape, F32)).sum(), (0, 1, 2))


def kernel(q, k, v):
    """The causal kernel with blocks for its backward passes."""
    blocks = flash.BlockSizes(*[128] * 3, 1, *[128] * 7)
    return flash.flash_attention(q, k, v, causal=True, sm_scale=0.125, block_sizes=blocks)


def peers():
    for dtype in (F32, BF16):
        args = operands(dtype)
        yield Peer(f"flash-{short(dtype)}", partial(forward, *args), *FORWARD[dtype])
        yield Peer(f"flash-causal-{short(dtype)}", partial(forward, *args, causal=True), *FORWARD[dtype])
        yield Peer(f"flash-backward-{short(dtype)}", partial(backward, *args), *BACKWARD[dtype], text=(gradients(kernel), args))
    args = operands(F32)
    bias = noise(5, (1, 2, 256, 256), F32)
    segments = flash.SegmentIds(*[jnp.repeat(jnp.array([0, 1, 2]), jnp.array([60, 100, 96]))[None].astype(jnp.int32)] * 2)
    yield Peer("flash-bias-segments-f32", partial(forward, *args, bias, segments), *FORWARD[F32])
