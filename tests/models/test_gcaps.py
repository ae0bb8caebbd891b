import numpy as np
import pytest
import torch

from gcaps.config import Config
from gcaps.errors import MemoryLimitError
from gcaps.models import GCAPS
from gcaps.testing import hostile_graphs
from tests.conftest import whole_batch


def test_a_readout_that_cannot_fit_is_refused_with_a_remedy():
    config = Config(layers=32, hidden=4096, capsule_size=8, rank=None)
    with pytest.raises(MemoryLimitError, match="set rank"):
        GCAPS(10, 2, config)


def test_network_gradcheck():
    graphs = hostile_graphs(8, seed=0, largest=4)
    batch = whole_batch(graphs, np.random.default_rng(0).standard_normal((graphs.num_nodes, 2)))
    network = GCAPS(2, 2, Config(layers=2, hidden=2, rank=2, fc=3, dropout=0.0)).double()
    names, leaves = zip(*network.named_parameters(), strict=True)

    def logits(*values):
        return torch.func.functional_call(network, dict(zip(names, values, strict=True)), (batch,))

    # a random direction: ReLU's kinks are hit with probability zero
    assert torch.autograd.gradcheck(logits, [v.detach().clone().requires_grad_() for v in leaves], fast_mode=True)


def test_embedding_is_mean_and_covariance_of_all_layers():
    graphs = hostile_graphs(8)
    batch = whole_batch(graphs, np.ones((graphs.num_nodes, 2)), torch.float32)
    network = GCAPS(2, 2, Config(layers=3, hidden=4, capsule_size=2, rank=5, count=True))
    assert network.embed(batch).shape == (8, 3 * 4 * 2 + 5 * 6 // 2 + 1)
