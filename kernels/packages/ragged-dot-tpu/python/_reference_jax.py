"""The ragged products in plain jax.numpy: what runs where there is no TPU.

XLA's own `jax.lax.ragged_dot` multiplies every row with every group's matrix on a CPU. Here the rows of each group are
cut into tiles, and each tile is multiplied once, with its own group's matrix; so the work does not grow with the groups.
"""

import jax
import jax.numpy as jnp

from . import _jax


def ragged_dot(lhs, rhs, group_sizes):
    """[m,k] by [g,n,k], to [m,n]."""
    return _rows(lhs, rhs, group_sizes, contract=1)


def ragged_dot_gkn(lhs, rhs, group_sizes):
    """[m,k] by [g,k,n], to [m,n]."""
    return _rows(lhs, rhs, group_sizes, contract=0)


def tgmm(lhs, grad, group_sizes):
    """[m,k] by [m,n], to [g,k,n]."""
    shape = (len(group_sizes), lhs.shape[1], grad.shape[1])
    zeros, _ = _jax.together([jnp.zeros(shape, _accumulator(lhs)), lhs])
    if not lhs.size or not zeros.size:
        return zeros.astype(lhs.dtype)
    rows, group, _ = _tiles(len(lhs), group_sizes)

    def add(sums, tile):
        rows, group = tile
        return sums.at[group].add(_dot(_take(lhs, rows), _take(grad, rows), (0, 0))), None

    return jax.lax.scan(add, zeros, (rows, group))[0].astype(lhs.dtype)


PRODUCTS = {"ragged_dot": ragged_dot, "ragged_dot_gkn": ragged_dot_gkn, "tgmm": tgmm}


def xla(name, first, second, group_sizes):
    """One of the products by XLA's ragged_dot: what runs on a TPU for which the package has no module."""
    contract = {"ragged_dot": (1, 2), "ragged_dot_gkn": (1, 1), "tgmm": (0, 0)}[name]
    numbers = jax.lax.RaggedDotDimensionNumbers(
        dot_dimension_numbers=(((contract[0],), (contract[1],)), ((), ())),
        lhs_ragged_dimensions=[0],
        rhs_group_dimensions=[] if name == "tgmm" else [0],
    )

    @jax.custom_batching.sequential_vmap  # JAX's own rule wants every argument to have the batch
    def product(first, second, group_sizes):
        return jax.lax.ragged_dot_general(first, second, group_sizes, numbers, precision=_precision(first))

    out = product(first, second, group_sizes).astype(first.dtype)
    if name == "tgmm":
        return out
    return jnp.where(jnp.arange(len(first))[:, None] < group_sizes.sum(), out, 0)


def _rows(lhs, rhs, group_sizes, contract):
    n = rhs.shape[2 - contract]
    if not lhs.size or not rhs.size:
        return _jax.together([jnp.zeros((len(lhs), n), lhs.dtype), lhs])[0]
    rows, group, slot = _tiles(len(lhs), group_sizes)

    def tile(rows_and_group):
        rows, group = rows_and_group
        return _dot(_take(lhs, rows), rhs[group], (1, contract)).astype(lhs.dtype)

    tiles = jax.lax.map(tile, (rows, group))
    return _take(tiles.reshape(-1, n), slot)


def _tiles(m, group_sizes):
    """Cuts the rows of each group into tiles.

    Returns the rows of each tile [tiles, rows], `m` where a tile has no row; the group of each tile [tiles]; and where each
    row went in the flattened tiles [m], past their end for a row of no group.
    """
    groups = len(group_sizes)
    height = 8
    while height < 256 and height * groups < m:
        height *= 2
    tiles = m // height + min(groups, m)  # each group that is not empty may leave one tile that is not full
    ends = jnp.minimum(jnp.cumsum(jnp.maximum(group_sizes, 0)), m)
    starts = jnp.concatenate([jnp.zeros_like(ends[:1]), ends[:-1]])
    heights = -(-(ends - starts) // height)
    tile_ends = jnp.cumsum(heights)
    tile_starts = tile_ends - heights

    tile = jnp.arange(tiles)
    owner = jnp.searchsorted(tile_ends, tile, side="right")
    group = jnp.minimum(owner, groups - 1)
    rows = (starts[group] + (tile - tile_starts[group]) * height)[:, None] + jnp.arange(height)
    rows = jnp.where((owner < groups)[:, None] & (rows < ends[group][:, None]), rows, m)

    row = jnp.arange(m)
    of = jnp.minimum(jnp.searchsorted(ends, row, side="right"), groups - 1)
    slot = jnp.where(row < ends[-1], tile_starts[of] * height + row - starts[of], tiles * height)
    return rows, group, slot


def _take(array, rows):
    """Rows of an array; zeros for those that it does not have."""
    return array.at[rows].get(mode="fill", fill_value=0)


def _dot(a, b, contract):
    numbers = (((contract[0],), (contract[1],)), ((), ()))
    return jax.lax.dot_general(a, b, numbers, precision=_precision(a), preferred_element_type=_accumulator(a))


def _precision(array):
    return jax.lax.Precision.HIGHEST if array.dtype.itemsize > 2 else None


def _accumulator(array):
    return jnp.promote_types(array.dtype, jnp.float32)
