"""Every estimator and transformer passes scikit-learn's estimator checks, adapted to graphs."""

import pickle

import numpy as np
import pytest

from gcaps import kernels
from gcaps.estimators import METHODS, KernelSVC, KernelSVR, make_estimator
from gcaps.estimators.registry import estimator_class
from gcaps.features import GraphFGSD, LocalTopologicalProfile
from gcaps.testing import CHECKS, check_graph_estimator, example_graphs

NETWORK = {"epochs": 1, "hidden": 4, "batch_size": 16}
KERNEL = {"C": (1.0,), "inner_folds": 2}
QUICK = {
    "gcaps": {**NETWORK, "layers": 1, "rank": 4, "fc": 8, "ensemble_size": 1, "with_svm": False},
    "capsule-svm": {"layers": 1, "hidden": 4, "rank": 4, "C": (1.0,), "gamma": (1.0,), "inner_folds": 2},
    "dcnn": {"epochs": 1, "hops": 2, "batch_size": 16},
    "pscn": {**NETWORK, "field": 3, "channels": 4},
    "ecc": {**NETWORK, "top": 4, "filter_hidden": 3},
    "dgcnn": {**NETWORK, "layers": 2, "channels": 4, "dense": 4},
    "gin": {**NETWORK, "layers": 2},
    "deepsets": NETWORK,
    "rw": {**KERNEL, "decays": (1e-2,)},
    "sp": KERNEL,
    "gk": {**KERNEL, "sizes": (3,)},
    "wl": {**KERNEL, "n_iter": (1,)},
    "wloa": {**KERNEL, "n_iter": (1,)},
    "wwl": {**KERNEL, "n_iter": (1,), "rates": (1.0,)},
    "retgk": {**KERNEL, "gamma": (10.0,), "steps": 5, "n_features": 20},
    "dgk": {**KERNEL, "n_iter": (1,), "sizes": (3,), "dimension": 4},
    "mlg": {**KERNEL, "levels": (1,), "eta": (1.0,), "gamma": (0.1,), "rank": 3, "samples": 8},
    "tanimoto": {**KERNEL, "radius": (1,)},
    "fgsd": {"bins": 10, "n_estimators": 5},
    "ltp": {"bins": 5, "n_estimators": 5},
    "ecfp": {"n_estimators": 5, "bits": 64},
    "descriptors": {"n_estimators": 5, "fingerprints": ("maccs",)},
}
"""Settings of short fits."""
LEARNING = ("check_classifiers_train", "check_regressors_train", "check_class_weight_classifiers")
"""Checks that a network of one epoch fails."""
LONGER = {"epochs": 15, "lr": 0.02, "batch_size": 8}
"""Settings of networks for these checks."""
NETWORKS = [name for name, settings in QUICK.items() if "epochs" in settings]
TASKS = ("classification", "regression")
BOTH = pytest.mark.parametrize("task", TASKS)
REPETITION = {
    **dict.fromkeys(NETWORKS, "a graph of weight 2 is in one batch, a repeated graph in two"),
    "capsule-svm": "normalisation statistics count graphs, not weights",
    "fgsd": "the bootstrap draws other graphs",
    "ltp": "the bootstrap draws other graphs",
    "ecfp": "the bootstrap draws other graphs",
    "descriptors": "leaves of boosting hold a number of graphs, not of weights",
    "retgk": "the median distance is of graphs, not weights",
    "dgk": "the embedding is learned from graphs, not weights",
    "mlg": "the basis is learned from graphs, not weights",
}
"""Why a weight of 2 is not the same as two graphs."""


def quick(method, task, **changes):
    if method == "ensemble":
        return estimator_class(method, task)([quick("wl", task), quick("sp", task)])
    return make_estimator(method, QUICK[method] | changes, task=task)


def failures(method, task):
    """Checks that are expected to fail, with the reason."""
    reason = REPETITION.get(method)
    if task == "regression" and reason is None:
        reason = "targets are standardised over graphs, not weights"
    return {} if reason is None else {"check_sample_weight_repetition": reason}


def test_every_method_is_checked():
    assert {*QUICK, "ensemble"} == set(METHODS)


@BOTH
@pytest.mark.parametrize("method", METHODS)
def test_methods_pass(method, task):
    skipped = LEARNING if method in NETWORKS else ()
    found = check_graph_estimator(
        quick(method, task), checks=CHECKS.keys() - {*skipped}, expected_failed_checks=failures(method, task)
    )
    assert {result.name for result in found if result.status == "xfail"} == failures(method, task).keys()
    assert {result.reason for result in found if result.status == "skipped"} <= {
        "polars is not installed",
        "pandas is not installed",
    }
    assert len(found) > 45


@BOTH
@pytest.mark.parametrize("method", NETWORKS)
def test_networks_learn(method, task):
    last = {"selection": "last"} if method == "pscn" else {}  # too few graphs for an inner split
    check_graph_estimator(quick(method, task, **LONGER, **last), checks=LEARNING)


TRANSFORMERS = {
    **{name: getattr(kernels, name) for name in kernels.__all__ if name != "GraphKernel"},
    "GraphFGSD": lambda: GraphFGSD(8),
    "LocalTopologicalProfile": lambda: LocalTopologicalProfile(8),
    "MultiscaleLaplacian": lambda: kernels.MultiscaleLaplacian(1, rank=3, samples=8),
}


@pytest.mark.parametrize("name", TRANSFORMERS)
def test_transformers_pass(name):
    assert len(check_graph_estimator(TRANSFORMERS[name]())) > 40


@pytest.mark.parametrize("kind", [KernelSVC, KernelSVR])
def test_machines_on_any_kernel_pass(kind):
    expected = failures("wl", "regression" if kind is KernelSVR else "classification")
    estimator = kind(kernels.WeisfeilerLehman(1), C=(1.0,), inner_folds=2)
    check_graph_estimator(estimator, expected_failed_checks=expected)


@pytest.mark.parametrize("method", [*NETWORKS, "capsule-svm", "wl"])
def test_pickles_are_as_large_as_the_model(method):
    wider = {"hidden": 32} if "hidden" in QUICK[method] else {}
    graphs, _ = example_graphs(120)
    model = quick(method, "classification", **wider).fit(graphs)
    arrays, _ = model.state()
    assert len(pickle.dumps(model)) < 1.2 * sum(np.asarray(array).nbytes for array in arrays.values()) + 50_000
