"""Group sizes to test with, and the ragged products in float64 NumPy, written as their definition reads."""

import numpy as np

M, G = 300, 7


def routings():
    """Group sizes [G] for M rows, by name."""
    rng = np.random.default_rng(0)
    single, last = np.zeros(G, np.int32), np.zeros(G, np.int32)
    single[3], last[-1] = 40, M
    return {
        "random": rng.multinomial(M, rng.dirichlet(np.ones(G))).astype(np.int32),
        "even": np.array([43, 43, 43, 43, 43, 43, 42], np.int32),
        "empty": np.zeros(G, np.int32),
        "single": single,
        "all in one": last,
        "holes": np.array([0, 100, 0, 0, 1, 7, 0], np.int32),
    }


def _groups(sizes):
    ends = np.cumsum(sizes)
    return [slice(end - size, end) for end, size in zip(ends, sizes)]


def ragged_dot(lhs, rhs, sizes):
    """[m,k] by [g,n,k], to [m,n]."""
    out = np.zeros((lhs.shape[0], rhs.shape[1]))
    for group, rows in enumerate(_groups(sizes)):
        out[rows] = np.float64(lhs[rows]) @ np.float64(rhs[group]).T
    return out


def tgmm(lhs, grad, sizes):
    """[m,k] by [m,n], to [g,k,n]."""
    return np.stack([np.float64(lhs[rows]).T @ np.float64(grad[rows]) for rows in _groups(sizes)])
