"""Classes that edges alone decide, with everything that a graph brings used by default."""

from dataclasses import replace

import numpy as np
import pytest

import gcaps
from gcaps.testing import hostile_graphs


def rings(count, seed, of):
    """Cycles of eight to twelve nodes of one kind; half of the edges are of another kind, next to each other or not.

    ``of``: "labels" or "attributes" of edges, which are the same number of each kind in both classes.
    """
    rng, graphs = np.random.default_rng(seed), []
    import networkx as nx

    for number in range(count):
        n = 2 * int(rng.integers(4, 7))
        kinds = np.arange(n) % 2 if number % 2 else np.arange(n) < n // 2
        graph = nx.cycle_graph(n)
        for i in range(n):
            kind = int(kinds[i])
            value = {"label": kind} if of == "labels" else {"attributes": [rng.normal(2.0 * kind, 0.3)]}
            graph.edges[i, (i + 1) % n].update(value)
        graphs.append(graph)
    return gcaps.GraphSet.from_networkx(graphs, [number % 2 for number in range(count)])


@pytest.mark.parametrize("of", ["labels", "attributes"])
@pytest.mark.parametrize("method", [gcaps.GraphCapsuleClassifier, gcaps.RandomCapsuleSVC])
def test_a_class_that_edges_alone_decide_is_learned(of, method):
    train, test = rings(120, 0, of), rings(100, 1, of)
    options = {"epochs": 40} if method is gcaps.GraphCapsuleClassifier else {}
    model = method(**options).fit(train)
    assert model.resolved_["edge_features"] == (of,) or model.resolved_["edge_features"] == [of]
    assert model.score(test, test.y) >= 0.95
    blind = method(edge_features="none", **options).fit(train)
    assert blind.score(test, test.y) <= 0.6


@pytest.mark.parametrize("method", [gcaps.GraphCapsuleClassifier, gcaps.RandomCapsuleSVC])
def test_saved_models_with_edges_predict_the_same(method, tmp_path):
    graphs = rings(40, 0, "labels")
    graphs = replace(graphs, edge_attr=np.random.default_rng(0).random((len(graphs.col), 2)))
    options = {"epochs": 2} if method is gcaps.GraphCapsuleClassifier else {}
    model = method(**options).fit(graphs)
    model.save(tmp_path / "model")
    again = gcaps.load_model(tmp_path / "model")
    assert (again.predict_proba(graphs) == model.predict_proba(graphs)).all()
    assert again.fitted_.features.edges.shape == {"num_relations": 2, "edge_dim": 2}


def test_graphs_without_edges_and_unseen_edge_labels_are_predicted():
    graphs = rings(40, 0, "labels")
    model = gcaps.GraphCapsuleClassifier(epochs=2, with_svm=True).fit(graphs)
    other = replace(graphs, edge_labels=graphs.edge_labels + 100)
    assert np.isfinite(model.predict_proba(other)).all()
    assert len(model.fitted_.features.unseen(other)) == 2
    lone = hostile_graphs(4).subset([0])
    assert len(lone.col) == 0
    assert np.isfinite(model.predict_proba(replace(lone, node_labels=None, x=None, edge_labels=None))).all()
