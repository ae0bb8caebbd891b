"""What holds for every network: invariance, batches, training, shapes."""

from dataclasses import replace

import numpy as np
import pytest
import torch

import gcaps
from gcaps.batching import BatchSource
from gcaps.config import CONFIGS
from gcaps.data.catalog import load
from gcaps.data.prepared import PreparedSet
from gcaps.errors import ConfigError, DataError
from gcaps.estimators import make_estimator
from gcaps.evaluation import Fold
from gcaps.features import NodeFeatures
from gcaps.models import NETWORKS
from gcaps.models.registry import build_network, extras_of
from gcaps.testing import assert_batch_equals_singles, assert_permutation_invariant, hostile_graphs
from tests.training.fitting import fit

PEERS = ["dcnn", "pscn", "ecc", "dgcnn", "gin", "deepsets"]
SMALL = {
    "gcaps": {"layers": 1, "hidden": 4, "rank": 4, "fc": 8},
    "dcnn": {"hops": 2},
    "pscn": {"field": 5, "channels": 4, "hidden": 8},
    "ecc": {"hidden": 4, "top": 6, "filter_hidden": 3},
    "dgcnn": {"layers": 2, "hidden": 4, "channels": 4, "dense": 8},
    "gin": {"layers": 3, "hidden": 4},
    "deepsets": {"hidden": 8},
}


def small(method, **settings):
    return CONFIGS[method](**({"features": ("labels",)} | SMALL[method] | settings))


def network_of(config, graphs, dtype=torch.float64):
    """Graphs to logits, by a network with random weights whose running statistics belong to these graphs."""
    features = NodeFeatures.fit(config, graphs)
    torch.manual_seed(0)
    network = build_network(config, features.num_features, 2, graphs).to(dtype)

    def source(some):
        return BatchSource(some, features.encode(some), dtype, extras_of(config, PreparedSet(some))).take(
            np.arange(len(some))
        )

    with torch.no_grad():
        for _ in range(10):
            network.train()(source(graphs))
    network.eval()

    @torch.no_grad()
    def logits(some):
        return network(source(some)).numpy()

    return logits


def test_every_network_has_settings_and_is_tested_here():
    assert set(NETWORKS) == {*SMALL, "capsule-svm"}
    assert all(CONFIGS[name].method == name for name in NETWORKS)


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("method", PEERS)
def test_node_order_leaves_logits_unchanged(method, weighted):
    graphs = hostile_graphs(64, seed=1, weighted=weighted)
    config = small(method, features=("labels", "degree"))
    assert_permutation_invariant(network_of(config, graphs), graphs, atol=1e-8)


@pytest.mark.parametrize("method", PEERS)
def test_batch_equals_singles(method):
    graphs = hostile_graphs(48, seed=2)
    assert_batch_equals_singles(network_of(small(method), graphs), graphs, atol=1e-8)


@pytest.mark.parametrize("method", ["dcnn", "ecc", "dgcnn", "gin", "deepsets"])
def test_node_order_leaves_logits_unchanged_with_continuous_features(method):
    graphs = hostile_graphs(64, seed=3)
    config = small(method, features=("attributes", "fgsd"), fgsd_bins=4)
    assert_permutation_invariant(network_of(config, graphs), graphs, atol=1e-8)


def test_pscn_depends_on_node_order_where_nodes_of_one_color_differ():
    """The leaves of a star have one color; their attributes differ, and which leaves are seen first is arbitrary."""
    graphs = hostile_graphs(64, seed=3)
    stars = graphs.subset(np.arange(4, 64, 8))
    config = small("pscn", features=("attributes",))
    with pytest.raises(AssertionError, match="another node order changes"):
        assert_permutation_invariant(network_of(config, stars), stars, atol=1e-3)


def test_deepsets_uses_no_edges():
    graphs = hostile_graphs(32, seed=4)
    logits = network_of(small("deepsets", features=("labels",)), graphs)
    empty = replace(graphs, rowptr=np.zeros_like(graphs.rowptr), col=graphs.col[:0])
    np.testing.assert_array_equal(logits(graphs), logits(empty))


