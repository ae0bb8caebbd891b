"""Outcome of one cell."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Literal

from gcaps.errors import GcapsError
from gcaps.evaluation.result import FoldResult
from gcaps.files import write_json

FORMAT = 1
Status = Literal["done", "failed", "time", "memory"]
MEASURED = ("seconds", "peak_mib", "versions", "created")
"""What may differ between two runs of one cell; beside them only the fold's own ``seconds``."""


@dataclass(frozen=True)
class Outcome:
    """What became of a cell."""

    data: str
    label: str
    method: str | None
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
