"""Tests of the package on PyTorch tensors: values, gradients, fake tensors, torch.compile and torch.export."""

import numpy as np
import pytest
import routings
from routings import G, M

torch = pytest.importorskip("torch", reason="needs torch: see tools/requirements/torch.txt")

K, N = 64, 48
TOLERANCE = {torch.float32: 1e-5, torch.bfloat16: 2**-8, torch.float64: 1e-12}


@pytest.fixture(params=list(routings.routings()))
def sizes(request):
    return torch.from_numpy(routings.routings()[request.param])


@pytest.fixture(params=[torch.float32, torch.bfloat16])
def tensors(request):
    """lhs [M,K], rhs [G,N,K] and a gradient [M,N]."""
    return make(request.param)


def make(dtype, k=K, n=N):
    generator = torch.Generator().manual_seed(1)
    return [torch.randn(*shape, generator=generator).to(dtype) for shape in ((M, k), (G, n, k), (M, n))]


def close(found, expected, dtype):
    """Whether values agree to one rounding of the dtype, relative to the largest."""
    found, expected = found.detach().double().numpy(), np.asarray(expected, np.float64)
    assert found.shape == expected.shape
    assert np.abs(found - expected).max() <= TOLERANCE[dtype] * max(np.abs(expected).max(), 1e-30)


def wide(*tensors):
    return [tensor.detach().double().numpy() for tensor in tensors]


@pytest.mark.parametrize("transpose_rhs", [True, False])
def test_ragged_dot(package, tensors, sizes, transpose_rhs):
    lhs, rhs, _ = tensors
    out = package.ragged_dot(lhs, rhs if transpose_rhs else rhs.mT, sizes, transpose_rhs=transpose_rhs)
    assert out.dtype == lhs.dtype
    close(out, routings.ragged_dot(*wide(lhs, rhs), sizes.numpy()), lhs.dtype)


def test_gmm_and_tgmm(package, tensors, sizes):
    lhs, rhs, grad = tensors
    assert torch.equal(package.gmm(lhs, rhs.mT, sizes), package.ragged_dot(lhs, rhs, sizes))
    assert package.gmm(lhs, rhs, sizes, torch.float32, transpose_rhs=True).dtype == torch.float32
    close(package.tgmm(lhs, grad, sizes), routings.tgmm(*wide(lhs, grad), sizes.numpy()), lhs.dtype)


def test_both_frameworks_have_the_same_results(package, tensors, sizes):
    jnp = pytest.importorskip("jax.numpy", reason="needs JAX")
    lhs, rhs, _ = tensors
    same = [jnp.asarray(tensor.float().numpy(), str(lhs.dtype).removeprefix("torch.")) for tensor in (lhs, rhs)]
    out = package.ragged_dot(*same, sizes.numpy())
    close(package.ragged_dot(lhs, rhs, sizes), np.asarray(out, np.float64), lhs.dtype)


@pytest.mark.parametrize("transpose_rhs", [True, False])
def test_gradients(package, tensors, sizes, transpose_rhs):
    lhs, rhs, grad = (tensor.requires_grad_() for tensor in tensors)
    given = rhs if transpose_rhs else rhs.mT
    out = package.ragged_dot(lhs, given, sizes, transpose_rhs=transpose_rhs)
    d_lhs, d_rhs = torch.autograd.grad(out, (lhs, rhs), grad)
    numbers = sizes.numpy()
    close(d_lhs, routings.ragged_dot(*wide(grad, rhs.mT), numbers), lhs.dtype)
    close(d_rhs, routings.tgmm(*wide(grad, lhs), numbers), lhs.dtype)


def test_gradients_to_second_order_by_differences(package):
    sizes = torch.tensor([2, 0, 3])
    generator = torch.Generator().manual_seed(2)
    shapes = ((6, 4), (3, 5, 4), (6, 5))
    lhs, rhs, grad = (torch.randn(*s, generator=generator, dtype=torch.float64, requires_grad=True) for s in shapes)
    assert torch.autograd.gradcheck(lambda a, b: package.ragged_dot(a, b, sizes), (lhs, rhs))
    assert torch.autograd.gradcheck(lambda a, b: package.tgmm(a, b, sizes), (lhs, grad))
    assert torch.autograd.gradgradcheck(lambda a, b: package.ragged_dot(a, b, sizes), (lhs, rhs))


