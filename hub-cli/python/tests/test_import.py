"""Tests that the package can be imported, and asked what it is, with neither JAX nor PyTorch; and as `kernels` does it."""

import json
import shutil

import pytest

BARE = """
import builtins, json, pathlib, sys, variant
before = set(sys.modules)
real = builtins.__import__
def refuse(name, *arguments, **keywords):
    if name.split(".")[0] in ("jax", "jaxlib", "torch", "numpy"):
        raise ImportError(f"No module named {name!r}")
    return real(name, *arguments, **keywords)
builtins.__import__ = refuse
package = variant.load(pathlib.Path(sys.argv[1]))
info = package.info()
builtins.__import__ = real
outside = {name.split(".")[0] for name in set(sys.modules) - before} - set(sys.stdlib_module_names) - {package.__name__}
print(json.dumps({"all": package.__all__, "info": info, "outside": sorted(outside)}))
"""

CLIENT = """
import json, pathlib, sys, kernels, numpy as np
package = kernels.get_local_kernel(pathlib.Path(sys.argv[1]), backend=sys.argv[2] or None, trust_remote_code=True)
ones = np.ones((4, 8), np.float32)
if sys.argv[3] == "torch":
    import torch
    out = package.ragged_dot(torch.ones(4, 8), torch.ones(2, 3, 8), torch.tensor([1, 2]))
else:
    import jax.numpy as jnp
    out = package.ragged_dot(jnp.ones((4, 8)), jnp.ones((2, 3, 8)), jnp.asarray([1, 2]))
print(json.dumps({"id": package.__name__, "out": np.asarray(out).tolist()}))
"""


def test_importing_needs_the_standard_library_only(child, folder):
    found = json.loads(child(BARE, folder))
    assert found["outside"] == []
    assert found["all"] == ["ragged_dot", "gmm", "tgmm", "experts_forward", "info"]
    assert found["info"]["id"] == "_ragged_dot_tpu_test"
    assert set(found["info"]["ops"]) >= {"ragged_dot", "ragged_dot_gkn", "tgmm"}
    assert all(op["modules"] for op in found["info"]["ops"].values())


@pytest.mark.parametrize("framework", ["jax", "torch"])
@pytest.mark.parametrize(("backend", "variant"), [("cpu", "torch-cpu"), ("", "torch-universal")])
def test_the_unmodified_client_loads_it(child, folder, tmp_path, framework, backend, variant):
    pytest.importorskip("kernels", reason="needs Hugging Face's kernels: see tools/requirements/base.txt")
    if framework == "torch":
        pytest.importorskip("torch", reason="needs torch: see tools/requirements/torch.txt")
    names = [variant] if not backend else ["torch-cpu", "torch-universal", "torch-tpu"]
    for name in names:
        build = tmp_path / "build" / name
        shutil.copytree(folder, build)
        metadata = json.loads((build / "metadata.json").read_text())
        (build / "metadata.json").write_text(json.dumps(metadata | {"id": f"_loaded_{name.replace('-', '_')}"}))
    found = json.loads(child(CLIENT, tmp_path, backend, framework).splitlines()[-1])
    assert found["id"] == f"_loaded_{variant.replace('-', '_')}"
    assert found["out"] == [[8.0] * 3] * 3 + [[0.0] * 3]


@pytest.mark.parametrize("id", ["json; import os", "a.b", "", None])
def test_an_id_that_cannot_be_a_namespace_is_refused(part, monkeypatch, id):
    package = part("_package")
    monkeypatch.setattr(package, "metadata", lambda: {"id": id or ""})
    with pytest.raises(ValueError, match="cannot be the namespace"):
        package.namespace()
