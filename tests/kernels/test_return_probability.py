"""Return probabilities, and RetGK, against dense matrices and all pairs of nodes."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from gcaps.config import Config
from gcaps.data.catalog import load
from gcaps.data.prepared import PreparedSet
from gcaps.errors import ConfigError
from gcaps.estimators import ReturnProbabilitySVC
from gcaps.features import NodeFeatures, return_probabilities
from gcaps.kernels import ReturnProbability
from gcaps.kernels.distance import median_distance
from gcaps.testing import assert_batch_equals_singles, assert_permutation_invariant, hostile_graphs
from tests.kernels import oracles
from tests.kernels.test_state import saved_and_restored


@pytest.mark.parametrize("loops", [False, True])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("steps", [1, 2, 7])
def test_return_probabilities_are_diagonals_of_powers(loops: bool, weighted: bool, steps: int) -> None:
    graphs = hostile_graphs(32, seed=1, weighted=weighted)
    found = return_probabilities(graphs, steps, loops=loops)
    expected = np.concatenate([oracles.return_probabilities(graph, steps, loops) for graph in graphs])
    np.testing.assert_allclose(found, expected, rtol=1e-10, atol=1e-14)
    with pytest.raises(ConfigError, match="steps must be"):
        return_probabilities(graphs, 0)


def test_return_probabilities_belong_to_the_node_alone() -> None:
    graphs = hostile_graphs(16, seed=2)
    ends = graphs.ptr[1:] - 1

    def summed(given: Any) -> np.ndarray:
        return np.add.reduceat(return_probabilities(given), given.ptr[:-1], axis=0)

    assert_permutation_invariant(summed, graphs, atol=1e-10)
    assert_batch_equals_singles(summed, graphs, atol=0.0)
    assert return_probabilities(graphs)[ends].shape == (16, 50)


def test_the_node_feature_is_computed_once_and_fitted_to_training_graphs() -> None:
    graphs = hostile_graphs(24, seed=3)
    config, prepared, train = Config(features=("labels", "return_probabilities")), PreparedSet(graphs), np.arange(10)
    shared = NodeFeatures.fit(config, prepared, train)
    alone = NodeFeatures.fit(config, graphs.subset(train))
    np.testing.assert_allclose(shared.transform(prepared), alone.transform(graphs), rtol=1e-6)
    assert shared.num_features == 4 + 50
    inside = alone.transform(graphs.subset(train))[:, 4:]
    np.testing.assert_allclose(inside.mean(axis=0), 0, atol=1e-5)
    restored = NodeFeatures.from_state(shared.state())
    np.testing.assert_array_equal(restored.transform(graphs), shared.transform(graphs))


@pytest.mark.parametrize("base", ["gaussian", "laplacian"])
@pytest.mark.parametrize("attributes", [False, True])
@pytest.mark.parametrize("labels", [False, True])
def test_the_exact_kernel_compares_all_pairs_of_nodes(base: Any, attributes: bool, labels: bool) -> None:
    graphs = hostile_graphs(16, seed=4, largest=6)
    train, test = graphs.subset(range(10)), graphs.subset(range(10, 16))
    kernel = ReturnProbability(3.0, base=base, attributes=attributes, labels=labels, exact=True, steps=8).fit(train)
    distance = oracles.mean_discrepancy(graphs, train, 3.0, 0.1 if attributes else 0.0, base, labels, steps=8)
    unit = median_distance(distance[:10, :10])
    assert kernel.unit_ == pytest.approx(unit, rel=1e-6)
    np.testing.assert_allclose(kernel.transform(test), np.exp(-distance[10:, :10] / unit), rtol=1e-5)
    np.testing.assert_allclose(kernel.fit_transform(train), np.exp(-distance[:10, :10] / unit), rtol=1e-5)


@pytest.mark.parametrize("base", ["gaussian", "laplacian"])
@pytest.mark.parametrize("attributes", [False, True])
def test_random_features_approach_the_exact_kernel(base: Any, attributes: bool) -> None:
    graphs = load("MUTAG").subset(range(30))
    graphs = replace(graphs, x=np.random.default_rng(0).random((graphs.num_nodes, 2)))
    options: dict[str, Any] = {"base": base, "attributes": attributes, "unit": 1.0}
    exact = ReturnProbability(5.0, exact=True, **options).fit_transform(graphs)
    errors = [
        np.abs(ReturnProbability(5.0, n_features=n, **options).fit_transform(graphs) - exact).mean()
        for n in (100, 10_000)
    ]
    assert errors[1] < 0.01
    assert errors[1] < errors[0] / 4


@pytest.mark.parametrize("exact", [False, True])
def test_order_of_nodes_and_other_graphs_change_nothing(exact: bool) -> None:
    graphs = hostile_graphs(16, seed=5, largest=8)
    kernel = ReturnProbability(exact=exact, unit=1.0)
    assert kernel.pairwise(graphs)
    assert not ReturnProbability(exact=exact).pairwise(graphs)
    assert_permutation_invariant(kernel.fit(graphs).transform, graphs, atol=1e-6)
    whole = kernel.fit_transform(graphs)
    np.testing.assert_allclose(kernel.fit(graphs.subset([3, 9])).transform(graphs), whole[:, [3, 9]], atol=1e-6)


@pytest.mark.parametrize("exact", [False, True])
def test_the_kernel_with_attributes_is_restored_and_restricted(exact: bool) -> None:
    graphs = hostile_graphs(16, seed=6, largest=6)
    fitted = ReturnProbability(exact=exact, attributes=True).fit(graphs.subset(range(10)))
    test = graphs.subset(range(10, 16))
    expected = fitted.transform(test)
    np.testing.assert_array_equal(saved_and_restored(fitted).transform(test), expected)
    np.testing.assert_allclose(fitted.restrict([7, 2]).transform(test), expected[:, [7, 2]], rtol=1e-12)


@pytest.mark.parametrize("settings", [{}, {"exact": True}, {"attributes": True, "attribute_gamma": (0.1, 1.0)}])
def test_a_prepared_set_gives_the_scores_of_a_fit_on_its_own(settings: dict[str, Any]) -> None:
    graphs = load("MUTAG").subset(range(60))
    graphs = replace(graphs, x=np.random.default_rng(0).random((graphs.num_nodes, 2)))
    train, test = np.arange(40), np.arange(40, 60)
    model = ReturnProbabilitySVC(gamma=(1.0, 10.0), C=(1.0, 100.0), inner_folds=2, n_features=20, **settings)
    prepared = PreparedSet(graphs)
    shared = model.fit_prepared(prepared, train).scores_prepared(prepared, test)
    unit = model.chosen_["unit"]
    alone = model.fit(graphs.subset(train))
    assert alone.chosen_["unit"] == pytest.approx(unit, rel=1e-9)
    np.testing.assert_allclose(shared, alone.predict_proba(graphs.subset(test)), atol=1e-6)


def test_wrong_parameters_are_named() -> None:
    with pytest.raises(ConfigError, match="must be positive"):
        ReturnProbability(0.0).fit(hostile_graphs(8))
