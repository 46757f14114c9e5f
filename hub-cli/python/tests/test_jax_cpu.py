"""Tests of the package on JAX arrays without a TPU: values, gradients and transformations, against JAX's own ragged_dot."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import routings
from routings import G, M

K, N = 64, 48
TOLERANCE = {"float32": 1e-5, "bfloat16": 2**-8}
# Rows past the last group have no meaning to JAX's own gradient, so those routings are left to float64.
FULL = [name for name, sizes in routings.routings().items() if sizes.sum() == M]


@pytest.fixture(params=list(routings.routings()))
def sizes(request):
    return routings.routings()[request.param]


@pytest.fixture(params=["float32", "bfloat16"])
def arrays(request):
    """lhs [M,K], rhs [G,N,K] and a gradient [M,N]."""
    rng = np.random.default_rng(1)
    return [jnp.asarray(rng.normal(size=shape), request.param) for shape in ((M, K), (G, N, K), (M, N))]


def close(found, expected, dtype):
    """Whether values agree to one rounding of the dtype, relative to the largest."""
    found, expected = np.float64(np.asarray(found)), np.float64(np.asarray(expected))
    assert found.shape == expected.shape
    assert np.abs(found - expected).max() <= TOLERANCE[str(dtype)] * max(np.abs(expected).max(), 1e-30)


@pytest.mark.parametrize("transpose_rhs", [True, False])
def test_ragged_dot(package, arrays, sizes, transpose_rhs):
    lhs, rhs, _ = arrays
    given = rhs if transpose_rhs else rhs.swapaxes(1, 2)
    out = package.ragged_dot(lhs, given, sizes, transpose_rhs=transpose_rhs)
    assert out.dtype == lhs.dtype
    close(out, routings.ragged_dot(lhs, rhs, sizes), lhs.dtype)
    close(out, jax.lax.ragged_dot(lhs, rhs.swapaxes(1, 2), jnp.asarray(sizes)), lhs.dtype)
    assert not np.asarray(out[sizes.sum() :]).any()


def test_tgmm(package, arrays, sizes):
    lhs, _, grad = arrays
    out = package.tgmm(lhs, grad, sizes)
    assert out.dtype == lhs.dtype
    close(out, routings.tgmm(lhs, grad, sizes), lhs.dtype)
    assert not np.asarray(out)[sizes == 0].any()


@pytest.mark.parametrize("name", FULL)
@pytest.mark.parametrize("transpose_rhs", [True, False])
def test_gradients_are_those_of_jax(package, arrays, name, transpose_rhs):
    sizes = jnp.asarray(routings.routings()[name])
    lhs, rhs, weight = arrays
    rhs = rhs if transpose_rhs else rhs.swapaxes(1, 2)

    def ours(lhs, rhs):
        return (package.ragged_dot(lhs, rhs, sizes, transpose_rhs=transpose_rhs) * weight).sum()

    def theirs(lhs, rhs):
        return (jax.lax.ragged_dot(lhs, rhs.swapaxes(1, 2) if transpose_rhs else rhs, sizes) * weight).sum()

    for found, expected in zip(jax.grad(ours, (0, 1))(lhs, rhs), jax.grad(theirs, (0, 1))(lhs, rhs)):
        assert found.dtype == lhs.dtype
        close(found, expected, lhs.dtype)


def test_gradients_where_rows_have_no_group(package):
    sizes = routings.routings()["holes"]
    rng = np.random.default_rng(2)
    lhs, rhs, weight = (jnp.asarray(rng.normal(size=shape), jnp.float32) for shape in ((M, K), (G, N, K), (M, N)))
    lhs = lhs.at[sizes.sum() :].set(jnp.nan)  # what is in no group must not matter
    d_lhs, d_rhs = jax.grad(lambda a, b: (package.ragged_dot(a, b, sizes) * weight).sum(), (0, 1))(lhs, rhs)
    close(d_lhs, routings.ragged_dot(weight, rhs.swapaxes(1, 2), sizes), lhs.dtype)
    close(d_rhs, routings.tgmm(weight, lhs, sizes), lhs.dtype)


def test_weights_of_groups_without_rows_do_not_matter(package):
    sizes = routings.routings()["holes"]
    rng = np.random.default_rng(5)
    lhs, rhs = (jnp.asarray(rng.normal(size=shape), jnp.float32) for shape in ((M, K), (G, N, K)))
    expected = package.ragged_dot(lhs, rhs, sizes)
    assert (package.ragged_dot(lhs, rhs.at[sizes == 0].set(jnp.inf), sizes) == expected).all()


def test_second_derivatives(package):
    sizes = jnp.asarray(routings.routings()["random"])
    rng = np.random.default_rng(3)
    lhs, rhs = (jnp.asarray(rng.normal(size=shape), jnp.float32) for shape in ((M, 8), (G, 8, 4)))

    def penalty(product):
        def loss(rhs):
            return jax.grad(lambda lhs: (product(lhs, rhs) ** 2).sum())(lhs).sum()

        return jax.grad(loss)(rhs)

    ours = penalty(lambda lhs, rhs: package.gmm(lhs, rhs, sizes))
    close(ours, penalty(lambda lhs, rhs: jax.lax.ragged_dot(lhs, rhs, sizes)), lhs.dtype)


def test_gmm_is_ragged_dot_in_megablox_terms(package, arrays, sizes):
    lhs, rhs, _ = arrays
    expected = package.ragged_dot(lhs, rhs, sizes)
    assert (package.gmm(lhs, rhs.swapaxes(1, 2), sizes) == expected).all()
    assert (package.gmm(lhs, rhs, sizes, transpose_rhs=True) == expected).all()
    wide = package.gmm(lhs, rhs.swapaxes(1, 2), sizes, jnp.float32)
    assert wide.dtype == jnp.float32
    close(wide, routings.ragged_dot(lhs, rhs, sizes), "float32")
    assert package.gmm(lhs, rhs, sizes, "bfloat16", transpose_rhs=True).dtype == jnp.bfloat16
    with pytest.raises(NotImplementedError, match="existing_out"):
        package.gmm(lhs, rhs, sizes, None, None, None, expected, True)


def test_vmap(package, arrays):
    lhs, rhs, _ = arrays
    sizes = jnp.stack([jnp.asarray(s) for s in routings.routings().values()])
    batch = jnp.stack([lhs * i for i in range(len(sizes))])
    out = jax.vmap(package.ragged_dot, (0, None, 0))(batch, rhs, sizes)
    for i, size in enumerate(sizes):
        close(out[i], package.ragged_dot(batch[i], rhs, size), lhs.dtype)


@pytest.mark.parametrize("shape", [(0, 8, 4, 2), (5, 0, 4, 2), (5, 8, 0, 2), (5, 8, 4, 0)])
def test_empty_arrays(package, shape):
    m, k, n, g = shape
    lhs, rhs, sizes = jnp.ones((m, k)), jnp.ones((g, n, k)), jnp.zeros(g, jnp.int32)
    assert package.ragged_dot(lhs, rhs, sizes).shape == (m, n)
    assert package.tgmm(lhs, jnp.ones((m, n)), sizes).shape == (g, k, n)
    assert jax.grad(lambda rhs: package.ragged_dot(lhs, rhs, sizes).sum())(rhs).shape == rhs.shape


def test_numpy_arrays_and_wide_sizes_are_taken(package, arrays, sizes):
    lhs, rhs, _ = arrays
    out = package.ragged_dot(np.asarray(lhs), np.asarray(rhs), sizes.astype(np.int64))
    assert (out == package.ragged_dot(lhs, rhs, sizes)).all()


@pytest.mark.parametrize(
    ("shapes", "dtypes", "message"),
    [
        (((4, 8), (2, 3, 9), (2,)), ("float32", "float32"), "k is 8 and then 9, in rhs of shape"),
        (((4, 8), (2, 3, 8), (3,)), ("float32", "float32"), "g is 2 and then 3, in group_sizes"),
        (((4, 8), (3, 8), (3,)), ("float32", "float32"), r"rhs has shape \(3, 8\)"),
        (((4, 8), (2, 3, 8), (2,)), ("float32", "bfloat16"), "rhs is bfloat16; T is float32 already"),
    ],
)
def test_arguments_that_do_not_fit(package, shapes, dtypes, message):
    lhs, rhs = (jnp.ones(shape, dtype) for shape, dtype in zip(shapes, dtypes))
    with pytest.raises(TypeError, match=message):
        package.ragged_dot(lhs, rhs, jnp.ones(shapes[2], jnp.int32))


SHARDED = """
import sys, jax, jax.numpy as jnp, numpy as np, pathlib, routings, variant
from jax.sharding import Mesh, PartitionSpec as P
package = variant.load(pathlib.Path(sys.argv[1]))
mesh = Mesh(np.array(jax.devices()), ("x",))
rng = np.random.default_rng(4)
sizes = jnp.stack([jnp.asarray(list(routings.routings().values())[i]) for i in (0, 1, 4, 1)])
m, g = routings.M, routings.G
lhs, rhs = (jnp.asarray(rng.normal(size=shape), jnp.float32) for shape in ((4 * m, 16), (g, 8, 16)))

def alone(lhs, rhs):
    return jnp.concatenate([package.ragged_dot(lhs[i * m : i * m + m], rhs, sizes[i]) for i in range(4)])

for check in (False, True):
    specs = {"in_specs": (P("x"), P(), P("x")), "out_specs": P("x"), "check_vma": check}
    split = jax.shard_map(lambda l, r, s: package.ragged_dot(l, r, s[0]), mesh=mesh, **specs)
    np.testing.assert_allclose(jax.jit(split)(lhs, rhs, sizes), alone(lhs, rhs), rtol=1e-5, atol=1e-5)
    found = jax.jit(jax.grad(lambda l, r: (split(l, r, sizes) ** 2).sum(), (0, 1)))(lhs, rhs)
    expected = jax.grad(lambda l, r: (alone(l, r) ** 2).sum(), (0, 1))(lhs, rhs)
    for a, b in zip(found, expected):
        np.testing.assert_allclose(a, b, rtol=1e-4, atol=1e-3)
print("ok")
"""


def test_shard_map(child, folder):
    assert "ok" in child(SHARDED, folder, XLA_FLAGS="--xla_force_host_platform_device_count=4")
