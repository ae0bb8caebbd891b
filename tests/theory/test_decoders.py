"""What a capsule's numbers say about its neighborhood, both ways: enough, and not enough."""

import itertools
from fractions import Fraction

import numpy as np
import pytest
import torch

from gcaps.nn import central_moments, edge_filter
from gcaps.nn.capsules import Polynomial
from gcaps.theory import (
    UNKNOWN_NODE,
    UNKNOWN_SIZE,
    WEIGHTED,
    equal_moments,
    neighborhood_from_central,
    neighborhood_from_moments,
    neighborhood_from_polynomial,
    neighbors_from_moments,
)

PROUHET_TARRY_ESCOTT = {
    2: ((0, 3), (1, 2)),
    3: ((0, 4, 5), (1, 2, 6)),
    4: ((0, 4, 7, 11), (1, 2, 9, 10)),
    5: ((0, 4, 8, 16, 17), (1, 2, 10, 14, 18)),
    6: ((0, 5, 6, 16, 17, 22), (1, 2, 10, 12, 20, 21)),
}


def separated(m, columns=4, seed=0):
    """[m, columns] values that keep a distance, in random order."""
    rng = np.random.default_rng(seed)
    grid = np.linspace(-1, 1, m)[:, None] * np.ones(columns) if m > 1 else np.zeros((1, columns))
    return rng.permuted(grid + rng.uniform(-0.3, 0.3, grid.shape) / max(m - 1, 1), axis=0)


def star(values):
    """(x, filter) of a star whose centre, node 0, has ``values`` [m, c] as its closed neighborhood."""
    x = torch.from_numpy(values)
    leaves = torch.arange(1, len(values))
    arcs = torch.stack([leaves, torch.zeros_like(leaves)])
    return x, edge_filter("mean", torch.cat([arcs, arcs.flip(0)], dim=1), None, x)


def symmetric_means_of(values, count):
    x, M = star(values)
    return torch.stack(Polynomial(values.shape[1], count)(x, M))[:, 0].numpy()


def moments_of(values, count):
    return np.stack([(np.asarray(values, dtype=np.float64) ** p).mean(axis=0) for p in range(1, count + 1)])


@pytest.mark.parametrize("m", range(1, 13))
def test_full_polynomial_coefficients_give_the_neighborhood_back(m):
    values = separated(m)
    E = symmetric_means_of(values, m + 2)  # a capsule may be larger than the neighborhood
    np.testing.assert_allclose(neighborhood_from_polynomial(E, m), np.sort(values, axis=0), atol=1e-9)


@pytest.mark.parametrize("m", range(1, 10))
def test_m_moments_determine_m_values(m):
    values = separated(m)
    found = neighborhood_from_moments(moments_of(values, m), m)
    np.testing.assert_allclose(found, np.sort(values, axis=0), atol=1e-8)


@pytest.mark.parametrize("m", range(1, 10))
def test_mean_variance_skewness_and_so_on_determine_m_values(m):
    values = separated(m) + 10.0  # far from 0, where raw moments lose their digits
    x, M = star(values)
    central = torch.stack(central_moments(x, m, M))[:, 0].numpy()
    np.testing.assert_allclose(neighborhood_from_central(central, m), np.sort(values, axis=0), atol=1e-8)


def test_the_layers_mean_filter_computes_the_moments_that_are_decoded():
    values = separated(4)
    x, M = star(values)
    found = torch.stack([M.matmul(x**p)[0] for p in range(1, 5)]).numpy()
    np.testing.assert_allclose(neighborhood_from_moments(found, 4), np.sort(values, axis=0), atol=1e-12)


@pytest.mark.parametrize("m", range(2, 9))
def test_m_minus_one_moments_do_not_determine_m_values(m):
    one, other = equal_moments(m)
    assert np.abs(one - other).max() > 0.1
    np.testing.assert_allclose(moments_of(one, m - 1), moments_of(other, m - 1), atol=1e-14)
    assert abs((one**m).mean() - (other**m).mean()) > 1e-3


@pytest.mark.parametrize("m", PROUHET_TARRY_ESCOTT)
def test_m_minus_one_moments_do_not_determine_m_whole_numbers(m):
    one, other = PROUHET_TARRY_ESCOTT[m]
    assert sorted(one) != sorted(other)
    for p in range(1, m):
        assert sum(x**p for x in one) == sum(x**p for x in other)
    assert sum(x**m for x in one) != sum(x**m for x in other)
    for values in (one, other):
        np.testing.assert_allclose(neighborhood_from_moments(moments_of(values, m), m), values, atol=1e-6)


