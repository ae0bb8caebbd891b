import math

import numpy as np
import pytest
import torch
from torch import nn

from gcaps.config.tasks import StepsConfig
from gcaps.errors import DivergenceError
from gcaps.tasks.training import Score, StepRun, fit_steps
from gcaps.training import reproducible


class StoppedError(Exception):
    pass


def fit(folder=None, stop=None, every_step=3, patience=None, epochs=12, scores=None):
    """Fit a line on batches of random points with dropout; return weights, curves and the epoch."""
    config = StepsConfig(epochs=epochs, lr=0.05)
    with reproducible(3, 1):
        network = nn.Sequential(nn.Dropout(0.2), nn.Linear(4, 1))

        def losses(rng):
            for _ in range(every_step):
                x = torch.from_numpy(rng.standard_normal((8, 4))).float()
                yield (network(x) - x.sum(dim=1, keepdim=True)).square().mean()

        def validate():
            loss = float((network(torch.eye(4)) - 1).square().mean())
            return Score(-loss if scores is None else scores[run.number - 1], loss)

        def on_epoch(epoch):
            if epoch.number == stop:
                raise StoppedError

        run = StepRun(network, losses, config, seed=3)
        curves, epoch = fit_steps(
            run, validate, patience=patience, identity={"a": 1}, checkpoint=folder, on_epoch=on_epoch
        )
    return network[1].weight.detach().clone(), curves, epoch


@pytest.mark.parametrize("stop", [1, 5, 11])
def test_resuming_gives_exactly_the_same_outcome(tmp_path, monkeypatch, stop):
    monkeypatch.setenv("GCAPS_CHECKPOINT_SECONDS", "0")
    expected = fit()
    with pytest.raises(StoppedError):
        fit(tmp_path / "c", stop)
    assert (tmp_path / "c").exists()
    weight, curves, epoch = fit(tmp_path / "c")
    assert torch.equal(weight, expected[0])
    assert curves == expected[1]
    assert epoch == expected[2]
    assert not (tmp_path / "c").exists()


def test_the_best_epoch_is_kept_and_patience_ends_the_training():
    scores = [0.1, 0.5, 0.4, 0.3, 0.2, 0.9]
    weight, curves, epoch = fit(epochs=6, patience=3, scores=scores)
    assert epoch == 2
    assert curves.validation == scores[:5]
    assert torch.equal(weight, fit(epochs=2, scores=scores)[0])


def test_a_training_that_diverges_says_so():
    network = nn.Linear(1, 1)
    run = StepRun(network, lambda rng: iter([network.weight.sum() * math.inf]), StepsConfig(epochs=3), seed=0)
    with pytest.raises(DivergenceError, match="diverged in epoch 1"):
        fit_steps(run)


def test_without_validation_the_last_epoch_is_kept():
    network = nn.Linear(1, 1)
    nn.init.ones_(network.weight)
    run = StepRun(network, lambda rng: iter([network.weight.square().sum()]), StepsConfig(epochs=4), seed=0)
    curves, epoch = fit_steps(run)
    assert epoch == 4
    assert np.all(np.diff(curves.loss) < 0)
