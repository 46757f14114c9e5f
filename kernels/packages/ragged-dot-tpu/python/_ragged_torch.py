"""The ragged products on PyTorch tensors, as the custom ops `torch.ops.<package id>.{ragged_dot, ragged_dot_gkn, tgmm}`."""

import torch

from . import _package, _reference_torch, _torch
from ._gradients import GRADIENTS, OUT


def dtype(wanted):
    """A dtype as PyTorch has it."""
    return wanted


def widen(tensor, wanted):
    """`tensor` in the wider of its own dtype and `wanted`."""
    return tensor.to(torch.promote_types(tensor.dtype, wanted))


def cast(tensor, wanted):
    """`tensor` in the dtype `wanted`."""
    return tensor.to(wanted)


def ragged_dot(lhs, rhs, group_sizes, transpose_rhs):
    """[m,k] by [g,n,k] (by [g,k,n] unless `transpose_rhs`), to [m,n]."""
    return _PRODUCTS["ragged_dot" if transpose_rhs else "ragged_dot_gkn"](lhs, rhs, group_sizes.to(torch.int32))


def tgmm(lhs, grad, group_sizes):
    """[m,k] by [m,n], to [g,k,n]."""
    return _PRODUCTS["tgmm"](lhs, grad, group_sizes.to(torch.int32))


def _gradient(name):
    """The gradient of a product, in the form that `_torch.define` wants."""

    def gradient(inputs, needed, out):
        tensors = {0: inputs[0], 1: inputs[1], OUT: out}
        products = [
            _PRODUCTS[other](tensors[a], tensors[b], inputs[2]) if wanted else None
            for (other, a, b), wanted in zip(GRADIENTS[name], needed)
        ]
        return *products, None

    return gradient


_PRODUCTS = {
    name: _torch.define(
        _package.namespace(),
        _package.index().op(name),
        reference=_reference_torch.PRODUCTS[name],
        fallback=_reference_torch.ON_TPU[name],
        gradient=_gradient(name),
    )
    for name in GRADIENTS
}
