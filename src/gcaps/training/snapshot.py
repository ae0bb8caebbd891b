"""A training on disk between two epochs: from it the same weights come out as if it had never stopped."""

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

PAGE, TENSORS = "snapshot.json", "snapshot.safetensors"


class Kept(NamedTuple):
    """What a snapshot holds beside the network, the optimiser and the generators."""

    page: dict[str, Any]
    """JSON values."""
    tensors: dict[str, Tensor]


class Snapshot:
    """The folder in which a training is kept; it vanishes when the training is over.

    Args:
        folder: where; a damaged one, or one of another training, is as good as none.
        identity: what the training is a function of (configuration, seed, data): only its own snapshot is taken up.
        every: seconds between two snapshots at least.
    """

    def __init__(self, folder: str | Path, identity: dict[str, Any], every: float = 20.0) -> None:
        self.folder, self.every = Path(folder), every
        self.identity: dict[str, Any] = json.loads(json.dumps(identity))
        self._last = time.monotonic()

    def due(self) -> bool:
        """Whether it is time for another."""
        return time.monotonic() - self._last >= self.every

    def save(self, run: TrainingRun, kept: Kept) -> None:
        """Write all that :meth:`restore` needs; of several processes the first writes for all."""
        self._last = time.monotonic()
        if not is_first_process():
            return
        tensors = {f"network.{key}": value for key, value in run.network.state_dict().items()}
        tensors |= {f"optimizer.{key}": value for key, value in run.optimizer.state().items()}
        if run.average is not None:
            tensors |= {f"average.{key}": value for key, value in run.average.state().items()}
        tensors |= {f"kept.{key}": value for key, value in kept.tensors.items()}
        tensors["generator"] = torch.get_rng_state()
        page = {
            "identity": self.identity,
            "number": run.number,
            "order": run.rng.bit_generator.state,
            "kept": kept.page,
        }
        with replacing(self.folder) as folder:
            folder.mkdir()
            save_file({key: value.clone().contiguous() for key, value in tensors.items()}, folder / TENSORS)
            write_json(folder / PAGE, page)

    def restore(self, run: TrainingRun) -> Kept | None:
        """Bring ``run`` to where the snapshot was taken; None where there is none of this training."""
        try:
            page = json.loads((self.folder / PAGE).read_text(encoding="utf-8"))
            if page["identity"] != self.identity:
                return None
            tensors = load_file(self.folder / TENSORS)
            found = {part: _of(part, tensors) for part in ("network", "optimizer", "average", "kept")}
            run.network.load_state_dict(found["network"])
            run.optimizer.restore(found["optimizer"])
            if run.average is not None:
                run.average.restore(found["average"])
            run.rng.bit_generator.state = page["order"]
            torch.set_rng_state(tensors["generator"])
            run.number = int(page["number"])
            return Kept(page["kept"], found["kept"])
        except (OSError, ValueError, KeyError, TypeError, RuntimeError, SafetensorError):
            return None

    def remove(self) -> None:
        """The training is over: the snapshot, if it was one of this training, has served."""
        if not is_first_process():
            return
        for name in (PAGE, TENSORS):
            (self.folder / name).unlink(missing_ok=True)
        if self.folder.is_dir() and not any(self.folder.iterdir()):
            self.folder.rmdir()


def _of(part: str, tensors: dict[str, Tensor]) -> dict[str, Tensor]:
    return {key.removeprefix(part + "."): value for key, value in tensors.items() if key.startswith(part + ".")}
