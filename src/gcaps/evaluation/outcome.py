"""Cells and their outcomes: a cell is one fold of one method on one data set with one seed."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, NamedTuple

import numpy as np
from pydantic import Field

from gcaps.documents import STRICT, Count, Digest, Name, Number, read_json, validated
from gcaps.errors import GcapsError
from gcaps.evaluation.result import FoldResult
from gcaps.files import exists, write_json

if TYPE_CHECKING:
    from gcaps.data.targets import Task
    from gcaps.evaluation.splits import Fold
    from gcaps.tuning.search import Tuning

FORMAT = 3
READABLE = (2, 3)
"""Formats that :meth:`Outcome.read` reads; 2 calls scores after each epoch accuracies."""
INPUTS_FORMAT = 2
"""Part of a cell's fingerprint: changed when the same inputs give another outcome."""
Status = Literal["done", "failed", "time", "memory"]
MEASURED = ("seconds", "peak_mib", "versions", "created")
"""Fields that may differ between two runs of one cell; besides them only the fold's own ``seconds`` does."""


class Key(NamedTuple):
    """Identifies a cell within a comparison."""

    data: str
    label: str
    seed: int
    fold: int


@dataclass(frozen=True)
class Cell:
    """The inputs that determine a cell's outcome."""

    data: str
    """The set's name."""
    label: str
    """The row's name."""
    method: str | None
    """None for an estimator of the caller's."""
    configs: tuple[dict[str, Any], ...]
    """The configurations to choose from on the training graphs; a single one where nothing is chosen."""
    fold: int
    """Counted from 0."""
    seed: int
    fingerprint: str
    """SHA-256 of all inputs; graphs and fold enter by their content, not by their names."""
    train_size: int | None = None
    """Number of the fold's training graphs that are trained on; None: all of them."""
    tuning: Tuning | None = None
    """Search over settings on the training graphs; None without a search."""

    @property
    def key(self) -> Key:
        """What identifies it within its comparison."""
        return Key(self.data, self.label, self.seed, self.fold)

    @property
    def row(self) -> str:
        """The label of the row that trains on all graphs."""
        return full_label(self.label, self.train_size)

    @property
    def path(self) -> Path:
        """Its file, relative to the run's folder."""
        name = f"seed{self.seed}-fold{self.fold}-{self.fingerprint[:12]}.json"
        return Path("cells", as_folder(self.data), as_folder(self.label), name)


@dataclass(frozen=True)
class Outcome:
    """The outcome of a cell."""

    __pydantic_config__ = STRICT

    data: Name
    label: Name
    method: Name | None
    seed: Count
    fold: Count
    fingerprint: Digest
    status: Status
    """``time`` and ``memory``: it exceeded its limit."""
    config: dict[str, Any] | None
    """The configuration that was tested; with a grid, the one chosen on inner validation."""
    result: FoldResult | None
    """Only when done."""
    error: str | None
    """One line, only when not done."""
    seconds: Number
    """Including its share of the work that its folds have in common, such as a Gram matrix."""
    peak_mib: Number | None
    """Highest resident memory of the child process while it computed the cell; None where there was no child."""
    candidates: list[dict[str, Any]]
    """With a grid: ``{"config": …, "inner": …}``, the headline metric of each configuration on inner validation."""
    embedding: list[Annotated[list[Number], Field(min_length=2, max_length=2)]] | None
    """Fold 0 of an estimator with ``transform``: [G][2] first two principal components of all graphs' vectors."""
    versions: dict[str, str]
    created: str
    """UTC, ISO 8601."""
    command: str | None = None
    """The command that computed it; None: the plan's."""
    format: int = field(default=FORMAT)

    @property
    def key(self) -> Key:
        """What identifies it within its comparison."""
        return Key(self.data, self.label, self.seed, self.fold)

    def save(self, path: str | Path) -> None:
        """Write the outcome as JSON, atomically."""
        write_json(path, asdict(self))

    @classmethod
    def read(cls, path: str | Path) -> Outcome:
        """Read a saved outcome.

        Raises:
            GcapsError: the file is not one, or contradicts itself.
        """
        raw = read_json(path)
        if not isinstance(raw, dict):
            raise GcapsError(f"{path}: is not a gcaps cell")
        if isinstance(raw.get("format"), int) and raw["format"] not in READABLE:
            raise GcapsError(f"{path}: has format {raw['format']}, this gcaps reads format {FORMAT}")
        if isinstance(raw.get("result"), dict):
            raw["result"] = {str(name).replace("_accuracy", "_score"): v for name, v in raw["result"].items()}
        found = validated(cls, raw | {"format": FORMAT}, f"{path}: is not a gcaps cell")
        if problem := found.contradiction():
            raise GcapsError(f"{path}: is damaged ({problem})")
        return found

    def contradiction(self) -> str:
        """Return the first inconsistency of the outcome, or an empty text."""
        if (self.status == "done") != (self.result is not None) or (self.result is None) != (self.error is not None):
            return "a cell that is done has a result, any other an error"
        if self.result is not None and self.result.fold != self.fold:
            return f"it is of fold {self.fold}, its result of fold {self.result.fold}"
        return "" if self.result is None else self.result.contradiction()

    def require_of(self, cell: Cell, place: str) -> None:
        """Raise a GcapsError unless this is the outcome of ``cell``, with all its inputs."""
        inputs = (cell.data, cell.label, cell.method, cell.seed, cell.fold, cell.fingerprint)
        if inputs != (self.data, self.label, self.method, self.seed, self.fold, self.fingerprint):
            found = f"{self.label} on {self.data}, seed {self.seed}, fold {self.fold}"
            raise GcapsError(f"{place}: holds the outcome of another cell ({found}); remove it and run it again")

    def unmeasured(self) -> dict[str, Any]:
        """The outcome without times, memory and versions: equal for any two runs of the cell."""
        found = {name: value for name, value in asdict(self).items() if name not in MEASURED}
        if found["result"] is not None:
            del found["result"]["seconds"]
        return found


