"""Compares rows that the executor made with jax.lax.ragged_dot on the same numbers: `oracle.py FOLDER`, for jax_oracle.rs."""

import json
import os
import pathlib
import sys

os.environ["JAX_PLATFORMS"] = "cpu"

import jax
import jax.numpy as jnp
import numpy as np

# Tokamax's tolerances for bfloat16, JAX's for float32 sums (its grouped-matmul tests): relative, absolute.
TOLERANCE = {"bfloat16": (1e-2, 5e-3), "float32": (1e-5, 1e-3)}


def noise(seed, index):
    """The reproducible numbers of tests/common: MurmurHash3's finaliser, in [-1, 1)."""
    with np.errstate(over="ignore"):
        h = index.astype(np.uint32) * np.uint32(0x9E3779B1) ^ np.uint32(seed * 0x85EBCA6B & 0xFFFFFFFF)
        h ^= h >> np.uint32(16)
        h *= np.uint32(0x85EBCA6B)
        h ^= h >> np.uint32(13)
        h *= np.uint32(0xC2B2AE35)
        h ^= h >> np.uint32(16)
    return (h >> np.uint32(8)).astype(np.float32) / np.float32(1 << 23) - np.float32(1)


@jax.jit
def expected(lhs, rhs, sizes):
    """What JAX says: products of the very numbers, summed in float32."""
    return jax.lax.ragged_dot(lhs, rhs, sizes, precision=jax.lax.Precision.HIGHEST, preferred_element_type=jnp.float32)


def check(case, folder):
    """The largest excess over the tolerance of one case; not above 0 when it passes."""
    k, n, rows, sizes = case["k"], case["n"], np.array(case["rows"]), np.array(case["sizes"])
    dtype = jnp.dtype(case["dtype"])
    ends = np.cumsum(sizes)
    group = np.searchsorted(ends, rows, side="right")
    touched = np.unique(group[group < len(sizes)])

    def flat(seed, starts, length):
        return noise(seed, np.asarray(starts, np.int64)[:, None] * length + np.arange(length))

    lhs = flat(1, rows, k).astype(dtype).astype(np.float32)
    got = np.fromfile(folder / case["file"], np.float32).reshape(len(rows), n)
    want = np.zeros((len(rows), n), np.float32)
    if len(touched):
        rhs = flat(2, touched, n * k).reshape(-1, n, k).astype(dtype).astype(np.float32)
        counts = np.array([(group == t).sum() for t in touched], np.int32)
        want = np.asarray(expected(lhs, np.swapaxes(rhs, 1, 2), counts))
    relative, absolute = TOLERANCE[case["dtype"]]
    excess = np.abs(got - want) - (absolute + relative * np.abs(want))
    return float(np.nan_to_num(excess, nan=np.inf).max())


def main():
    folder = pathlib.Path(sys.argv[1])
    failed = 0
    cases = [json.loads(line) for line in (folder / "cases.jsonl").read_text().splitlines()]
    for case in cases:
        excess = check(case, folder)
        if excess > 0:
            failed += 1
            what = {name: case[name] for name in ("dtype", "m", "k", "n", "g", "routing")}
            print(f"{what}: differs by {excess:.2e} more than the tolerance")
    print(f"{len(cases)} cases, {failed} differ")
    sys.exit(failed > 0 or not cases)


if __name__ == "__main__":
    main()
