import networkx as nx
import numpy as np
import pytest
import torch
from sklearn.base import clone

import gcaps
from gcaps.config.tasks import LinkConfig
from gcaps.errors import DataError
from gcaps.tasks import LINK_SCORES, CapsuleLinkPredictor, NodeGraph, Pairs, split_links
from gcaps.tasks.link_split import absent_pairs
from gcaps.tasks.link_training import LinkTraining, divergence, link_logits, means_of
from tests.tasks.graphs import HOSTILE, community_graph, hostile_graph


def small(**settings):
    return CapsuleLinkPredictor(**{"embedding": 8, "degrees": (2,), "epochs": 60, **settings})


@pytest.fixture(scope="module")
def split():
    return split_links(community_graph(), seed=0)


@pytest.fixture(scope="module")
def fitted(split):
    return small().fit(split.graph, validation=split.validation)


def codes(edges):
    return {tuple(sorted(pair)) for pair in edges.tolist()}


@pytest.mark.parametrize("seed", range(3))
def test_a_split_keeps_held_out_links_out_of_the_graph(seed):
    graph = community_graph(seed=seed)
    split = split_links(graph, seed)
    parts = [codes(split.graph.edges), codes(split.validation.positive), codes(split.test.positive)]
    assert sum(map(len, parts)) == len(graph.edges)
    assert set.union(*parts) == codes(graph.edges)
    directed = {tuple(pair) for pair in split.graph.edge_index.T.tolist()}
    for pair in parts[1] | parts[2]:
        assert pair not in directed
        assert pair[::-1] not in directed
    assert len(parts[2]) == round(0.1 * len(graph.edges))
    negative = [codes(split.validation.negative), codes(split.test.negative)]
    assert [len(part) for part in negative] == [len(parts[1]), len(parts[2])]
    assert not negative[0] & negative[1]
    assert not (negative[0] | negative[1]) & codes(graph.edges)


def test_the_same_seed_holds_out_the_same_pairs():
    one, two = (split_links(community_graph(), seed=5) for _ in range(2))
    np.testing.assert_array_equal(one.test.both, two.test.both)
    np.testing.assert_array_equal(one.graph.edge_index, two.graph.edge_index)


def test_held_out_links_are_refused_in_the_graph_that_messages_pass_along(split):
    with pytest.raises(DataError, match="of the held-out links"):
        small().fit(community_graph(), validation=split.validation)


def test_nothing_of_the_test_links_reaches_the_training(split, fitted):
    """The training sees the graph without them, and draws its other pairs from this graph alone."""
    training = LinkTraining(torch.nn.Linear(1, 1), split.graph, split.validation, LinkConfig(), [])
    held = codes(split.test.positive) | codes(split.validation.positive)
    assert not codes(training.links.numpy()) & held
    drawn = absent_pairs(split.graph, 500, np.random.default_rng(0))
    assert codes(drawn) & held, "held-out links may be drawn as negatives: the training does not know them"
    again = small().fit(split.graph, validation=split.validation)
    np.testing.assert_array_equal(again.vectors_, fitted.vectors_)


@pytest.mark.parametrize("count", [1, 100, 900])
def test_absent_pairs_are_different_and_no_links(count):
    graph = community_graph()
    found = absent_pairs(graph, count, np.random.default_rng(0))
    assert found.shape == (count, 2)
    assert (found[:, 0] < found[:, 1]).all()
    assert len(codes(found)) == count
    assert not codes(found) & codes(graph.edges)


def test_too_few_links_or_pairs_are_refused():
    with pytest.raises(DataError, match="too few to hold out"):
        split_links(hostile_graph("duplicates"), 0)
    full = NodeGraph.from_arrays(np.eye(4), np.stack(np.triu_indices(4, 1), axis=1))
    with pytest.raises(DataError, match="pairs of nodes that are not linked"):
        absent_pairs(full, 1, np.random.default_rng(0))


