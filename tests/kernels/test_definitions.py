"""Each kernel against a reference implementation of its definition, and against GraKeL."""

from dataclasses import replace

import grakel
import networkx as nx
import numpy as np
import pytest

from gcaps.data.catalog import load
from gcaps.data.graphset import GraphSet
from gcaps.errors import ConfigError, DataError
from gcaps.kernels import MultiscaleLaplacian, RandomWalk, ShortestPath, WeisfeilerLehman, WLOptimalAssignment
from gcaps.kernels.random_walk import labelled_grams, spectral_bounds
from gcaps.testing import hostile_graphs
from tests.kernels import oracles


@pytest.mark.parametrize("n_iter", [0, 1, 5])
def test_wl_matches_relabelling_with_strings(n_iter: int) -> None:
    graphs = hostile_graphs(16, seed=1, largest=4)
    expected = oracles.gram_of(graphs, lambda graph: oracles.wl_colors(graph, n_iter))
    np.testing.assert_array_equal(WeisfeilerLehman(n_iter, normalize=False).fit_transform(graphs), expected)


def test_wl_with_edge_labels_and_without_node_labels() -> None:
    graphs = load("MUTAG").subset(range(25))
    expected = oracles.gram_of(graphs, lambda graph: oracles.wl_colors(graph, 2, edge_labels=True))
    kernel = WeisfeilerLehman(2, edge_labels=True, normalize=False)
    np.testing.assert_array_equal(kernel.fit_transform(graphs), expected)
    expected = oracles.gram_of(graphs, lambda graph: oracles.wl_colors(graph, 2, use_labels=False))
    kernel = WeisfeilerLehman(2, labels=False, edge_labels=False, normalize=False)
    np.testing.assert_array_equal(kernel.fit_transform(graphs), expected)
    with pytest.raises(DataError, match="has no edge labels"):
        WeisfeilerLehman(edge_labels=True).fit(hostile_graphs(8))
    with pytest.raises(ConfigError, match="n_iter must be"):
        WeisfeilerLehman(-1).fit(graphs)


def test_optimal_assignment_is_the_intersection_of_color_histograms() -> None:
    graphs = hostile_graphs(16, seed=2, largest=5)
    expected = oracles.gram_of(graphs, lambda graph: oracles.wl_colors(graph, 2), meet=min)
    np.testing.assert_array_equal(WLOptimalAssignment(2, normalize=False).fit_transform(graphs), expected)


@pytest.mark.parametrize("kernel", [WeisfeilerLehman, WLOptimalAssignment])
@pytest.mark.parametrize("normalize", [False, True])
def test_all_heights_in_one_pass_are_the_single_ones_bit_for_bit(kernel: type, normalize: bool) -> None:
    graphs = hostile_graphs(24, seed=3, largest=8)  # their partition is stable long before the last height
    heights = [0, 2, 9, 20]
    together = kernel(normalize=normalize).grams(graphs, heights)
    for height, K in zip(heights, together, strict=True):
        np.testing.assert_array_equal(K, kernel(height, normalize=normalize).fit_transform(graphs))


@pytest.mark.parametrize("labels", [True, False])
def test_sp_matches_floyd_warshall(labels: bool) -> None:
    graphs = hostile_graphs(24, seed=3, largest=7)
    expected = oracles.gram_of(graphs, lambda graph: oracles.shortest_paths(graph, use_labels=labels))
    np.testing.assert_allclose(ShortestPath(labels=labels, normalize=False).fit_transform(graphs), expected, rtol=1e-13)


def test_sp_bins_weighted_lengths() -> None:
    graphs = hostile_graphs(16, seed=4, weighted=True, largest=6)
    kernel = ShortestPath(bin_width=0.37, normalize=False)
    expected = oracles.gram_of(graphs, lambda graph: oracles.shortest_paths(graph, 0.37))
    np.testing.assert_allclose(kernel.fit_transform(graphs), expected, rtol=1e-13)
    fitted = ShortestPath().fit(graphs)
    assert fitted.bin_width_ == np.median(graphs.edge_weight)
    assert not fitted.pairwise(graphs)
    with pytest.raises(ConfigError, match="bin_width must be positive"):
        ShortestPath(bin_width=-1.0).fit(graphs)


