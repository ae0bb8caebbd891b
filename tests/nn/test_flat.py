"""Parameters and gradients as views of two vectors."""

import torch
from torch import nn

from gcaps.nn.flat import FlatParameters, end_to_end, in_shapes


def network():
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(6, 5), nn.Tanh(), nn.Linear(5, 3))


def test_values_stay_and_gradients_are_zero():
    model, before = network(), [p.detach().clone() for p in network().parameters()]
    flat = FlatParameters.of(model)
    assert flat.values.numel() == flat.gradient.numel() == sum(p.numel() for p in before)
    for p, expected in zip(model.parameters(), before, strict=True):
        assert torch.equal(p, expected)
        assert not p.grad.any()


def test_parameters_and_gradients_are_views():
    model = network()
    flat = FlatParameters.of(model)
    flat.values.zero_()
    assert not any(p.any() for p in model.parameters())
    model(torch.ones(2, 6)).sum().backward()
    assert torch.equal(flat.gradient, torch.cat([p.grad.reshape(-1) for p in model.parameters()]))


def test_what_is_laid_out_is_found_again_also_a_part_of_it():
    model = network()
    whole = FlatParameters.of(model)
    again, part = FlatParameters.of(model), FlatParameters.of(model[2])
    assert again.values.data_ptr() == whole.values.data_ptr()
    assert part.values.data_ptr() == model[2].weight.data_ptr()
    assert part.gradient.numel() == 18
    part.gradient.fill_(1)
    assert whole.gradient.sum() == 18


def test_other_tensors_have_no_vector():
    vector = torch.arange(6.0)
    assert end_to_end([vector[:2], vector[2:]]).tolist() == vector.tolist()
    assert end_to_end([vector[2:], vector[:2]]) is None
    assert end_to_end([vector[:2], vector[3:]]) is None
    assert end_to_end([vector[:2], torch.ones(4)]) is None
    assert end_to_end([vector, None]) is None


def test_parts_of_a_vector_have_their_shapes():
    parts = in_shapes(torch.arange(8.0).numpy(), [torch.Size([2, 3]), torch.Size([2])])
    assert [part.tolist() for part in parts] == [[[0, 1, 2], [3, 4, 5]], [6, 7]]