@pytest.mark.parametrize("name", ["community", *HOSTILE])
def test_scores_of_common_neighbors_match_networkx(name):
    graph = community_graph() if name == "community" else hostile_graph(name)
    G = nx.empty_graph(len(graph))
    G.add_edges_from(graph.edges.tolist())
    pairs = np.stack(np.triu_indices(len(graph), 1), axis=1)
    oracle = {
        "common-neighbors": [len(list(nx.common_neighbors(G, *pair))) for pair in pairs.tolist()],
        "adamic-adar": [p for *_, p in nx.adamic_adar_index(G, pairs.tolist())],
        "resource-allocation": [p for *_, p in nx.resource_allocation_index(G, pairs.tolist())],
    }
    for score, expected in oracle.items():
        np.testing.assert_allclose(LINK_SCORES[score](graph, pairs), expected)


def test_divergence_matches_torch():
    torch.manual_seed(0)
    mean, log_sd = torch.randn(2, 5, 3, dtype=torch.float64)
    normal = torch.distributions.Normal
    expected = torch.distributions.kl_divergence(normal(mean, log_sd.exp()), normal(0.0, 1.0)).sum(dim=1).mean()
    torch.testing.assert_close(divergence(mean, log_sd), expected)


def test_vectors_have_the_length_of_the_settings():
    outputs = torch.randn(6, 8)
    assert torch.allclose(means_of(outputs, LinkConfig(embedding=8)).norm(dim=1), torch.tensor(1.8))
    assert torch.equal(means_of(outputs, LinkConfig(embedding=4, length=None)), outputs[:, :4])
    Z = outputs.double()
    torch.testing.assert_close(link_logits(Z, torch.tensor([[0, 1], [2, 2]])), torch.stack([Z[0] @ Z[1], Z[2] @ Z[2]]))


@pytest.mark.parametrize("variational", [False, True])
def test_links_of_a_planted_partition_are_found(variational):
    split = split_links(community_graph(nodes=200), seed=0)
    model = small(variational=variational).fit(split.graph, validation=split.validation)
    found = model.evaluate(split.test)
    assert found["auc"] > 0.65
    assert found["ap"] > 0.65
    pairs = split.test.both
    np.testing.assert_allclose(model.predict_proba(pairs), 1 / (1 + np.exp(-model.decision_function(pairs))), rtol=1e-6)
    assert (model.predict(pairs) == (model.predict_proba(pairs) > 0.5)).all()


def test_saved_and_loaded_it_predicts_the_same(split, fitted, tmp_path):
    fitted.save(tmp_path / "m")
    again = gcaps.load_model(tmp_path / "m")
    np.testing.assert_array_equal(again.decision_function(split.test.both), fitted.decision_function(split.test.both))
    np.testing.assert_allclose(again.transform(split.graph), fitted.vectors_, atol=1e-6)


def test_resuming_gives_exactly_the_same_outcome(split, fitted, tmp_path, monkeypatch):
    monkeypatch.setenv("GCAPS_CHECKPOINT_SECONDS", "0")

    def stop(epoch):
        if epoch.number == 7:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        small().fit(split.graph, validation=split.validation, checkpoint=tmp_path / "c", on_epoch=stop)
    again = small().fit(split.graph, validation=split.validation, checkpoint=tmp_path / "c")
    np.testing.assert_array_equal(again.vectors_, fitted.vectors_)


def test_the_order_of_nodes_does_not_change_vectors(split, fitted):
    order = np.random.default_rng(0).permutation(60)
    turned = NodeGraph.from_arrays(split.graph.x[order], np.argsort(order)[split.graph.edges])
    np.testing.assert_allclose(fitted.transform(turned), fitted.vectors_[order], atol=1e-5)


def test_scikit_learn_manners():
    parameters = CapsuleLinkPredictor().get_params()
    fields = {name: field.default for name, field in LinkConfig.model_fields.items()}
    assert {name: parameters[name] for name in fields} == fields
    assert clone(small(hidden=3)).hidden == 3


def test_pairs_beyond_the_graph_are_refused(fitted):
    with pytest.raises(DataError, match="pairs name nodes from 0 to 99; there are 0 to 59"):
        fitted.predict(np.array([[0, 99]]))
    with pytest.raises(DataError, match="expected node numbers"):
        fitted.predict(np.array([0.5]))


def test_links_and_other_pairs_are_told_apart():
    pairs = Pairs(np.array([[0, 1]]), np.array([[2, 3], [1, 3]]))
    assert pairs.y.tolist() == [1, 0, 0]
    assert pairs.both.tolist() == [[0, 1], [2, 3], [1, 3]]
