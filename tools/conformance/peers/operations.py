"""Small kernels, one a kind of case that JAX's own Pallas tests have: arithmetic, casts, reductions, shapes and indexing."""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
from jax.experimental import pallas as pl
from jax.experimental.pallas import tpu as pltpu

from peers import BF16, F32, Peer, noise

I32, U32, I16, I8 = jnp.int32, jnp.uint32, jnp.int16, jnp.int8


def whole(function, *operands, reference=None):
    """A kernel that applies `function` to whole arrays, and `reference`, or the function itself outside of a kernel."""
    outs = jax.tree.leaves(jax.eval_shape(function, *operands))

    def kernel(*refs):
        results = jax.tree.leaves(function(*(ref[...] for ref in refs[: len(operands)])))
        for ref, result in zip(refs[len(operands) :], results, strict=True):
            ref[...] = result

    shapes = [jax.ShapeDtypeStruct(o.shape, o.dtype) for o in outs]
    return pl.pallas_call(kernel, out_shape=shapes)(*operands), jax.tree.leaves((reference or function)(*operands))


def numbers(seed, dtype, shape=(16, 128), low=-100, high=100):
    """Integers."""
    return jnp.asarray(np.random.default_rng(seed).integers(low, high, shape), dtype)


def analytic(x, y):
    """Functions that are approximated."""
    p = jnp.abs(x) + 0.1
    return [jnp.exp(x), jnp.exp2(x), jnp.log(p), jnp.log1p(p), jnp.sqrt(p), jax.lax.rsqrt(p), jnp.tanh(x), jax.lax.erf(x)] + [
        jnp.sin(x),
        jnp.cos(x),
        jnp.power(p, y),
        jax.nn.sigmoid(x),
        jnp.arctan2(x, y),
        1 / p,
    ]


def exact(x, y):
    """Functions whose results are numbers of their own."""
    rounded = [jnp.floor(x), jnp.ceil(x), jnp.round(x), jnp.abs(x), -x, jnp.sign(x), jnp.maximum(x, y), jnp.minimum(x, y)]
    return [
        *rounded,
        jnp.where(x > y, x, y),
        jnp.where((x > 0) & ~(y < 0), 1.0, 0.0),
        jnp.clip(x, -0.5, 0.5),
        jax.lax.rem(x, y),
    ]


def integers(a, b, n):
    """32-bit arithmetic, which wraps; division towards zero; shifts of both kinds."""
    signed = [a + b, a - b, a * b, jax.lax.div(a, n), jax.lax.rem(a, n), jnp.maximum(a, b), jnp.minimum(a, b), jnp.abs(a), -a]
    bits = [a & b, a | b, a ^ b, ~a, a << (n & 31), a >> (n & 31), jax.lax.shift_right_logical(a, n & 31)]
    return signed + bits + [jax.lax.population_count(a), jax.lax.clz(a), jnp.where(a < b, a, b)]


