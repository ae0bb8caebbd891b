"""Promised and measured coverage of conformal sets and intervals, and calibration before and after.

    python benchmarks/uncertainty.py [NAME ...] [--splits N] [--json FILE]

Each set is divided at random 20 times: four graphs in five train a method with `fit_calibrated`, the others are tested.
Cheap methods with fixed settings: `wl` (three refinements, C = 1), and a forest of 50 trees on fingerprints where the
target is a number. GCAPS_DATA names the folder of the sets; FreeSolv.csv and ESOL.csv are given by their paths.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Console
from rich.table import Table

import gcaps
from gcaps.data.graphset import GraphSet
from gcaps.estimators import GraphEstimator, make_estimator
from gcaps.evaluation.diagnostics import expected_calibration_error

CLASSES = ("MUTAG", "PTC", "ENZYMES", "PROTEINS", "IMDB-BINARY")
VALUES = {"FreeSolv": "expt", "ESOL": "measured log solubility in mols per litre"}
COVERAGES = (0.8, 0.9, 0.95)
SETTINGS: dict[str, dict[str, Any]] = {
    "wl": {"n_iter": (3,), "C": (1.0,), "inner_folds": 2},
    "ecfp": {"n_estimators": 50, "bits": 1024},
}


def test_one(model: GraphEstimator, test: GraphSet) -> dict[str, Any]:
    """Return coverage, mean size and calibration on test graphs."""
    found: dict[str, Any] = {"novel": float(model.novelty(test).novel.mean())}
    if model.target_.classes is None:
        y, spread = np.asarray(test.y, np.float64).ravel(), float(model.target_.scale[0])
        for coverage in COVERAGES:
            low, high = model.predict_interval(test, coverage).reshape(-1, 2).T
            found[f"coverage {coverage}"] = float(((low <= y) & (y <= high)).mean())
            found[f"size {coverage}"] = float((high - low).mean() / spread)
        return found
    y = model.target_.encode(test.y)
    for coverage in COVERAGES:
        sets = model.predict_set(test, coverage)
        found[f"coverage {coverage}"] = float(sets[np.arange(len(y)), y].mean())
        found[f"size {coverage}"] = float(sets.sum(axis=1).mean())
    for name, p in (("before", model.predict_proba(test)), ("after", model.predict_calibrated(test))):
        found[f"ece {name}"] = expected_calibration_error(p, y)
        found[f"log_loss {name}"] = float(-np.log(np.maximum(p[np.arange(len(y)), y], 1e-12)).mean())
    return found


def measure(name: str, how: str, splits: int) -> dict[str, Any]:
    target = VALUES.get(Path(name).stem)
    graphs = gcaps.load(name) if target is None else gcaps.load(name, target=target)
    method, task = ("wl", "classification") if target is None else ("ecfp", "regression")
    rows = []
    for seed in range(splits):
        order = np.random.default_rng(seed).permutation(len(graphs))
        cut = 4 * len(graphs) // 5
        model = make_estimator(method, SETTINGS[method], seed, task)
        model.fit_calibrated(graphs.subset(np.sort(order[:cut])), how=how)
        rows.append(test_one(model, graphs.subset(np.sort(order[cut:]))))
    means = {key: float(np.mean([row[key] for row in rows])) for key in rows[0]}
    deviations = {key: float(np.std([row[key] for row in rows], ddof=1)) for key in rows[0]}
    return {"data": Path(name).stem, "how": how, "method": method, "splits": splits, "mean": means, "std": deviations}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", default=CLASSES)
    parser.add_argument("--splits", type=int, default=20)
    parser.add_argument("--json", type=Path)
    given = parser.parse_args()
    rows: list[dict[str, Any]] = []
    if given.json and given.json.exists():  # results of other sets stay
        done = {Path(name).stem for name in given.names}
        rows = [row for row in json.loads(given.json.read_text(encoding="utf-8"))["rows"] if row["data"] not in done]
    table = Table(
        "data", "calibration", *(f"{c:.0%}" for c in COVERAGES), "size at 90%", "ECE before", "after", "novel"
    )
    for name in given.names:
        for how in ("cross", "split"):
            row = measure(name, how, given.splits)
            rows.append(row)
            mean, std = row["mean"], row["std"]
            cells = [f"{100 * mean[f'coverage {c}']:.1f} ± {100 * std[f'coverage {c}']:.1f}" for c in COVERAGES]
            errors = [f"{100 * mean[k]:.1f}" if k in mean else "–" for k in ("ece before", "ece after")]
            table.add_row(row["data"], how, *cells, f"{mean['size 0.9']:.2f}", *errors, f"{100 * mean['novel']:.1f}")
            if given.json:
                given.json.write_text(json.dumps({"rows": rows}, indent=1) + "\n", encoding="utf-8")
    Console().print(table)


if __name__ == "__main__":
    main()
