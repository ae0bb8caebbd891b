"""A comparison from results that were computed one by one with ``gcaps evaluate``."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence

from gcaps.errors import GcapsError
from gcaps.evaluation.budget import Budget
from gcaps.evaluation.comparison import Comparison
from gcaps.evaluation.outcome import Outcome
from gcaps.evaluation.plan import Plan, PlannedData, PlannedEntry
from gcaps.evaluation.result import Result


def gather(results: Sequence[Result], name: str = "results") -> Comparison:
    """The comparison that results of several methods, data sets or seeds make up.

    Methods are only compared on the same graphs and folds: results of one data set must agree on both, for each seed.
    A data set, method and seed that no result is of is missing, as in a run that was stopped.

    Raises:
        GcapsError: where two results are about the same data set, method and seed, or disagree on graphs or folds.
    """
    if not results:
        raise GcapsError("there are no results to compare")
    data: dict[str, PlannedData] = {}
    entries: dict[tuple[str, str], PlannedEntry] = {}
    known: dict[tuple[str, str, int], Result] = {}
    for result in results:
        what = str(result.data["name"]), result.label, result.seed
        if what in known:
            raise GcapsError(f"two results are about {what[1]} on {what[0]} with seed {what[2]}; give one of them")
        known[what] = result
        data[what[0]] = _planned(result, data.get(what[0]))
        entry = entries.setdefault(what[:2], PlannedEntry(what[1], result.method, what[0], [], []))
        if result.config not in entry.configs:
            entry.configs.append(result.config)
    seeds = sorted({result.seed for result in results})
    for planned in data.values():
        for seed in seeds:
            planned.folds.setdefault(str(seed), [])
    for entry in entries.values():
        entry.seeds.extend(seeds)
    plan = Plan(
        name=name,
        command="\n".join(dict.fromkeys(result.command for result in results)),
        data=list(data.values()),
        entries=list(entries.values()),
        limits=Budget(),
        versions=results[0].versions,
        created=max(result.created for result in results),
    )
    outcomes = []
    for cell in plan.cells():
        found = known.get((cell.data, cell.label, cell.seed))
        if found is None:
            continue
        fold = found.folds[cell.fold]
        outcomes.append(
            Outcome(
                data=cell.data,
                label=cell.label,
                method=cell.method,
                seed=cell.seed,
                fold=cell.fold,
                fingerprint=cell.fingerprint,
                status="done",
                config=found.config,
                result=fold,
                error=None,
                seconds=fold.seconds,
                peak_mib=None,
                candidates=[],
                embedding=None,
                versions=found.versions,
                created=found.created,
            )
        )
    return Comparison(plan, outcomes)


def _planned(result: Result, before: PlannedData | None) -> PlannedData:
    """The result's data set; what other results said of it before must agree."""
    name, seed = str(result.data["name"]), str(result.seed)
    digests = [hashlib.sha256(json.dumps(sorted(fold.test)).encode()).hexdigest() for fold in result.folds]
    if before is None:
        return PlannedData(
            name=name,
            source=name,
            path=None,
            splits=None,
            fingerprint=str(result.data["fingerprint"]),
            graphs=int(result.data["graphs"]),
            classes=list(result.data["classes"]),
            folds={seed: digests},
        )
    if before.fingerprint != result.data["fingerprint"]:
        raise GcapsError(f"results of {name} are about different graphs; they cannot be compared")
    if before.folds.setdefault(seed, digests) != digests:
        raise GcapsError(
            f"results of {name} with seed {seed} have different folds; they cannot be compared fold by fold"
        )
    return before
