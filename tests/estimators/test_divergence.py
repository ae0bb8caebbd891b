"""Numbers that no formula can take, and trainings that diverge: an error, never a classifier."""

from contextlib import suppress
from dataclasses import replace

import numpy as np
import pytest
import torch

import gcaps
from gcaps.errors import ConfigError, DataError, DivergenceError
from gcaps.estimators.registry import make_estimator
from gcaps.testing import hostile_graphs

FEW = {"epochs": 2}


@pytest.fixture(scope="module")
def graphs():
    return gcaps.load("MUTAG")[:40]


@pytest.mark.parametrize("method", ["gcaps", "deepsets", "gin", "ecc", "dgcnn", "dcnn"])
@pytest.mark.parametrize("more", [{}, {"selection": "validation"}])
def test_a_diverged_training_stops_with_its_epoch(graphs, method, more):
    alone = {"with_svm": False} if method == "gcaps" else {}
    estimator = make_estimator(method, {**FEW, "lr": 1e12, **alone, **more}, 0)
    with suppress(DivergenceError):
        estimator.fit(graphs)
    if hasattr(estimator, "fitted_"):  # bounded functions may survive any rate: then all that they say is finite
        assert np.isfinite(estimator.scores(graphs)).all()


def test_lr_1e12_diverges_in_a_regressor_too(graphs):
    numbers = np.linspace(0, 1, len(graphs))
    with pytest.raises(DivergenceError, match="smaller lr"):
        gcaps.GraphCapsuleRegressor(**FEW, lr=1e12, with_svm=False).fit(graphs, numbers)


def test_weights_of_nan_never_predict(graphs):
    fitted = make_estimator("deepsets", FEW, 0).fit(graphs)
    with torch.no_grad():
        for parameter in fitted.fitted_.network.parameters():
            parameter.fill_(float("nan"))
    with pytest.raises(DivergenceError, match="no finite numbers"):
        fitted.predict(graphs)


@pytest.mark.parametrize("value", [1e300, -1e39])
def test_attributes_beyond_float32_are_refused(value):
    graphs = hostile_graphs(20, seed=1)
    x = np.ones((graphs.num_nodes, 2))
    x[3, 1] = value
    far = replace(graphs, x=x, y=np.arange(20) % 2)
    estimator = make_estimator("deepsets", {**FEW, "features": ("attributes",)}, 0)
    with pytest.raises(DataError, match=r"column 2 of 2.*more than a float32"):
        estimator.fit(far)
    near = replace(far, x=np.where(np.abs(x) > 1e30, 0.5, x))
    with pytest.raises(DataError, match="more than a float32"):
        estimator.fit(near).predict(far)


def test_targets_beyond_float32_are_refused(graphs):
    y = np.linspace(0, 1, len(graphs))
    y[5] = 1e300
    with pytest.raises(DataError, match="more than a float32"):
        make_estimator("wl", {}, 0, "regression").fit(graphs, y)


def test_sample_weights_whose_sum_is_infinite_are_refused(graphs):
    with pytest.raises(DataError, match="sample_weight"):
        make_estimator("wl", {}, 0).fit(graphs, sample_weight=np.full(len(graphs), 1e308))


@pytest.mark.parametrize(
    ("method", "settings"),
    [
        ("gcaps", {"features": []}),
        ("gcaps", {"threads": 10**9}),
        ("gcaps", {"lr": float("inf")}),
        ("gcaps", {"lr": 1e30}),
        ("gcaps", {"batch_size": 10**30}),
        ("wl", {"C": [0.0]}),
        ("wl", {"C": [float("nan")]}),
        ("wl", {"n_iter": [10**9]}),
        ("mlg", {"radius": [10**30]}),
    ],
)
def test_settings_out_of_range_are_one_line(graphs, method, settings):
    with pytest.raises(ConfigError) as told:
        make_estimator(method, settings, 0).fit(graphs)
    assert "\n" not in str(told.value)
    assert isinstance(told.value, ValueError)


@pytest.mark.parametrize("seed", [-1, 2**32, 0.5, "x"])
@pytest.mark.parametrize("method", ["deepsets", "wl", "ensemble", "capsule-svm"])
def test_a_seed_that_no_generator_takes_is_a_config_error(graphs, method, seed):
    few = {"deepsets": FEW, "ensemble": {"methods": ["wl"]}}.get(method, {})
    with pytest.raises(ConfigError, match="random_state"):
        make_estimator(method, few, seed).fit(graphs)


def test_validation_on_two_graphs_leaves_too_few():
    graphs = gcaps.load("MUTAG")
    two = graphs[[int(np.flatnonzero(graphs.y == value)[0]) for value in np.unique(graphs.y)[:2]]]
    with pytest.raises(ConfigError, match="at least two"):
        make_estimator("deepsets", {**FEW, "selection": "validation"}, 0).fit(two)
