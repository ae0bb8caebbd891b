"""Explanations of unusual graphs, of relabelled graphs, of one graph or many, and of estimators of the user."""

from __future__ import annotations

from dataclasses import replace

import networkx as nx
import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression
from sklearn.svm import LinearSVC

import gcaps
from gcaps.data.synthetic import make_motifs
from gcaps.errors import ConfigError
from gcaps.estimators import make_estimator
from gcaps.explain import explain
from gcaps.explain.occlusion import HIDDEN

MODELS = {
    "gin": {"epochs": 6},
    "wl": {"n_iter": (2,), "C": (1.0,)},
    "sp": {"C": (1.0,)},
    "gk": {"sizes": (3,), "C": (1.0,)},
    "ltp": {},
}


@pytest.fixture(scope="module")
def graphs():
    return make_motifs(40, 5).graphs


@pytest.fixture(scope="module")
def models(graphs):
    return {name: make_estimator(name, settings).fit(graphs) for name, settings in MODELS.items()}


@pytest.fixture(scope="module")
def unusual():
    """One node; no edges; an isolated node beside a path; a star; labels that training lacks."""
    made = [
        nx.empty_graph(1),
        nx.empty_graph(3),
        nx.disjoint_union(nx.path_graph(3), nx.empty_graph(1)),
        nx.star_graph(5),
    ]
    found = gcaps.GraphSet.from_networkx(made)
    return replace(found, node_labels=np.arange(found.num_nodes)[:, None] % 7)


@pytest.mark.parametrize("name", MODELS)
def test_unusual_graphs_have_finite_contributions(name, models, unusual):
    found = explain(models[name], unusual)
    assert [len(own) for own in found.nodes] == unusual.sizes.tolist()
    assert [len(own) for own in found.edges] == [0, 0, 2, 5]
    assert [ends.shape for ends in found.edge_ends] == [(0, 2), (0, 2), (2, 2), (5, 2)]
    for own, edges in zip(found.nodes, found.edges, strict=True):
        assert np.isfinite(own).all()
        assert np.isfinite(edges).all()


@pytest.mark.parametrize("name", MODELS)
def test_a_batch_is_explained_as_its_graphs_alone(name, models, graphs):
    together = explain(models[name], graphs[:4])
    for g in range(4):
        alone = explain(models[name], graphs[g : g + 1])
        np.testing.assert_allclose(together.nodes[g], alone.nodes[0], atol=1e-5)
        np.testing.assert_allclose(together.edges[g], alone.edges[0], atol=1e-5)
        assert together.features[g].keys() == alone.features[0].keys()


@pytest.mark.parametrize("name", ["gin", "wl", "sp", "gk"])
@pytest.mark.parametrize("method", ["auto", "occlusion"])
def test_contributions_move_with_the_nodes(name, method, models, graphs):
    graph = graphs[1]
    order = np.random.default_rng(1).permutation(graph.num_nodes)
    edges = nx.Graph()
    edges.add_nodes_from(range(graph.num_nodes))
    edges.add_edges_from(order[graph.edge_index].T.tolist())
    moved = gcaps.GraphSet.from_networkx([edges])
    labels = np.empty_like(graph.node_labels)
    labels[order] = graph.node_labels
    moved = replace(moved, node_labels=labels)
    plain = explain(models[name], graphs[1:2], method=method)
    other = explain(models[name], moved, method=method)
    np.testing.assert_allclose(other.nodes[0][order], plain.nodes[0], atol=1e-4)
    by_ends = {tuple(e): v for e, v in zip(other.edge_ends[0].tolist(), other.edges[0], strict=True)}
    for (u, v), value in zip(plain.edge_ends[0].tolist(), plain.edges[0], strict=True):
        assert abs(by_ends[tuple(sorted((int(order[u]), int(order[v]))))] - value) < 1e-4


def test_removing_an_edge_is_its_definition(models, graphs):
    single, found = graphs[3:4], explain(models["ltp"], graphs[3:4])
    for (u, v), value in zip(found.edge_ends[0].tolist(), found.edges[0], strict=True):
        given = single.to_networkx()[0]
        given.remove_edge(u, v)
        without = replace(gcaps.GraphSet.from_networkx([given]), node_labels=single.node_labels)
        expected = models["ltp"].scores(single)[0, 1] - models["ltp"].scores(without)[0, 1]
        np.testing.assert_allclose(value, expected, atol=1e-12)


def test_without_features_a_hidden_node_loses_its_edges(graphs):
    bare = replace(graphs, node_labels=None)
    model = make_estimator("wl", {"n_iter": (1,), "C": (1.0,)}).fit(bare)
    found = explain(model, bare[1:2], method="occlusion")
    assert found.hidden == "edges"
    node = int(np.abs(found.nodes[0]).argmax())
    given = bare[1:2].to_networkx()[0]
    given.remove_edges_from(list(given.edges(node)))
    without = gcaps.GraphSet.from_networkx([given])
    expected = model.scores(bare[1:2])[0, 1] - model.scores(replace(without, node_labels=None))[0, 1]
    np.testing.assert_allclose(found.nodes[0][node], expected, atol=1e-12)
    assert found.features == [{}]


class Counts:
    """An estimator of the user: logistic regression on the number of nodes of each label."""

    def __init__(self, labels=7):
        self.labels = labels

    def _counted(self, graphs):
        assert isinstance(graphs, gcaps.GraphSet)
        return np.stack([np.bincount(g.node_labels[g.node_labels != HIDDEN], minlength=self.labels) for g in graphs])

    def fit(self, graphs):
        self.model = LogisticRegression().fit(self._counted(graphs), graphs.y)
        return self

    def predict_proba(self, graphs):
        return self.model.predict_proba(self._counted(graphs))


def test_an_estimator_of_the_user_is_explained_by_occlusion(graphs):
    given = replace(graphs, y=(graphs.node_labels[graphs.ptr[:-1], 0] > 1).astype(int))
    found = explain(Counts().fit(given), given[:3])
    assert found.method == "occlusion"
    assert found.output.words == "probability of class 1"
    assert any(own.any() for own in found.nodes)


def test_an_estimator_without_probabilities_is_refused_in_one_line(graphs):
    with pytest.raises(ConfigError, match="LinearSVC cannot be explained: it has no predict_proba"):
        explain(LinearSVC(), graphs[:1])
    with pytest.raises(ConfigError, match="there is no attribution method 'lime'"):
        explain(Counts().fit(graphs), graphs[:1], method="lime")


def test_an_estimator_explains_itself_by_its_method(models, graphs):
    found = models["wl"].explain(graphs[:2], method="occlusion")
    np.testing.assert_array_equal(found.nodes[1], explain(models["wl"], graphs[:2], method="occlusion").nodes[1])
    seen = []
    explain(models["wl"], graphs[:2], method="occlusion", progress=lambda done, total: seen.append((done, total)))
    assert seen
    assert all(0 < done <= total for done, total in seen)
