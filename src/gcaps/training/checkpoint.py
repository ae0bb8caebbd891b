"""Checkpoints: a training saved between two epochs and resumed with exactly the same outcome."""

from __future__ import annotations

import hashlib
import json
import time
import warnings
from contextlib import suppress
from pathlib import Path
from typing import Any, Literal, NamedTuple, Protocol

import numpy as np
import torch
from safetensors import SafetensorError
from safetensors.torch import load, save
from torch import Tensor, nn

from gcaps.documents import Count, Name, Number, Page, parse_json, validated
from gcaps.errors import CheckpointWarning, DataError, GcapsError
from gcaps.files import MAX_BYTES, exists, limit_of, read_bytes, replacing
from gcaps.nn.distributed import is_first_process

FILE = "checkpoint.state"
"""The only file of a checkpoint: a SHA-256 digest, and a safetensors file with the JSON page as one of its tensors."""
_DIGEST, _PAGE = 32, "page"
SECONDS = 20
"""Least time between two checkpoints; ``GCAPS_CHECKPOINT_SECONDS``."""


class Optimizer(Protocol):
    """What is saved of an optimizer, such as :class:`gcaps.training.optimizer.FlatAdam`."""

    def state(self) -> dict[str, Tensor]:
        """Return what :meth:`restore` needs."""
        ...

    def restore(self, state: dict[str, Tensor]) -> None:
        """Continue from where :meth:`state` was taken."""
        ...


class Resumable(Protocol):
    """A training that a checkpoint saves, such as :class:`gcaps.training.loop.TrainingRun`."""

    rng: np.random.Generator
    number: int
    """Epochs done so far."""

    @property
    def network(self) -> nn.Module:
        """Weights in training."""
        ...

    @property
    def optimizer(self) -> Optimizer:
        """Its optimizer."""
        ...


class CheckpointState(NamedTuple):
    """State of a training beyond network, optimiser and random generators."""

    page: dict[str, Any]
    """JSON values."""
    tensors: dict[str, Tensor]


class Progress(Page):
    """What a training knows beside its tensors."""

    curves: dict[Literal["loss", "score", "validation", "watched"], list[Number]]
    best: tuple[Count, Number, Number] | None
    """Best epoch with its score and loss on the validation graphs."""
    done: bool


class CheckpointPage(Page):
    """The JSON page of a checkpoint."""

    identity: dict[Name, Any]
    number: Count
    order: dict[Name, Any]
    """State of the generator of the order of graphs; numpy checks it."""
    state: Progress


def checkpoint_seconds() -> int:
    """Least number of seconds between two checkpoints; the environment variable ``GCAPS_CHECKPOINT_SECONDS``.

    0: a checkpoint after every epoch.
    """
    return limit_of("GCAPS_CHECKPOINT_SECONDS", SECONDS, "seconds")


class DamagedCheckpointError(GcapsError):
    """A checkpoint whose content is not what was written."""


def write_checkpoint(folder: Path, page: dict[str, Any], tensors: dict[str, Tensor]) -> None:
    """Write JSON values and tensors as one file that appears at once, with a checksum."""
    text = torch.frombuffer(bytearray(json.dumps(page).encode()), dtype=torch.uint8)
    body = save({key: value.detach().clone().contiguous() for key, value in tensors.items()} | {_PAGE: text})
    folder.mkdir(parents=True, exist_ok=True)
    with replacing(folder / FILE) as draft:
        draft.write_bytes(hashlib.sha256(body).digest() + body)


def read_checkpoint(folder: Path) -> tuple[dict[str, Any], dict[str, Tensor]] | None:
    """Return what :func:`write_checkpoint` wrote; None where there is nothing.

    Raises:
        DamagedCheckpointError: it is not what was written.
    """
    try:
        if not exists(folder / FILE):
            return None
        content = read_bytes(folder / FILE, MAX_BYTES)
    except DataError as error:
        raise DamagedCheckpointError(str(error)) from error
    body = content[_DIGEST:]
    if hashlib.sha256(body).digest() != content[:_DIGEST]:
        raise DamagedCheckpointError("its checksum differs")
    try:
        tensors = load(body)
        page = parse_json(bytes(tensors.pop(_PAGE).numpy()), str(folder / FILE))
    except (SafetensorError, ValueError, KeyError) as error:
        raise DamagedCheckpointError(str(error)) from error
    return page, tensors


