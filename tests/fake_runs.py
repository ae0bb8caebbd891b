"""Comparisons that nobody computed, with plausible outcomes: for what is done with a comparison after it was run."""

from __future__ import annotations

import zlib
from collections.abc import Sequence
from pathlib import Path

import numpy as np

import gcaps
from gcaps.evaluation.budget import Budget
from gcaps.evaluation.cells import Cell, Outcome
from gcaps.evaluation.comparison import Comparison
from gcaps.evaluation.plan import Plan, PlannedData
from gcaps.evaluation.result import FoldResult

SKILL = {
    "gcaps": 1.55, "dcnn": 0.6, "pscn": 1.0, "ecc": 0.9, "dgcnn": 1.1, "gin": 1.4, "set": 0.8, "rw": 0.5, "sp": 0.9,
    "gk": 0.6, "wl": 1.6, "wloa": 1.7, "dgk": 1.2, "mlg": 1.3, "fgsd": 1.2,
}  # fmt: skip
NETWORKS = ("gcaps", "dcnn", "pscn", "ecc", "dgcnn", "gin", "set")


def fake_comparison(
    data: Sequence[str] = ("MUTAG",),
    methods: Sequence[str] = ("gcaps", "set", "wl"),
    folds: int = 10,
    seeds: Sequence[int] = (0,),
    *,
    classes: int = 2,
    graphs: int = 200,
    epochs: int = 30,
    broken: dict[tuple[str, str], str] | None = None,
    missing: Sequence[tuple[str, str]] = (),
) -> Comparison:
    """A comparison whose outcomes are drawn at random, the same each time.

    Args:
        data: MUTAG is the real one, so that its graphs can be looked at; others do not exist anywhere.
        methods: all of them are run with a configuration that is only a name.
        folds: of each set.
        seeds: each with folds of its own.
        classes: of the sets that do not exist.
        graphs: likewise.
        epochs: of the networks.
        broken: the status of data set and method in the place of ``done``.
        missing: data sets and methods whose last folds have not been run.
    """
    plan = Plan(
        name="fake",
        command=f"gcaps compare {' '.join(data)} --methods {','.join(methods)} -o fake",
        data=[_planned(name, folds, seeds, classes, graphs) for name in data],
        methods={method: [{"method": method, "epochs": epochs}] for method in methods},
        folds=folds,
        seeds=list(seeds),
        budgets=Budget(600.0, 4096.0),
        versions={"gcaps": "0.1.0", "python": "3.11.9", "numpy": "2.3.1"},
        created="2025-01-31T12:34:56+00:00",
    )
    absent = set(missing)
    outcomes = [
        _outcome(plan, cell, epochs, (broken or {}).get((cell.data, cell.method)))
        for cell in plan.cells()
        if (cell.data, cell.method) not in absent or cell.fold < folds // 2
    ]
    return Comparison(plan, outcomes)


def save(comparison: Comparison, run: Path) -> Path:
    """The comparison as a folder."""
    comparison.plan.save(run)
    cells = {cell.fingerprint: cell for cell in comparison.plan.cells()}
    for outcome in comparison.outcomes:
        outcome.save(run / cells[outcome.fingerprint].path)
    return run


def _planned(name: str, folds: int, seeds: Sequence[int], classes: int, graphs: int) -> PlannedData:
    digests = {str(seed): [f"{name}-{seed}-{fold}" for fold in range(folds)] for seed in seeds}
    if name == "MUTAG":
        real = gcaps.load(name)
        return PlannedData(name, name, None, None, real.fingerprint(), len(real), real.classes.tolist(), digests)
    return PlannedData(name, name, None, None, "0f" * 32, graphs, list(range(1, classes + 1)), digests)


def _outcome(plan: Plan, cell: Cell, epochs: int, status: str | None) -> Outcome:
    planned = plan.of(cell.data)
    common = {"data": cell.data, "method": cell.method, "seed": cell.seed, "fold": cell.fold}
    rng = _rng(*common.values())
    network = cell.method in NETWORKS
    seconds = float(rng.uniform(5, 60) if network else rng.uniform(0.05, 3)) * planned.graphs / 200
    kept = {"versions": plan.versions, "created": plan.created, "candidates": []}
    if status is not None:
        return Outcome(
            **common, fingerprint=cell.fingerprint, status=status, config=None, result=None,
            error=f"{cell.method} <gave up>", seconds=seconds, peak_mib=None, embedding=None, **kept,
        )  # fmt: skip
    labels, ease = _graphs(planned)
    size, classes = planned.graphs, len(planned.classes)
    order = _rng(cell.data, cell.seed).permutation(size)
    test = np.sort(order[cell.fold :: plan.folds])
    quirk = _rng(cell.data, cell.method).normal(scale=0.8, size=(size, classes))
    push = (SKILL.get(cell.method, 1.0) * ease)[:, None] * np.eye(classes)[labels]
    logits = 1.5 * push + quirk + 0.3 * rng.normal(size=(size, classes))
    scores = np.exp(logits) / np.exp(logits).sum(axis=1, keepdims=True)
    right = float((scores[test].argmax(axis=1) == labels[test]).mean())
    time = np.linspace(0, 1, epochs)
    curve = np.clip(right - 0.25 * np.exp(-5 * time) + rng.normal(scale=0.025, size=epochs), 0, 1)
    curve[-1] = right
    train = np.clip(0.98 - 0.4 * np.exp(-4 * time) + rng.normal(scale=0.006, size=epochs), 0, 1)
    result = FoldResult(
        fold=cell.fold,
        test=test.tolist(),
        labels=labels[test].tolist(),
        predictions=scores[test].argmax(axis=1).tolist(),
        scores=np.round(scores[test], 6).tolist(),
        epoch=epochs if network else 1,
        train_loss=(0.1 + 0.6 * np.exp(-4 * time)).tolist() if network else [],
        train_accuracy=train.tolist() if network else [],
        test_accuracy=curve.tolist() if network else [],
        validation_accuracy=[],
        seconds=seconds,
        chosen={"kernel": "Fake", "C": float(10.0 ** rng.integers(-1, 2)), "inner": 0.5} if cell.method == "wl" else {},
    )
    turn = 2 * np.pi * labels / classes
    places = np.stack([np.cos(turn), np.sin(turn)], axis=1) * ease[:, None] + rng.normal(scale=0.4, size=(size, 2))
    return Outcome(
        **common,
        fingerprint=cell.fingerprint,
        status="done",
        config=cell.configs[0],
        result=result,
        error=None,
        seconds=seconds,
        peak_mib=float(250 + 60 * seconds**0.5),
        embedding=np.round(places, 4).tolist() if network and cell.fold == 0 else None,
        **kept,
    )


def _graphs(planned: PlannedData) -> tuple[np.ndarray, np.ndarray]:
    """Class and ease of each graph: the hard ones are hard for every method."""
    rng = _rng(planned.name)
    ease = rng.gamma(4, 0.3, planned.graphs) * np.where(rng.random(planned.graphs) < 0.08, -1, 1)
    if planned.name == "MUTAG":
        return gcaps.load("MUTAG").targets, ease
    return rng.integers(0, len(planned.classes), planned.graphs), ease


def _rng(*words: object) -> np.random.Generator:
    return np.random.default_rng([zlib.crc32(str(word).encode()) for word in words])
