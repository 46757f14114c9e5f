"""Attention over a paged cache: JAX's paged attention, and ragged paged attention for mixed prefill and decode."""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
from jax.experimental.pallas.ops.tpu.paged_attention import paged_attention, util
from jax.experimental.pallas.ops.tpu.ragged_paged_attention import kernel as ragged

from peers import BF16, F32, Peer, noise, short

# tests/pallas/tpu_paged_attention_kernel_test.py (1e-2, 2e-2 where query heads share a cache head), and
# tests/pallas/tpu_ragged_paged_attention_test.py (0.15 and 0.2), which is too loose to test much: the former for both.
TOLERANCE = {F32: (2e-2, 1e-2), BF16: (2e-2, 1e-2)}


def paged(dtype, heads=8, kv_heads=2, page=16, per_sequence=8, inline=True):
    """Sequences that end inside a page, at a border, and one that fills its pages."""
    lengths = jnp.array([3, 64, 101, 128], jnp.int32)
    batch, total = len(lengths), len(lengths) * per_sequence
    q = noise(1, (batch, heads, 128), dtype, 0.09)
    pages = [noise(seed, (kv_heads, total, page, 128), dtype) for seed in (2, 3)]
    table = jnp.asarray(np.random.default_rng(4).permutation(total).reshape(batch, per_sequence), jnp.int32)
    got = paged_attention(q, *pages, lengths, table, pages_per_compute_block=4, inline_seq_dim=inline)
    keys, values = (jnp.swapaxes(p[:, table], 0, 1).reshape(batch, kv_heads, -1, 128).astype(F32) for p in pages)
    with jax.default_matmul_precision("highest"):
        return got, util.grouped_query_attention_reference(q.astype(F32), keys, values, lengths)


def reference(q, pages, kv_lens, table, starts, count, **options):
    """JAX's own reference of ragged paged attention."""
    with jax.default_matmul_precision("highest"):
        return ragged.ref_ragged_paged_attention(q, pages, kv_lens, table, starts, count, sm_scale=0.09, **options)


def from_operands(options, kv_lens, table, starts, _buffer, count, q, pages):
    """The kernel's results, which no interpreter makes: it reshapes references. Rows past the last token are undefined."""
    out = np.full(q.shape, np.nan, q.dtype)
    rows = reference(*map(jnp.asarray, (q, pages, kv_lens, table, starts, count)), **options)
    out[: len(rows)] = rows
    return [out]


def mixed(dtype, heads=8, kv_heads=2, page=16, **options):
    """One step of a server: a prefill, a decode, a chunk of a longer prefill; the other slots are empty."""
    lengths = [(40, 40), (1, 77), (23, 100)]
    slots, tokens, total = 4, 64, 24
    starts = np.cumsum([0] + [q for q, _ in lengths])
    starts = np.pad(starts, (0, slots + 1 - len(starts)), constant_values=0)
    kv_lens = np.array([kv for _, kv in lengths] + [0] * (slots - len(lengths)))
    table = np.random.default_rng(4).permutation(total)[: slots * 6].reshape(slots, 6)[:, :7]
    q = noise(1, (tokens, heads, 128), dtype)
    pages = noise(2, (total, page, 2 * kv_heads, 128), dtype)
    args = [jnp.asarray(a, jnp.int32) for a in (kv_lens, np.pad(table, ((0, 0), (0, 1))), starts, [len(lengths)])]
    got = ragged.ragged_paged_attention(
        q, pages, *args, sm_scale=0.09, num_kv_pages_per_block=4, num_queries_per_block=32, **options
    )
    return got, got


def peers():
    for dtype in (F32, BF16):
        yield Peer(f"paged-{short(dtype)}", partial(paged, dtype), *TOLERANCE[dtype])
        for name, options in (("", {}), ("-window-cap", {"sliding_window": 24, "soft_cap": 30.0})):
            run, reference = partial(mixed, dtype, **options), partial(from_operands, options)
            yield Peer(f"ragged-paged{name}-{short(dtype)}", run, *TOLERANCE[dtype], reference)
    yield Peer("paged-outer-loop-f32", partial(paged, F32, inline=False), *TOLERANCE[F32])
