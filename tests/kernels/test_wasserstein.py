"""Wasserstein Weisfeiler-Lehman kernels against linear programs."""

from dataclasses import replace

import numpy as np
import pytest

from gcaps.data.catalog import load
from gcaps.data.graphset import GraphSet
from gcaps.errors import ConfigError, DataError
from gcaps.estimators import WassersteinSVC, WassersteinSVR
from gcaps.kernels import ContinuousWassersteinWL, WassersteinWL
from gcaps.kernels.transport import transport_cost, wasserstein_distances
from gcaps.testing import assert_permutation_invariant, hostile_graphs
from tests.kernels import oracles
from tests.kernels.test_state import saved_and_restored


@pytest.mark.parametrize("n_iter", [0, 1, 4])
def test_the_closed_form_is_the_optimum_of_the_transport_problem(n_iter: int) -> None:
    graphs = hostile_graphs(16, seed=1, largest=5)
    found = WassersteinWL(n_iter, rate=0.7).fit_transform(graphs)
    np.testing.assert_allclose(found, np.exp(-0.7 * oracles.wasserstein_wl(graphs, n_iter)), rtol=1e-12)
    unlabelled = WassersteinWL(n_iter, rate=0.7, labels=False).fit_transform(graphs)
    expected = oracles.wasserstein_wl(graphs, n_iter, use_labels=False)
    np.testing.assert_allclose(unlabelled, np.exp(-0.7 * expected), rtol=1e-12)


def test_all_heights_in_one_pass_are_the_single_ones() -> None:
    graphs = hostile_graphs(24, seed=3, largest=8)
    kernels = [WassersteinWL(h) for h in (0, 3, 12)]
    for kernel, D in zip(kernels, WassersteinWL.train_distances(kernels, graphs), strict=True):
        np.testing.assert_allclose(kernel.fit(graphs).similarities(D), kernel.fit_transform(graphs), rtol=1e-13)


def test_transport_is_the_optimum_of_the_linear_program() -> None:
    rng = np.random.default_rng(0)
    for _ in range(30):
        n, m = rng.integers(1, 9, 2)
        cost = rng.random((n, m)) if rng.random() < 0.5 else rng.integers(0, 3, (n, m)).astype(float)
        assert transport_cost(cost) == pytest.approx(oracles.transport(cost), abs=1e-12)
        np.testing.assert_allclose(transport_cost(cost.T), transport_cost(cost), rtol=1e-12, atol=1e-15)


def test_transport_of_equal_sizes_is_the_best_assignment() -> None:
    from scipy.optimize import linear_sum_assignment

    cost = np.random.default_rng(1).random((60, 60))
    rows, columns = linear_sum_assignment(cost)
    assert transport_cost(cost) == pytest.approx(cost[rows, columns].mean(), rel=1e-12)


def test_distances_of_sets_without_points() -> None:
    ptr = np.array([0, 2, 2, 2, 3])
    D = wasserstein_distances(np.array([[0.0], [2.0], [1.0]]), ptr)
    np.testing.assert_array_equal(D, [[0, 1, 1, 1], [1, 0, 0, 1], [1, 0, 0, 1], [1, 1, 1, 0]])


@pytest.mark.parametrize("weighted", [False, True])
def test_the_continuous_kernel_matches_its_oracle(weighted: bool) -> None:
    graphs = hostile_graphs(16, seed=2, largest=5, weighted=weighted)
    train, test = graphs.subset(range(8)), graphs.subset(range(8, 16))
    kernel = ContinuousWassersteinWL(2, rate=0.3).fit(train)
    expected = np.exp(-0.3 * oracles.continuous_wasserstein(test, train, 2))
    np.testing.assert_allclose(kernel.transform(test), expected, rtol=1e-6)  # attributes are in float32
    np.testing.assert_allclose(kernel.transform(train), kernel.fit_transform(train), rtol=1e-10)


