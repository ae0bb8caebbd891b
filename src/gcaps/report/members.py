"""Members of an ensemble: how good each is alone, how much it counts, and why others are left out."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from rich import box
from rich.table import Table
from rich.text import Text

from gcaps.data.targets import Task
from gcaps.evaluation.result import FoldResult

SCORES: dict[Task, str] = {"classification": "accuracy", "multilabel": "ROC AUC", "regression": "R²"}
"""By which members are shown."""


def leaderboard(rows: Sequence[dict[str, Any]], task: Task) -> Table:
    """Return the table of an ensemble's members, those with the largest weights first.

    ``without`` is by how much the loss on held-out graphs grows when a member is left out.

    Args:
        rows: ``leaderboard_`` of the ensemble.
        task: what is predicted.
    """
    table = Table(box=box.SIMPLE, pad_edge=False)
    table.add_column("member")
    for heading in ("weight", f"inner {SCORES[task]}", "without", "fit, s", "predict, s"):
        table.add_column(heading, justify="right", no_wrap=True)
    if any(row["reason"] for row in rows):
        table.add_column("left out because", overflow="fold")
    for row in sorted(rows, key=lambda row: -row["weight"]):
        score = "–" if row["score"] is None else f"{row['score']:.3f} ± {row['error']:.3f}"
        without = "–" if row["without"] is None else f"{row['without']:+.4f}".replace("-", "−")
        weight = f"{row['weight']:.3f}" if row["kept"] else "–"
        cells = [weight, score, without, f"{row['fit_seconds']:.1f}", f"{row['predict_seconds']:.2f}"]
        table.add_row(
            Text(row["member"]), *cells, *([Text(row["reason"], style="dim")] if len(table.columns) > 6 else [])
        )
    return table


def members_of_folds(folds: Sequence[FoldResult]) -> Table | None:
    """Return the mean weight and inner score of each member over the folds of an evaluation; None without weights."""
    found = [fold.chosen for fold in folds if "rule" in fold.chosen]
    names = dict.fromkeys(key.partition(".")[2] for chosen in found for key in chosen if key.startswith("inner."))
    if not names:
        return None
    table = Table(box=box.SIMPLE, pad_edge=False)
    for heading in ("member", "mean weight", "mean inner score", "folds"):
        table.add_column(heading, justify="left" if heading == "member" else "right")
    weights = {name: [chosen.get(f"weight.{name}", 0.0) for chosen in found] for name in names}
    for name in sorted(names, key=lambda name: -float(np.mean(weights[name]))):
        scores = [chosen[f"inner.{name}"] for chosen in found if f"inner.{name}" in chosen]
        kept = sum(weight > 0 for weight in weights[name])
        table.add_row(Text(name), f"{np.mean(weights[name]):.3f}", f"{np.mean(scores):.3f}", f"{kept}/{len(found)}")
    return table
