"""Registers a package's operations with PyTorch: `torch.ops.<package id>.<operation>`.

Each operation is a `torch.library` custom op, so torch.compile, torch.export and fake tensors take it as one opaque node.
It has three kernels: a fake one (shapes only, also symbolic), the reference implementation for CPU tensors, and for TPU
tensors the packaged module, through `torch.tpu.pallas.jax_op` when JAX can be imported, else through the registration of
StableHLO text that jax_op itself, and torch's own inductor, use.
"""

import functools
import inspect
import warnings

import torch

from . import _expr, _index
from ._errors import BadArguments, NoModule, warn_once
from ._stablehlo import program


def define(namespace, op, reference, fallback=None, gradient=None):
    """Registers an operation and returns it as a function of tensors.

    Args:
      namespace: the package's id; the operation becomes `torch.ops.<namespace>.<op.name>`.
      op: the operation's entry in the index.
      reference: computes the results from CPU tensors.
      fallback: computes the results from TPU tensors that no packaged module serves. Without it they raise NoModule.
      gradient: `gradient(inputs, needed, *result_gradients)` gives the gradient of each input, or None where
        `needed` is false. Without it the operation is not differentiable.
    """
    registered = getattr(getattr(torch.ops, namespace), op.name, None)
    if registered is not None:  # the same package, loaded a second time in this process
        return registered
    on_tpu = _Tpu(namespace, op, fallback)

    def other(*tensors):
        device = tensors[0].device
        if device.type == "tpu":
            return on_tpu(*tensors)
        raise NotImplementedError(f"{namespace}::{op.name} runs on tpu (TorchTPU) and cpu tensors, not on {device}")

    def on_cpu(*tensors):
        bind(op, tensors)
        return reference(*tensors)

    name = f"{namespace}::{op.name}"
    custom = torch.library.custom_op(name, other, mutates_args=(), schema=schema(op))
    custom.register_kernel("cpu")(on_cpu)
    custom.register_fake(lambda *tensors: fake(op, tensors))
    if gradient is not None:

        def setup(ctx, inputs, output):
            ctx.save_for_backward(*inputs)

        def backward(ctx, *gradients):
            return gradient(ctx.saved_tensors, ctx.needs_input_grad, *gradients)

        custom.register_autograd(backward, setup_context=setup)
    return getattr(getattr(torch.ops, namespace), op.name)


def schema(op):
    """The operation's schema in PyTorch's notation: `(Tensor lhs, Tensor rhs) -> Tensor`."""
    returned = ["Tensor"] * len(op.results)
    arguments = ", ".join(f"Tensor {argument.name}" for argument in op.arguments)
    return f"({arguments}) -> {returned[0] if len(returned) == 1 else '(' + ', '.join(returned) + ')'}"


def dtype_name(tensor):
    """The dtype of a tensor by its name in the index: "bfloat16"."""
    return str(tensor.dtype).removeprefix("torch.")


def bind(op, tensors):
    """The Call of an operation for tensors; raises BadArguments also when they are on several devices."""
    if len({tensor.device for tensor in tensors}) > 1:
        where = ", ".join(f"{argument.name} on {tensor.device}" for argument, tensor in zip(op.arguments, tensors))
        raise BadArguments(f"{op.name}: the tensors are on several devices: {where}")
    return op.bind([(dtype_name(tensor), tensor.shape) for tensor in tensors])


def fake(op, tensors):
    """Results without values. Sizes may be symbolic: what must be equal is recorded with torch._check, not tested."""
    if any(tensor.dim() != len(argument.shape) for argument, tensor in zip(op.arguments, tensors)):
        bind(op, tensors)  # raises, and says what the ranks should be
    dims, dtypes = {}, {}
    for argument, tensor in zip(op.arguments, tensors):
        if dtypes.setdefault(argument.dtype, dtype_name(tensor)) != dtype_name(tensor):
            bind(op, tensors)
        for symbol, size in zip(argument.shape, tensor.shape):
            if isinstance(symbol, str):
                _check_equal(op, symbol, dims.setdefault(symbol, size), size)
    results = []
    for result in op.results:
        shape = [_expr.evaluate(size, dims) for size in result.shape]
        results.append(tensors[0].new_empty(shape, dtype=getattr(torch, dtypes.get(result.dtype, result.dtype))))
    return results[0] if len(results) == 1 else tuple(results)


def _check_equal(op, symbol, known, size):
    torch._check(known == size, lambda: f"{op.name}: {symbol} is {known} and then {size}")


class _Tpu:
    """The TPU kernel of one operation. How it reaches the TPU is decided at the first call."""

    def __init__(self, namespace, op, fallback):
        self.name = f"{namespace}::{op.name}_tpu"
        self.op, self.fallback = op, fallback
        self.way = None

    def __call__(self, *tensors):
        call = bind(self.op, tensors)
        if all(0 in shape for _, shape in call.results()):
            return fake(self.op, tensors)  # there is nothing to compute, and no grid that computes it
        try:
            module = self.op.select(call, generation())
        except NoModule as error:
            if self.fallback is None:
                raise
            warn_once(f"{error}. TorchTPU's own implementation is used instead, which may be slower.")
            return self.fallback(*tensors)
        if self.way is None:
            try:
                self.way = self.through_jax()
            except (ImportError, AttributeError):  # no JAX, or a torch_tpu without jax_op
                self.way = self.through_text
        return self.way(module, [tensor.contiguous() for tensor in tensors])

    def through_jax(self):
        """Registers a JAX function that calls the module; TorchTPU traces it once for each set of shapes and dtypes."""
        function = jax_function(self.op, generation())
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # torch_tpu calls jax_op experimental
            custom = torch.tpu.pallas.jax_op(self.name, function)
        custom.register_fake(lambda *tensors: fake(self.op, tensors))  # its own fake kernel refuses symbolic sizes
        return lambda module, tensors: custom(*tensors)

    def through_text(self, module, tensors):
        """Registers the module's symbolic StableHLO text, once, and calls it."""
        from torch_tpu._internal.pallas import tpu_torch_pallas as binding

        if not binding.lookup_custom_kernel(self.name, module.sha256):
            text = program(self.op, module)
            try:
                binding.register_custom_kernel(self.name, module.sha256, serialized_mlir_module=text)
            except TypeError:  # older builds of torch_tpu take it by position only
                binding.register_custom_kernel(self.name, module.sha256, text)
        shapes = fake(self.op, tensors)
        shapes = [shapes] if isinstance(shapes, torch.Tensor) else list(shapes)
        results = binding.call_custom_kernel(self.name, module.sha256, inputs=tensors, output_shapes=shapes)
        return results[0] if len(results) == 1 else tuple(results)


def jax_function(op, generation):
    """A JAX function with the annotated signature from which jax_op infers the operation's schema."""
    import jax

    from . import _jax

    def function(*arrays):
        result = _jax.call(op, arrays, generation)
        return result if len(op.results) == 1 else tuple(result)

    kind = inspect.Parameter.POSITIONAL_OR_KEYWORD
    parameters = [inspect.Parameter(argument.name, kind, annotation=jax.Array) for argument in op.arguments]
    returned = jax.Array if len(op.results) == 1 else tuple[(jax.Array,) * len(op.results)]
    function.__name__ = function.__qualname__ = op.name
    function.__signature__ = inspect.Signature(parameters, return_annotation=returned)
    return function


@functools.cache
def generation():
    """The generation of the TPU that TorchTPU runs on, or None when TorchTPU does not tell."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # torch_tpu calls this function experimental, every time
        try:
            return _index.generation(torch.tpu.get_device_name())
        except (AttributeError, RuntimeError):
            return None
