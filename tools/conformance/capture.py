"""Records every Pallas TPU call that runs: its Mosaic module, its operands and its results.

JAX runs a kernel on a machine without a TPU in interpret mode. `capturing(sink)` makes each `pallas_call` and `mpmd_map` do so,
lowers the same kernel for TPU into the Mosaic module that libtpu would get, and hands `sink` both, with the values that went in
and came out.
"""

import collections
import contextlib
import dataclasses
import functools
import io
import os

os.environ.setdefault("JAX_PLATFORMS", "cpu")
os.environ.setdefault("TPU_SKIP_MDS_QUERY", "1")
os.environ.setdefault("ALLOW_MULTIPLE_LIBTPU_LOAD", "1")

import jax
import jax.numpy as jnp
import numpy as np
from jax._src import core as jax_core
from jax._src import tpu_custom_call
from jax._src.interpreters import mlir
from jax._src.lib.mlir import ir, passmanager
from jax._src.pallas import mpmd, pallas_call
from jax._src.pallas.mosaic import core as tpu_core
from jax._src.pallas.mosaic import lowering
from jax._src.pallas.mosaic.interpret import interpret_pallas_call
from jax.experimental.mosaic.dialects import tpu
from jax.experimental.pallas import tpu as pltpu

# Primitives that `interpret=True` has no meaning for; `InterpretParams` simulates them.
SIMULATED = (
    "dma_start",
    "dma_wait",
    "semaphore",
    "get_barrier_semaphore",
    "run_scoped",
    "empty_ref",
    "delay",
    "prng",
    "device_id",
)


@dataclasses.dataclass
class Module:
    """What libtpu would compile, and how it is called."""

    name: str
    bytecode: bytes
    text: str
    # (operand, result) pairs that share a buffer, in the custom call's operand order.
    aliases: list
    # Element type and shape of each operand and result of the custom call.
    operands: list
    results: list
    devices: int
    # Keys of the custom call's configuration that change what a compiler accepts.
    config: dict


@dataclasses.dataclass
class Call:
    """One run: the operands and the results, as NumPy arrays; with several devices, a leading axis over them."""

    module: Module
    operands: list
    results: list
    # How the results were made: "interpret=True", "InterpretParams" or "reference".
    oracle: str


class Refused(Exception):
    """JAX could not lower the kernel for TPU; the text is its error."""


def needs_simulation(jaxpr):
    """Whether the kernel uses copies, semaphores or devices."""
    for eqn in jaxpr.eqns:
        if any(eqn.primitive.name.startswith(name) for name in SIMULATED):
            return True
        if any(needs_simulation(j) for j in jax_core.jaxprs_in_params(eqn.params)):
            return True
    return False


def buffer_aval(aval):
    """The array that the custom call takes for a JAX value: keys become words, booleans i32."""
    aval = jax_core.physical_aval(aval)
    if not isinstance(aval, jax_core.ShapedArray) or not isinstance(aval.dtype, np.dtype):
        raise Refused(f"an operand is {aval}, which is not an array of numbers")
    return aval.update(dtype=np.dtype(np.int32)) if aval.dtype == np.bool_ else aval


def without_memory_space(aval):
    """The same array anywhere."""
    return jax_core.ShapedArray(aval.shape, aval.dtype) if isinstance(aval, jax_core.ShapedArray) else aval


def type_text(aval):
    """`f32[8,128]`, with the element types' names in MLIR without the sign of integers."""
    names = {"float32": "f32", "bfloat16": "bf16", "float16": "f16", "float64": "f64"}
    name = str(aval.dtype)
    name = names.get(name, name.replace("uint", "i").replace("int", "i") if "int" in name else name.replace("float8_", "f8"))
    return f"{name}[{','.join(map(str, aval.shape))}]"


def buffer_value(value):
    """A value as the custom call gets it."""
    if jnp.issubdtype(value.dtype, jax.dtypes.prng_key):
        value = jax.random.key_data(value)
    value = np.asarray(value)
    return value.astype(np.int32) if value.dtype == np.bool_ else value