class Checkpoint:
    """Folder in which a training is saved; it is removed when the training is over.

    Args:
        folder: its path; the checkpoint of another training is ignored, a damaged one with a warning.
        identity: everything that the training is a function of (settings, seed, data); only a checkpoint with the same
            identity is resumed.
        every: least number of seconds between two checkpoints; None: see :func:`checkpoint_seconds`.
    """

    def __init__(self, folder: str | Path, identity: dict[str, Any], every: float | None = None) -> None:
        self.folder, self.every = Path(folder), checkpoint_seconds() if every is None else every
        self.identity: dict[str, Any] = json.loads(json.dumps(identity))
        self._last = time.monotonic()

    def due(self) -> bool:
        """Return whether it is time to save again."""
        return time.monotonic() - self._last >= self.every

    def save(self, run: Resumable, state: CheckpointState) -> None:
        """Write everything that :meth:`restore` needs; of several processes the first writes.

        A disk that is full is no reason to lose the training: it goes on with a warning.
        """
        self._last = time.monotonic()
        if not is_first_process():
            return
        tensors = {f"network.{key}": value for key, value in run.network.state_dict().items()}
        tensors |= {f"optimizer.{key}": value for key, value in run.optimizer.state().items()}
        tensors |= {f"state.{key}": value for key, value in state.tensors.items()}
        tensors["generator"] = torch.get_rng_state()
        page = {
            "identity": self.identity,
            "number": run.number,
            "order": run.rng.bit_generator.state,
            "state": state.page,
        }
        try:
            write_checkpoint(self.folder, page, tensors)
        except (GcapsError, OSError) as error:
            message = f"no checkpoint of epoch {run.number} could be written, the training goes on ({error})"
            warnings.warn(message, CheckpointWarning, stacklevel=2)

    def exists(self) -> bool:
        """Return whether there is a checkpoint in the folder."""
        return (self.folder / FILE).exists()

    def finish(self, run: Resumable, state: CheckpointState) -> None:
        """Save the last epoch where earlier ones were saved, so that what follows the training can be repeated."""
        if self.exists():
            self.save(run, state)

    def restore(self, run: Resumable) -> CheckpointState | None:
        """Bring ``run`` to the saved epoch; return None and leave it as it is where there is no sound checkpoint of it.

        Everything is checked before anything is restored.
        """
        try:
            found = read_checkpoint(self.folder)
            if found is None or found[0]["identity"] != self.identity:
                return None
            return self._restored(run, *found)
        except (GcapsError, ValueError, KeyError, TypeError, RuntimeError) as error:
            reason = str(error).splitlines()[0] if str(error) else type(error).__name__
            message = f"{self.folder}: is a damaged checkpoint ({reason}); the training begins anew"
            warnings.warn(message, CheckpointWarning, stacklevel=2)
            return None

    def _restored(self, run: Resumable, page: dict[str, Any], tensors: dict[str, Tensor]) -> CheckpointState:
        parts = {part: _of(part, tensors) for part in ("network", "optimizer", "state")}
        validated(CheckpointPage, page, "its page is damaged")
        number, state = page["number"], CheckpointState(page["state"], parts["state"])
        _require_same(run.network.state_dict(), parts["network"])
        _require_same(run.optimizer.state(), parts["optimizer"])
        generator = torch.Generator()
        generator.set_state(tensors["generator"])  # raises before anything has changed
        run.rng.bit_generator.state = page["order"]
        run.network.load_state_dict(parts["network"])
        run.optimizer.restore(parts["optimizer"])
        torch.set_rng_state(tensors["generator"])
        run.number = number
        return state

    def remove(self) -> None:
        """Remove the checkpoint of a finished training."""
        remove_checkpoint(self.folder)


def remove_checkpoint(folder: Path) -> None:
    """Remove a checkpoint whose training is finished and saved; of several processes the first does."""
    if not is_first_process():
        return
    with suppress(OSError):  # the model is saved: what is in the way of its checkpoint does not matter any more
        (folder / FILE).unlink(missing_ok=True)
        folder.rmdir()  # unless it holds something else


def _require_same(expected: dict[str, Tensor], found: dict[str, Tensor]) -> None:
    """Require the same names, shapes and types."""
    if {key: (t.shape, t.dtype) for key, t in expected.items()} != {
        key: (t.shape, t.dtype) for key, t in found.items()
    }:
        raise DamagedCheckpointError("its tensors are those of another network")


def _of(part: str, tensors: dict[str, Tensor]) -> dict[str, Tensor]:
    return {key.removeprefix(part + "."): value for key, value in tensors.items() if key.startswith(part + ".")}
