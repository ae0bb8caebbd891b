import numpy as np
import pytest
from scipy.sparse import csr_array

from gcaps.features import component_distances, harmonic_distances
from gcaps.features.binning import quantize
from gcaps.testing import hostile_graphs
from tests.oracle import dense


@pytest.mark.parametrize("weighted", [False, True])
def test_eq9_harmonic_distances_match_dense_oracle(weighted):
    graphs = hostile_graphs(32, seed=2, weighted=weighted, largest=8)
    for graph in graphs:
        A = dense.adjacency(graph)
        found, expected = harmonic_distances(A), dense.harmonic_distances(A)
        assert np.array_equal(np.isinf(found), np.isinf(expected))
        finite = np.isfinite(expected)
        np.testing.assert_allclose(found[finite], expected[finite], rtol=2**-25, atol=1e-8)


def test_whole_set_equals_graph_by_graph(hostile):
    block = np.full((hostile.num_nodes, hostile.num_nodes), np.inf)
    for nodes, distance in component_distances(hostile):
        block[nodes[:, :, None], nodes[:, None, :]] = distance
    for number in range(len(hostile)):
        nodes = slice(hostile.ptr[number], hostile.ptr[number + 1])
        alone = harmonic_distances(dense.adjacency(hostile[number]))
        finite = np.isfinite(alone)
        assert np.array_equal(np.isfinite(block[nodes, nodes]), finite)
        np.testing.assert_allclose(block[nodes, nodes][finite], alone[finite], rtol=2**-24)
        block[nodes, nodes] = np.inf
    assert np.isinf(block).all(), "nothing is reachable outside its own graph"


def test_known_resistances():
    path = np.diag(np.ones(3), 1)
    path += path.T
    np.testing.assert_allclose(harmonic_distances(path), np.abs(np.subtract.outer(range(4), range(4))), atol=1e-7)
    clique = np.ones((5, 5))  # self-loops carry no current
    np.testing.assert_allclose(harmonic_distances(clique), (2 / 5) * (1 - np.eye(5)), atol=1e-7)
    assert harmonic_distances(csr_array((3, 3))).tolist() == [
        [0, np.inf, np.inf],
        [np.inf, 0, np.inf],
        [np.inf, np.inf, 0],
    ]


@pytest.mark.parametrize("A", [np.ones((2, 3)), np.array([[0, 1], [2, 0]]), np.array([[0, -1], [-1, 0]])])
def test_what_is_no_adjacency_matrix_is_refused(A):
    with pytest.raises(ValueError, match="must be"):
        harmonic_distances(A)


def test_quantize_removes_rounding_noise_from_rationals():
    rng = np.random.default_rng(0)
    rationals = np.array([p / q for q in range(1, 60) for p in range(1, 60)] + [2.0**-k for k in range(40)])
    rounded = quantize(rationals)
    for _ in range(50):
        noise = 1 + rng.uniform(-1, 1, len(rationals)) * 1e-12
        assert np.array_equal(quantize(rationals * noise), rounded)
    np.testing.assert_allclose(rounded, rationals, rtol=2**-25)
    assert quantize(np.zeros(1)) == 0
