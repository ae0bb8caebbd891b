"""Cells: one data set, method, fold and seed; each has a file of its own, named by what it is a function of."""

from __future__ import annotations

import hashlib
import json
import re
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from gcaps.errors import GcapsError
from gcaps.evaluation.result import FoldResult
from gcaps.files import write_json

if TYPE_CHECKING:
    from gcaps.evaluation.folds import Fold

FORMAT = 1
Status = Literal["done", "failed", "time", "memory"]
MEASURED = ("seconds", "peak_mib", "versions", "created")
"""What may differ between two runs of one cell; beside them only the fold's own ``seconds``."""


@dataclass(frozen=True)
class Cell:
    """The inputs that a cell's outcome is a function of."""

    data: str
    """The set's name."""
    method: str
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
        return Path("cells", as_folder(self.data), self.method, name)


@dataclass(frozen=True)
class Outcome:
    """What became of a cell."""

    data: str
    method: str
    seed: int
    fold: int
    fingerprint: str
    status: Status
    """``time`` and ``memory``: it went over its budget."""
    config: dict[str, Any] | None
    """The configuration that was tested; with a grid, the one chosen on inner validation."""
    result: FoldResult | None
    """Only when done."""
    error: str | None
    """One line, only when not done."""
    seconds: float
    """With its share of what its folds have in common, such as a Gram matrix."""
    peak_mib: float | None
    """Highest resident memory of the process that computed it, seen while it did."""
    candidates: list[dict[str, Any]]
    """With a grid: ``{"config": …, "inner": …}``, the inner validation accuracy of each configuration."""
    embedding: list[list[float]] | None
    """Fold 0 of a network: [G][2] all graphs' vectors on their first two principal components."""
    versions: dict[str, str]
    created: str
    """UTC, ISO 8601."""
    format: int = field(default=FORMAT)

    def save(self, path: str | Path) -> None:
        """Write the outcome as JSON, atomically."""
        write_json(path, asdict(self))

    @classmethod
    def read(cls, path: str | Path) -> Outcome:
        """A saved outcome."""
        try:
            raw = json.loads(Path(path).read_text(encoding="utf-8"))
            if raw["format"] != FORMAT:
                raise GcapsError(f"{path}: has format {raw['format']}, this gcaps reads format {FORMAT}")
            if raw["result"] is not None:
                raw["result"] = FoldResult(**raw["result"])
            return cls(**raw)
        except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
            raise GcapsError(f"{path}: is not a gcaps cell ({type(error).__name__}: {error})") from error

    def unmeasured(self) -> dict[str, Any]:
        """The outcome without times, memory and versions: equal for any two runs of the cell."""
        found = {name: value for name, value in asdict(self).items() if name not in MEASURED}
        if found["result"] is not None:
            del found["result"]["seconds"]
        return found


def cell(
    data: str,
    graphs: str,
    method: str,
    configs: tuple[dict[str, Any], ...],
    number: int,
    fold: str,
    seed: int,
) -> Cell:
    """The cell of a set with fingerprint ``graphs`` and of the fold ``number`` with digest ``fold``."""
    inputs = {
        "data": graphs,
        "method": method,
        "configs": configs,
        "fold": number,
        "indices": fold,
        "seed": seed,
        "format": FORMAT,
    }
    return Cell(data, method, configs, number, seed, hashlib.sha256(_canonical(inputs)).hexdigest())


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
