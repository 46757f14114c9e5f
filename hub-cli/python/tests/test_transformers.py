"""Tests of experts_forward in a real Transformers model, against the library's own eager experts."""

import pytest

torch = pytest.importorskip("torch", reason="needs torch: see tools/requirements/torch.txt")
transformers = pytest.importorskip("transformers", reason="needs transformers: see tools/requirements/torch.txt")

NAME = "ragged_dot_tpu_test"


@pytest.fixture(scope="module")
def calls(package):
    """Registers the package's experts, and counts how often they run."""
    from transformers.integrations.moe import ALL_EXPERTS_FUNCTIONS

    calls = []

    def forward(*arguments):
        calls.append(1)
        return package.experts_forward(*arguments)

    ALL_EXPERTS_FUNCTIONS.register(NAME, forward)
    return calls


def model(top_k=2, dtype=torch.float32):
    torch.manual_seed(0)
    config = transformers.Qwen3MoeConfig(
        vocab_size=128,
        hidden_size=64,
        intermediate_size=96,
        num_hidden_layers=2,
        num_attention_heads=4,
        num_key_value_heads=2,
        head_dim=16,
        moe_intermediate_size=32,
        num_experts=16,
        num_experts_per_tok=top_k,
        norm_topk_prob=True,
        initializer_range=0.3,  # at the default 0.02 the experts vanish beside the residual stream
    )
    return transformers.Qwen3MoeForCausalLM(config).to(dtype).eval()


def tokens():
    return torch.randint(0, 128, (2, 11), generator=torch.Generator().manual_seed(1))


def logits(model, implementation):
    model.set_experts_implementation(implementation)
    with torch.no_grad():
        return model(tokens()).logits.double()


def error(found, expected):
    return ((found - expected).abs().max() / expected.abs().max()).item()


@pytest.mark.parametrize("top_k", [2, 8])
def test_logits_are_those_of_eager(calls, top_k):
    subject, before = model(top_k), len(calls)
    expected = logits(subject, "eager")
    assert len(calls) == before
    assert error(logits(subject, NAME), expected) < 1e-5
    assert len(calls) == before + 2  # two layers


def test_top_8_in_bfloat16_is_as_near_to_float64_as_eager(calls):
    subject = model(8, torch.bfloat16)
    experts = subject.model.layers[0].mlp.experts
    generator = torch.Generator().manual_seed(2)
    hidden = torch.randn(64, 64, generator=generator).bfloat16()
    scores, index = torch.randn(64, 16, generator=generator).softmax(-1).topk(8)
    weights = (scores / scores.sum(-1, keepdim=True)).bfloat16()

    def run(implementation, experts, hidden, weights):
        subject.set_experts_implementation(implementation)
        with torch.no_grad():
            return experts(hidden, index, weights).double()

    ours, eager = run(NAME, experts, hidden, weights), run("eager", experts, hidden, weights)
    exact = run("eager", experts.double(), hidden.double(), weights.double())
    assert error(ours, exact) < 1e-2
    assert error(ours, exact) <= error(eager, exact)


def test_gradients_are_those_of_eager(calls):
    subject, gradients = model(), {}
    for implementation in ("eager", NAME):
        subject.set_experts_implementation(implementation)
        subject.zero_grad()
        subject(tokens(), labels=tokens()).loss.backward()
        gradients[implementation] = {name: p.grad.clone() for name, p in subject.named_parameters()}
    for name, expected in gradients["eager"].items():
        assert error(gradients[NAME][name], expected) < 1e-4, name


def test_generation(calls):
    subject = model()
    made = {}
    for implementation in ("eager", NAME):
        subject.set_experts_implementation(implementation)
        made[implementation] = subject.generate(tokens(), max_new_tokens=6, do_sample=False, pad_token_id=0)
    assert torch.equal(made[NAME], made["eager"])


def test_a_layer_compiles_whole(calls):
    layer = model()
    layer.set_experts_implementation(NAME)
    layer = layer.model.layers[0].mlp
    hidden = torch.randn(2, 5, 64)
    compiled = torch.compile(layer, backend="aot_eager", fullgraph=True)
    with torch.no_grad():
        found, expected = compiled(hidden), layer(hidden)
    for a, b in zip(*(x if isinstance(x, tuple) else (x,) for x in (found, expected))):
        assert torch.allclose(a, b, atol=1e-5)
