"""Results of cross-validation: predictions and curves of each fold, and what it takes to reproduce them."""

from __future__ import annotations

import platform
import re
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import cache
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gcaps.version import __version__

if TYPE_CHECKING:
    from gcaps.data.graphset import GraphSet

VERSIONED = ("torch", "numpy", "scipy", "scikit-learn")


@dataclass(frozen=True)
class FoldResult:
    """One fold: the predictions for its test graphs, and the accuracy after each epoch."""

    fold: int
    """Counted from 0."""
    test: list[int]
    """Graphs of the test fold, counted from 0 in the set's order."""
    y: list[int]
    """Their class numbers, 0..C−1."""
    predictions: list[int]
    """The class numbers predicted under the honest protocol."""
    scores: list[list[float]]
    """[graph][class] predicted probabilities, rounded to six decimals."""
    epoch: int
    """The epoch that predicts, counted from 1; 1 for methods without epochs."""
    train_loss: list[float]
    """After each epoch."""
    train_accuracy: list[float]
    """After each epoch, in training mode."""
    test_accuracy: list[float]
    """After each epoch. Recorded for the optimistic protocols and the curves; not used under `honest`."""
    validation_accuracy: list[float]
    """After each epoch; empty with a fixed schedule."""
    seconds: float
    chosen: dict[str, Any] = field(default_factory=dict)
    """What was chosen on the training graphs of this fold, such as a kernel and the SVM's C."""
    resolved: dict[str, Any] = field(default_factory=dict)
    """The settings with every ``auto`` replaced by its value."""
    resolution: list[str] = field(default_factory=list)
    """For each setting that was ``auto``, its value and the reason."""

    @property
    def accuracy(self) -> float:
        """Share of the test graphs that are classified correctly under the honest protocol."""
        return sum(a == b for a, b in zip(self.y, self.predictions, strict=True)) / len(self.y)


@dataclass(frozen=True)
class Summary:
    """Accuracy under one protocol: mean and standard deviation over the folds, as shares of one."""

    mean: float
    std: float
    folds: list[float]
    rule: str
    """How the epoch of each fold was chosen, in words."""


@dataclass(frozen=True)
class Result:
    """The cross-validation of one method on one data set with one seed."""

    label: str
    """The row's name in a comparison; by default the method's."""
    method: str | None
    """A name in ``gcaps.estimators.registry.METHODS``; None for an estimator of the caller's."""
    data: dict[str, Any]
    """name, fingerprint, graphs, classes (as in the source)."""
    folds: list[FoldResult]
    protocols: dict[str, Summary]
    """honest, last, gin, best; only honest for a method without epochs."""
    config: dict[str, Any]
    seed: int
    splits: str
    """Where the folds come from: stratified by a seed, or a file."""
    command: str
    versions: dict[str, str]
    created: str
    """UTC, ISO 8601."""
    protocol: str = "honest"
    """The protocol behind :attr:`accuracy`."""

    @property
    def accuracy(self) -> float:
        """Mean accuracy over the folds under the chosen protocol."""
        return self.protocols[self.protocol].mean

    def save(self, path: str | Path) -> None:
        """Write the result as a record (see :mod:`gcaps.evaluation.record`): ``NAME.json`` and ``NAME.npz``."""
        from gcaps.evaluation.comparison import Comparison

        Comparison.of_results([self], Path(path).stem).save(path)

    @classmethod
    def read(cls, path: str | Path) -> Result:
        """The only result of a record.

        Raises:
            GcapsError: the file is not a record, or holds several results.
        """
        from gcaps.errors import GcapsError
        from gcaps.evaluation.comparison import Comparison

        results = Comparison.read(path).results()
        if len(results) != 1:
            raise GcapsError(f"{path}: holds {len(results)} results; read it with gcaps.Comparison.read")
        return results[0]


def about(graphs: GraphSet) -> dict[str, Any]:
    """Name, fingerprint, size and classes of a data set."""
    from gcaps.data.targets import Classes

    assert graphs.y is not None
    return {
        "name": graphs.name,
        "fingerprint": graphs.fingerprint(),
        "graphs": len(graphs),
        "classes": Classes.of(graphs.y, graphs.name).names.tolist(),
    }


@cache
def versions() -> dict[str, str]:
    """Versions of gcaps, Python and the packages that numbers depend on, and the processor they were computed on."""
    found = {"gcaps": __version__, "python": platform.python_version()} | {p: version(p) for p in VERSIONED}
    return found | {"processor": _processor()}


def _processor() -> str:
    info = Path("/proc/cpuinfo")
    names = re.findall(r"^model name\s*: *(.+)$", info.read_text() if info.exists() else "", re.MULTILINE)
    return str(names[0]) if names else platform.processor() or platform.machine()


def now() -> str:
    """UTC, ISO 8601."""
    return datetime.now(UTC).isoformat(timespec="seconds")
