"""ragged_dot on the CPU: our executor, XLA:CPU's lax.ragged_dot, and Pallas interpret mode of megablox."""

import common

CASES = [(512, 8, 512, 512), (512, 8, 2048, 1536)]


def rows(root):
    """One row a shape and dtype."""
    out = []
    for row in common.rust(root, "executor"):
        peers = peer(row["m"], row["g"], row["k"], row["n"], row["dtype"])
        shape = f"m{row['m']} g{row['g']} k{row['k']} n{row['n']} {row['dtype']}"
        ours = row["ms"]
        out.append(
            {
                "case": shape,
                "ours": ours,
                "lax.ragged_dot": peers["xla"],
                "x faster": peers["xla"] / ours,
                "interpret=True": peers["interpret"],
                "x faster than it": peers["interpret"] / ours if peers["interpret"] else None,
            }
        )
    return out


def peer(m, g, k, n, dtype):
    """Milliseconds of the peers, compiled and warm, on the same routing."""
    import jax
    import jax.numpy as jnp
    import numpy as np
    from jax.experimental.pallas.ops.tpu import megablox

    rng = np.random.default_rng(0)
    dtype = jnp.dtype(dtype)
    lhs = jnp.asarray(rng.standard_normal((m, k)), dtype)
    rhs = jnp.asarray(rng.standard_normal((g, k, n)), dtype)
    sizes = jnp.full((g,), m // g, jnp.int32)
    gmm = megablox.gmm if callable(megablox.gmm) else megablox.gmm.gmm
    xla = jax.jit(lambda a, b, s: jax.lax.ragged_dot(a, b, s, preferred_element_type=jnp.float32))
    interpret = jax.jit(lambda a, b, s: gmm(a, b, s, preferred_element_type=jnp.float32, interpret=True))
    return {
        "xla": common.milliseconds(lambda: xla(lhs, rhs, sizes).block_until_ready(), runs=7),
        # Minutes for the larger shape: the smaller one says enough.
        "interpret": common.milliseconds(lambda: interpret(lhs, rhs, sizes).block_until_ready(), runs=3) if k == 512 else None,
    }