def read_cell(run: Path, cell: Cell) -> Outcome | None:
    """Read the outcome of a cell from the folder of its run; None if it has none yet.

    Raises:
        GcapsError: the file is damaged, or that of another cell.
    """
    file = run / cell.path
    if not exists(file):
        return None
    found = Outcome.read(file)
    found.require_of(cell, str(file))
    return found


def cell_of(
    data: str,
    graphs: str,
    label: str,
    method: str | None,
    configs: Sequence[dict[str, Any]],
    number: int,
    fold: str,
    seed: int,
    task: Task = "classification",
    metric: str = "accuracy",
    groups: str | None = None,
    train_size: int | None = None,
    tuning: Tuning | None = None,
) -> Cell:
    """The cell of a set with fingerprint ``graphs`` and of the fold ``number`` with digest ``fold``.

    The task is an input; the metric only where it chooses among several configurations. ``groups`` names the split
    whose groups inner validation keeps whole.
    """
    inputs: dict[str, Any] = {
        "data": graphs,
        "method": method,
        "configs": list(configs),
        "fold": number,
        "indices": fold,
        "seed": seed,
        "format": INPUTS_FORMAT,
    }
    if task != "classification":
        inputs["task"] = task
    if (len(configs) > 1 or tuning is not None) and metric != "accuracy":
        inputs["metric"] = metric
    if groups is not None:
        inputs["groups"] = groups
    if train_size is not None:
        inputs["train_size"] = train_size
    if tuning is not None:
        inputs["tuning"] = asdict(tuning)
    return Cell(data, label, method, tuple(configs), number, seed, digest(inputs), train_size, tuning)


def sized_label(label: str, train_size: int) -> str:
    """The label of a row with a part of the training graphs of each fold."""
    return f"{label} @ {train_size}"


def full_label(label: str, train_size: int | None) -> str:
    """The label of the row that trains on all graphs: what :func:`sized_label` was made from."""
    return label if train_size is None else label.removesuffix(f" @ {train_size}")


def fold_digest(fold: Fold) -> str:
    """Digest of the training, test and validation graphs of a fold, each in its order."""
    sides = {"train": fold.train, "test": fold.test, "validation": fold.validation}
    return digest({name: None if side is None else np.asarray(side).tolist() for name, side in sides.items()})


def digest(value: Any) -> str:
    """SHA-256 of a JSON value."""
    text = json.dumps(value, sort_keys=True, separators=(",", ":"), allow_nan=False)
    return hashlib.sha256(text.encode()).hexdigest()


def as_folder(name: str) -> str:
    """A name as the name of a file or folder."""
    return re.sub(r"[^\w.+-]", "_", name).lstrip(".") or "_"
