"""The experts of a Transformers mixture-of-experts layer, as two ragged products over rows sorted by expert."""

import torch

from . import _ragged_torch


def experts_forward(self, hidden_states, top_k_index, top_k_weights):
    """See the package's `experts_forward`; `self` has the attributes that Transformers 5.x gives every experts module."""
    tokens, top_k = top_k_index.shape
    experts = self.num_experts
    device = hidden_states.device

    # Sorted, the ids of experts on other devices come last, in no group: the products are zeros there, and read nothing.
    expert, order = torch.sort(top_k_index.reshape(-1).to(torch.int32), stable=True)
    ends = torch.searchsorted(expert, torch.arange(experts, device=device, dtype=torch.int32), right=True, out_int32=True)
    group_sizes = torch.diff(ends, prepend=ends.new_zeros(1))
    local = (expert < experts).unsqueeze(-1)
    expert = expert.clamp(max=experts - 1)

    def linear(rows, name):
        weight = getattr(self, name)
        out = _ragged_torch.ragged_dot(rows.to(weight.dtype), weight, group_sizes, transpose_rhs=not self.is_transposed)
        return out + getattr(self, f"{name}_bias")[expert] if self.has_bias else out

    rows = hidden_states[order // top_k]
    rows = self._apply_gate(linear(rows, "gate_up_proj")) if self.has_gate else self.act_fn(linear(rows, "up_proj"))
    rows = linear(rows, "down_proj")
    if getattr(self, "has_post_expert_norm", False):
        rows = self.post_expert_norm(rows)

    # Weighted and summed in float32 at least, then rounded once. What biases gave to rows of other devices is dropped here,
    # so that it also has no part in the gradients.
    weights = top_k_weights.reshape(-1)[order].to(torch.promote_types(rows.dtype, torch.float32))
    rows = (rows * weights.unsqueeze(-1)).masked_fill(~local, 0.0)[torch.argsort(order)]
    return rows.view(tokens, top_k, -1).sum(dim=1).to(hidden_states.dtype)