@pytest.mark.parametrize("method", PEERS)
def test_training_on_hostile_graphs_stays_finite_and_is_repeatable(method, hostile):
    config = small(method, epochs=2, batch_size=7, features=("labels", "attributes", "degree"))
    indices = np.arange(len(hostile))
    first, curves, _ = fit(hostile, indices, config, seed=3, watch=indices)
    second, again, _ = fit(hostile, indices, config, seed=3, watch=indices)
    assert np.isfinite(curves.loss).all()
    assert curves == again
    found = first.scores(hostile)
    np.testing.assert_array_equal(found, second.scores(hostile))
    np.testing.assert_allclose(found.sum(axis=1), 1, atol=1e-5)


@pytest.mark.parametrize("method", [*PEERS, "gcaps"])
def test_saved_networks_come_back(method, tmp_path):
    graphs = hostile_graphs(24, seed=5)
    model = make_estimator(method, SMALL[method] | {"epochs": 1}).fit(graphs[:16])
    model.save(tmp_path / "model")
    again = gcaps.load_model(tmp_path / "model")
    assert again.get_params() == model.get_params()
    np.testing.assert_array_equal(again.predict_proba(graphs), model.predict_proba(graphs))
    assert again.transform(graphs).shape[0] == 24


@pytest.mark.parametrize("method", PEERS)
def test_networks_learn_mutag_and_their_results_say_how(method):
    graphs = load("MUTAG")
    order = np.random.default_rng(0).permutation(len(graphs))
    fold = Fold(np.sort(order[:150]), np.sort(order[150:]))
    epochs = {"dcnn": 40, "ecc": 8}.get(method, 15)
    config = CONFIGS[method](epochs=epochs, lr=0.05 if method == "dcnn" else 0.01, batch_size=16, decay=1.0)
    result = gcaps.evaluate(graphs, method, splits=[fold], jobs=1, config=config)
    assert max(result.folds[0].train_score) > 0.75, "the majority class is 66 %"
    assert list(result.protocols) == ["honest", "last", "gin", "best"]
    assert CONFIGS[method].parse(result.config) == config
    assert f"'epochs': {epochs}" in result.command


@pytest.mark.slow
def test_result_does_not_depend_on_jobs_for_a_network_with_extras():
    graphs, config = hostile_graphs(32, seed=6), small("pscn", epochs=1)
    one, two = (gcaps.evaluate(graphs, "pscn", folds=2, jobs=jobs, config=config) for jobs in (1, 2))
    assert [fold.scores for fold in one.folds] == [fold.scores for fold in two.folds]


def test_extras_are_made_once_for_a_prepared_set():
    prepared, config = PreparedSet(hostile_graphs(16)), small("pscn")
    found = extras_of(config, prepared)
    assert extras_of(config.model_copy(update={"epochs": 7}), prepared) is found
    assert extras_of(config.model_copy(update={"field": 4}), prepared) is not found
    assert extras_of(small("gin"), prepared) is None


def test_the_shape_depends_on_the_training_graphs_only():
    graphs = hostile_graphs(32, seed=7)
    small_ones = np.argsort(graphs.sizes, kind="stable")[:16]
    for method, key in (("pscn", "width"), ("dgcnn", "k")):
        fitted, _, _ = fit(graphs, small_ones, small(method, epochs=1), seed=0)
        expected = build_network(small(method), 1, 2, graphs.subset(small_ones)).shape_args[key]
        assert fitted.network.shape_args[key] == expected


def test_settings_of_another_method_are_refused():
    graphs = hostile_graphs(16)
    with pytest.raises(ConfigError, match="gin takes a GINConfig"):
        gcaps.evaluate(graphs, "gin", config=CONFIGS["gcaps"]())
    with pytest.raises(ConfigError, match="rank: there is no such setting; see gcaps train --method gin --help"):
        gcaps.evaluate(graphs, "gin", config={"rank": 3})
    with pytest.raises(ConfigError, match="hops"):
        gcaps.evaluate(graphs, "dcnn", config={"hops": -1})


def test_ecc_says_that_edge_labels_are_missing():
    mutag = load("MUTAG")
    assert mutag.edge_labels is not None
    fitted, _, _ = fit(mutag, np.arange(20), small("ecc", epochs=1), seed=0)
    with pytest.raises(DataError, match="1 edge labels"):
        fitted.scores(replace(mutag, edge_labels=None))
