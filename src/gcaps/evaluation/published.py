"""Published accuracies, for comparison with ours."""

from __future__ import annotations

import tomllib
from dataclasses import dataclass
from functools import cache
from importlib import resources
from typing import Any, Literal, get_args

Source = Literal["paper", "fair", "honest"]

SOURCES: dict[Source, str] = {
    "paper": "GCAPS-CNN paper",
    "fair": "Errica et al., 2020",
    "honest": "other authors",
}
"""Where a number was published."""

RULES: dict[str, str] = {
    "paper": "hyper-parameters tuned on the training loss; the epoch rule is not stated",
    "svm": "kernel and SVM, C chosen on the training folds",
    "fair": "nested selection, test fold read once",
    "honest": "settings and epochs were chosen without the test fold",
    "gin": "one epoch for all folds, the best by mean test accuracy",
}
"""Rules by which published numbers were chosen, in words."""

_SAME = {"PTC_MR": "PTC"}
"""Sets that the paper calls by another name."""


@dataclass(frozen=True)
class Published:
    """One published accuracy: mean and standard deviation over the folds, as shares of one."""

    source: Source
    method: str
    protocol: str
    """Rule by which the number was chosen: a key of :data:`RULES`."""
    mean: float | None
    std: float | None
    """None where only a mean was reported."""
    status: str | None = None
    """Remark of the source if there is no number, such as "out of memory"."""
    note: str = ""
    """Description of the method and its evaluation, if the source needs one."""


@cache
def _tables() -> dict[str, Any]:
    text = resources.files("gcaps.evaluation").joinpath("published.toml").read_text(encoding="utf-8")
    return tomllib.loads(text)


def published(dataset: str) -> list[Published]:
    """All rows published for ``dataset``, in the order of the sources; empty for a set that none reports.

    ENZYMES with its continuous attributes is a separate data set, ``ENZYMES_attributes``: a run on the labels alone
    must not be compared with it.
    """
    name = _SAME.get(dataset, dataset)
    rows = []
    for source in get_args(Source):
        for method, table in _tables()[source].items():
            status = table.get("status", {}).get(name)
            value = table.get(name)
            if isinstance(value, list):
                mean, std = value[0] / 100, value[1] / 100 if len(value) > 1 else None
                rows.append(Published(source, method, table["protocol"], mean, std, note=table.get("note", "")))
            elif status is not None:
                rows.append(Published(source, method, table["protocol"], None, None, status))
    return rows


def published_graphs(dataset: str) -> int | None:
    """Number of graphs behind the published rows; None for a set that none reports."""
    entry = _tables()["datasets"].get(_SAME.get(dataset, dataset))
    return None if entry is None else int(entry["graphs"])


def best_known(dataset: str) -> Published | None:
    """The best accuracy known from any method that reads the test fold once, on whatever folds; None where none is."""
    honest = [row for row in published(dataset) if row.source != "paper" and row.mean is not None]
    return max(honest, key=lambda row: row.mean or 0.0, default=None)
