import json
from dataclasses import replace

import numpy as np
import pytest
import torch
from sklearn.base import clone

import gcaps
from gcaps.config.tasks import NodeConfig
from gcaps.errors import ConfigError, DataError, ModelError
from gcaps.persistence import load_estimator
from gcaps.tasks import CapsuleNodeClassifier, NodeGraph
from gcaps.tasks.node_training import NodeTraining, consistency_loss
from tests.tasks.graphs import HOSTILE, community_graph, hostile_graph


def small(**settings):
    return CapsuleNodeClassifier(**{"hidden": 8, "epochs": 40, "lr": 0.02, **settings})


@pytest.fixture(scope="module")
def graph():
    return community_graph()


@pytest.fixture(scope="module")
def fitted(graph):
    return small(capsule_size=2).fit(graph)


def test_classes_of_a_planted_partition_are_found(graph, fitted):
    assert fitted.score(graph) > 0.8
    assert fitted.classes_.tolist() == ["a", "b", "c"]
    proba = fitted.predict_proba(graph)
    assert proba.shape == (60, 3)
    np.testing.assert_allclose(proba.sum(axis=1), 1)
    assert fitted.predict(graph).tolist() == fitted.classes_[proba.argmax(axis=1)].tolist()


def test_classes_of_test_nodes_are_never_read(graph, fitted):
    hidden = graph.y.copy()
    hidden[graph.test] = "zzz"
    again = small(capsule_size=2).fit(replace(graph, y=hidden))
    np.testing.assert_array_equal(again.predict_proba(graph), fitted.predict_proba(graph))
    assert again.classes_.tolist() == ["a", "b", "c"]


def test_classes_of_validation_nodes_choose_the_epoch_and_nothing_else(graph):
    network = torch.nn.Linear(1, 1)
    codes = np.zeros(60, np.int64)
    seen = NodeTraining(network, graph, codes, graph.train, graph.validation, NodeConfig(), []).known
    assert set(np.flatnonzero(seen.numpy() >= 0)) == {*graph.train, *graph.validation}
    turned = graph.y.copy()
    turned[graph.validation] = turned[graph.validation][::-1]
    first = small(epochs=1).fit(graph).predict_proba(graph)
    np.testing.assert_array_equal(first, small(epochs=1).fit(replace(graph, y=turned)).predict_proba(graph))


def test_saved_and_loaded_it_predicts_the_same(graph, fitted, tmp_path):
    fitted.save(tmp_path / "m")
    again = gcaps.load_model(tmp_path / "m")
    np.testing.assert_array_equal(again.predict_proba(graph), fitted.predict_proba(graph))
    assert again.get_params() == fitted.get_params()
    with pytest.raises(ModelError, match=r"is a model of gcaps\.tasks"):
        load_estimator(tmp_path / "m")
    page = json.loads((tmp_path / "m" / "model.json").read_text())
    page["task_model"] = "split_links"
    (tmp_path / "m" / "model.json").write_text(json.dumps(page))
    with pytest.raises(ModelError, match="was changed"):
        gcaps.load_model(tmp_path / "m")


def test_resuming_gives_exactly_the_same_outcome(graph, fitted, tmp_path, monkeypatch):
    monkeypatch.setenv("GCAPS_CHECKPOINT_SECONDS", "0")

    def stop(epoch):
        if epoch.number == 7:  # saved before
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        small(capsule_size=2).fit(graph, checkpoint=tmp_path / "c", on_epoch=stop)
    numbers = []
    again = small(capsule_size=2).fit(graph, checkpoint=tmp_path / "c", on_epoch=lambda e: numbers.append(e.number))
    assert numbers[0] == 8
    np.testing.assert_array_equal(again.predict_proba(graph), fitted.predict_proba(graph))


def test_the_order_of_nodes_does_not_change_predictions(graph, fitted):
    order = np.random.default_rng(0).permutation(60)
    turned = NodeGraph.from_arrays(graph.x[order], np.argsort(order)[graph.edges])
    np.testing.assert_allclose(fitted.predict_proba(turned), fitted.predict_proba(graph)[order], atol=1e-5)