@pytest.mark.parametrize("matched", [False, True])
@pytest.mark.parametrize("weighted", [False, True])
def test_rw_matches_the_inverse_of_the_product_graph(matched: bool, weighted: bool) -> None:
    graphs = hostile_graphs(10, seed=5, largest=3, weighted=weighted)
    decay = 0.5 / spectral_bounds(graphs).max() ** 2
    kernel = RandomWalk(decay, labels=matched, tol=1e-12, normalize=False)
    expected = [[oracles.random_walk(G, H, decay, matched) for H in graphs] for G in graphs]
    np.testing.assert_allclose(kernel.fit_transform(graphs), expected, rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize("labels", [False, True])
@pytest.mark.parametrize("directed", [False, True])
def test_rw_matches_edge_labels_in_the_direction_of_the_walk(labels: bool, directed: bool) -> None:
    graphs = hostile_graphs(16, seed=8, largest=4)
    source = np.repeat(np.arange(graphs.num_nodes), graphs.degrees)
    target = graphs.col + np.repeat(graphs.ptr[:-1], graphs.arc_counts)
    kind = (source + 2 * target) % 3 if directed else (source + target) % 3
    graphs = replace(graphs, edge_labels=kind[:, None])
    decay = 0.5 / spectral_bounds(graphs).max() ** 2
    kernel = RandomWalk(decay, labels=labels, edge_labels=True, tol=1e-12, normalize=False)
    K = kernel.fit_transform(graphs)
    expected = [[oracles.random_walk(G, H, decay, labels, edge_labels=True) for H in graphs] for G in graphs]
    np.testing.assert_allclose(K, expected, rtol=1e-10)
    np.testing.assert_array_equal(K, K.T)
    assert np.linalg.eigvalsh(K).min() > -1e-10 * K.max()
    swapped = kernel.fit(graphs.subset(range(8)))
    np.testing.assert_allclose(swapped.transform(graphs.subset(range(8, 16))).T, K[:8, 8:], rtol=1e-10)


def test_rw_of_graphs_compared_many_at_once() -> None:
    graphs = load("MUTAG")
    graphs = graphs.subset(np.tile(np.arange(188), 2))  # more nodes than one union holds
    K = RandomWalk(1e-2, edge_labels=False, tol=1e-12, normalize=False).fit_transform(graphs)
    np.testing.assert_allclose(K[:188, :188], K[188:, 188:], rtol=1e-12)
    np.testing.assert_allclose(K[:188, :188], K[:188, 188:], rtol=1e-12)
    few = [3, 90, 187]
    expected = [[oracles.random_walk(graphs[i], graphs[j], 1e-2, True) for j in few] for i in few]
    np.testing.assert_allclose(K[np.ix_(few, few)], expected, rtol=1e-10)


def test_rw_features_give_the_gram_and_only_without_labels() -> None:
    graphs = load("MUTAG").subset(range(10))
    kernel = RandomWalk(1e-2, labels=False, edge_labels=False, normalize=False)
    K = kernel.fit_transform(graphs)
    features = kernel.features(graphs)
    np.testing.assert_allclose(features @ features.T, K, rtol=1e-12)
    with pytest.raises(ConfigError, match="no explicit features"):
        RandomWalk(1e-2).fit(graphs).features(graphs)


@pytest.mark.parametrize("edge_labels", [False, True])
def test_rw_of_several_decays_in_one_pass(edge_labels: bool) -> None:
    graphs = load("MUTAG").subset(range(10))
    together = labelled_grams(graphs, [1e-3, 1e-1], RandomWalk(tol=1e-12, edge_labels=edge_labels))
    for K, decay in zip(together, [1e-3, 1e-1], strict=True):
        alone = RandomWalk(decay, tol=1e-12, edge_labels=edge_labels, normalize=False)
        np.testing.assert_allclose(alone.fit_transform(graphs), K, rtol=1e-10)


@pytest.mark.parametrize("labels", [False, True])
def test_rw_refuses_decays_that_diverge_and_names_the_largest(labels: bool) -> None:
    graphs = GraphSet.from_networkx([nx.complete_graph(11), nx.path_graph(3)])
    graphs = replace(graphs, node_labels=np.zeros((14, 1), dtype=np.int64))
    with pytest.raises(ConfigError, match=r"below 0.01 \(spectral radius 10\)"):
        RandomWalk(0.02, labels=labels).fit(graphs)
    K = RandomWalk(0.02, labels=labels, diverging="damp", normalize=False).fit_transform(graphs)
    assert np.isfinite(K).all()
    alone = RandomWalk(0.02, labels=labels, normalize=False).fit_transform(graphs.subset([1]))
    assert K[1, 1] == pytest.approx(alone[0, 0])  # only the diverging graph is damped


def test_spectral_bounds_are_bounds_and_tight() -> None:
    graphs = hostile_graphs(24, seed=6, largest=12)
    exact = np.array([np.abs(np.linalg.eigvalsh(oracles.adjacency(graph))).max() for graph in graphs])
    found = spectral_bounds(graphs)
    assert (found >= exact * (1 - 1e-12)).all()
    np.testing.assert_allclose(found, exact, rtol=0.02)


@pytest.mark.parametrize("levels", [0, 1, 2])
def test_mlg_matches_dense_recursion_where_the_basis_is_complete(levels: int) -> None:
    graphs = load("MUTAG").subset(range(3))
    expected = oracles.multiscale_laplacian(graphs, levels, 1, 0.1, 0.2)
    kernel = MultiscaleLaplacian(levels, eta=0.1, gamma=0.2, rank=50, samples=10_000)
    np.testing.assert_allclose(kernel.fit_transform(graphs), expected, rtol=1e-8)


def test_mlg_of_nodes_that_share_a_neighborhood() -> None:
    graphs = GraphSet.from_networkx(
        [nx.star_graph(5), nx.complete_graph(5), nx.Graph(nx.complete_bipartite_graph(2, 3).edges)]
    )
    graphs = replace(graphs, node_labels=(np.arange(graphs.num_nodes)[:, None] % 3).astype(np.int64))
    expected = oracles.multiscale_laplacian(graphs, 2, 1, 0.1, 0.2)
    kernel = MultiscaleLaplacian(2, eta=0.1, gamma=0.2, rank=50, samples=10_000)
    np.testing.assert_allclose(kernel.fit_transform(graphs), expected, rtol=1e-8)


def test_mlg_of_large_neighborhoods_by_conjugate_gradients() -> None:
    graphs = GraphSet.from_networkx([nx.gnp_random_graph(70, 0.1, seed=1), nx.star_graph(80), nx.path_graph(60)])
    labels = np.arange(graphs.num_nodes)[:, None] % 3
    graphs = replace(graphs, node_labels=labels.astype(np.int64))
    kernel = MultiscaleLaplacian(0, eta=0.01, gamma=0.1)
    np.testing.assert_allclose(
        kernel.fit_transform(graphs), oracles.multiscale_laplacian(graphs, 0, 1, 0.01, 0.1), rtol=1e-7
    )


def test_mlg_refuses_invalid_parameters() -> None:
    for wrong, text in (({"eta": 0.0}, "eta and gamma"), ({"levels": -1}, "levels must"), ({"rank": 0}, "rank must")):
        with pytest.raises(ConfigError, match=text):
            MultiscaleLaplacian(**wrong).fit(hostile_graphs(8))


PLAIN = {"edge_labels": False, "normalize": False}

GRAKEL = {
    "wl": (WeisfeilerLehman(4, **PLAIN), grakel.WeisfeilerLehman(n_iter=4)),
    "wl-normalized": (WeisfeilerLehman(4, edge_labels=False), grakel.WeisfeilerLehman(n_iter=4, normalize=True)),
    "wloa": (WLOptimalAssignment(4, **PLAIN), grakel.WeisfeilerLehmanOptimalAssignment(n_iter=4)),
    "sp": (ShortestPath(normalize=False), grakel.ShortestPath()),
    "sp-unlabelled": (ShortestPath(labels=False, normalize=False), grakel.ShortestPath(with_labels=False)),
    "rw": (RandomWalk(1e-2, labels=False, tol=1e-12, **PLAIN), grakel.RandomWalk(lamda=1e-2, method_type="baseline")),
    "mlg": (
        MultiscaleLaplacian(0, eta=0.1, gamma=0.1),
        grakel.MultiscaleLaplacian(L=0, heta=0.1, gamma=0.1, n_samples=1000, P=7, normalize=True, random_state=0),
    ),
}


@pytest.mark.parametrize("name", list(GRAKEL))
def test_equals_grakel(name: str) -> None:
    graphs = load("MUTAG").subset(range(12))
    ours, theirs = GRAKEL[name]
    given = oracles.grakel_graphs(graphs)
    if name == "mlg":
        given = [[A, {v: tuple(np.eye(7)[label]) for v, label in labels.items()}] for A, labels, _ in given]
    np.testing.assert_allclose(ours.fit_transform(graphs), theirs.fit_transform(given), rtol=1e-8)


def test_labelled_rw_equals_grakel_but_for_unmatched_nodes() -> None:
    graphs = load("MUTAG").subset(range(4))
    ours = RandomWalk(1e-2, tol=1e-12, **PLAIN).fit_transform(graphs)
    theirs = grakel.RandomWalkLabeled(lamda=1e-2, method_type="baseline").fit_transform(oracles.grakel_graphs(graphs))
    unmatched = np.outer(graphs.sizes, graphs.sizes) - WeisfeilerLehman(0, normalize=False).fit_transform(graphs)
    np.testing.assert_allclose(ours + unmatched, theirs, rtol=1e-8)  # GraKeL counts them as walks of length 0
