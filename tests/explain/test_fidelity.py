"""Deletion and insertion curves, the randomised model, and what a model knows of each class."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch

from gcaps.data.synthetic import make_motifs
from gcaps.errors import ConfigError
from gcaps.estimators import make_estimator
from gcaps.explain import class_summaries, explain, fidelity_of, random_fidelity, randomised_correlation
from gcaps.explain.classes import class_pairs
from gcaps.explain.fidelity import randomised
from gcaps.explain.occlusion import HIDDEN


@pytest.fixture(scope="module")
def graphs():
    return make_motifs(60, 4).graphs


@pytest.fixture(scope="module")
def wl(graphs):
    return make_estimator("wl", {"n_iter": (1,), "C": (1.0,)}).fit(graphs)


@pytest.fixture(scope="module")
def gcaps_network(graphs):
    settings = {"epochs": 6, "ensemble_size": 1, "with_svm": False, "hidden": 8, "rank": 4}
    return make_estimator("gcaps", settings).fit(graphs)


def test_curves_are_their_definition(wl, graphs):
    found = explain(wl, graphs[1:2])
    curves = fidelity_of(wl, found)
    order = np.argsort(-np.abs(found.nodes[0]), kind="stable")
    single, whole = graphs[1:2], wl.scores(graphs[1:2])[0, 1]
    for k, share in enumerate(curves.shares):
        count = int(np.ceil(share * len(order)))
        for hidden, value in ((order[:count], curves.deletion[k]), (order[count:], curves.insertion[k])):
            labels = single.node_labels.copy()
            labels[hidden] = HIDDEN
            expected = abs(whole - wl.scores(replace(single, node_labels=labels))[0, 1])
            np.testing.assert_allclose(value, expected, atol=1e-9)
    np.testing.assert_allclose([curves.deletion[0], curves.insertion[-1]], 0, atol=1e-9)


def test_contributions_beat_random_order(wl, graphs):
    found = explain(wl, graphs[graphs.y == 1][:8])
    own, chance = fidelity_of(wl, found), random_fidelity(wl, found)
    assert own.deletion_area > chance.deletion_area
    assert own.insertion_area < chance.insertion_area


def test_a_randomised_network_has_other_weights_and_the_model_keeps_its_own(gcaps_network, graphs):
    before = {name: t.clone() for name, t in gcaps_network.fitted_.network.state_dict().items()}
    other = randomised(gcaps_network)
    assert not np.allclose(other.scores(graphs[:4]), gcaps_network.scores(graphs[:4]), atol=1e-3)
    after = gcaps_network.fitted_.network.state_dict()
    assert all(torch.equal(before[name], after[name]) for name in before)
    assert randomised_correlation(gcaps_network, explain(gcaps_network, graphs[:3])) < 0.9


def test_a_kernel_is_randomised_by_permuted_targets(wl, graphs):
    found = explain(wl, graphs[:4])
    with pytest.raises(ConfigError, match="needs the training graphs"):
        randomised_correlation(wl, found)
    assert randomised_correlation(wl, found, graphs) < 0.9


def test_classes_have_typical_graphs_and_class_substructures(wl, graphs):
    found = class_summaries(wl, graphs)
    scores = wl.scores(graphs)
    assert [one.name for one in found] == ["0", "1"]
    for code, one in enumerate(found):
        assert one.graphs == (scores.argmax(axis=1) == code).sum()
        assert one.probability[0] == scores[:, code].max()
        assert one.substructures
        assert one.pairs == []
    telling = found[1].substructures[0]
    assert len(telling.nodes) >= 1
    assert 0 < telling.share <= 1


def test_pairs_of_channels_are_gradient_x_input_of_the_readout(gcaps_network, graphs):
    chosen = np.flatnonzero(gcaps_network.scores(graphs).argmax(axis=1) == 1)[:5]
    found = class_pairs(gcaps_network, graphs, chosen, 1)
    network = gcaps_network.fitted_.network
    vectors = torch.from_numpy(gcaps_network.transform(graphs.subset(chosen))).requires_grad_()
    value = torch.softmax(network.head(vectors), dim=1)[:, 1].sum()
    (slope,) = torch.autograd.grad(value, vectors)
    rows, columns = np.triu_indices(4)
    first = network.readout.in_channels
    mean = (slope * vectors).detach().numpy()[:, first : first + len(rows)].mean(axis=0)
    best = int(np.abs(mean).argmax())
    pair = f"{rows[best]} and {columns[best]}" if rows[best] != columns[best] else f"{rows[best]} with itself"
    assert found[0].words == f"channels {pair}"
    np.testing.assert_allclose(found[0].contribution, mean[best], rtol=1e-3, atol=1e-6)


def test_values_have_no_classes(graphs):
    model = make_estimator("sp", {"C": (1.0,)}, task="regression").fit(graphs, graphs.sizes.astype(float))
    with pytest.raises(ConfigError, match="needs a model of classes"):
        class_summaries(model, graphs)