def unsigned(a, b):
    """The same bits without a sign."""
    return [a // (b | 1), a % (b | 1), a >> 3, jnp.where(a < b, a, b), a * b]


def casts(x, a, h, i):
    """Every way between the types that a TensorCore has."""
    return [
        x.astype(BF16),
        x.astype(I32),
        (x * 3).astype(I8),
        (x * 3).astype(I16),
        a.astype(F32),
        a.astype(I16),
        a.astype(I8),
    ] + [
        h.astype(F32),
        h.astype(I32),
        i.astype(I32),
        i.astype(F32),
        (a > 0).astype(F32),
        (x > 0).astype(I32),
    ]


def reductions(x, a):
    """Along each axis and both; where equal elements decide, the first."""
    along = [f(v, axis, keepdims=True) for f in (jnp.sum, jnp.max, jnp.min) for v in (x,) for axis in (0, 1)]
    places = [f(a.astype(F32), axis) for f in (jnp.argmax, jnp.argmin) for axis in (0, 1)]
    both = [jnp.broadcast_to(f(x), (8, 128)) for f in (jnp.sum, jnp.max)]
    return along + places + both + [jnp.sum(a, 0, keepdims=True), jnp.max(a, 1, keepdims=True)]


def shapes(x, a):
    """The same elements elsewhere."""
    return [x.T, x.reshape(2, 8, 128), x.reshape(8, 2, 128), x.reshape(8, 256), jnp.swapaxes(x.reshape(4, 4, 128), 0, 1)] + [
        jnp.concatenate([x, a.astype(F32)], 0),
        jnp.concatenate([x, x], 1),
        x[3:9, 40:100],
        jnp.tile(x, (2, 1)),
        jnp.broadcast_to(x[:, :1], (16, 128)),
        jnp.broadcast_to(x[None, 2, :], (16, 128)),
        jnp.pad(x[:8], ((4, 4), (0, 0)), constant_values=7.0),
    ]


def rolls(x, i, roll=pltpu.roll):
    """Rotations and gathers along both axes."""
    return [roll(x, 5, 0), roll(x, 77, 1), jnp.take_along_axis(x, i % 8, 0), jnp.take_along_axis(x, i, 1)]


def bits(x, i):
    """The same bits as another type: of one width, and of half the width in twice the rows."""

    def kernel(x_ref, i_ref, same_ref, narrow_ref, wide_ref):
        same_ref[...] = pltpu.bitcast(x_ref[...], I32)
        narrow_ref[...] = pltpu.bitcast(x_ref[...], I16)
        wide_ref[...] = pltpu.bitcast(i_ref[...], I32)

    out = [jax.ShapeDtypeStruct(s, d) for s, d in (((16, 128), I32), ((32, 128), I16), ((8, 128), I32))]
    words = np.asarray(x).view(np.int32)
    halves = np.stack([words & 0xFFFF, words >> 16], 1).astype(np.int16).reshape(32, 128)
    low, high = (np.asarray(i)[r::2].astype(np.int32) for r in (0, 1))
    return pl.pallas_call(kernel, out_shape=out)(x, i), [words, halves, (low & 0xFFFF) | (high << 16)]


def parts(start_ref, x_ref, y_ref, strided_ref, moved_ref, patched_ref):
    """Reads and writes parts of references: strided, at an index that the kernel reads, single rows."""
    strided_ref[...] = x_ref[pl.ds(1, 8, stride=4), :]
    moved_ref[...] = x_ref[pl.ds(start_ref[0], 8), :]
    patched_ref[...] = y_ref[...]
    patched_ref[2:5, 128:] = y_ref[12:15, :128] * 2
    patched_ref[pl.ds(start_ref[1], 1), :] = y_ref[7:8, :] + 1


def indexing(x, y, first, row):
    """The kernel of `parts`, and NumPy's."""
    smem, vmem = pl.BlockSpec(memory_space=pltpu.SMEM), pl.BlockSpec(memory_space=pltpu.VMEM)
    out = [jax.ShapeDtypeStruct(shape, F32) for shape in ((8, 128), (8, 128), y.shape)]
    got = pl.pallas_call(parts, out_shape=out, in_specs=[smem, vmem, vmem])(jnp.array([first, row], I32), x, y)
    patched = np.array(y)
    patched[2:5, 128:] = patched[12:15, :128] * 2
    patched[row] = np.asarray(y)[7] + 1
    return got, [x[1::4][:8], x[first : first + 8], patched]


def peers():
    x, y = noise(1, (16, 128), F32), noise(2, (16, 128), F32)
    a, b = numbers(3, I32, low=-(2**31), high=2**31 - 1), numbers(4, I32, low=-(2**31), high=2**31 - 1)
    small, h, i = numbers(5, I32), noise(6, (16, 128), BF16, 50.0), numbers(7, I8, (32, 128))
    # tests/pallas/tpu_ops_test.py and ops_test.py compare approximated functions at 1e-5, sums at 1e-5 relative.
    yield Peer("analytic", partial(whole, analytic, x, y), 1e-5, 1e-5)
    yield Peer("exact", partial(whole, exact, x, y), 0, 0)
    yield Peer("integers", partial(whole, integers, a, b, jnp.where(small == 0, 3, small)), 0, 0)
    yield Peer("unsigned", partial(whole, unsigned, a.astype(U32), b.astype(U32)), 0, 0)
    yield Peer("casts", partial(whole, casts, x * 10, small, h, i), 0, 0)
    yield Peer("reductions", partial(whole, reductions, x, numbers(8, I32, low=0, high=9)), 1e-5, 1e-5)
    yield Peer("shapes", partial(whole, shapes, x, small), 0, 0)
    yield Peer(
        "rolls", partial(whole, rolls, x[:8], numbers(9, I32, (8, 128), 0, 128), reference=partial(rolls, roll=jnp.roll)), 0, 0
    )
    yield Peer("bits", partial(bits, x, numbers(10, I16, low=-3000, high=3000)), 0, 0)
    yield Peer("indexing", partial(indexing, noise(11, (40, 128), F32), noise(12, (32, 256), F32), 3, 30), 0, 0)