@pytest.mark.parametrize("m", range(2, 7))
def test_m_minus_one_moments_determine_no_neighborhood_of_m_different_values(m):
    values = separated(m, columns=1)
    E = symmetric_means_of(values, m)
    E[-1] += 1e-4 * np.prod(np.diff(np.sort(values[:, 0])))  # the constant coefficient alone
    moved = neighborhood_from_polynomial(E, m)
    assert np.abs(moved - np.sort(values, axis=0)).max() > 1e-6
    np.testing.assert_allclose(moments_of(moved, m - 1), moments_of(values, m - 1), atol=1e-12)


def test_figure1_three_moments_determine_the_node_and_its_two_neighbors():
    small = list(itertools.combinations_with_replacement(range(-4, 5), 3))
    seen = {tuple(Fraction(sum(x**p for x in values), 3) for p in (1, 2, 3)) for values in small}
    assert len(seen) == len(small)  # no two of them share their moments, in exact arithmetic
    for values in small:
        x, M = star(np.array(values, dtype=np.float64)[:, None])
        central = torch.stack(central_moments(x, 3, M))[:, 0].numpy()
        # a value that stands twice or thrice comes back to √ε or ∛ε of the scale
        np.testing.assert_allclose(neighborhood_from_moments(moments_of(values, 3), 3), sorted(values), atol=1e-4)
        np.testing.assert_allclose(neighborhood_from_central(central, 3)[:, 0], sorted(values), atol=1e-4)


def test_figure1_two_moments_do_not_determine_two_neighbors():
    one, other = (0, 4, 5), (1, 2, 6)
    np.testing.assert_array_equal(moments_of(one, 2), moments_of(other, 2))


def test_figure1_three_moments_need_the_number_of_neighbors():
    one, other = UNKNOWN_SIZE
    assert (len(one), len(other)) == (2, 3)
    np.testing.assert_allclose(moments_of(one, 3), moments_of(other, 3), atol=1e-15)
    assert abs(moments_of(one, 4)[3] - moments_of(other, 4)[3]) > 0.2
    for values in UNKNOWN_SIZE:
        np.testing.assert_allclose(neighborhood_from_moments(moments_of(values, 3), len(values)), values, atol=1e-14)


def test_figure1_moments_do_not_tell_the_node_from_its_neighbors():
    closed = [sorted([own, *neighbors]) for own, neighbors in UNKNOWN_NODE]
    assert UNKNOWN_NODE[0] != UNKNOWN_NODE[1]
    assert closed[0] == closed[1]


@pytest.mark.parametrize("neighbors", range(1, 7))
def test_figure1_a_known_own_value_saves_one_moment(neighbors):
    values = separated(neighbors + 1)
    found = neighbors_from_moments(moments_of(values, neighbors), values[0], neighbors + 1)
    np.testing.assert_allclose(found, np.sort(values[1:], axis=0), atol=1e-9)


def test_figure1_edge_weights_take_more_moments():
    (a, b), (c, d) = WEIGHTED
    assert (a, b) != (c, d)
    assert (a + 2 * b, a**2 + 2 * b**2) == (c + 2 * d, c**2 + 2 * d**2)
    M = edge_filter("mean", torch.tensor([[0, 1], [1, 0]]), torch.tensor([2.0, 2.0]), torch.zeros(2, 1).double())
    one, other = (torch.tensor([pair], dtype=torch.float64).t() for pair in WEIGHTED)
    for p in (1, 2):
        assert M.matmul(one**p)[0].item() == pytest.approx(M.matmul(other**p)[0].item(), abs=1e-15)
    assert abs(M.matmul(one**3)[0] - M.matmul(other**3)[0]).item() > 1


@pytest.mark.parametrize("value", [0.0, 0.1, -7.3])
@pytest.mark.parametrize("m", [1, 2, 3])
def test_a_constant_neighborhood_is_its_mean_though_it_has_no_skewness(m, value):
    central = [value, 0.0, 0.0][:m]
    np.testing.assert_allclose(neighborhood_from_central(central, m), np.full(m, value), atol=1e-9)


@pytest.mark.parametrize("copies", [2, 3, 4])
def test_a_value_that_stands_k_times_comes_back_to_the_kth_root_of_epsilon(copies):
    values = np.array([1.0] * copies + [-1.0])
    found = neighborhood_from_moments(moments_of(values, len(values)), len(values))
    assert np.abs(found - np.sort(values)).max() < 10 * np.finfo(np.float64).eps ** (1 / copies)


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: neighborhood_from_moments([1.0, 2.0], 3), "3 values need 3 moments, 2 are given"),
        (lambda: neighborhood_from_polynomial([], 0), "at least one value"),
        (lambda: neighborhood_from_central(1.0, 2), "2 values need 2 central moments, 0 are given"),
        (lambda: equal_moments(3, 0.5, 0.5), "different numbers"),
    ],
)
def test_too_few_statistics_are_refused(call, words):
    with pytest.raises(ValueError, match=words):
        call()


def test_a_node_without_neighbors_has_none_to_give_back():
    assert neighbors_from_moments([[5.0]], [5.0], 1).shape == (0, 1)
