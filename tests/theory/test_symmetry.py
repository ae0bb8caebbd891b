"""Layers are equivariant, networks invariant, to rounding."""

import numpy as np
import pytest
import torch

from gcaps.batching import BatchSource
from gcaps.config import Config
from gcaps.models import GCAPS
from gcaps.nn import CAPSULES, FILTERS, GraphCapsuleConv
from gcaps.testing import hostile_graphs
from gcaps.theory import equivariance_error, invariance_error


@pytest.mark.parametrize("capsule", CAPSULES)
@pytest.mark.parametrize("name", FILTERS)
def test_a_capsule_layer_is_equivariant(capsule, name):
    graphs = hostile_graphs(8, seed=2, weighted=True, largest=8)
    conv = GraphCapsuleConv(3, 4, 3, 2, capsule, name, bound=2.0).double()
    for number in range(len(graphs)):
        graph = graphs[number]
        weight = torch.from_numpy(np.clip(graph.edge_weight, 0.5, 2.0))
        x = torch.from_numpy(np.asarray(graph.x))
        error = equivariance_error(conv, x, torch.from_numpy(graph.edge_index), weight, seed=number)
        assert error <= 1e-10


def test_equivariance_error_shows_a_layer_that_looks_at_node_order():
    x = torch.arange(6.0).view(6, 1)
    edge_index = torch.tensor([[0, 1], [1, 0]])
    assert equivariance_error(lambda x, e, w: x.cumsum(0), x, edge_index) > 1


@pytest.mark.parametrize("capsule", CAPSULES)
def test_the_whole_network_is_invariant(capsule):
    graphs = hostile_graphs(48, seed=3)
    torch.manual_seed(0)
    network = (
        GCAPS(3, 2, Config(hidden=6, rank=5, fc=8, layers=2, reduce="mean", dropout=0.5, capsule=capsule))
        .double()
        .eval()
    )

    @torch.no_grad()
    def logits(some):
        source = BatchSource(some, np.asarray(some.x), torch.float64)
        return network(source.take(np.arange(len(some)))).numpy()

    assert invariance_error(logits, graphs) <= 1e-10


def test_invariance_error_shows_a_function_that_looks_at_node_order():
    graphs = hostile_graphs(16, seed=3)
    assert invariance_error(lambda some: np.asarray(some.x)[some.ptr[:-1]], graphs) > 0.1
