import math

import numpy as np
import pytest
import torch
from torch import nn

import gcaps
from gcaps.config import ENOUGH, FEW, FEWEST, MANY, MUCH, Config
from gcaps.errors import ConfigError
from gcaps.training import fit
from gcaps.training.averaging import WeightAverage
from gcaps.training.loop import rate
from gcaps.training.optimizer import FlatAdam

SMALL = {"hidden": 4, "layers": 2, "rank": 4, "fc": 8, "epochs": 5}


@pytest.fixture(scope="module")
def graphs():
    return gcaps.load("MUTAG").subset(np.arange(60))


def network():
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(3, 4), nn.BatchNorm1d(4), nn.Linear(4, 2)).double()


def test_the_average_is_the_weighted_mean_of_all_steps():
    net = network()
    optimizer = FlatAdam(net, 0.1, 0.0)
    average, keep = WeightAverage(net, optimizer.flat, 0.7), 0.7
    seen = [{key: value.clone() for key, value in net.state_dict().items()}]
    for step in range(8):
        net(
            torch.randn(5, 3, dtype=torch.float64, generator=torch.Generator().manual_seed(step))
        ).square().sum().backward()
        optimizer.step()
        optimizer.zero_grad()
        average.update()
        seen.append({key: value.clone() for key, value in net.state_dict().items()})
    # weight of step t: (1 − β_t) Π_{s > t} β_s, of the beginning Π β_s
    betas = [min(keep, (1 + t) / (10 + t)) for t in range(1, 9)]
    shares = [math.prod(betas), *((1 - betas[t]) * math.prod(betas[t + 1 :]) for t in range(8))]
    assert math.isclose(sum(shares), 1)
    own = seen[-1]
    with average.in_place():
        for key, value in net.state_dict().items():
            if value.is_floating_point():
                expected = sum(share * one[key] for share, one in zip(shares, seen, strict=True))
                torch.testing.assert_close(value, expected, rtol=0, atol=1e-12)
                assert not torch.equal(value, own[key])
    assert all(torch.equal(value, own[key]) for key, value in net.state_dict().items())


def test_what_predicts_is_the_average(graphs):
    """Training itself is the same; only the weights that are handed over differ."""
    plain, averaged = (
        fit(graphs, np.arange(60), Config(**SMALL, averaging=keep, head="layers"), 1, watch=np.arange(30))
        for keep in (0.0, 0.9)
    )
    assert plain[1].loss == averaged[1].loss
    same = [
        torch.equal(one, other)
        for one, other in zip(plain[0].network.parameters(), averaged[0].network.parameters(), strict=True)
    ]
    assert not any(same)
    right = averaged[0].predict_proba(graphs.subset(np.arange(30))).argmax(1) == graphs.targets[:30]
    assert averaged[1].watched[-1] == pytest.approx(right.mean())


def test_with_validation_the_average_of_the_best_epoch_is_kept(graphs):
    config = Config(**SMALL, averaging=0.9, selection="validation")
    held = np.arange(40, 60)
    model, curves, epoch = fit(graphs, np.arange(60), config, 1, validation=held)
    right = model.predict_proba(graphs.subset(held)).argmax(1) == graphs.targets[held]
    assert curves.validation[epoch - 1] == max(curves.validation) == pytest.approx(right.mean())


def test_rates_fall_in_steps_or_along_a_cosine():
    step = Config(lr=0.01, schedule="step", decay=0.5, decay_every=2, epochs=5)
    assert [rate(step, number, 5) for number in range(1, 6)] == [0.01, 0.01, 0.005, 0.005, 0.0025]
    cosine = Config(lr=0.01, schedule="cosine", epochs=4)
    expected = [0.01, 0.01 * (1 + math.sqrt(0.5)) / 2, 0.005, 0.01 * (1 - math.sqrt(0.5)) / 2]
    assert [rate(cosine, number, cosine.passes(np.ones(9))) for number in range(1, 5)] == pytest.approx(expected)


def test_many_graphs_take_fewer_epochs_unless_told():
    alike, unlike = (np.repeat([10, round(10 * MUCH) + more, 10**6], [200, ENOUGH - 201, 1]) for more in (0, 1))
    assert [Config(epochs="auto").passes(sizes[1:]) for sizes in (alike, unlike)] == [MANY, MANY]
    assert [Config(epochs="auto").passes(sizes) for sizes in (alike, unlike)] == [FEW, FEWEST]
    assert [Config(epochs=7).passes(sizes) for sizes in (alike, unlike, alike[:1])] == [7, 7, 7]
    with pytest.raises(ConfigError, match=r"epochs: .*greater than or equal to 1"):
        Config.parse({"epochs": 0})
