"""What an evaluation leaves behind: every fold's predictions and curves, and how to make them again."""

from __future__ import annotations

import json
import platform
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from gcaps.errors import GcapsError
from gcaps.files import write_json
from gcaps.version import __version__

if TYPE_CHECKING:
    from gcaps.data.graphset import GraphSet

FORMAT = 1
VERSIONED = ("torch", "numpy", "scipy", "scikit-learn")


@dataclass(frozen=True)
class FoldResult:
    """One fold: what was predicted for its test graphs, and how accuracy went epoch by epoch."""

    fold: int
    """Counted from 0."""
    test: list[int]
    """Graphs of the test fold, counted from 0 in the set's order."""
    y: list[int]
    """Their classes, 0..C−1."""
    predictions: list[int]
    """What the honest rule's model says of them."""
    scores: list[list[float]]
    """[graph][class] the model's probabilities, rounded to six decimals."""
    epoch: int
    """The epoch whose model that is, counted from 1."""
    train_loss: list[float]
    """By epoch."""
    train_accuracy: list[float]
    """By epoch, in training mode."""
    test_accuracy: list[float]
    """By epoch. Recorded for the optimistic protocols and the curves; decides nothing in `honest`."""
    validation_accuracy: list[float]
    """By epoch; empty with a fixed schedule."""
    seconds: float
    chosen: dict[str, Any] = field(default_factory=dict)
    """What was chosen on the training graphs of this fold, such as a kernel and its SVM's C."""
    resolved: dict[str, Any] = field(default_factory=dict)
    """Settings after ``auto`` was resolved."""

    @property
    def accuracy(self) -> float:
        """Share of the test graphs that the honest rule's model classifies rightly."""
        return sum(a == b for a, b in zip(self.y, self.predictions, strict=True)) / len(self.y)


@dataclass(frozen=True)
class Summary:
    """One protocol's number: mean and standard deviation over the folds, as shares of one."""

    mean: float
    std: float
    folds: list[float]
    rule: str
    """How the number was chosen, in words."""


@dataclass(frozen=True)
class Result:
    """An evaluation, complete enough to be run again."""

    label: str
    method: str | None
    data: dict[str, Any]
    """name, fingerprint, graphs, classes (as the source calls them)."""
    folds: list[FoldResult]
    protocols: dict[str, Summary]
    """honest, last, gin, best; only honest for a method without epochs."""
    config: dict[str, Any]
    seed: int
    splits: str
    """Where the folds come from: stratified by seed, or a file."""
    command: str
    versions: dict[str, str]
    created: str
    """UTC, ISO 8601."""
    protocol: str = "honest"
    """The one behind :attr:`accuracy`."""
    format: int = field(default=FORMAT)

    @property
    def accuracy(self) -> float:
        """Mean accuracy over the folds, by the chosen protocol."""
        return self.protocols[self.protocol].mean

    def save(self, path: str | Path) -> None:
        """Write the result as JSON, atomically."""
        write_json(path, asdict(self))

    @classmethod
    def read(cls, path: str | Path) -> Result:
        """A saved result."""
        try:
            raw = json.loads(Path(path).read_text(encoding="utf-8"))
            if raw["format"] != FORMAT:
                raise GcapsError(f"{path}: has format {raw['format']}, this gcaps reads format {FORMAT}")
            raw["folds"] = [FoldResult(**fold) for fold in raw["folds"]]
            raw["protocols"] = {name: Summary(**summary) for name, summary in raw["protocols"].items()}
            return cls(**raw)
        except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
            raise GcapsError(f"{path}: is not a gcaps result ({type(error).__name__}: {error})") from error


def about(graphs: GraphSet) -> dict[str, Any]:
    """What a result says of its data."""
    return {
        "name": graphs.name,
        "fingerprint": graphs.fingerprint(),
        "graphs": len(graphs),
        "classes": np.unique(graphs.y).tolist(),
    }


def versions() -> dict[str, str]:
    """Of gcaps, Python and the packages that numbers depend on."""
    return {"gcaps": __version__, "python": platform.python_version()} | {p: version(p) for p in VERSIONED}


def now() -> str:
    """UTC, ISO 8601."""
    return datetime.now(UTC).isoformat(timespec="seconds")
