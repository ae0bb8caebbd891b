"""Verifying what was recorded: a fold is run again, and must predict what the file says."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np

from gcaps.data.catalog import load
from gcaps.data.graphset import GraphSet
from gcaps.errors import ConfigError, GcapsError
from gcaps.evaluation.cells import Outcome
from gcaps.evaluation.comparison import Comparison
from gcaps.evaluation.folds import Fold, folds_of
from gcaps.evaluation.methods import METHODS
from gcaps.evaluation.plan import FILE
from gcaps.evaluation.result import FoldResult, Result
from gcaps.evaluation.work import Worker

TOLERANCE = 1e-4
"""Scores may differ by so much; predictions not at all."""
DRAWN = re.compile(r"(?:the first \d+ of )?(\d+) stratified folds, seed (\d+)")


@dataclass(frozen=True)
class Verdict:
    """What running a recorded fold again has shown."""

    name: str
    verdict: Literal["same", "different", "not comparable"]
    detail: str

    def __str__(self) -> str:
        return f"{self.verdict}: {self.name} ({self.detail})"


def verify(path: str | Path, fold: int | None = None) -> Iterator[Verdict]:
    """Verdicts on a result's file, on a comparison's folder, or on all results in a folder.

    Args:
        path: where they are.
        fold: which fold to run again; by default the one that took the shortest time.
    """
    place = Path(path)
    if (place / FILE).exists():
        yield from _of_run(place, fold)
    elif place.is_dir():
        files = sorted(place.rglob("*.json"))
        if not files:
            raise GcapsError(f"{place}: holds no recorded results")
        for file in files:
            yield _of_result(file, fold)
    elif place.exists():
        yield _of_result(place, fold)
    else:
        raise GcapsError(f"{place}: does not exist")


def _of_result(file: Path, fold: int | None) -> Verdict:
    result = Result.read(file)
    recorded = _pick(result.folds, fold, str(file))
    try:
        graphs = load(result.data["name"])
    except GcapsError as error:
        return Verdict(str(file), "not comparable", f"the data are not at hand: {error}")
    if graphs.fingerprint() != result.data["fingerprint"]:
        return Verdict(str(file), "not comparable", f"{graphs.name} is another set here: its fingerprint differs")
    try:
        part = _fold(graphs, result.splits, recorded)
        again = (
            Worker(graphs, result.method, [_settings(result, recorded)], result.seed).run(part, recorded.fold).result
        )
    except GcapsError as error:
        return Verdict(str(file), "not comparable", str(error))
    return _compared(str(file), recorded, again)


def _of_run(run: Path, fold: int | None) -> Iterator[Verdict]:
    """One verdict for each data set and method of a comparison."""
    comparison = Comparison.read(run)
    groups: dict[tuple[str, str], list[Outcome]] = {}
    for outcome in comparison.outcomes:
        if outcome.result is not None:
            groups.setdefault((outcome.data, outcome.method), []).append(outcome)
    for (data, method), outcomes in groups.items():
        name = f"{run}: {data} {method}"
        by_result = [o.result for o in outcomes if o.result is not None]
        recorded = _pick(by_result, fold, name)
        outcome = next(o for o in outcomes if o.result is recorded)
        planned = comparison.plan.of(data)
        try:
            graphs = planned.load()
            part = planned.fold(graphs, outcome.seed, outcome.fold)
        except GcapsError as error:
            yield Verdict(name, "not comparable", str(error))
            continue
        again = Worker(graphs, method, comparison.plan.methods[method], outcome.seed).run(part, outcome.fold)
        if again.config != outcome.config:
            yield Verdict(name, "different", "another configuration was chosen")
            continue
        yield _compared(name, recorded, again.result)


def _settings(result: Result, fold: FoldResult) -> dict[str, Any]:
    """The configuration of a fold: the result's, and what a grid has left to the fold to choose."""
    kind = METHODS[result.method].config
    chosen = {name: value for name, value in fold.chosen.items() if name in kind.model_fields}
    return kind.earlier | chosen | result.config


def _pick(folds: list[FoldResult], number: int | None, name: str) -> FoldResult:
    if number is None:
        return min(folds, key=lambda fold: fold.seconds)
    found = next((fold for fold in folds if fold.fold == number), None)
    if found is None:
        raise ConfigError(f"{name}: has no fold {number}; there are {', '.join(str(f.fold) for f in folds)}")
    return found


def _fold(graphs: GraphSet, splits: str, recorded: FoldResult) -> Fold:
    """The fold that was recorded, made again the way it was made."""
    drawn = DRAWN.fullmatch(splits)
    if drawn is not None:
        parts = folds_of(graphs, int(drawn[1]), None, int(drawn[2]))[0]
    elif Path(splits).exists():
        parts = folds_of(graphs, 0, splits, 0)[0]
    else:
        raise GcapsError(f"its folds are not at hand ({splits})")
    if recorded.fold >= len(parts) or parts[recorded.fold].test.tolist() != recorded.test:
        raise GcapsError(f"its folds are others here ({splits})")
    return parts[recorded.fold]


def _compared(name: str, recorded: FoldResult, again: FoldResult) -> Verdict:
    before, after = np.array(recorded.predictions), np.array(again.predictions)
    wrong, gap = int((before != after).sum()), float(np.abs(np.subtract(recorded.scores, again.scores)).max())
    detail = f"fold {recorded.fold}: {wrong} of {len(before)} predictions differ, scores by up to {gap:.2g}"
    if wrong or gap > TOLERANCE:
        return Verdict(name, "different", detail)
    return Verdict(name, "same", f"fold {recorded.fold}: {len(before)} predictions")
