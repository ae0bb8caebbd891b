import numpy as np
import pytest
import torch

import gcaps
from gcaps.config import Config
from gcaps.disk import StorageError
from gcaps.errors import CheckpointWarning, ConfigError
from gcaps.training import checkpoint as checkpoints
from gcaps.training.checkpoint import FILE, Checkpoint, read_checkpoint, remove_checkpoint, write_checkpoint
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


def test_the_environment_says_how_often_a_training_is_saved(graphs, tmp_path, monkeypatch):
    saved = []
    monkeypatch.setattr(Checkpoint, "save", lambda self, run, state: saved.append(run.number))
    config, chosen = Config(**SMALL, with_svm=False), np.arange(len(graphs))
    fit(graphs, chosen, config, 1, checkpoint=tmp_path / "kept")
    assert saved == []  # the default is longer than this training
    monkeypatch.setenv("GCAPS_CHECKPOINT_SECONDS", "0")
    fit(graphs, chosen, config, 1, checkpoint=tmp_path / "kept")
    assert saved == [1, 2, 3, 4, 5, 6]
    monkeypatch.setenv("GCAPS_CHECKPOINT_SECONDS", "often")
    with pytest.raises(ConfigError, match="GCAPS_CHECKPOINT_SECONDS is 'often'; it should be a number of seconds"):
        fit(graphs, chosen, config, 1, checkpoint=tmp_path / "kept")


def test_what_is_in_the_way_of_a_checkpoint_is_left_there(tmp_path):
    place = tmp_path / "kept"
    remove_checkpoint(place)
    place.write_text("a file of somebody else")
    remove_checkpoint(place)
    assert place.read_text() == "a file of somebody else"


def flip(folder, position):
    content = bytearray((folder / FILE).read_bytes())
    content[position] ^= 1
    (folder / FILE).write_bytes(content)


def without(part):
    def harm(folder):
        page, tensors = read_checkpoint(folder)
        write_checkpoint(folder, page, {key: t for key, t in tensors.items() if not key.startswith(part)})

    return harm


HARMS = {
    "cut off": lambda folder: (folder / FILE).write_bytes((folder / FILE).read_bytes()[:-9]),
    "empty": lambda folder: (folder / FILE).write_bytes(b""),
    "nothing": lambda folder: (folder / FILE).write_bytes(b"nothing"),
    "bit of the page": lambda folder: flip(folder, 300),
    "last bit": lambda folder: flip(folder, -1),
    "no optimizer": without("optimizer."),
    "no generator": without("generator"),
    "a tensor is missing": without("network."),
}


@pytest.mark.parametrize("harm", HARMS)
def test_a_damaged_checkpoint_is_restored_all_or_nothing(graphs, tmp_path, monkeypatch, harm):
    monkeypatch.setattr(Checkpoint, "due", lambda self: True)
    config, folder, every = Config(**SMALL, with_svm=False), tmp_path / "kept", np.arange(len(graphs))
    whole, _, _ = fit(graphs, every, config, 1)
    interrupted(graphs, config, folder, after=3)
    HARMS[harm](folder)
    seen = []
    with pytest.warns(CheckpointWarning, match="damaged checkpoint"):
        again, _, _ = fit(graphs, every, config, 1, on_epoch=lambda e: seen.append(e.number), checkpoint=folder)
    assert seen == [1, 2, 3, 4, 5, 6]
    for key, value in whole.network.state_dict().items():
        assert torch.equal(again.network.state_dict()[key], value)


def test_the_checkpoint_of_another_training_is_ignored(graphs, tmp_path, monkeypatch):
    monkeypatch.setattr(Checkpoint, "due", lambda self: True)
    config, folder, seen = Config(**SMALL), tmp_path / "kept", []
    interrupted(graphs, config, folder, after=3)
    fit(graphs, np.arange(len(graphs)), config, 2, on_epoch=lambda e: seen.append(e.number), checkpoint=folder)
    assert seen == [1, 2, 3, 4, 5, 6]


def test_a_checkpoint_that_cannot_be_written_warns_and_the_training_goes_on(graphs, tmp_path, monkeypatch):
    def full(*given):
        raise StorageError("no space")

    monkeypatch.setattr(Checkpoint, "due", lambda self: True)
    config, every = Config(**SMALL, with_svm=False), np.arange(len(graphs))
    whole, _, _ = fit(graphs, every, config, 1)
    monkeypatch.setattr(checkpoints, "write_checkpoint", full)
    with pytest.warns(CheckpointWarning, match="the training goes on"):
        found, _, _ = fit(graphs, every, config, 1, checkpoint=tmp_path / "kept")
    for key, value in whole.network.state_dict().items():
        assert torch.equal(found.network.state_dict()[key], value)


@pytest.mark.parametrize("extra", [{}, {"selection": "validation", "patience": 1}])
def test_a_finished_training_that_was_not_saved_is_not_repeated(graphs, tmp_path, monkeypatch, extra):
    monkeypatch.setattr(Checkpoint, "due", lambda self: True)
    config, folder, every = Config(**SMALL, **extra), tmp_path / "kept", np.arange(len(graphs))
    first, _, _ = fit(graphs, every, config, 1, checkpoint=folder, keep_checkpoint=True)
    assert (folder / FILE).exists()
    seen = []
    again, _, _ = fit(graphs, every, config, 1, on_epoch=seen.append, checkpoint=folder)
    assert seen == []
    for key, value in first.network.state_dict().items():
        assert torch.equal(again.network.state_dict()[key], value)
    assert not folder.exists()