def test_sparse_features_are_fitted_like_dense_ones(graph):
    settings = {"input_dropout": 0.0, "epochs": 5}
    dense, sparse = (small(**settings).fit(community_graph(sparse_x=s)).predict_proba(graph) for s in (False, True))
    np.testing.assert_allclose(sparse, dense, atol=1e-5)


@pytest.mark.parametrize("sparse_x", [False, True])
def test_sampled_neighborhoods_learn_too(sparse_x):
    graph = community_graph(sparse_x=sparse_x)
    assert small(batch_size=8, neighbors=5).fit(graph).score(graph) > 0.7


@pytest.mark.parametrize("batch_size", [None, 2])
@pytest.mark.parametrize("name", [name for name in HOSTILE if name != "one node"])
def test_hostile_graphs_are_fitted(name, batch_size):
    graph = hostile_graph(name, weighted=True)
    y = np.arange(len(graph)) % 2
    model = small(epochs=2, batch_size=batch_size, normalize=False)
    model.fit(graph, y, train=[0, 1], validation=[2, 3])
    assert np.isfinite(model.predict_proba(graph)).all()


def test_without_validation_nodes_some_training_nodes_are_held_back(graph):
    model = small(epochs=3).fit(graph, train=graph.train)
    assert len(model.curves_.validation) == 3


def test_consistency_loss_matches_its_formula():
    rng = np.random.default_rng(0)
    logits = rng.standard_normal((3, 5, 4))
    P = np.exp(logits) / np.exp(logits).sum(axis=2, keepdims=True)
    sharp = P.mean(axis=0) ** 2
    sharp /= sharp.sum(axis=1, keepdims=True)
    expected = ((P - sharp) ** 2).sum(axis=2).mean()
    found = consistency_loss([*torch.log_softmax(torch.from_numpy(logits), dim=2)], 0.5)
    assert float(found) == pytest.approx(expected, abs=1e-12)


def test_weight_decay_is_of_the_first_layer_only(graph):
    network = torch.nn.Linear(1, 1)
    weight = torch.nn.Parameter(torch.tensor([1.0, 2.0]))
    network.forward = lambda x, M: torch.zeros(60, 3) + network.bias
    codes, parts = np.zeros(60, np.int64), (graph.train, graph.validation)
    losses = [
        next(NodeTraining(network, graph, codes, *parts, NodeConfig(weight_decay=w), [weight]).losses(None))
        for w in (0.0, 0.4)
    ]
    assert (losses[1] - losses[0]).item() == pytest.approx(0.4 / 2 * 5)


def test_scikit_learn_manners(graph):
    model = small(degrees=(2, 0), random_state=4)
    again = clone(model)
    assert again.get_params() == model.get_params()
    assert again.set_params(hidden=5).hidden == 5
    fields = {name: field.default for name, field in NodeConfig.model_fields.items()}
    parameters = CapsuleNodeClassifier().get_params()
    assert {name: parameters[name] for name in fields} == fields
    assert set(parameters) == {*fields, "random_state", "verbose"}


@pytest.mark.parametrize(
    ("settings", "fit", "error", "says"),
    [
        ({"hidden": 0}, {}, ConfigError, "hidden"),
        ({"degrees": ()}, {}, ConfigError, "degrees"),
        ({"filter": "none"}, {}, ConfigError, "filter"),
        ({"random_state": -1}, {}, ConfigError, "is no seed"),
        ({}, {"train": [0], "validation": [0]}, DataError, "share nodes"),
        ({}, {"train": []}, DataError, "no training nodes"),
        ({}, {"y": ["a"]}, DataError, "a class for each of 60 nodes"),
        ({}, {"y": np.zeros(60, int)}, DataError, "class"),
    ],
)
def test_bad_settings_and_nodes_are_refused_in_one_line(graph, settings, fit, error, says):
    with pytest.raises(error, match=says) as found:
        small(**settings).fit(graph, **fit)
    assert "\n" not in str(found.value)


def test_another_number_of_features_is_refused(fitted):
    with pytest.raises(ModelError, match="nodes have 5 features; the model was fitted on 12"):
        fitted.predict(hostile_graph("hub"))
