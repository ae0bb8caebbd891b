"""The rules behind ``auto``."""

from dataclasses import replace

import numpy as np
import pytest

from gcaps.config import CONFIGS, Config, EnsembleConfig
from gcaps.data.molecules import MoleculePreparation
from gcaps.errors import ConfigError
from gcaps.estimators import auto
from gcaps.estimators.auto import DISPERSED_SIZES, RARE_LABELS, RULES, SMALL_TRAINING_SET, resolve
from gcaps.estimators.portfolio import PORTFOLIO
from gcaps.testing import example_molecules, hostile_graphs


@pytest.fixture
def graphs():
    return hostile_graphs(16, seed=2)  # from one node to hubs


@pytest.fixture
def many(monkeypatch):
    """Let sixteen graphs count as many."""
    monkeypatch.setattr(auto, "SMALL_TRAINING_SET", 16)


def resolved(graphs, **settings):
    return resolve(Config(**settings), graphs)[0]


def test_every_setting_that_may_be_auto_has_a_rule_with_a_reason():
    may_be = {
        name
        for config in CONFIGS.values()
        for name, field in config.model_fields.items()
        if "'auto'" in str(field.annotation)
    }
    assert may_be == set(RULES)
    assert all(rule.__doc__ for rule in RULES.values())


def test_no_auto_is_left_and_given_values_stay(graphs):
    config, entries = resolve(Config(layers=2, dropout=0.3), graphs)
    assert "auto" not in config.to_dict().values()
    assert (config.layers, config.dropout) == (2, 0.3)
    assert {entry.setting for entry in entries} == {
        "features", "edge_features", "rare_labels", "reduce", "epochs", "ensemble_size", "device", "with_svm",
        "weight_decay",
    }  # fmt: skip
    assert all(entry.given == "auto" and entry.reason for entry in entries)


def test_a_small_set_gets_many_epochs_an_ensemble_an_svm_and_no_dropout(graphs):
    config = resolved(graphs)
    assert (config.epochs, config.ensemble_size, config.with_svm, config.dropout) == (100, 3, True, 0.0)
    assert resolved(graphs, selection="validation").with_svm is False, "it has no epoch to pick"


def test_regression_on_few_molecules_is_regularised_more_and_does_without_the_svm(graphs, many):
    molecules = replace(graphs, preparation=MoleculePreparation(), y=np.arange(float(len(graphs))))
    config, _ = resolve(Config(), molecules, task="regression")
    assert (config.weight_decay, config.with_svm) == (0.01, False)
    config, entries = resolve(Config(), molecules, np.arange(4), task="regression")
    assert (config.weight_decay, config.with_svm) == (0.03, False)
    assert "regression on 4 molecules" in next(e.reason for e in entries if e.setting == "weight_decay")
    assert resolved(molecules).weight_decay == resolved(graphs).weight_decay == 1e-3


def test_many_graphs_get_fewer_epochs_one_network_and_dropout(graphs, many):
    config = resolved(graphs.subset([3] * 16))
    assert (config.epochs, config.ensemble_size, config.with_svm, config.dropout) == (30, 1, True, 0.5)


def test_above_ten_thousand_graphs_networks_are_hardly_regularised(graphs, many, monkeypatch):
    monkeypatch.setattr(auto, "MANY_GRAPHS", 15)
    config = resolved(graphs.subset([3] * 16))
    assert (config.epochs, config.weight_decay, config.dropout) == (20, 1e-5, 0.2)
    monkeypatch.setattr(auto, "MANY_GRAPHS", 16)
    config = resolved(graphs.subset([3] * 16))
    assert (config.epochs, config.weight_decay, config.dropout) == (30, 1e-3, 0.5)


def test_many_graphs_of_dispersed_sizes_get_fewest_epochs_and_with_labels_one_layer(graphs, many):
    sizes = np.sort(graphs.sizes)
    assert sizes[14] > DISPERSED_SIZES * sizes[1]
    assert (resolved(graphs).epochs, resolved(graphs).layers) == (12, 1)
    without = replace(graphs, node_labels=None)
    assert (resolved(without).epochs, resolved(without).layers) == (12, 4)
    assert (resolved(graphs.subset([3] * 16)).epochs, resolved(graphs.subset([3] * 16)).layers) == (30, 4)


def test_features_are_all_that_nodes_bring_and_labels_decide_reduction(graphs):
    graphs = replace(graphs, x=np.ones((graphs.num_nodes, 2)))
    assert (resolved(graphs).features, resolved(graphs).reduce) == (("labels", "attributes"), "sum")
    without = replace(graphs, node_labels=None)
    assert (resolved(without).features, resolved(without).reduce) == (("attributes",), "mean")
    without = replace(graphs, x=None)
    assert (resolved(without).features, resolved(without).reduce) == (("labels",), "sum")
    without = replace(graphs, node_labels=None, x=None)
    assert (resolved(without).features, resolved(without).reduce) == (("degree",), "mean")


