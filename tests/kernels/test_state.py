"""A fitted kernel is saved as arrays and JSON, and restricted to some training graphs."""

import json
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from safetensors.numpy import load as read_arrays
from safetensors.numpy import save as write_arrays
from sklearn.base import clone
from sklearn.exceptions import NotFittedError

from gcaps.data.catalog import load
from gcaps.data.graphset import GraphSet
from gcaps.kernels import RandomWalk, ShortestPath, WeisfeilerLehman
from gcaps.kernels.base import GraphKernel
from gcaps.testing import hostile_graphs
from tests.kernels.test_interface import ALL, KERNELS, normalized


def saved_and_restored(kernel: GraphKernel) -> GraphKernel:
    """The kernel after a round trip through bytes and text."""
    arrays, values = kernel.state()
    data, text = write_arrays(arrays), json.dumps(values)
    params: dict[str, Any] = json.loads(json.dumps(kernel.get_params()))
    return type(kernel)(**params).restore(read_arrays(data), json.loads(text))


@ALL
@pytest.mark.parametrize("normalize", [False, True])
def test_restored_kernels_transform_alike_bit_for_bit(kernel: GraphKernel, normalize: bool) -> None:
    graphs = load("MUTAG").subset(range(40))
    fitted = normalized(kernel, normalize).fit(graphs.subset(range(0, 40, 2)))
    test = graphs.subset(range(1, 40, 2))
    restored = saved_and_restored(fitted)
    np.testing.assert_array_equal(restored.transform(test), fitted.transform(test))
    arrays, values = fitted.state()
    again, values_again = restored.state()
    assert set(arrays) == set(again)
    assert values == values_again
    for name in arrays:
        np.testing.assert_array_equal(arrays[name], again[name])


@pytest.mark.parametrize(
    "kernel", [ShortestPath(), RandomWalk(1e-3, diverging="damp"), RandomWalk(1e-3, labels=False, diverging="damp")]
)
def test_restored_kernels_of_weighted_graphs_transform_alike(kernel: GraphKernel) -> None:
    graphs = hostile_graphs(16, seed=4, weighted=True, largest=6)
    fitted = clone(kernel).fit(graphs.subset(range(8)))
    test = graphs.subset(range(8, 16))
    np.testing.assert_array_equal(saved_and_restored(fitted).transform(test), fitted.transform(test))


def test_restored_random_walks_match_edge_labels_and_do_not_store_targets() -> None:
    graphs = load("MUTAG").subset(range(20))
    graphs = replace(graphs, y=np.array(["a", "b"] * 10))  # safetensors has no strings
    fitted = RandomWalk(1e-2, edge_labels=True).fit(graphs.subset(range(10)))
    test = graphs.subset(range(10, 20))
    np.testing.assert_array_equal(saved_and_restored(fitted).transform(test), fitted.transform(test))


@ALL
@pytest.mark.parametrize("normalize", [False, True])
def test_restriction_takes_columns(kernel: GraphKernel, normalize: bool) -> None:
    graphs = load("MUTAG").subset(range(40))
    fitted = normalized(kernel, normalize).fit(graphs.subset(range(0, 40, 2)))
    test, positions = graphs.subset(range(1, 40, 2)), [17, 3, 4, 11]
    expected = fitted.transform(test)[:, positions]
    assert fitted.restrict(positions) is fitted
    np.testing.assert_allclose(fitted.transform(test), expected, rtol=1e-9)
    np.testing.assert_array_equal(saved_and_restored(fitted).transform(test), fitted.transform(test))
    assert len(fitted.get_feature_names_out()) == 4


@pytest.mark.parametrize("name", ["gk", "wl", "wloa"])
def test_restriction_takes_columns_of_integer_counts_exactly(name: str) -> None:
    graphs = hostile_graphs(24, seed=3, largest=8)
    fitted = clone(KERNELS[name]).fit(graphs)
    expected = fitted.transform(graphs)[:, ::3]
    np.testing.assert_array_equal(fitted.restrict(np.arange(0, 24, 3)).transform(graphs), expected)


def test_restriction_forgets_substructures_of_other_graphs() -> None:
    graphs = load("MUTAG").subset(range(30))
    fitted = WeisfeilerLehman(3).fit(graphs)
    few = WeisfeilerLehman(3).fit(graphs.subset([2, 5]))
    np.testing.assert_array_equal(fitted.restrict([2, 5]).vocabulary_, few.vocabulary_)


@ALL
def test_restriction_to_nothing_gives_no_columns(kernel: GraphKernel) -> None:
    graphs: GraphSet = hostile_graphs(8, seed=2, largest=6)
    fitted = clone(kernel).fit(graphs).restrict([])
    assert fitted.transform(graphs).shape == (8, 0)
    assert saved_and_restored(fitted).transform(graphs).shape == (8, 0)


@ALL
def test_state_needs_a_fitted_kernel(kernel: GraphKernel) -> None:
    with pytest.raises(NotFittedError):
        clone(kernel).state()
