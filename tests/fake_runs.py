"""Comparisons with made-up but plausible outcomes, for tests of everything that reads a comparison."""

from __future__ import annotations

import zlib
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np

import gcaps
from gcaps.evaluation.comparison import Comparison
from gcaps.evaluation.outcome import Cell, Outcome, digest
from gcaps.evaluation.plan import Limits, Plan, PlannedData, PlannedEntry
from gcaps.evaluation.result import FoldResult

SKILL = {
    "gcaps": 1.55, "dcnn": 0.6, "pscn": 1.0, "ecc": 0.9, "dgcnn": 1.1, "gin": 1.4, "deepsets": 0.8, "rw": 0.5,
    "sp": 0.9, "gk": 0.6, "wl": 1.6, "wloa": 1.7, "dgk": 1.2, "mlg": 1.3, "fgsd": 1.2, "capsule-svm": 1.5,
}  # fmt: skip
NETWORKS = ("gcaps", "dcnn", "pscn", "ecc", "dgcnn", "gin", "deepsets")


def fake_comparison(
    data: Sequence[str] = ("MUTAG",),
    methods: Sequence[str] | Mapping[str, str | None] = ("gcaps", "deepsets", "wl"),
    folds: int = 10,
    seeds: Sequence[int] = (0,),
    *,
    classes: int = 2,
    graphs: int = 200,
    epochs: int = 30,
    stop_early: bool = False,
    broken: dict[tuple[str, str], str] | None = None,
    missing: Sequence[tuple[str, str]] = (),
) -> Comparison:
    """Return a comparison with random outcomes, the same on every call.

    Args:
        data: MUTAG is the real data set, so its graphs can be drawn; others cannot be loaded.
        methods: method names, or the method of each label.
        folds: number of folds.
        seeds: each seed has its own folds.
        classes: number of classes of data sets other than MUTAG.
        graphs: number of graphs of data sets other than MUTAG.
        epochs: number of epochs of networks.
        stop_early: networks have validation accuracies, different numbers of epochs and a chosen epoch.
        broken: status other than ``done`` by data set and label.
        missing: data sets and labels whose last folds have not been run.
    """
    labels = methods if isinstance(methods, Mapping) else {method: method for method in methods}
    configs = {
        label: [{"layers": "auto", "epochs": epochs, "hidden": 33} if method in NETWORKS else {"heights": [0, 1]}]
        for label, method in labels.items()
    }
    plan = Plan(
        name="fake",
        command=f"gcaps compare {' '.join(data)} --methods {','.join(labels)} -o fake",
        data=[_planned(name, folds, seeds, classes, graphs) for name in data],
        entries=[
            PlannedEntry(label=label, method=method, data=name, configs=configs[label], seeds=list(seeds), folds=None)
            for name in data
            for label, method in labels.items()
        ],
        limits=Limits(600.0, 4096.0),
        versions={"gcaps": "0.1.0", "python": "3.11.9", "numpy": "2.3.1"},
        created="2025-01-31T12:34:56+00:00",
    )
    outcomes = [
        _outcome(plan, cell, epochs, (broken or {}).get((cell.data, cell.label)), stop_early=stop_early)
        for cell in plan.cells()
        if (cell.data, cell.label) not in set(missing) or cell.fold < folds // 2
    ]
    return Comparison(plan, outcomes)


def save(comparison: Comparison, run: Path) -> Path:
    """Write a comparison into a folder."""
    comparison.plan.save(run)
    cells = {cell.key: cell for cell in comparison.plan.cells()}
    for outcome in comparison.outcomes:
        outcome.save(run / cells[outcome.key].path)
    return run


def _planned(name: str, folds: int, seeds: Sequence[int], classes: int, graphs: int) -> PlannedData:
    fingerprint, names = "0f" * 32, list(range(1, classes + 1))
    if name == "MUTAG":
        real = gcaps.load(name)
        fingerprint, graphs, names = real.fingerprint(), len(real), np.unique(real.y).tolist()
    return PlannedData(
        name=name,
        source=name,
        path=None,
        splits=None,
        fingerprint=fingerprint,
        graphs=graphs,
        classes=names,
        folds={str(seed): [digest([name, seed, fold]) for fold in range(folds)] for seed in seeds},
    )