def test_edge_features_are_all_that_edges_bring_where_the_method_uses_them(graphs):
    edges = {"edge_labels": np.zeros((len(graphs.col), 1), np.int64), "edge_attr": np.ones((len(graphs.col), 2))}
    given = replace(graphs, **edges)
    assert resolved(given).edge_features == ("labels", "attributes")
    assert resolved(replace(given, edge_labels=None)).edge_features == ("attributes",)
    assert resolved(replace(given, edge_attr=None)).edge_features == ("labels",)
    assert resolved(replace(given, edge_attr=None, edge_labels=None)).edge_features == ()
    assert resolved(given, filter="chebyshev").edge_features == ("labels",)
    assert resolved(given, edge_features="none").edge_features == ()
    gin, entries = resolve(CONFIGS["gin"](), given)
    assert gin.edge_features == ()
    assert "edge_features = none (auto: gin does not use edge features)" in map(str, entries)
    _, entries = resolve(CONFIGS["gin"](edge_features="labels"), given)
    assert str(entries[-1]) == "edge_features = labels has no effect: gin does not use edge features"


def test_rare_labels_share_a_column_in_molecules(graphs):
    assert resolved(graphs).rare_labels == 0
    molecules = replace(graphs, preparation=MoleculePreparation())
    assert resolved(molecules).rare_labels == RARE_LABELS == 3
    assert resolved(molecules, rare_labels=0).rare_labels == 0
    assert resolved(molecules, features="degree").rare_labels == 0
    assert resolved(replace(molecules, node_labels=None)).rare_labels == 0
    gin, entries = resolve(CONFIGS["gin"](), molecules)
    assert gin.rare_labels == 3
    assert "rare_labels = 3 (auto: graphs are molecules)" in map(str, entries)
    _, entries = resolve(Config(features="degree", rare_labels=2), molecules)
    assert str(entries[-1]) == "rare_labels = 2 has no effect: node labels are not among the features"
    _, entries = resolve(Config(features="degree"), molecules)
    assert all(entry.value is not None for entry in entries)


def test_features_may_be_a_string():
    assert Config(features="degree").features == ("degree",)
    assert Config(features="labels, degree", edge_features="labels,attributes").to_dict()["features"] == [
        "labels",
        "degree",
    ]
    for none in (None, "none", "", (), ("none",)):
        assert Config(edge_features=none).edge_features == ()
    with pytest.raises(ConfigError, match="features"):
        Config.parse({"features": "colour"})
    with pytest.raises(ConfigError, match="features"):
        Config.parse({"features": "none"})


def test_molecules_get_an_ensemble_with_fingerprints(monkeypatch):
    molecules, _ = example_molecules(12)
    default, _ = resolve(EnsembleConfig(), replace(molecules, preparation=None))
    assert default.methods == tuple(entry.name for entry in PORTFOLIO)
    plain, _ = resolve(EnsembleConfig(weights="mean"), replace(molecules, preparation=None))
    assert plain.methods == ("gcaps", "capsule-svm", "wloa")
    known = replace(molecules, preparation=MoleculePreparation())
    config, (entry,) = resolve(EnsembleConfig(), known)
    assert config.methods == ("gcaps", "gcaps+descriptors", "ecfp", "descriptors", "tanimoto")
    assert entry.reason == "molecules, 12 training graphs, at most 10,000"
    monkeypatch.setattr(auto, "GRAM_GRAPHS", 11)
    config, (entry,) = resolve(EnsembleConfig(), known)
    assert config.methods == ("gcaps", "gcaps+descriptors", "ecfp", "descriptors")
    assert entry.reason == "molecules, 12 training graphs, more than 11"
    assert resolve(EnsembleConfig(), known, np.arange(11))[0].methods[-1] == "tanimoto"
    config, (entry,) = resolve(EnsembleConfig(), known, task="regression")
    assert config.methods == ("gcaps", "gcaps+descriptors", "descriptors")
    assert entry.reason == "regression on molecules"


def test_classes_get_an_svm_beside_the_network_up_to_ten_thousand_graphs(monkeypatch):
    monkeypatch.setattr(auto, "SMALL_TRAINING_SET", 5)
    molecules = replace(example_molecules(12)[0], preparation=MoleculePreparation())
    assert resolve(Config(), molecules)[0].with_svm is True
    assert resolve(Config(), replace(molecules, preparation=None))[0].with_svm is True
    for task in ("regression", "multilabel"):
        assert resolve(Config(), molecules, task=task)[0].with_svm is False
    monkeypatch.setattr(auto, "GRAM_GRAPHS", 11)
    config, entries = resolve(Config(), molecules)
    assert config.with_svm is False
    assert "with_svm = False (auto: classes, 12 training graphs, more than 11)" in map(str, entries)


def test_only_the_training_graphs_count(graphs, many):
    few, _ = resolve(Config(), graphs, np.arange(15))
    assert few.epochs == 100
    same, _ = resolve(Config(), graphs, np.full(16, 3))
    assert same.epochs == 30


def test_a_setting_without_effect_is_named(graphs):
    _, entries = resolve(Config(fgsd_bins=7, readout="mean", rank=5), graphs)
    said = [str(entry) for entry in entries if entry.value is None]
    assert said == [
        "rank = 5 has no effect: readout = mean",
        "fgsd_bins = 7 has no effect: fgsd is not among the features",
    ]


def test_a_resolution_reads_as_a_sentence(graphs):
    _, entries = resolve(Config(), graphs)
    said = {entry.setting: str(entry) for entry in entries}
    assert said["epochs"] == f"epochs = 100 (auto: 16 training graphs, fewer than {SMALL_TRAINING_SET})"
    assert said["features"] == "features = labels,attributes (auto: nodes have labels and attributes)"