@pytest.mark.parametrize("name", ["ragged_dot", "ragged_dot_gkn", "tgmm"])
def test_opcheck(package, name):
    from torch.library import opcheck

    lhs, rhs, grad = make(torch.float32)
    package.ragged_dot(lhs, rhs, torch.zeros(G))  # registers the operations
    second = {"ragged_dot": rhs, "ragged_dot_gkn": rhs.mT.contiguous(), "tgmm": grad}[name]
    op = getattr(torch.ops._ragged_dot_tpu_test, name).default
    sizes = torch.from_numpy(routings.routings()["random"])
    found = opcheck(op, (lhs.requires_grad_(), second.detach().requires_grad_(), sizes))
    assert set(found.values()) == {"SUCCESS"}


def test_shapes_without_values(package):
    from torch._subclasses.fake_tensor import FakeTensorMode

    lhs, rhs, grad = make(torch.bfloat16)
    meta = [tensor.to("meta") for tensor in (lhs, rhs, grad, torch.zeros(G))]
    assert package.ragged_dot(meta[0], meta[1], meta[3]).shape == (M, N)
    assert package.tgmm(meta[0], meta[2], meta[3]).shape == (G, K, N)
    with FakeTensorMode():
        out = package.ragged_dot(torch.empty(M, K), torch.empty(G, N, K), torch.empty(G))
        assert (out.shape, out.dtype, out.device.type) == ((M, N), torch.float32, "cpu")


def test_compile(package):
    sizes = torch.from_numpy(routings.routings()["random"])

    def loss(lhs, rhs, sizes):
        return package.gmm(package.ragged_dot(lhs, rhs, sizes), rhs, sizes).sum()

    lhs, rhs, _ = make(torch.float32)
    rhs.requires_grad_()
    loss(lhs, rhs, sizes).backward()
    expected, rhs.grad = rhs.grad, None
    compiled = torch.compile(loss, backend="aot_eager", fullgraph=True, dynamic=True)
    compiled(lhs, rhs, sizes).backward()
    assert torch.equal(rhs.grad, expected)
    assert compiled(lhs[:100], rhs, sizes // 3) == loss(lhs[:100], rhs, sizes // 3)


def test_export_with_any_number_of_rows(package):
    class Layer(torch.nn.Module):
        def forward(self, lhs, rhs, sizes):
            return package.ragged_dot(lhs, rhs, sizes) * 2

    lhs, rhs, _ = make(torch.float32)
    sizes = torch.from_numpy(routings.routings()["random"])
    shapes = {"lhs": {0: torch.export.Dim("m")}, "rhs": None, "sizes": None}
    exported = torch.export.export(Layer(), (lhs, rhs, sizes), dynamic_shapes=shapes)
    short = exported.module()(lhs[:100], rhs, sizes // 3)
    assert torch.equal(short, package.ragged_dot(lhs[:100], rhs, sizes // 3) * 2)


@pytest.mark.parametrize("device", ["cpu", "meta"])
def test_arguments_that_do_not_fit(package, device):
    lhs, rhs, sizes = (torch.ones(*shape, device=device) for shape in ((4, 8), (2, 3, 8), (2,)))
    with pytest.raises((TypeError, RuntimeError), match="k is 8 and then 7"):
        package.ragged_dot(lhs, rhs[..., :7], sizes)
    with pytest.raises(TypeError, match=r"lhs has shape \(4,\)|lhs has shape torch"):
        package.ragged_dot(lhs[:, 0], rhs, sizes)
    with pytest.raises(TypeError, match="rhs is float64; T is float32 already"):
        package.ragged_dot(lhs, rhs.double(), sizes)


def test_importing_it_does_not_import_jax(child, folder):
    program = """
import pathlib, sys, torch, variant
package = variant.load(pathlib.Path(sys.argv[1]))
package.ragged_dot(torch.ones(4, 8), torch.ones(2, 3, 8), torch.tensor([1, 2]))
print("jax" in sys.modules)
"""
    assert child(program, folder).split() == ["False"]