def _outcome(plan: Plan, cell: Cell, epochs: int, status: str | None, *, stop_early: bool) -> Outcome:
    planned, method = plan.of(cell.data), cell.method or cell.label
    rng = _rng(cell.data, cell.label, cell.seed, cell.fold)
    network = method in NETWORKS
    seconds = float(rng.uniform(5, 60) if network else rng.uniform(0.05, 3)) * planned.graphs / 200
    common = {
        "data": cell.data,
        "label": cell.label,
        "method": cell.method,
        "seed": cell.seed,
        "fold": cell.fold,
        "fingerprint": cell.fingerprint,
        "seconds": seconds,
        "candidates": [],
        "versions": plan.versions,
        "created": plan.created,
    }
    if status is not None:
        error = f"{cell.label} <gave up>"
        return Outcome(**common, status=status, config=None, result=None, error=error, peak_mib=None, embedding=None)
    labels, ease = _graphs(planned)
    size, classes = planned.graphs, len(planned.classes)
    order = _rng(cell.data, cell.seed).permutation(size)
    test = np.sort(order[cell.fold :: len(planned.folds[str(cell.seed)])])
    quirk = _rng(cell.data, cell.label).normal(scale=0.8, size=(size, classes))
    push = (SKILL.get(method, 1.0) * ease)[:, None] * np.eye(classes)[labels]
    logits = 1.5 * push + quirk + 0.3 * rng.normal(size=(size, classes))
    scores = np.exp(logits) / np.exp(logits).sum(axis=1, keepdims=True)
    correct = float((scores[test].argmax(axis=1) == labels[test]).mean())
    length = epochs - int(rng.integers(0, epochs // 3 + 1)) if stop_early else epochs
    time = np.linspace(0, 1, length)
    curve = np.clip(correct - 0.25 * np.exp(-5 * time) + rng.normal(scale=0.025, size=length), 0, 1)
    chosen = max(1, length - 5) if stop_early else length
    curve[chosen - 1] = correct
    train = np.clip(0.98 - 0.4 * np.exp(-4 * time) + rng.normal(scale=0.006, size=length), 0, 1)
    validation = np.clip(curve + rng.normal(scale=0.02, size=length), 0, 1)
    result = FoldResult(
        fold=cell.fold,
        test=test.tolist(),
        y=labels[test].tolist(),
        predictions=scores[test].argmax(axis=1).tolist(),
        scores=np.round(scores[test], 6).tolist(),
        epoch=chosen if network else 1,
        train_loss=(0.1 + 0.6 * np.exp(-4 * time)).tolist() if network else [],
        train_score=train.tolist() if network else [],
        test_score=curve.tolist() if network else [],
        validation_score=validation.tolist() if network and stop_early else [],
        seconds=seconds,
        chosen={"kernel": "Fake", "C": float(10.0 ** rng.integers(-1, 2)), "inner": 0.5} if method == "wl" else {},
        resolution=[f"layers = 4 (auto: few graphs ({size - len(test)}))", "lr = 0.1 has no effect: no"]
        if network
        else [],
        resolved={"layers": 4, "epochs": epochs, "hidden": 33, "batch_size": 30 + cell.fold} if network else {},
    )
    turn = 2 * np.pi * labels / classes
    places = np.stack([np.cos(turn), np.sin(turn)], axis=1) * ease[:, None] + rng.normal(scale=0.4, size=(size, 2))
    return Outcome(
        **common,
        status="done",
        config=cell.configs[0],
        result=result,
        error=None,
        peak_mib=float(250 + 60 * seconds**0.5),
        embedding=np.round(places, 4).tolist() if network and cell.fold == 0 else None,
    )


def _graphs(planned: PlannedData) -> tuple[np.ndarray, np.ndarray]:
    """Return the class and the ease of each graph; hard graphs are hard for every method."""
    rng = _rng(planned.name)
    ease = rng.gamma(4, 0.3, planned.graphs) * np.where(rng.random(planned.graphs) < 0.08, -1, 1)
    if planned.name == "MUTAG":
        return np.unique(gcaps.load("MUTAG").y, return_inverse=True)[1], ease
    return rng.integers(0, len(planned.classes), planned.graphs), ease


def _rng(*words: object) -> np.random.Generator:
    return np.random.default_rng([zlib.crc32(str(word).encode()) for word in words])
