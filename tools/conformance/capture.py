"""Records every Pallas TPU call that runs: its Mosaic module, its operands and its results.

JAX runs a kernel on a machine without a TPU in interpret mode. `capturing(sink)` makes each `pallas_call` and `mpmd_map` do so,
lowers the same kernel for TPU into the Mosaic module that libtpu would get, and hands `sink` both, with the values that went in
and came out.
"""

import collections
import contextlib
import dataclasses
import functools
import os

os.environ.setdefault("JAX_PLATFORMS", "cpu")
os.environ.setdefault("TPU_SKIP_MDS_QUERY", "1")
os.environ.setdefault("ALLOW_MULTIPLE_LIBTPU_LOAD", "1")

import jax
import jax.numpy as jnp
import numpy as np
from jax._src import core as jax_core
from jax._src.interpreters import mlir
from jax._src.pallas import mpmd, pallas_call
from jax._src.pallas.mosaic.interpret import interpret_pallas_call
from jax.experimental.pallas import tpu as pltpu
from modules import Module, mpmd_module, pallas_module

# Primitives that `interpret=True` has no meaning for; `InterpretParams` simulates them.
SIMULATED = {"dma_start", "dma_wait", "get_barrier_semaphore", "run_scoped", "empty_ref", "delay", "device_id"}


@dataclasses.dataclass
class Call:
    """One run: the operands and the results, as NumPy arrays; with several devices, a leading axis over them."""

    module: Module
    operands: list
    results: list
    # How the results were made: "interpret=True", "InterpretParams" or "reference".
    oracle: str


def needs_simulation(jaxpr):
    """Whether the kernel uses copies, semaphores or devices."""
    for eqn in jaxpr.eqns:
        name = eqn.primitive.name
        if name in SIMULATED or name.startswith(("semaphore", "prng")):
            return True
        if any(needs_simulation(j) for j in jax_core.jaxprs_in_params(eqn.params)):
            return True
    return False


def without_memory_space(aval):
    """The same array anywhere."""
    return jax_core.ShapedArray(aval.shape, aval.dtype) if isinstance(aval, jax_core.ShapedArray) else aval


def buffer_value(value):
    """A value as the custom call gets it."""
    if jnp.issubdtype(value.dtype, jax.dtypes.prng_key):
        value = jax.random.key_data(value)
    value = np.asarray(value)
    return value.astype(np.int32) if value.dtype == np.bool_ else value


class Recorder:
    """Where calls go. Its attributes may be changed between runs."""

    def __init__(self, sink, on_refused, reference):
        self.sink = sink
        self.on_refused = on_refused
        self.reference = reference
        # Hears of modules that none of JAX's interpreters runs.
        self.on_uninterpreted = lambda module, error: None
        self._waiting = collections.defaultdict(dict)

    def record(self, module, oracle, count, device, *values):
        """One device ran: with all devices of the call together, the sink gets it."""
        values = [buffer_value(v) for v in values]
        ins, outs = values[:count], values[count:]
        if module.devices == 1:
            return self.sink(Call(module, ins, outs, oracle))
        runs = self._waiting[id(module)]
        runs.setdefault(int(device), []).append((ins, outs))
        if len(runs) == module.devices and all(runs.values()):
            parts = [runs[d].pop(0) for d in range(module.devices)]
            ins, outs = ([np.stack(arrays) for arrays in zip(*column)] for column in zip(*parts))
            self.sink(Call(module, ins, outs, oracle))


def interpret(original, oracle, ctx, in_nodes, params):
    """The results by the interpreter that was asked for, or by the plainer one where the other knows less; and which it was."""
    try:
        return original(ctx, *in_nodes, **params), oracle
    except NotImplementedError:
        if oracle != "InterpretParams":
            raise
        return original(ctx, *in_nodes, **params | {"interpret": True}), "interpret=True"


def hooked(original, make_module, recorder):
    """A lowering rule that also records; `original` computes the results, or the recorder's reference does."""

    def rule(ctx, *in_nodes, **params):
        if "cpu" not in ctx.module_context.platforms:
            return original(ctx, *in_nodes, **params)
        sizes = jax_core.get_axis_env().axis_sizes
        devices = int(np.prod(list(sizes.values()), dtype=int))
        try:
            module = make_module(ctx, devices, **params)
        except Exception as error:
            recorder.on_refused(params.get("name") or "kernel", error)
            return original(ctx, *in_nodes, **params)
        if reference := recorder.reference:
            oracle = "reference"
            shapes = [jax.ShapeDtypeStruct(a.shape, a.dtype) for a in ctx.avals_out]
            stand_in = functools.partial(jax.pure_callback, reference, shapes)
            outs = mlir.lower_fun(stand_in, multiple_results=True)(ctx, *in_nodes)
        else:
            oracle = "InterpretParams" if isinstance(params["interpret"], pltpu.InterpretParams) else "interpret=True"
            try:
                outs, oracle = interpret(original, oracle, ctx, in_nodes, params)
            except Exception as error:
                recorder.on_uninterpreted(module, error)
                raise
        record = functools.partial(recorder.record, module, oracle, len(in_nodes))

        def tap(*values):
            device = jnp.int32(0)
            for axis, size in sizes.items():
                device = device * size + jax.lax.axis_index(axis)
            jax.debug.callback(record, device, *values)
            return values[len(in_nodes) :]

        tapped = ctx.replace(avals_in=[*ctx.avals_in, *ctx.avals_out], tokens_in=mlir.TokenSet(), tokens_out=None)
        return mlir.lower_fun(tap, multiple_results=True)(tapped, *in_nodes, *outs)

    return rule


def choosing(bind):
    """`bind` with an interpreter chosen for kernels that ask for a TPU."""

    def chosen(*args, **params):
        if not params["interpret"]:
            jaxprs = params["jaxprs"] if "jaxprs" in params else [params["jaxpr"]]
            params["interpret"] = pltpu.InterpretParams() if any(map(needs_simulation, jaxprs)) else True
        return bind(*args, **params)

    return chosen


@contextlib.contextmanager
def capturing(sink, on_refused=lambda name, error: None, reference=None, kind="TPU v6 lite"):
    """Records every kernel that runs in the block: `sink(Call)`; yields the `Recorder`.

    JAX believes that it lowers for a TPU of this device kind. `on_refused(name, error)` hears of kernels that it cannot lower.
    `reference` computes a kernel's results from its operands where no interpreter of JAX's can.
    """
    recorder = Recorder(sink, on_refused, reference)
    device = type(jax.devices()[0])
    device_kind = device.device_kind
    primitives = {pallas_call.pallas_call_p: pallas_module, mpmd.mpmd_map_p: mpmd_module}
    rules = {p: mlir._lowerings[p].rule for p in primitives}
    # The interpreter refuses operands that are bound to SMEM or VMEM, only because it would ignore it.
    interpret_pallas_call.remove_memory_space_p.def_abstract_eval(without_memory_space)
    for primitive, make_module in primitives.items():
        mlir.register_lowering(primitive, hooked(rules[primitive], make_module, recorder))
        primitive.bind = choosing(primitive.bind)
    device.device_kind, device.num_cores = property(lambda self: kind), 1
    jax.clear_caches()
    try:
        yield recorder
    finally:
        device.device_kind = device_kind
        del device.num_cores
        for primitive, rule in rules.items():
            mlir.register_lowering(primitive, rule)
            del primitive.bind
        jax.clear_caches()
