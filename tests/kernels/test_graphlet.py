import networkx as nx
import numpy as np
import pytest

from gcaps.data.graphset import GraphSet
from gcaps.errors import ConfigError
from gcaps.kernels import Graphlet
from gcaps.kernels.graphlet import graphlets, isomorphism_hashes
from gcaps.testing import assert_batch_equals_singles, assert_permutation_invariant, hostile_graphs
from tests.kernels import oracles


@pytest.mark.parametrize("connected", [False, True])
@pytest.mark.parametrize("size", [3, 4])
def test_counts_of_size_3_and_4_match_enumeration(size: int, connected: bool) -> None:
    graphs = hostile_graphs(32, seed=3, largest=6)
    found = Graphlet(size, connected=connected, normalize=False).fit_transform(graphs)
    expected = oracles.gram_of(graphs, lambda graph: oracles.graphlets(graph, size, connected))
    np.testing.assert_array_equal(found, expected)


def test_counts_match_enumeration_on_dense_random_graphs() -> None:
    graphs = GraphSet.from_networkx([nx.gnp_random_graph(12, p, seed=s) for s, p in enumerate((0.3, 0.5, 0.7, 0.9))])
    found = Graphlet(4, normalize=False).fit_transform(graphs)
    np.testing.assert_array_equal(found, oracles.gram_of(graphs, lambda graph: oracles.graphlets(graph, 4)))


def test_cliques_of_a_complete_graph_beyond_one_machine_word() -> None:
    graphs = GraphSet.from_networkx([nx.complete_graph(150)])
    kernel = Graphlet(4, connected=True)
    kernel.fit(graphs)
    assert kernel.features(graphs).max() == 150 * 149 * 148 * 147 // 24


def test_hashes_distinguish_all_graphs_of_up_to_seven_nodes() -> None:
    for k in range(2, 8):
        atlas = [graph for graph in nx.graph_atlas_g() if len(graph) == k]
        bits = np.arange(k * (k - 1) // 2)
        upper = np.triu_indices(k, 1)
        codes = np.array([(nx.to_numpy_array(graph, dtype=int)[upper] << bits).sum() for graph in atlas])
        hashes = isomorphism_hashes(codes, k)
        assert len(np.unique(hashes)) == len(atlas)
        order = np.random.default_rng(k).permutation(k)
        moved = [(nx.to_numpy_array(graph, dtype=int)[np.ix_(order, order)][upper] << bits).sum() for graph in atlas]
        np.testing.assert_array_equal(isomorphism_hashes(np.array(moved), k), hashes)


def test_there_are_four_graphs_on_three_nodes_and_eleven_on_four() -> None:
    assert [len(graphlets(k)[0]) for k in (3, 4)] == [4, 11]


@pytest.mark.parametrize("size", [5, 7])
def test_samples_agree_with_enumeration_within_their_error(size: int) -> None:
    graphs = GraphSet.from_networkx([nx.gnp_random_graph(10, 0.4, seed=1), nx.path_graph(11), nx.cycle_graph(9)])
    kernel = Graphlet(size, samples=20_000, random_state=1, normalize=True)
    expected = oracles.gram_of(graphs, lambda graph: oracles.graphlets_by_degree(graph, size))
    scale = np.sqrt(np.diag(expected))
    np.testing.assert_allclose(kernel.fit_transform(graphs), expected / np.outer(scale, scale), atol=0.03)


def test_connected_samples_are_connected_and_small_graphs_have_none() -> None:
    graphs = GraphSet.from_networkx([nx.path_graph(20), nx.empty_graph(9), nx.path_graph(4), nx.star_graph(30)])
    kernel = Graphlet(5, connected=True, samples=100).fit(graphs)
    K = kernel.transform(graphs)
    assert K[0, 0] == pytest.approx(1)  # the only connected graphlet of a path is a path
    np.testing.assert_array_equal(K[1], 0)
    np.testing.assert_array_equal(K[2], 0)
    assert K[0, 3] == 0


def test_samples_depend_on_the_seed_and_not_on_other_graphs() -> None:
    graphs = hostile_graphs(16, seed=5)
    kernel = Graphlet(5, samples=50, random_state=1, normalize=True)
    first = kernel.fit_transform(graphs)
    np.testing.assert_array_equal(kernel.fit_transform(graphs), first)
    assert not np.array_equal(Graphlet(5, samples=50, random_state=2, normalize=True).fit_transform(graphs), first)
    kernel.fit(graphs)
    assert_batch_equals_singles(kernel.transform, graphs, atol=1e-12)


def test_exact_counts_do_not_depend_on_node_order() -> None:
    graphs = hostile_graphs(24, seed=6)
    assert assert_permutation_invariant(Graphlet(4, normalize=True).fit_transform, graphs, atol=0) == 0


def test_impossible_sizes_are_refused() -> None:
    with pytest.raises(ConfigError, match="size must be from 3 to 7"):
        Graphlet(8).fit(hostile_graphs(8))
