"""Tests of the TPU kernel of the PyTorch operations, as far as they go without a TPU."""

import json

import pytest

torch = pytest.importorskip("torch", reason="needs torch: see tools/requirements/torch.txt")

# Registers every operation with the real TorchTPU, as text and through JAX, and traces what it would compile.
REGISTER = """
import json, pathlib, sys
if sys.argv[2] == "text":
    sys.modules["jax"] = None
import torch, torch_tpu, variant
package = variant.load(pathlib.Path(sys.argv[1]))
package.ragged_dot(torch.ones(4, 8), torch.ones(2, 3, 8), torch.tensor([1, 2]))
binding = sys.modules[package.__name__ + "._torch"]
found = {}
for name, op in package._package.index().ops.items():
    tpu = binding._Tpu(package.__name__, op, None)
    if sys.argv[2] == "text":
        from torch_tpu._internal.compile import tpu_torch_compile as compile
        text = binding.program(op, op.modules[0])
        found[name] = len(compile.serialize_mlir_portable_artifact(compile.parse_mlir_text(text))) > 1000
    else:
        tpu.through_jax()
        found[name] = str(getattr(getattr(torch.ops, package.__name__), f"{name}_tpu").default._schema).partition("(")[2]
print(json.dumps(found))
"""


@pytest.mark.parametrize("way", ["text", "jax"])
def test_torch_tpu_takes_every_operation(child, folder, way):
    pytest.importorskip("torch_tpu", reason="needs torch_tpu 0.2, which is not among the requirements")
    found = json.loads(child(REGISTER, folder, way, PYTHONWARNINGS="ignore").splitlines()[-1])
    expected = True if way == "text" else "Tensor lhs, Tensor {}, Tensor group_sizes) -> Tensor"
    for name, value in found.items():
        second = "grad" if name == "tgmm" else "rhs"
        assert value == (expected.format(second) if way == "jax" else expected)


def test_a_call_that_no_module_serves_goes_to_the_fallback_with_one_warning(part):
    op, seen = part("_package").index().op("ragged_dot"), []
    tpu = part("_torch")._Tpu("space", op, lambda *tensors: seen.append(tensors) or "fallback")
    tensors = torch.ones(4, 7, dtype=torch.float16), torch.ones(2, 3, 7, dtype=torch.float16), torch.ones(2, dtype=torch.int32)
    with pytest.warns(RuntimeWarning, match="no TPU module for T=float16, m=4, k=7, n=3, g=2.*TorchTPU's own") as caught:
        assert [tpu(*tensors), tpu(*tensors)] == ["fallback", "fallback"]
    assert len(caught) == 1 and len(seen) == 2
    with pytest.raises(ValueError, match="no TPU module for T=float16"):
        part("_torch")._Tpu("space", op, None)(*tensors)


def test_an_empty_result_needs_no_module(part):
    tpu = part("_torch")._Tpu("space", part("_package").index().op("ragged_dot"), None)
    out = tpu(torch.ones(0, 7), torch.ones(2, 3, 7), torch.zeros(2, dtype=torch.int32))
    assert out.shape == (0, 3) and out.dtype == torch.float32
