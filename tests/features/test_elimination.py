"""Star-mesh elimination, twins and dense cores against the pseudo-inverse."""

import networkx as nx
import numpy as np
import pytest

from gcaps.data.graphset import GraphSet
from gcaps.errors import DataError
from gcaps.features import FGSD, harmonic_distances
from gcaps.features.elimination import Elimination, eliminate, resistances
from gcaps.features.quotient import network_of, quotient
from tests.oracle import dense


@pytest.mark.parametrize("weighted", [False, True])
def test_distances_match_the_pseudo_inverse(shape, weighted):
    A = shape
    if weighted:
        noise = np.random.default_rng(0).uniform(0.1, 10, A.shape)
        A = A * (noise + noise.T)
    np.testing.assert_allclose(harmonic_distances(A), dense.resistances_by_pinv(A), rtol=0, atol=1e-10)


@pytest.mark.parametrize(("core", "densest"), [(2, 1), (2, 6), (8, 3), (10**6, 1)])
def test_wherever_elimination_stops_the_result_is_the_same(shape, core, densest):
    R, rows = resistances(shape.copy(), core, densest)
    np.testing.assert_allclose(R, dense.resistances_by_pinv(shape)[np.ix_(rows, rows)], rtol=0, atol=1e-10)


def test_trees_are_eliminated_without_a_new_edge():
    path = np.diag(np.ones(30), 1) + np.diag(np.ones(30), -1)
    found = Elimination(*eliminate(path, 64, 6))
    assert np.diff(found.ptr).tolist() == [1] * 30


def test_twins_are_found_and_no_others(hostile):
    network = network_of(hostile)
    q = quotient(network, hostile.ptr)
    assert np.array_equal(np.bincount(q.class_of), q.size)
    for number in range(len(hostile)):
        A = dense.adjacency(hostile[number])
        own = q.class_of[hostile.ptr[number] : hostile.ptr[number + 1]]
        for x in range(len(A)):
            for y in range(x):
                rest = np.delete(np.arange(len(A)), [x, y])
                twins = np.array_equal(A[x, rest], A[y, rest]) and A[x].any() and A[y].any()
                assert (own[x] == own[y]) == twins


def test_components_are_those_of_the_graphs(shape_set):
    q = quotient(network_of(shape_set), shape_set.ptr)
    assert np.bincount(q.graph).tolist() == [1] * 9 + [2, 3]
    assert q.nodes_in_component.sum() == shape_set.num_nodes


def test_a_singular_core_is_an_error_and_no_result():
    apart = np.zeros((4, 4))
    apart[[0, 1, 2, 3], [1, 0, 3, 2]] = 1
    with pytest.raises(DataError, match="differ by too many orders of magnitude"):
        resistances(apart, 2, 4)


def test_weights_of_many_orders_of_magnitude_reach_no_wrong_memory():
    graphs = nx.complete_graph(6)
    nx.set_edge_attributes(graphs, {edge: 10.0 ** (-18 * (sum(edge) % 3)) for edge in graphs.edges}, "weight")
    counts = FGSD(bins=3, scale="count").fit_transform(GraphSet.from_networkx([graphs], y=[0]))
    assert counts.sum() == 30
