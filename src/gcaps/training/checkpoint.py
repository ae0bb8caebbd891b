"""Checkpoints: a training saved between two epochs and resumed with exactly the same outcome."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any, NamedTuple

import torch
from safetensors import SafetensorError
from safetensors.torch import load_file, save_file
from torch import Tensor

from gcaps.files import replacing, write_json
from gcaps.nn.distributed import is_first_process
from gcaps.training.loop import TrainingRun

PAGE, TENSORS = "checkpoint.json", "checkpoint.safetensors"


class CheckpointState(NamedTuple):
    """State of a training beyond network, optimiser and random generators."""

    page: dict[str, Any]
    """JSON values."""
    tensors: dict[str, Tensor]


class Checkpoint:
    """Folder in which a training is saved; it is removed when the training is over.

    Args:
        folder: its path; a damaged checkpoint, or that of another training, is ignored.
        identity: everything that the training is a function of (settings, seed, data); only a checkpoint with the same
            identity is resumed.
        every: minimum number of seconds between two checkpoints.
    """

    def __init__(self, folder: str | Path, identity: dict[str, Any], every: float = 20.0) -> None:
        self.folder, self.every = Path(folder), every
        self.identity: dict[str, Any] = json.loads(json.dumps(identity))
        self._last = time.monotonic()

    def due(self) -> bool:
        """Return whether it is time to save again."""
        return time.monotonic() - self._last >= self.every

    def save(self, run: TrainingRun, state: CheckpointState) -> None:
        """Write everything that :meth:`restore` needs; of several processes the first writes."""
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
        with replacing(self.folder) as folder:
            folder.mkdir()
            save_file({key: value.clone().contiguous() for key, value in tensors.items()}, folder / TENSORS)
            write_json(folder / PAGE, page)

    def restore(self, run: TrainingRun) -> CheckpointState | None:
        """Bring ``run`` to the saved epoch; return None where there is no checkpoint of this training."""
        try:
            page = json.loads((self.folder / PAGE).read_text(encoding="utf-8"))
            if page["identity"] != self.identity:
                return None
            tensors = load_file(self.folder / TENSORS)
            found = {part: _of(part, tensors) for part in ("network", "optimizer", "state")}
            run.network.load_state_dict(found["network"])
            run.optimizer.restore(found["optimizer"])
            run.rng.bit_generator.state = page["order"]
            torch.set_rng_state(tensors["generator"])
            run.number = int(page["number"])
            return CheckpointState(page["state"], found["state"])
        except (OSError, ValueError, KeyError, TypeError, RuntimeError, SafetensorError):
            return None

    def remove(self) -> None:
        """Remove the checkpoint of a finished training."""
        if not is_first_process():
            return
        for name in (PAGE, TENSORS):
            (self.folder / name).unlink(missing_ok=True)
        if self.folder.is_dir() and not any(self.folder.iterdir()):
            self.folder.rmdir()


def _of(part: str, tensors: dict[str, Tensor]) -> dict[str, Tensor]:
    return {key.removeprefix(part + "."): value for key, value in tensors.items() if key.startswith(part + ".")}
