"""Cells: one data set, method, fold and seed; each has a file of its own, named by what it is a function of."""

from __future__ import annotations

import hashlib
import json
import re
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from gcaps.evaluation.folds import Fold

FORMAT = 1


@dataclass(frozen=True)
class Cell:
    """The inputs that a cell's outcome is a function of."""

    data: str
    """The set's name."""
    label: str
    method: str | None
    configs: tuple[dict[str, Any], ...]
    """The configurations to choose from on the training graphs; one where nothing is chosen."""
    fold: int
    """Counted from 0."""
    seed: int
    fingerprint: str
    """SHA-256 of all of them, with the graphs and the fold itself in the place of their names."""

    @property
    def path(self) -> Path:
        """Its file, as seen from the run's folder."""
        name = f"seed{self.seed}-fold{self.fold}-{self.fingerprint[:12]}.json"
        return Path("cells", as_folder(self.data), as_folder(self.label), name)


def cell(
    data: str,
    graphs: str,
    label: str,
    method: str | None,
    configs: tuple[dict[str, Any], ...],
    number: int,
    fold: str,
    seed: int,
) -> Cell:
    """The cell of a set with fingerprint ``graphs`` and of the fold ``number`` with digest ``fold``."""
    inputs = {
        "data": graphs,
        "label": label,
        "method": method,
        "configs": configs,
        "fold": number,
        "indices": fold,
        "seed": seed,
        "format": FORMAT,
    }
    return Cell(data, label, method, configs, number, seed, hashlib.sha256(_canonical(inputs)).hexdigest())


def digest(fold: Fold) -> str:
    """SHA-256 of who is trained on, picks and is tested, each in its order."""
    sides = {"train": fold.train, "test": fold.test, "validation": fold.validation}
    lists = {name: None if side is None else np.asarray(side).tolist() for name, side in sides.items()}
    return hashlib.sha256(_canonical(lists)).hexdigest()


def as_folder(name: str) -> str:
    """A data set's name as the name of a file or folder."""
    return re.sub(r"[^\w.+-]", "_", name).lstrip(".") or "_"


def _canonical(value: Any) -> bytes:
    return json.dumps(value, sort_keys=True, separators=(",", ":"), allow_nan=False).encode()
