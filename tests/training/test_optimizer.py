import copy

import pytest
import torch
from torch import nn

from gcaps.training.optimizer import FlatAdam


def network():
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(6, 5), nn.Tanh(), nn.Linear(5, 3)).double()


@pytest.mark.parametrize("weight_decay", [0.0, 0.01])
def test_steps_equal_those_of_torch(weight_decay):
    ours, theirs = network(), network()
    adam = torch.optim.Adam(theirs.parameters(), lr=0.01, weight_decay=weight_decay)
    flat = FlatAdam(ours, 0.01, weight_decay)
    data = torch.randn(30, 8, 6, dtype=torch.float64, generator=torch.Generator().manual_seed(1))
    for x in data:
        for model, optimizer in ((ours, flat), (theirs, adam)):
            optimizer.zero_grad()
            model(x).square().sum().backward()
            optimizer.step()
    for a, b in zip(ours.parameters(), theirs.parameters(), strict=True):
        torch.testing.assert_close(a, b, rtol=1e-9, atol=1e-12)


def test_going_on_from_a_state_gives_the_same_weights():
    whole, half = network(), network()
    x = torch.randn(8, 6, dtype=torch.float64)

    def run(model, optimizer, steps):
        for _ in range(steps):
            optimizer.zero_grad()
            model(x).square().sum().backward()
            optimizer.step()

    run(whole, FlatAdam(whole, 0.01, 0.0), 6)
    first = FlatAdam(half, 0.01, 0.0)
    run(half, first, 3)
    resumed = copy.deepcopy(half)
    second = FlatAdam(resumed, 0.01, 0.0)
    second.restore(first.state())
    run(resumed, second, 3)
    for a, b in zip(whole.parameters(), resumed.parameters(), strict=True):
        assert torch.equal(a, b)


def test_a_parameter_without_gradient_stays():
    model = network()
    before = model[2].weight.detach().clone()
    flat = FlatAdam(model, 0.01, 0.0)
    model[0](torch.ones(2, 6, dtype=torch.float64)).sum().backward()
    flat.step()
    assert torch.equal(model[2].weight, before)
