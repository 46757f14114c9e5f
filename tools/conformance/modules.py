"""The Mosaic module of a kernel that JAX is lowering: its bytecode, its text, and how it is called."""

import dataclasses
import io

import numpy as np
from jax._src import core as jax_core
from jax._src import tpu_custom_call
from jax._src.interpreters import mlir
from jax._src.lib.mlir import ir, passmanager
from jax._src.pallas.mosaic import core as tpu_core
from jax._src.pallas.mosaic import lowering
from jax.experimental.mosaic.dialects import tpu


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


class Refused(Exception):
    """JAX could not lower the kernel for TPU; the text is its error."""


def buffer_aval(aval):
    """The array that the custom call takes for a JAX value: keys become words, booleans i32."""
    aval = jax_core.physical_aval(aval)
    if not isinstance(aval, jax_core.ShapedArray) or not isinstance(aval.dtype, np.dtype):
        raise Refused(f"an operand is {aval}, which is not an array of numbers")
    return aval.update(dtype=np.dtype(np.int32)) if aval.dtype == np.bool_ else aval


def type_text(aval):
    """`f32[8,128]`, with the element types' names in MLIR without the sign of integers."""
    name = str(aval.dtype)
    if name.startswith("float8_"):
        name = "f8" + name.removeprefix("float8_").upper()
    else:
        name = name.replace("bfloat", "bf").replace("float", "f").replace("uint", "i").replace("int", "i")
    return f"{name}[{','.join(map(str, aval.shape))}]"


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
