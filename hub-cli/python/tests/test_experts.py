"""Tests of experts_forward on a module with the attributes that Transformers gives its experts, token by token in float64."""

import pytest

torch = pytest.importorskip("torch", reason="needs torch: see tools/requirements/torch.txt")

EXPERTS, HIDDEN, INNER, TOKENS = 6, 32, 16, 13


class Experts(torch.nn.Module):
    """The experts of a layer, with every variation that Transformers knows."""

    def __init__(self, gate=True, bias=False, transposed=False, concatenated=True, norm=False, parallel=False):
        super().__init__()
        self.num_experts, self._is_expert_parallel = EXPERTS, parallel
        self.has_gate, self.has_bias, self.is_transposed = gate, bias, transposed
        self.is_concatenated, self.has_post_expert_norm = concatenated, norm
        self.act_fn = torch.nn.functional.silu
        up = 2 * INNER if gate else INNER
        name = "gate_up_proj" if gate else "up_proj"
        setattr(self, name, self.weight(up, HIDDEN))
        self.down_proj = self.weight(HIDDEN, INNER)
        if bias:
            setattr(self, f"{name}_bias", torch.nn.Parameter(torch.randn(EXPERTS, up)))
            self.down_proj_bias = torch.nn.Parameter(torch.randn(EXPERTS, HIDDEN))
        if norm:
            self.post_expert_norm = torch.nn.LayerNorm(HIDDEN)

    def weight(self, out, inner):
        weight = torch.randn(EXPERTS, out, inner) * inner**-0.5
        return torch.nn.Parameter(weight.mT.contiguous() if self.is_transposed else weight)

    def _apply_gate(self, rows):
        gate, up = rows.chunk(2, -1) if self.is_concatenated else (rows[..., ::2], rows[..., 1::2])
        return self.act_fn(gate) * up


def oracle(module, hidden, index, weights):
    """What the layer should give: one token and one expert at a time, in the dtype of the arguments."""
    name = "gate_up_proj" if module.has_gate else "up_proj"

    def linear(row, name, expert):
        weight = getattr(module, name)[expert]
        out = row @ (weight if module.is_transposed else weight.T)
        return out + getattr(module, f"{name}_bias")[expert] if module.has_bias else out

    tokens = []
    for token in range(hidden.shape[0]):
        total = torch.zeros_like(hidden[token])
        for slot in range(index.shape[1]):
            expert = int(index[token, slot])
            if expert < EXPERTS:
                row = linear(hidden[token], name, expert)
                row = module._apply_gate(row) if module.has_gate else module.act_fn(row)
                row = linear(row, "down_proj", expert)
                row = module.post_expert_norm(row) if module.has_post_expert_norm else row
                total = total + row * weights[token, slot]
        tokens.append(total)
    return torch.stack(tokens)


def inputs(top_k=2, sentinels=False):
    generator = torch.Generator().manual_seed(5)
    hidden = torch.randn(TOKENS, HIDDEN, generator=generator)
    index = torch.stack([torch.randperm(EXPERTS, generator=generator)[:top_k] for _ in range(TOKENS)])
    index[index == 3] = 5  # expert 3 gets no token
    weights = torch.rand(TOKENS, top_k, generator=generator)
    if sentinels:
        index[::3, -1], index[1::3, 0], index[4] = EXPERTS, EXPERTS + 7, EXPERTS
        weights[index >= EXPERTS] = 0
    return hidden, index, weights


VARIATIONS = {
    "plain": {},
    "transposed": {"transposed": True},
    "bias": {"bias": True},
    "without a gate": {"gate": False},
    "without a gate, bias": {"gate": False, "bias": True},
    "interleaved": {"concatenated": False, "bias": True, "transposed": True},
    "norm": {"norm": True},
    "expert parallel": {"parallel": True},
    "expert parallel, bias, norm": {"parallel": True, "bias": True, "norm": True},
}


@pytest.fixture(params=list(VARIATIONS))
def module(request):
    torch.manual_seed(6)
    return Experts(**VARIATIONS[request.param])


def error(found, expected):
    return ((found.double() - expected.double()).abs().max() / expected.abs().max()).item()


def as_double(module, *tensors):
    double = Experts(
        module.has_gate,
        module.has_bias,
        module.is_transposed,
        module.is_concatenated,
        module.has_post_expert_norm,
        module._is_expert_parallel,
    ).double()
    double.load_state_dict(module.state_dict())
    return double, *(tensor.double() if tensor.is_floating_point() else tensor for tensor in tensors)


@pytest.mark.parametrize(("dtype", "tolerance"), [(torch.float32, 1e-6), (torch.bfloat16, 1.5e-2)])
@pytest.mark.parametrize("top_k", [1, 2, 6])
def test_values(package, module, dtype, tolerance, top_k):
    hidden, index, weights = inputs(top_k, module._is_expert_parallel)
    module, hidden, weights = module.to(dtype), hidden.to(dtype), weights.to(dtype)
    with torch.no_grad():
        out = package.experts_forward(module, hidden, index, weights)
        expected = oracle(*as_double(module, hidden, index, weights))
    assert out.dtype == dtype and out.shape == hidden.shape
    assert error(out, expected) < tolerance


def test_gradients(package, module):
    tensors = inputs(2, module._is_expert_parallel)
    double = as_double(module, *tensors)
    found, expected = [], []
    for forward, layer, (hidden, index, weights), into in (
        (package.experts_forward, module, tensors, found),
        (oracle, double[0], double[1:], expected),
    ):
        leaves = [hidden.requires_grad_(), weights.requires_grad_(), *layer.parameters()]
        loss = (forward(layer, hidden, index, weights) ** 2).sum()
        into += torch.autograd.grad(loss, leaves)
    for a, b in zip(found, expected):
        assert error(a, b) < 1e-5


def test_what_belongs_to_other_devices_does_not_matter(package):
    module = Experts(bias=True, parallel=True)
    hidden, index, weights = inputs(2, sentinels=True)
    hidden[4] = torch.nan  # every expert of token 4 is elsewhere
    out = package.experts_forward(module, hidden, index, weights)
    assert not out[4].any()
    assert out.isfinite().all()
    nothing = package.experts_forward(module, hidden, torch.full_like(index, EXPERTS), weights)
    assert not nothing.any()


def test_compile(package, module):
    tensors = inputs(2, module._is_expert_parallel)
    compiled = torch.compile(package.experts_forward, backend="aot_eager", fullgraph=True, dynamic=True)
    assert torch.allclose(compiled(module, *tensors), package.experts_forward(module, *tensors), atol=1e-6)