def test_the_continuous_kernel_does_not_depend_on_the_order_of_nodes_or_on_threads() -> None:
    graphs = hostile_graphs(16, seed=4, largest=8)
    kernel = ContinuousWassersteinWL(1).fit(graphs)
    assert_permutation_invariant(kernel.transform, graphs, atol=1e-10)
    np.testing.assert_array_equal(
        ContinuousWassersteinWL(1, n_jobs=1).fit(graphs).transform(graphs), kernel.transform(graphs)
    )


def test_the_continuous_kernel_is_restored_and_restricted() -> None:
    graphs = hostile_graphs(16, seed=5, largest=6)
    fitted = ContinuousWassersteinWL(1).fit(graphs.subset(range(10)))
    test = graphs.subset(range(10, 16))
    expected = fitted.transform(test)
    np.testing.assert_array_equal(saved_and_restored(fitted).transform(test), expected)
    np.testing.assert_array_equal(fitted.restrict([7, 2]).transform(test), expected[:, [7, 2]])
    np.testing.assert_array_equal(saved_and_restored(fitted).transform(test), expected[:, [7, 2]])


def test_degrees_are_the_attributes_of_graphs_without_any() -> None:
    graphs = hostile_graphs(16, seed=7, largest=6)
    bare, given = replace(graphs, x=None), replace(graphs, x=graphs.degrees[:, None].astype(float))
    kernel = ContinuousWassersteinWL(1).fit(bare)
    np.testing.assert_allclose(kernel.transform(bare), ContinuousWassersteinWL(1).fit_transform(given), rtol=1e-9)
    np.testing.assert_array_equal(saved_and_restored(kernel).transform(bare), kernel.transform(bare))


def test_attributes_are_standardised_over_the_training_graphs_alone() -> None:
    graphs = hostile_graphs(24, seed=6, largest=6)
    far = replace(graphs, x=np.where(np.arange(graphs.num_nodes)[:, None] < graphs.ptr[16], graphs.x, 1e3 + graphs.x))
    train = np.arange(16)
    models = [
        WassersteinSVC(attributes=True, n_iter=(1,), C=(1.0,), inner_folds=2).fit_all(given.subset(train))
        for given in (graphs, far)
    ]
    few = graphs.subset(range(16))
    np.testing.assert_array_equal(*(model.decision_function(few) for model in models))


def test_a_prepared_set_gives_the_scores_of_a_fit_on_its_own() -> None:
    from gcaps.data.prepared import PreparedSet

    graphs = load("MUTAG").subset(range(60))
    train, test = np.arange(40), np.arange(40, 60)
    model = WassersteinSVC(n_iter=(0, 2), rates=(0.1, 1.0), C=(1.0, 100.0), inner_folds=2)
    prepared = PreparedSet(graphs)
    shared = model.fit_prepared(prepared, train).scores_prepared(prepared, test)
    alone = model.fit(graphs.subset(train)).predict_proba(graphs.subset(test))
    np.testing.assert_allclose(shared, alone, atol=1e-9)


def test_wrong_parameters_are_named() -> None:
    graphs = hostile_graphs(8)
    with pytest.raises(ConfigError, match="rate and unit must be positive"):
        WassersteinWL(rate=-1.0).fit_transform(graphs)
    with pytest.raises(ConfigError, match="n_iter must be"):
        ContinuousWassersteinWL(-1).fit(graphs)
    fitted = WassersteinSVR(attributes=True, n_iter=(1,), inner_folds=2).fit(graphs, np.arange(8.0))
    with pytest.raises(DataError, match="has no node attributes"):
        fitted.predict(replace(graphs, x=None))


def test_a_graph_without_nodes_is_far_from_every_other() -> None:
    graphs = GraphSet(
        name="few",
        ptr=np.array([0, 0, 2, 2]),
        rowptr=np.array([0, 1, 2]),
        col=np.array([1, 0], dtype=np.int32),
        node_labels=np.array([[0], [1]]),
    )
    far = np.exp(-1.0)
    np.testing.assert_allclose(WassersteinWL(2).fit_transform(graphs), [[1, far, 1], [far, 1, far], [1, far, 1]])
