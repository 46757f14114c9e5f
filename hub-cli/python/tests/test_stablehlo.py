"""Tests of the StableHLO text for TorchTPU: refined for concrete shapes as TorchTPU does it, then compiled for a TPU."""

import json
import re

import pytest
import variant

K, N = (2048, 1536) if variant.BUILT else (256, 384)

REFINE = """
import sys, jax
from jax._src.interpreters import mlir
from jaxlib.mlir import ir
from jaxlib.mlir.dialects import stablehlo
from jaxlib.mlir.passmanager import PassManager

if hasattr(stablehlo, "register_stablehlo_passes"):
    stablehlo.register_stablehlo_passes()

def refine(text, types):
    # The passes of StableHLO's createStablehloRemoveDynamismPipeline, which TorchTPU runs on a registered program.
    passes = f"inline, stablehlo-refine-arguments{{types={types}}}, stablehlo-refine-shapes"
    passes += ", func.func(stablehlo-canonicalize-dynamism), func.func(stablehlo-check-shape-assertions)"
    with mlir.make_ir_context():
        module = ir.Module.parse(text)
        PassManager.parse(f"builtin.module({passes})").run(module.operation)
        return str(module)
"""

OPERANDS = (
    REFINE
    + """
print(refine(open(sys.argv[1]).read(), sys.argv[2]))
"""
)

COMPILE = (
    REFINE
    + """
import dataclasses, pathlib, variant, jax.numpy as jnp
from jax.experimental import topologies
package = variant.load(pathlib.Path(sys.argv[1]))
m, k, n, g = map(int, sys.argv[3:])
device = topologies.get_topology_desc(topology_name=sys.argv[2], platform="tpu").devices[0]
here = jax.sharding.SingleDeviceSharding(device)
shapes = [((m, k), jnp.bfloat16), ((g, n, k), jnp.bfloat16), ((g,), jnp.int32)]
arrays = [jax.ShapeDtypeStruct(*shape, sharding=here) for shape in shapes]
index = package._package.index()
op = index.op("ragged_dot")
module = op.select(op.bind([(str(a.dtype), a.shape) for a in arrays]))
__import__(package.__name__ + "._stablehlo")
text = sys.modules[package.__name__ + "._stablehlo"].program(op, module)
types = f"tensor<{m}x{k}xbf16>,tensor<{g}x{n}x{k}xbf16>,tensor<{g}xi32>"

# An exported function of the same signature, whose program is replaced by ours.
same = lambda lhs, rhs, sizes: jnp.zeros((m, n), jnp.bfloat16)
exported = jax.export.export(jax.jit(same, keep_unused=True), platforms=["tpu"])(*arrays)
exported = dataclasses.replace(exported, mlir_module_serialized=refine(text, types).encode())
program = jax.jit(exported.call).trace(*arrays).lower(lowering_platforms=("tpu",)).compile().as_text()
print(program.count('custom_call_target="tpu_custom_call"'))
"""
)


def refined(child, part, tmp_path, op, module, types):
    """The operands of the custom call after refinement: numbers, lists of numbers, or types; and the result's type."""
    path = tmp_path / "program.mlir"
    path.write_text(part("_stablehlo").program(op, module))
    text = child(OPERANDS, path, types)
    assert "?" not in text.replace("22?", "") and "get_dimension_size" not in text
    names, kinds, result = re.search(r"@tpu_custom_call\((.*?)\) \{.*\} : \((.*?)\) -> (.*)", text).groups()
    values = []
    for name, kind in zip(names.split(", "), kinds.split(", ")):
        constant = re.search(rf"{name} = stablehlo.constant dense<(.*?)> : {re.escape(kind)}", text)
        value = json.loads(constant[1]) if constant else kind
        values.append([value] if "<1xi32>" in kind and constant and isinstance(value, int) else value)
    return values, result


@pytest.mark.parametrize("m", [1, 1000])
def test_refinement_finds_grid_and_dims(child, part, tmp_path, m):
    op = part("_package").index().op("ragged_dot")
    call = op.bind([("bfloat16", (m, K)), ("bfloat16", (8, N, K)), ("int32", (8,))])
    module = op.select(call)
    types = f"tensor<{m}x{K}xbf16>,tensor<8x{N}x{K}xbf16>,tensor<8xi32>"
    values, result = refined(child, part, tmp_path, op, module, types)
    evaluate, expected = part("_expr").evaluate, []
    for kind, what in module.operands:
        if kind == "argument":
            expected.append(types.split(",")[what])
        else:
            expected.append(evaluate(what, call.dims) if kind == "expr" else [evaluate(e, call.dims) for e in what])
    # A vector of equal numbers is printed as one number.
    expected = [v[0] if isinstance(v, list) and len(v) > 1 and len(set(v)) == 1 else v for v in expected]
    assert values == expected
    assert result == f"tensor<{m}x{N}xbf16>"


def test_every_operator(child, part, tmp_path):
    """One operand for each operator, for a dividend of either sign, and an operation with two results."""
    names = ["+", "-", "*", "ceildiv", "floordiv", "mod", "min", "max"]
    exprs = [[name, ["-", "m", 100], 7] for name in names] + ["m", 5, ["*", ["ceildiv", "m", 4], ["mod", "n", 3]]]
    array = {"name": "a", "dtype": "T", "shape": ["m", 16, "n"]}
    outs = [{"name": "x", "dtype": "T", "shape": ["n", ["*", "m", 2]]}, {"name": "y", "dtype": "int32", "shape": [3]}]
    (tmp_path / "body").write_bytes(b"\x00")
    module = {
        "file": "body",
        "sha256": "6e340b9cffb37a989ca544e6bb780a2c78901d3fb33738768511a30617afa01d",
        "bytes": 1,
        "kernel": "every",
        "dtypes": {"T": "float32"},
        "tile": {},
        "demands": [],
        "operands": [*({"expr": e} for e in exprs), {"exprs": exprs}, {"argument": "a"}],
        "results": ["x", "y"],
        "custom_call_config": {},
        "backend_config": {},
        "generations": [],
    }
    op = {"doc": "", "dims": ["m", "n"], "arguments": [array], "results": outs, "modules": [module]}
    (tmp_path / "index.json").write_text(json.dumps({"schema": 1, "mosaic_version": 15, "ops": {"every": op}}))
    op = part("_load").load(tmp_path).op("every")
    for m, n in ((3, 8), (130, 10)):
        types = f"tensor<{m}x16x{n}xf32>"
        values, result = refined(child, part, tmp_path, op, op.modules[0], types)
        numbers = [part("_expr").evaluate(e, {"m": m, "n": n}) for e in exprs]
        assert values == [*numbers, numbers, types]
        assert result == f"(tensor<{n}x{2 * m}xf32>, tensor<3xi32>)"


@pytest.mark.parametrize("topology", ["v6e:2x2", "tpu7x:2x2x1"])
def test_the_tpu_compiler_takes_the_refined_text(child, folder, topology):
    assert child(COMPILE, folder, topology, 1000, K, N, 8).split() == ["1"]
