"""A comparison as it stands in its folder: the plan, and what has become of its cells."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

from gcaps.evaluation.cells import Cell
from gcaps.evaluation.outcome import Outcome
from gcaps.evaluation.plan import Plan
from gcaps.evaluation.result import FoldResult, Result


@dataclass(frozen=True)
class Comparison:
    """Methods × data sets × seeds × folds, as far as they have come."""

    plan: Plan
    outcomes: list[Outcome]
    """Of the plan's cells that are there, in the plan's order."""

    @classmethod
    def read(cls, run: str | Path) -> Comparison:
        """The comparison in a folder, finished or not."""
        plan = Plan.read(run)
        files = [Path(run) / cell.path for cell in plan.cells()]
        return cls(plan, [Outcome.read(file) for file in files if file.exists()])

    def missing(self) -> list[Cell]:
        """Cells of the plan that have not been run."""
        there = {outcome.fingerprint for outcome in self.outcomes}
        return [cell for cell in self.plan.cells() if cell.fingerprint not in there]

    def result(self, data: str, label: str, seed: int | None = None) -> Result | None:
        """The folds of one method on one set as :func:`gcaps.evaluate` would give them; None unless all are done.

        ``seed`` is the plan's first, unless given. Where configurations were chosen, the settings that differ stand in
        each fold's ``chosen`` and are left out of the result's ``config``.
        """
        from gcaps.evaluation.methods import METHODS
        from gcaps.evaluation.protocols import rule_of, summarise

        planned = self.plan.of(data)
        entry = next(e for e in self.plan.entries if (e.data, e.label) == (data, label))
        seed = entry.seeds[0] if seed is None else seed
        found = [
            o for o in self._by_group.get((data, label, seed), []) if o.result is not None and o.config is not None
        ]
        if not found or len(found) < len(planned.folds[str(seed)]):
            return None
        configs = entry.configs
        common = {name: value for name, value in configs[0].items() if all(c[name] == value for c in configs)}
        folds = [_with_choice(o, common) for o in found]
        kind = METHODS[entry.method or ""].config.parse(found[0].config or {})
        drawn = f"{len(planned.folds[str(seed)])} stratified folds, seed {seed}"
        return Result(
            label=label,
            method=entry.method,
            data={
                "name": planned.name,
                "fingerprint": planned.fingerprint,
                "graphs": planned.graphs,
                "classes": planned.classes,
            },
            folds=folds,
            protocols=summarise(folds, rule_of(kind)),
            config=common,
            seed=seed,
            splits=drawn if planned.splits is None else planned.splits,
            command=self.plan.command,
            versions=found[0].versions,
            created=max(o.created for o in found),
        )

    @cached_property
    def _by_group(self) -> dict[tuple[str, str, int], list[Outcome]]:
        groups: dict[tuple[str, str, int], list[Outcome]] = {}
        for outcome in self.outcomes:
            groups.setdefault((outcome.data, outcome.label, outcome.seed), []).append(outcome)
        return groups


def _with_choice(outcome: Outcome, common: dict[str, Any]) -> FoldResult:
    """The outcome's fold, with the settings that were chosen for it."""
    assert outcome.result is not None
    assert outcome.config is not None
    if not outcome.candidates:
        return outcome.result
    chosen = {name: value for name, value in outcome.config.items() if name not in common}
    inner = max(candidate["inner"] for candidate in outcome.candidates)
    return replace(outcome.result, chosen=outcome.result.chosen | chosen | {"inner": inner})
