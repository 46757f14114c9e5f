"""Ragged matrix products for mixtures of experts: compiled TPU kernels, callable from JAX and from PyTorch.

`ragged_dot(lhs, rhs, group_sizes)` multiplies consecutive groups of rows of `lhs`, each with its own matrix of `rhs`.
TPU arrays and tensors go to the kernel that this package carries; everything else goes to a reference implementation.
Gradients, jit, vmap, shard_map, torch.compile and torch.export work. Importing the package needs neither JAX nor PyTorch.
"""

import sys

from . import _package

__all__ = ["ragged_dot", "gmm", "tgmm", "experts_forward", "info"]


def ragged_dot(lhs, rhs, group_sizes, *, transpose_rhs=True):
    """Each group of rows of `lhs` times its own matrix of `rhs`; rows past the last group give zeros.

    Args:
      lhs: [M, K], float32, bfloat16 or another floating dtype; its rows are sorted by group.
      rhs: [G, N, K], of the same dtype, as Transformers stores expert weights; it is read in place, never transposed.
      group_sizes: [G], integers; how many rows each group has. Groups may be empty. The sum may be less than M.
      transpose_rhs: whether `rhs` is [G, N, K]; when false it is [G, K, N].

    Returns:
      [M, N] of the dtype of `lhs`, accumulated in float32 and rounded once.
    """
    return _framework(lhs).ragged_dot(lhs, rhs, group_sizes, transpose_rhs)


def gmm(
    lhs,
    rhs,
    group_sizes,
    preferred_element_type=None,
    tiling=None,
    group_offset=None,
    existing_out=None,
    transpose_rhs=False,
):
    """ragged_dot under the name and with the argument order of megablox: `rhs` is [G, K, N] unless `transpose_rhs`.

    The result has the dtype `preferred_element_type`, by default that of `lhs`. When it is wider than the arguments, they
    are converted first, which costs their memory once more. `tiling` has no effect: the package chooses. `group_offset`
    and `existing_out` are not supported. Rows past the last group give zeros (megablox leaves them undefined).
    """
    del tiling
    if group_offset is not None or existing_out is not None:
        raise NotImplementedError("gmm: group_offset and existing_out are not supported by this package")
    framework = _framework(lhs)
    wanted = framework.dtype(preferred_element_type or lhs.dtype)
    lhs, rhs = (framework.widen(array, wanted) for array in (lhs, rhs))
    return framework.cast(framework.ragged_dot(lhs, rhs, group_sizes, transpose_rhs), wanted)


def tgmm(lhs, grad, group_sizes):
    """The gradient of gmm in its weights: for each group, the transpose of its rows of `lhs`, times those of `grad`.

    Args:
      lhs: [M, K].
      grad: [M, N], of the same dtype.
      group_sizes: [G], integers.

    Returns:
      [G, K, N] of the dtype of `lhs`; zeros for an empty group. Rows past the last group have no effect.
    """
    return _framework(lhs).tgmm(lhs, grad, group_sizes)


def experts_forward(self, hidden_states, top_k_index, top_k_weights):
    """The experts of a Transformers (5.x) mixture-of-experts layer: `ALL_EXPERTS_FUNCTIONS.register(name, experts_forward)`.

    Args:
      self: the module that holds the experts' weights.
      hidden_states: [T, H].
      top_k_index: [T, k], the experts of each token; `self.num_experts` or more means an expert of another device.
      top_k_weights: [T, k], their weights.

    Returns:
      [T, H] of the dtype of `hidden_states`.
    """
    from . import _experts

    return _experts.experts_forward(self, hidden_states, top_k_index, top_k_weights)


def info():
    """What the package holds and what this process can run it with, as a dict of plain values (for bug reports)."""
    return _package.info()


def _framework(array):
    """The implementation for the framework of an array: PyTorch for its tensors, else JAX (NumPy arrays too)."""
    torch = sys.modules.get("torch")
    if torch is not None and isinstance(array, torch.Tensor):
        from . import _ragged_torch

        return _ragged_torch
    from . import _ragged_jax

    return _ragged_jax
