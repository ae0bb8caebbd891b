"""The polynomial capsule and Newton's identities in float32, against exact rational arithmetic."""

import math
from fractions import Fraction

import pytest
import torch

from gcaps.nn import edge_filter, symmetric_means
from gcaps.nn.symmetric_polynomials import closed_symmetric_means

P = 8
ROUNDINGS = 80
"""On the way to one E_j there are 8 factors and, for 1000 values, 7 rounds of merging, each a sum of up to 9 terms."""
TOLERANCE = ROUNDINGS * 2.0**-24


def drawn(kind, m, channels=4):
    normal = torch.randn(m, channels, generator=torch.Generator().manual_seed(m))
    return {"alike": 0.5 + torch.special.ndtr(normal), "unlike": torch.exp(2 * normal), "signed": normal}[kind]


def exact(values):
    """E_1..E_P of a list of floats; 0 beyond their number."""
    e = [Fraction(1)] + [Fraction(0)] * P
    for x in map(Fraction, values):
        for j in range(P, 0, -1):
            e[j] += x * e[j - 1]
    return [e[j] / (math.comb(len(values), j) or 1) for j in range(1, P + 1)]


def newton(values):
    """E_1..E_P from power sums: j e_j = Σ_i (−1)^(i−1) e_{j−i} p_i."""
    p = [(values**i).sum(0) for i in range(P + 1)]
    e = [torch.ones_like(p[0])]
    for j in range(1, P + 1):
        e.append(sum((-1) ** (i - 1) * e[j - i] * p[i] for i in range(1, j + 1)) / j)
    return torch.stack([e[j] / float(math.comb(len(values), j) or 1) for j in range(1, P + 1)])


def worst_error(found, values):
    """The largest error of any E_j, j ≤ m, relative to the mean size of its terms; of positive values that is E_j."""
    worst = 0.0
    for channel, column in enumerate(values.T.tolist()):
        truth, size = exact(column), exact([abs(x) for x in column])
        for j in range(min(P, len(column))):
            worst = max(worst, float(abs(Fraction(found[j, channel].item()) - truth[j]) / size[j]))
    return worst


@pytest.mark.parametrize("kind", ["alike", "unlike", "signed"])
@pytest.mark.parametrize("m", [1, 2, 3, 5, 8, 9, 10, 30, 100, 300, 1000])
def test_polynomial_is_exact_to_rounding_in_float32(kind, m):
    values = drawn(kind, m)
    found = symmetric_means(values, torch.tensor([0, m]), P)[:, 0]
    assert worst_error(found, values) <= TOLERANCE
    assert (found[m:] == 0).all()


@pytest.mark.parametrize(("kind", "m"), [("unlike", 5), ("unlike", 10), ("unlike", 30), ("signed", 10)])
def test_newtons_identities_are_not(kind, m):
    values = drawn(kind, m, channels=16)
    assert worst_error(newton(values), values) > TOLERANCE


@pytest.mark.parametrize("scale", [1e-3, 1.0, 1e4])
def test_a_hub_of_degree_10000_stays_finite(scale):
    leaves = torch.arange(1, 10_001)
    edge_index = torch.cat([torch.stack([0 * leaves, leaves]), torch.stack([leaves, 0 * leaves])], dim=1)
    x = (scale * torch.randn(10_001, 2)).requires_grad_()
    E = torch.stack(closed_symmetric_means(x, P, edge_filter("adjacency", edge_index, None, x)))
    E.sum().backward()
    assert torch.isfinite(E).all()
    assert torch.isfinite(x.grad).all()
    largest = x.detach().abs().max()
    assert all((E[j].abs() <= 1.001 * largest ** (j + 1)).all() for j in range(P))
