"""Local topological profiles against networkx and dense definitions."""

import networkx as nx
import numpy as np
import pytest

import gcaps.features.topological_profile as module
from gcaps.data.catalog import load
from gcaps.data.prepared import PreparedSet
from gcaps.errors import ConfigError
from gcaps.estimators import LTPForestClassifier
from gcaps.features import LocalTopologicalProfile
from gcaps.features.topological_profile import topological_profile
from gcaps.testing import assert_batch_equals_singles, assert_permutation_invariant, hostile_graphs


def dense_profile(graph: nx.Graph) -> tuple[np.ndarray, np.ndarray]:
    """Descriptors of nodes, and of edges in ascending order."""
    degree = dict(graph.degree())
    nodes = []
    for v in sorted(graph):
        around = [degree[u] for u in graph[v]] or [0]
        deviation = np.std(around, ddof=1) if len(around) > 1 else 0.0
        nodes.append([degree[v], min(around), max(around), np.mean(around), deviation])
    betweenness = nx.edge_betweenness_centrality(graph, normalized=False)
    edges = []
    for u, v in sorted(tuple(sorted(edge)) for edge in graph.edges):
        jaccard = len(set(graph[u]) & set(graph[v])) / len(set(graph[u]) | set(graph[v]))
        scores = []
        for a, b in ((u, v), (v, u)):
            rank = 1 + sum(degree[w] > degree[b] for w in graph[a])
            scores.append(1 - np.log(rank) / np.log(degree[a]) if degree[a] > 1 else 1.0)
        edges.append([betweenness.get((u, v), betweenness.get((v, u))), jaccard, max(scores)])
    return np.array(nodes, dtype=float), np.array(edges, dtype=float).reshape(-1, 3)


def test_descriptors_match_their_definitions() -> None:
    graphs = hostile_graphs(32, seed=1, largest=12)
    found = topological_profile(graphs)
    for number, graph in enumerate(graphs.to_networkx()):
        simple = nx.Graph(graph)
        simple.remove_edges_from(nx.selfloop_edges(simple))
        nodes, edges = dense_profile(simple)
        np.testing.assert_allclose(found.nodes[found.node_graph == number], nodes, rtol=1e-12, atol=1e-12)
        np.testing.assert_allclose(found.edges[found.edge_graph == number], edges, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("ranges", ["training", "graph"])
@pytest.mark.parametrize("share", [False, True])
def test_histograms_count_all_nodes_and_edges(ranges: str, share: bool) -> None:
    graphs = hostile_graphs(24, seed=2)
    x = LocalTopologicalProfile(10, ranges=ranges, share=share).fit_transform(graphs).reshape(24, 8, 10).sum(axis=2)
    nodes, edges = graphs.sizes, graphs.arc_counts // 2
    expected = np.stack([nodes] * 5 + [edges] * 3, axis=1)
    np.testing.assert_allclose(x, expected > 0 if share else expected)


def test_bins_of_each_graph_are_those_of_numpy() -> None:
    graphs = load("MUTAG").subset(range(20))
    profile = topological_profile(graphs)
    x = LocalTopologicalProfile(7, ranges="graph").fit_transform(graphs).reshape(20, 8, 7)
    for g in range(20):
        own = profile.nodes[profile.node_graph == g]
        for column in range(3):  # integers: no value lies within rounding of a bin's end but those on it
            np.testing.assert_array_equal(x[g, column].sum(), np.histogram(own[:, column], 7)[0].sum())
        np.testing.assert_array_equal(x[g, 0], np.histogram(own[:, 0], 7)[0])


def test_ranges_come_from_training_graphs_and_larger_values_go_into_the_last_bin() -> None:
    graphs = hostile_graphs(24, seed=3)
    train = np.arange(8)
    shared = LocalTopologicalProfile(10).fit(PreparedSet(graphs), indices=train)
    alone = LocalTopologicalProfile(10).fit(graphs.subset(train))
    np.testing.assert_array_equal(shared.high_, alone.high_)
    np.testing.assert_array_equal(shared.transform(graphs), alone.transform(graphs))
    x = LocalTopologicalProfile(10).fit(graphs.subset([0])).transform(graphs)  # a single node
    assert np.isfinite(x).all()


def test_the_order_of_nodes_and_other_graphs_change_nothing() -> None:
    graphs = hostile_graphs(16, seed=4, largest=10)

    def summed(given) -> np.ndarray:
        profile, count = topological_profile(given), len(given)
        parts = (profile.nodes, profile.node_graph), (profile.edges, profile.edge_graph)
        return np.stack(
            [np.bincount(graph, column, minlength=count) for values, graph in parts for column in values.T], axis=1
        )

    assert_permutation_invariant(summed, graphs, atol=1e-9, rtol=1e-12)
    assert_batch_equals_singles(summed, graphs, atol=1e-12)
    kernel = LocalTopologicalProfile(6).fit(graphs)
    np.testing.assert_array_equal(kernel.fit_transform(graphs), kernel.transform(graphs))


def test_large_graphs_are_sampled(monkeypatch: pytest.MonkeyPatch) -> None:
    graphs = load("MUTAG").subset(range(5))
    exact = topological_profile(graphs)
    monkeypatch.setattr(module, "SEARCH_LIMIT", int(graphs.arc_counts.min()) * 10)
    sampled = topological_profile(graphs)
    np.testing.assert_array_equal(sampled.edges[:, 1:], exact.edges[:, 1:])
    assert not np.array_equal(sampled.edges, exact.edges)
    assert sampled.edges[:, 0].sum() == pytest.approx(exact.edges[:, 0].sum(), rel=0.5)


def test_the_forest_learns_and_is_as_good_from_a_prepared_set() -> None:
    graphs = load("MUTAG")
    train, test = np.arange(0, 188, 2), np.arange(1, 188, 2)
    model = LTPForestClassifier(bins=10, n_estimators=50)
    prepared = PreparedSet(graphs)
    scores = model.fit_prepared(prepared, train).scores_prepared(prepared, test)
    np.testing.assert_array_equal(scores, model.predict_proba(graphs.subset(test)))
    assert (model.classes_[scores.argmax(axis=1)] == graphs.y[test]).mean() > 0.75
    with pytest.raises(ConfigError, match="bins"):
        LocalTopologicalProfile(0).fit(graphs)
