"""Integrated gradients, saliency and gradient × input: against their definitions, finite differences and captum."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from gcaps.data.synthetic import make_motifs
from gcaps.errors import ConfigError
from gcaps.estimators import make_estimator
from gcaps.explain import explain, integrated_gradients
from gcaps.explain.edges import edges_of
from gcaps.explain.gradients import DifferentiableModel
from gcaps.explain.output import explained_output

SMALL = {
    "gcaps": {"epochs": 4, "ensemble_size": 2, "with_svm": True, "features": "labels,degree"},
    "gin": {"epochs": 8},
    "dcnn": {"epochs": 8},
    "pscn": {"epochs": 8},
    "ecc": {"epochs": 3},
    "deepsets": {"epochs": 8},
    "capsule-svm": {"hidden": 8},
}


@pytest.fixture(scope="module")
def graphs():
    return make_motifs(40, 2).graphs


@pytest.fixture(scope="module")
def gin(graphs):
    return make_estimator("gin", {"epochs": 8}).fit(graphs)


def differentiable(model, graphs):
    return DifferentiableModel(model, graphs, explained_output(model.target_, model.scores(graphs)))


@pytest.mark.parametrize("name", SMALL)
def test_integrated_gradients_add_up_and_the_network_is_the_models(name, graphs):
    model = make_estimator(name, SMALL[name]).fit(graphs)
    some = graphs[:3]
    found = explain(model, some, method="integrated-gradients")
    np.testing.assert_allclose(found.values, model.predict_proba(some)[:, 1], atol=1e-5)
    network = differentiable(model, some)
    for g in range(3):
        np.testing.assert_allclose(network.value(g), found.values[g], atol=1e-5)
        difference = found.values[g] - found.baselines[g]
        np.testing.assert_allclose(found.nodes[g].sum(), difference, atol=0.01 * abs(difference) + 1e-5)
        np.testing.assert_allclose(sum(found.features[g].values()), found.nodes[g].sum(), atol=1e-9)
        assert len(found.edges[g]) == len(found.edge_ends[g])


def test_edges_of_a_network_that_weighs_them_add_up_to_the_difference_to_no_edges(graphs, gin):
    some = graphs[:2]
    found, network = explain(gin, some, method="integrated-gradients"), differentiable(gin, some)
    assert found.notes["edges"] == "integrated-gradients"
    for g in range(2):
        difference = network.value(g) - network.value(g, 0.0, edges=True)
        np.testing.assert_allclose(found.edges[g].sum(), difference, atol=0.01 * abs(difference) + 1e-5)


def test_the_gradient_is_that_of_finite_differences(graphs, gin):
    network = differentiable(gin, graphs[:1])
    share, step = 0.7, 1e-6
    slope = network.gradient(0)(np.array([share]), np.ones(1))
    directional = (network.value(0, share + step) - network.value(0, share - step)) / (2 * step)
    np.testing.assert_allclose((slope * network.inputs(0)).sum(), directional, rtol=1e-4, atol=1e-9)
    arcs = network.gradient(0, edges=True)(np.array([share]), np.ones(1))
    ahead, behind = (network.value(0, share + sign * step, edges=True) for sign in (1, -1))
    np.testing.assert_allclose(arcs.sum(), (ahead - behind) / (2 * step), rtol=1e-4, atol=1e-9)


def test_gradient_x_input_and_saliency_are_their_definitions(graphs, gin):
    network, one = differentiable(gin, graphs[:1]), np.ones(1)
    slope, inputs = network.gradient(0)(one, one), network.inputs(0)
    product = explain(gin, graphs[:1], method="gradient-x-input")
    np.testing.assert_allclose(product.nodes[0], (slope * inputs).sum(axis=1), atol=1e-12)
    saliency = explain(gin, graphs[:1], method="saliency")
    np.testing.assert_allclose(saliency.nodes[0], np.abs(slope).sum(axis=1), atol=1e-12)
    assert np.isnan(saliency.baselines).all()


def test_a_step_on_the_line_is_found():
    """f(α x) = expit(400 (α Σ x − ⅓)) jumps between two points of a coarse rule."""
    x = np.array([0.2, 0.5, 0.3])

    def value(share):
        return float(1 / (1 + np.exp(-400 * (share * x.sum() - 1 / 3))))

    def gradient(shares, weights):
        p = np.array([value(share) for share in shares])
        return float(weights @ (400 * p * (1 - p))) * np.ones(3)

    found = integrated_gradients(value, gradient, x)
    np.testing.assert_allclose(found, x, atol=0.01)


def test_captum_agrees(graphs, gin):
    captum = pytest.importorskip("captum.attr", reason="needs captum, the oracle")
    some = graphs[1:2]
    network = differentiable(gin, some)

    def forward(x):
        copies = len(x)
        batch, _ = network._scaled(0, np.ones(copies), edges=False)
        from dataclasses import replace

        return network.values(replace(batch, dense=x.reshape(-1, x.shape[2])), 0)

    inputs = torch.from_numpy(network.inputs(0))[None]
    expected = captum.IntegratedGradients(forward).attribute(inputs, n_steps=2000, internal_batch_size=200)
    found = explain(gin, some, method="integrated-gradients")
    np.testing.assert_allclose(found.nodes[0], expected[0].sum(dim=1).detach().numpy(), atol=5e-3)


def test_edges_are_numbered_once(graphs):
    for graph, edges in zip(graphs[:5], edges_of(graphs[:5]), strict=True):
        ahead, behind = graph.edge_index[:, edges.forward], graph.edge_index[:, edges.back]
        np.testing.assert_array_equal(ahead, edges.ends.T)
        np.testing.assert_array_equal(behind, edges.ends.T[::-1])
        assert 2 * len(edges.ends) == graph.edge_index.shape[1]


def test_a_model_without_gradients_is_refused(graphs):
    model = make_estimator("wl", {"n_iter": (1,), "C": (1.0,)}).fit(graphs)
    with pytest.raises(ConfigError, match="WeisfeilerLehmanSVC has no gradients"):
        explain(model, graphs[:1], method="saliency")
