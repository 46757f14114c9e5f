"""Calls a packaged TPU module on JAX arrays, with JAX's public API only: `jax.ffi.ffi_call("tpu_custom_call", ...)`."""

import jax
import numpy as np

from . import _expr, _index
from ._errors import BadIndex


def generation():
    """The TPU generation that JAX's default backend runs on, or None when that is not a TPU."""
    return _index.generation(jax.devices()[0].device_kind) if jax.default_backend() == "tpu" else None


def bind(op, arrays):
    """The Call of an operation for JAX arrays (or tracers)."""
    return op.bind([(str(array.dtype), array.shape) for array in arrays])


def call(op, arrays, generation=None):
    """The results of an operation, computed on the TPU: one `tpu_custom_call` that holds the packaged module.

    It can only be lowered for a TPU. Returns one array, or a list when the operation has more results.

    Raises:
      BadArguments: the arrays do not fit the interface.
      NoModule: no module of the package serves the call (on `generation`, when it is given).
    """
    bound = bind(op, arrays)
    module = op.select(bound, generation)
    arrays = together(arrays)
    results = [jax.ShapeDtypeStruct(shape, dtype) for dtype, shape in bound.results()]
    custom_call = jax.ffi.ffi_call(
        "tpu_custom_call",
        results,
        vmap_method="sequential",
        custom_call_api_version=1,
        legacy_backend_config=module.backend_config,
    )
    outputs = custom_call(*together([*operands(module, bound.dims, arrays)]))
    outputs = together([*outputs, arrays[0]])[:-1]  # a custom call's result does not say over which axes it varies
    return outputs[0] if len(outputs) == 1 else outputs


def operands(module, dims, arrays):
    """The operands of the custom call: dynamic grid bounds and dimensions as int32 constants, and the arrays."""

    def value(expr):
        number = _expr.evaluate(expr, dims)
        if number not in _expr.INT32:
            raise BadIndex(f"{module.file}: {_expr.render(expr)} is {number}, which does not fit a 32-bit integer")
        return number

    for kind, what in module.operands:
        if kind == "argument":
            yield arrays[what]
        else:
            number = value(what) if kind == "expr" else [value(expr) for expr in what]
            yield np.array(number, np.int32)  # not a JAX array, which would wake JAX's default device


def together(arrays):
    """The arrays, all marked as varying over the same axes of an enclosing `shard_map`: those over which any of them does.

    JAX wants this of the operands of a custom call, and of what a custom gradient is defined on: then the gradient of an
    array that is replicated over an axis is summed over that axis.
    """
    axes = frozenset().union(*map(_varying, arrays))
    return [_vary(array, tuple(sorted(axes - _varying(array)))) for array in arrays]


def _varying(array):
    kind = jax.typeof(array)
    return getattr(getattr(kind, "manual_axis_type", None), "varying", None) or getattr(kind, "vma", frozenset())


def _vary(array, axes):
    if not axes:
        return array
    return jax.lax.pcast(array, axes, to="varying") if hasattr(jax.lax, "pcast") else jax.lax.pvary(array, axes)
