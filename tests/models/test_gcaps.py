import numpy as np
import pytest
import torch

from gcaps.config import Config
from gcaps.errors import MemoryLimitError
from gcaps.models import GCAPS
from gcaps.nn.regularization import Dropout
from gcaps.testing import hostile_graphs
from tests.conftest import whole_batch

CONCRETE = {"layers": 2, "reduce": "mean", "dropout": 0.0}


def test_a_readout_that_cannot_fit_is_refused_with_a_remedy():
    config = Config(**CONCRETE | {"layers": 32}, hidden=4096, capsule_size=8, rank=None)
    with pytest.raises(MemoryLimitError, match="set rank"):
        GCAPS(10, 2, config)


@pytest.mark.parametrize("setting", CONCRETE)
def test_settings_must_be_resolved(setting):
    with pytest.raises(ValueError, match=r"must not be auto; see gcaps\.estimators\.auto\.resolve"):
        GCAPS(3, 2, Config(**CONCRETE | {setting: "auto"}))


def test_layers_reduction_and_dropout_are_those_of_the_settings():
    network = GCAPS(3, 2, Config(layers=3, reduce="sum", dropout=0.3, hidden=4))
    assert len(network.convs) == 3
    assert network.readout.reduce == "sum"
    assert [part.p for part in network.modules() if isinstance(part, Dropout)] == [0.3] * 2
    assert network.shape_args == {}


def test_network_gradcheck():
    graphs = hostile_graphs(8, seed=0, largest=4)
    batch = whole_batch(graphs, np.random.default_rng(0).standard_normal((graphs.num_nodes, 2)))
    network = GCAPS(2, 2, Config(**CONCRETE, hidden=2, rank=2, fc=3)).double()
    names, leaves = zip(*network.named_parameters(), strict=True)

    def logits(*values):
        return torch.func.functional_call(network, dict(zip(names, values, strict=True)), (batch,))

    # a random direction: ReLU's kinks are hit with probability zero
    assert torch.autograd.gradcheck(logits, [v.detach().clone().requires_grad_() for v in leaves], fast_mode=True)


def test_embedding_is_mean_and_covariance_of_all_layers():
    graphs = hostile_graphs(8)
    batch = whole_batch(graphs, np.ones((graphs.num_nodes, 2)), torch.float32)
    config = Config(**CONCRETE | {"layers": 3}, hidden=4, capsule_size=2, rank=5, count=True)
    assert GCAPS(2, 2, config).embed(batch).shape == (8, 3 * 4 * 2 + 5 * 6 // 2 + 1)


@pytest.mark.parametrize(
    ("settings", "total"),
    [
        ({"readout": "mean"}, False),
        ({"readout": "sum"}, True),
        ({"reduce": "mean"}, False),
        ({"reduce": "sum"}, True),
        ({"readout": "mean", "reduce": "sum"}, False),
    ],
)
def test_inputs_are_appended_to_the_graph_vector(settings, total):
    graphs = hostile_graphs(12, seed=2)
    x = np.random.default_rng(0).standard_normal((graphs.num_nodes, 3))
    network = GCAPS(3, 2, Config(**CONCRETE | {"hidden": 4, "inputs": True} | settings)).eval()
    found = network.embed(whole_batch(graphs, x, torch.float32))[:, -3:].detach().numpy()
    for g in range(len(graphs)):
        rows = x[graphs.ptr[g] : graphs.ptr[g + 1]]
        np.testing.assert_allclose(found[g], rows.sum(0) if total else rows.mean(0), rtol=1e-5, atol=1e-5)
