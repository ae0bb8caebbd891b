import numpy as np
import pytest
import torch

import gcaps
from gcaps.config import Config
from gcaps.training.checkpoint import PAGE, TENSORS, Checkpoint
from tests.training.fitting import fit

SMALL = {"hidden": 4, "layers": 2, "rank": 4, "fc": 8, "epochs": 6}


@pytest.fixture
def graphs():
    return gcaps.load("MUTAG").subset(np.arange(60))


class StoppedError(Exception):
    pass


def interrupted(graphs, config, folder, after):
    def stop(epoch):
        if epoch.number == after:
            raise StoppedError

    with pytest.raises(StoppedError):
        fit(graphs, np.arange(len(graphs)), config, 1, on_epoch=stop, checkpoint=folder)


@pytest.mark.parametrize(
    "extra",
    [
        {},
        {"selection": "validation"},
        {"selection": "validation", "refit": True},
        {"schedule": "step", "ensemble_size": 2},
        {"with_svm": True, "ensemble_size": 1},
    ],
)
def test_a_resumed_training_gives_the_same_weights(graphs, tmp_path, monkeypatch, extra):
    monkeypatch.setattr(Checkpoint, "due", lambda self: True)
    config, folder = Config(**SMALL, **extra), tmp_path / "kept"
    whole, curves, epoch = fit(graphs, np.arange(len(graphs)), config, 1)
    interrupted(graphs, config, folder, after=4)
    seen = []
    resumed, found, at = fit(
        graphs, np.arange(len(graphs)), config, 1, on_epoch=lambda e: seen.append(e.number), checkpoint=folder
    )
    assert seen[0] == 5
    assert (found, at) == (curves, epoch)
    for key, value in whole.network.state_dict().items():
        assert torch.equal(resumed.network.state_dict()[key], value)
    assert not folder.exists()


@pytest.mark.parametrize("harm", ["other seed", "damaged page", "damaged tensors", "no tensors"])
def test_a_damaged_checkpoint_or_one_of_another_training_is_ignored(graphs, tmp_path, monkeypatch, harm):
    monkeypatch.setattr(Checkpoint, "due", lambda self: True)
    config, folder = Config(**SMALL), tmp_path / "kept"
    interrupted(graphs, config, folder, after=3)
    if harm == "damaged page":
        (folder / PAGE).write_text("{")
    elif harm == "damaged tensors":
        (folder / TENSORS).write_bytes(b"nothing")
    elif harm == "no tensors":
        (folder / TENSORS).unlink()
    seen = []
    seed = 2 if harm == "other seed" else 1
    fit(graphs, np.arange(len(graphs)), config, seed, on_epoch=lambda e: seen.append(e.number), checkpoint=folder)
    assert seen == [1, 2, 3, 4, 5, 6]
