"""The ragged products in plain PyTorch: what runs on CPU tensors, and on TPU tensors for which there is no module."""

import torch


def ragged_dot(lhs, rhs, group_sizes):
    """[m,k] by [g,n,k], to [m,n]."""
    return ragged_dot_gkn(lhs, rhs.mT, group_sizes)


def ragged_dot_gkn(lhs, rhs, group_sizes):
    """[m,k] by [g,k,n], to [m,n]."""
    out = lhs.new_zeros((lhs.shape[0], rhs.shape[2]))
    for group, rows in _groups(group_sizes, lhs.shape[0]):
        out[rows] = (_wide(lhs[rows]) @ _wide(rhs[group])).to(out.dtype)
    return out


def tgmm(lhs, grad, group_sizes):
    """[m,k] by [m,n], to [g,k,n]."""
    out = lhs.new_zeros((group_sizes.shape[0], lhs.shape[1], grad.shape[1]))
    for group, rows in _groups(group_sizes, lhs.shape[0]):
        out[group] = (_wide(lhs[rows]).mT @ _wide(grad[rows])).to(out.dtype)
    return out


PRODUCTS = {"ragged_dot": ragged_dot, "ragged_dot_gkn": ragged_dot_gkn, "tgmm": tgmm}


def _groups(group_sizes, m):
    """The groups that are not empty, each with its rows as a slice."""
    start = 0
    for group, size in enumerate(group_sizes.tolist()):
        end = min(start + max(size, 0), m)
        if end > start:
            yield group, slice(start, end)
        start = end


def _wide(tensor):
    """A tensor in the dtype in which products are accumulated."""
    return tensor.to(torch.promote_types(tensor.dtype, torch.float32))


def _tpu_ragged_dot(lhs, rhs, group_sizes):
    return _tpu_ragged_dot_gkn(lhs, rhs.mT, group_sizes)


def _tpu_ragged_dot_gkn(lhs, rhs, group_sizes):
    out = torch.tpu.ops.ragged_dot(lhs, rhs, group_sizes)
    row = torch.arange(lhs.shape[0], device=lhs.device)
    return torch.where((row < group_sizes.sum()).unsqueeze(1), out, 0)


def _tpu_tgmm(lhs, grad, group_sizes):
    return torch.tpu.ops.ragged_dot_weight_grad(lhs, grad, group_sizes)


# By TorchTPU's own operations.
ON_TPU = {"ragged_dot": _tpu_ragged_dot, "ragged_dot_gkn": _tpu_ragged_dot_gkn, "tgmm": _tpu_tgmm}