def lower(ctx, build):
    """Of the Mosaic module that `build(jax_mesh)` makes: bytecode, whether it talks to devices and has a barrier, text."""
    mesh = getattr(ctx.module_context.axis_context, "mesh", None)
    context = ctx.module_context.context
    tpu.register_dialect(context)
    with context, ir.Location.unknown(context):
        module = build(mesh)
        module.operation.verify()
        bytecode, talks, _ = tpu_custom_call._lower_mosaic_module_to_asm(module, ir_version=None, unzip_debug_locations=False)
        return bytecode, talks, module.operation.get_asm(use_name_loc_as_prefix=False)


def at_version(bytecode, version):
    """The same module in an older serialized form, as a JAX of that time would write it."""
    context = mlir.make_ir_context()
    tpu.register_dialect(context)
    context.allow_unregistered_dialects = True
    with context, ir.Location.unknown():
        module = ir.Module.parse(bytecode)
        steps = f"builtin.module(mosaic-serde{{serialize=false}},mosaic-serde{{serialize=true target-version={version}}})"
        passmanager.PassManager.parse(steps).run(module.operation)
        buffer = io.BytesIO()
        module.operation.write_bytecode(buffer, desired_version=0)
        return buffer.getvalue()


def describe(ctx, name, lowered, shift, aliases, devices, compiler_params):
    """The `Module` of one call."""
    bytecode, talks, text = lowered
    params = compiler_params if isinstance(compiler_params, tpu_core.CompilerParams) else tpu_core.CompilerParams()
    config = {"vmem_limit_bytes": params.vmem_limit_bytes, "has_communication": talks[0] or None}
    if talks[1]:
        config["collective_id"] = params.collective_id or 0
    return Module(
        name=mlir.sanitize_name(name),
        bytecode=bytecode,
        text=text,
        aliases=[[a + shift, b] for a, b in aliases],
        operands=[type_text(buffer_aval(a)) for a in ctx.avals_in],
        results=[type_text(buffer_aval(a)) for a in ctx.avals_out],
        devices=devices,
        config={k: v for k, v in config.items() if v is not None},
    )


def pallas_module(ctx, devices, *, jaxpr, grid_mapping, compiler_params, input_output_aliases, name, **_):
    """The module of a `pallas_call`."""
    params = compiler_params if isinstance(compiler_params, tpu_core.CompilerParams) else tpu_core.CompilerParams()

    def build(mesh):
        return lowering.lower_jaxpr_to_pipelined_module(
            ctx,
            grid_mapping,
            jaxpr,
            dimension_semantics=params.dimension_semantics,
            kernel_type=tpu_core.CoreType.TC,
            mesh=mesh,
            fuse_transposed_lhs_in_matmul=params.fuse_transposed_lhs_in_matmul,
        )

    bounds = grid_mapping.num_dynamic_grid_bounds
    return describe(ctx, name or jaxpr.debug_info.func_name, lower(ctx, build), bounds, input_output_aliases, devices, params)


def mpmd_module(ctx, devices, *, jaxprs, meshes, compiler_params, input_output_aliases, name, **_):
    """The module of a `pl.kernel` or `core_map` on TensorCores."""
    [jaxpr], [mesh] = jaxprs, meshes
    if mesh.core_type != tpu_core.CoreType.TC:
        raise Refused(f"a kernel for {mesh.core_type}")

    def build(jax_mesh):
        module = ir.Module.create()
        lowering.lower_jaxpr_into_unpipelined_module(
            ctx,
            module,
            jaxpr,
            jax_mesh=jax_mesh,
            pallas_mesh=mesh,
            name=mlir.sanitize_name(jaxpr.debug_info.func_name),
            dynamic_shape_replacement_enabled=False,
            num_scratch=len(jaxpr.invars) - len(ctx.avals_in) - len(ctx.avals_out),
            needs_layout_passes=True,
        )
        return module

    name = name or jaxpr.debug_info.func_name
    return describe(ctx, name, lower(ctx, build), 0, input_output_aliases.items(), devices, compiler_params)


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
