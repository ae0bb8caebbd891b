"""``transform`` of the fitted set equals that of its copy, and ``fit_transform`` equals both."""

import numpy as np
import pytest
from sklearn.base import clone

import gcaps
from gcaps import kernels
from gcaps.data.graphset import GraphSet
from gcaps.testing import hostile_graphs

KERNELS = {
    "Graphlet": kernels.Graphlet(),
    "MultiscaleLaplacian": kernels.MultiscaleLaplacian(),
    "DeepGraphKernel": kernels.DeepGraphKernel(),
    "RandomWalk": kernels.RandomWalk(diverging="damp"),
    "RandomWalk without labels": kernels.RandomWalk(labels=False, edge_labels=False, diverging="damp"),
    "RandomWalk not normalized": kernels.RandomWalk(diverging="damp", normalize=False),
    "ShortestPath": kernels.ShortestPath(),
    "WeisfeilerLehman": kernels.WeisfeilerLehman(),
    "WLOptimalAssignment": kernels.WLOptimalAssignment(),
}
ESTIMATORS = {
    **{name: {"epochs": 2, "hidden": 4} for name in ("deepsets", "gin", "dgcnn", "ecc")},
    **{name: {} for name in ("wl", "wloa", "sp", "gk", "rw", "fgsd", "capsule-svm")},
    **{"dcnn": {"epochs": 2}, "pscn": {"epochs": 2}, "gcaps": {"epochs": 2, "hidden": 4, "with_svm": False}},
}


@pytest.fixture(scope="module", params=["hostile", "weighted", "labelled"])
def graphs(request) -> GraphSet:
    if request.param == "labelled":
        return gcaps.load("MUTAG")[:40]
    return hostile_graphs(24, seed=3, weighted=request.param == "weighted")


@pytest.mark.parametrize("kernel", KERNELS)
def test_a_kernel_treats_the_fitted_set_as_any_other(kernel, graphs):
    fitted = clone(KERNELS[kernel]).fit(graphs)
    own = fitted.transform(graphs)
    np.testing.assert_array_equal(own, fitted.transform(graphs[:]))
    at_once = clone(KERNELS[kernel]).fit_transform(graphs)
    np.testing.assert_allclose(own, at_once, rtol=1e-6, atol=1e-9)
    np.testing.assert_allclose(own, own.T, rtol=1e-6, atol=1e-9)


def test_a_random_walk_kernel_that_keeps_the_very_set_it_was_fitted_on_compares_all_pairs():
    graphs = gcaps.load("MUTAG")
    fitted = kernels.RandomWalk().fit(graphs)
    fitted._train_ = graphs
    np.testing.assert_array_equal(fitted.transform(graphs), fitted.transform(graphs[:]))


@pytest.mark.parametrize("method", ESTIMATORS)
def test_an_estimator_treats_the_fitted_set_as_any_other(method):
    from gcaps.estimators.registry import make_estimator

    graphs = gcaps.load("MUTAG")[:40]
    fitted = make_estimator(method, ESTIMATORS[method], 0).fit(graphs)
    np.testing.assert_array_equal(fitted.scores(graphs), fitted.scores(graphs[:]))
    if hasattr(fitted, "transform"):
        own = fitted.transform(graphs)
        np.testing.assert_array_equal(own, fitted.transform(graphs[:]))
        at_once = make_estimator(method, ESTIMATORS[method], 0).fit_transform(graphs)
        np.testing.assert_allclose(own, at_once, rtol=1e-5, atol=1e-6)
