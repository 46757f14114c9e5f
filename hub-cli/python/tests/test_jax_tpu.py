"""Tests of the package on JAX arrays for TPUs: what is lowered, and that the real TPU compiler takes it."""

import json
import re

import jax
import jax.numpy as jnp
import pytest
import variant

K, N = (2048, 1536) if variant.BUILT else (256, 384)


def lowered(function, *arrays):
    """The StableHLO text of a function lowered for TPU."""
    shapes = [jax.ShapeDtypeStruct(shape, dtype) for shape, dtype in arrays]
    return jax.jit(function).trace(*shapes).lower(lowering_platforms=("tpu",)).as_text()


def arrays(m=1000, k=K, n=N, g=8, dtype=jnp.bfloat16):
    return ((m, k), dtype), ((g, n, k), dtype), ((g,), jnp.int32)


def test_the_call_is_what_the_index_says(package, part):
    op = part("_package").index().op("ragged_dot")
    module = op.select(part("_jax").bind(op, [jax.ShapeDtypeStruct(*array) for array in arrays()]))
    text = lowered(package.ragged_dot, *arrays())
    call = re.search(r"custom_call @tpu_custom_call\((.*?)\) \{(.*?)\} : \((.*?)\) -> (\S+)", text, re.DOTALL)
    assert text.count("@tpu_custom_call") == 1
    names, attributes, types, result = call.groups()
    assert result == f"tensor<1000x{N}xbf16>"
    escaped = re.search(r'backend_config = "(.*?)"', attributes)[1]
    assert json.loads(escaped.replace("\\22", '"').replace("\\5C", "\\")) == json.loads(module.backend_config)
    expected, found = [], []
    for name, kind in zip(names.split(", "), types.split(", ")):
        constants = re.findall(rf"{name} = stablehlo.constant dense<(.*?)> : {re.escape(kind)}", text[: call.start()])
        found.append(json.loads(constants[-1]) if constants else kind)
    evaluate, dims = part("_expr").evaluate, {"m": 1000, "k": K, "n": N, "g": 8}
    shapes = {"lhs": f"tensor<1000x{K}xbf16>", "rhs": f"tensor<8x{N}x{K}xbf16>", "group_sizes": "tensor<8xi32>"}
    for kind, what in module.operands:
        if kind == "argument":
            expected.append(shapes[op.arguments[what].name])
        else:
            expected.append(evaluate(what, dims) if kind == "expr" else [evaluate(expr, dims) for expr in what])
    assert found == expected


def test_gradients_use_the_packaged_modules(package):
    def loss(lhs, rhs, sizes):
        return (package.ragged_dot(lhs, rhs, sizes).astype(jnp.float32) ** 2).sum()

    text = lowered(jax.grad(loss, (0, 1)), *arrays(n=K))
    assert text.count("@tpu_custom_call") == 3
    assert "ragged_dot_general" not in text and "ragged-dot" not in text


def test_calls_that_no_module_serves_fall_back(package, part):
    for array in ([*arrays(dtype=jnp.float16)], [((8, 32), jnp.float16), ((2, 48, 32), jnp.float16), ((2,), jnp.int32)]):
        text = lowered(package.ragged_dot, *array)
        assert "@tpu_custom_call" not in text
        assert "ragged" in text
    op = part("_package").index().op("ragged_dot")
    with pytest.raises(ValueError, match="no TPU module for T=float16"):
        part("_jax").call(op, [jnp.ones((8, 32), jnp.float16), jnp.ones((2, 4, 32), jnp.float16), jnp.ones(2, jnp.int32)])


def test_the_fallback_has_the_values_of_the_reference(part):
    import numpy as np
    import routings

    reference = part("_reference_jax")
    rng = np.random.default_rng(0)
    lhs, rhs, grad = (jnp.asarray(rng.normal(size=s), jnp.float32) for s in ((300, 32), (7, 16, 32), (300, 16)))
    for sizes in map(jnp.asarray, routings.routings().values()):
        for name, second in (("ragged_dot", rhs), ("ragged_dot_gkn", rhs.swapaxes(1, 2)), ("tgmm", grad)):
            found, expected = reference.xla(name, lhs, second, sizes), reference.PRODUCTS[name](lhs, second, sizes)
            np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-5)


def test_one_warning_on_a_tpu(package, part, monkeypatch):
    monkeypatch.setattr(jax, "default_backend", lambda: "tpu")
    monkeypatch.setattr(part("_jax"), "generation", lambda: "v6e")
    with pytest.warns(RuntimeWarning, match="no TPU module on v6e for T=float16, m=24.*XLA's own") as caught:
        for _ in range(2):
            jax.clear_caches()
            lowered(package.ragged_dot, *arrays(m=24, dtype=jnp.float16))
    assert len(caught) == 1


@pytest.mark.parametrize("topology", ["v5e:2x2", "v6e:2x2", "tpu7x:2x2x1"])
def test_the_tpu_compiler_takes_every_program(child, folder, topology):
    for line in child(variant.COMMON / "tests" / "compile_for_tpu.py", folder, topology).splitlines():
        case = json.loads(line)
        assert case["calls"] == case["expected"], case
