"""Claims about the whole network, over a thousand hostile graphs."""

import numpy as np
import pytest
import torch

from gcaps.batching import BatchSource
from gcaps.config import Config, FeatureConfig
from gcaps.features import NodeFeatures
from gcaps.models import GCAPS
from gcaps.nn import FILTERS
from gcaps.testing import assert_batch_equals_singles, assert_permutation_invariant, hostile_graphs

FEATURES = FeatureConfig(features=("labels", "attributes", "degree", "fgsd"), fgsd_bins=8)


def network_of(graphs, dtype, **settings):
    """A network whose running statistics belong to these graphs, in evaluation mode: graphs to logits."""
    config = Config(hidden=8, rank=6, fc=8, dropout=0.0, layers=3, reduce="mean", **settings)
    features = NodeFeatures.fit(FEATURES, graphs)
    torch.manual_seed(0)
    network = GCAPS(features.transform(graphs).shape[1], graphs.num_classes, config).to(dtype)
    network.train()
    with torch.no_grad():
        for _ in range(30):
            network(BatchSource(graphs, features.encode(graphs), dtype).take(np.arange(len(graphs))))
    network.eval()

    @torch.no_grad()
    def logits(some):
        return network(BatchSource(some, features.encode(some), dtype).take(np.arange(len(some)))).double().numpy()

    return logits


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize(("dtype", "atol"), [(torch.float64, 1e-10), (torch.float32, 1e-5)])
def test_node_order_leaves_logits_unchanged(dtype, atol, weighted):
    graphs = hostile_graphs(1024, seed=1, weighted=weighted)
    assert_permutation_invariant(network_of(graphs, dtype), graphs, atol=atol)


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize(("dtype", "atol"), [(torch.float64, 1e-10), (torch.float32, 1e-5)])
def test_batch_equals_singles(dtype, atol, weighted):
    graphs = hostile_graphs(1024, seed=2, weighted=weighted)
    assert_batch_equals_singles(network_of(graphs, dtype), graphs, atol=atol)


@pytest.mark.parametrize(
    "settings",
    [{"filter": name} for name in FILTERS]
    + [
        {"rank": None},
        {"reduce": "sum"},
        {"root": False},
        {"capsule_size": 4, "degree": 2, "bound": None},
        {"degree": 0},
        {"readout": "mean"},
        {"readout": "sum", "count": False},
        {"readout": "max_sort"},
        {"capsule": "central"},
        {"capsule": "polynomial", "capsule_size": 3},
        {"capsule": "density"},
        {"capsule": "routing", "capsule_size": 3},
    ],
)
def test_invariance_holds_for_every_setting(settings):
    settings = {"rank": 6, "reduce": "mean"} | settings
    graphs = hostile_graphs(64, seed=3, weighted=True, largest=12)
    config = Config(hidden=4, fc=8, dropout=0.0, layers=2, **settings)
    features = NodeFeatures.fit(FEATURES, graphs)
    network = GCAPS(features.transform(graphs).shape[1], 2, config).double()
    batch = lambda some: BatchSource(some, features.encode(some), torch.float64).take(np.arange(len(some)))  # noqa: E731
    with torch.no_grad():
        for _ in range(30):
            network(batch(graphs))
        network.eval()
        logits = lambda some: network(batch(some)).numpy()  # noqa: E731
        assert_permutation_invariant(logits, graphs, atol=1e-10)
        assert_batch_equals_singles(logits, graphs, atol=1e-10)


def test_training_on_hostile_graphs_never_shows_nan_or_inf():
    """Hubs, weights over six orders of magnitude, raw fourth powers: loss and every parameter stay finite."""
    from gcaps.training import TrainingRun, reproducible, train

    graphs = hostile_graphs(128, seed=4, weighted=True, largest=200)
    shape = {"hidden": 8, "rank": 8, "fc": 8, "layers": 4, "reduce": "mean", "dropout": 0.5, "weight_decay": 0.01}
    config = Config(epochs=3, capsule_size=4, filter="laplacian", degree=2, **shape)
    features = NodeFeatures.fit(FEATURES, graphs)
    source = BatchSource(graphs, features.encode(graphs), y=graphs.y)
    losses = []
    with reproducible(0, 1):
        network = GCAPS(source.num_features, 2, config)
        run = TrainingRun(network, source, np.arange(len(graphs)), config, 0)
        train(run, lambda epoch: losses.append(epoch.loss) and None)
    assert len(losses) == 3
    assert np.isfinite(losses).all()
    assert all(torch.isfinite(p).all() for p in network.parameters())
