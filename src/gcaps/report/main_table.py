"""The table as in the paper: methods by data sets, the honest number, and what others published for the same cell."""

from __future__ import annotations

from dataclasses import dataclass

from gcaps.evaluation.published import SOURCES, Published, published
from gcaps.evaluation.result import Summary
from gcaps.report.aggregate import percent
from gcaps.report.names import method_name
from gcaps.report.study import Study


@dataclass(frozen=True)
class TableCell:
    """One method on one data set."""

    honest: Summary | None
    """None where it has no number."""
    partial: Summary | None
    """Of an unfinished entry, the folds that are there; it takes part in no comparison."""
    status: str
    """Why it has no number."""
    error: str | None
    best: bool
    near: bool
    """Not shown to be worse than the best."""
    published: list[Published]

    @property
    def text(self) -> str:
        """The number with its deviation, or the status."""
        return self.status if self.honest is None else spread(self.honest, 2)


@dataclass(frozen=True)
class TableRow:
    """A method's row."""

    method: str
    short: str
    long: str
    family: str
    """``published`` for a row of which there are only published numbers."""
    cells: list[TableCell]
    """One for each data set."""
    rank: float | None


def spread(summary: Summary, digits: int) -> str:
    """Percent, with the deviation where there is more than one fold."""
    return percent(summary.mean, summary.std if len(summary.folds) > 1 else None, digits)


def table_rows(study: Study) -> list[TableRow]:
    """A row for each method of the comparison, then one for each method that only others have numbers for."""
    others = {planned.name: published(planned.name) for planned in study.sets}
    ranks = dict(zip(study.ranks.methods, study.ranks.average, strict=True)) if study.ranks is not None else {}
    rows = []
    for method in study.methods:
        name = method_name(method)
        cells = []
        for planned in study.sets:
            entry = study.entry(planned.name, method)
            cells.append(
                TableCell(
                    honest=entry.honest,
                    partial=entry.protocols.get("honest") if not entry.complete else None,
                    status=entry.status,
                    error=entry.error,
                    best=study.best(planned.name) == method,
                    near=study.near_best(planned.name, method),
                    published=[row for row in others[planned.name] if row.method in name.published and _told(row)],
                )
            )
        rows.append(TableRow(method, name.short, name.long, name.family, cells, ranks.get(method)))
    ours = {known for method in study.methods for known in method_name(method).published}
    rest = dict.fromkeys(
        (row.source, row.method) for found in others.values() for row in found if row.method not in ours and _told(row)
    )
    for source, method in rest:
        found = [[row for row in others[p.name] if (row.source, row.method) == (source, method)] for p in study.sets]
        cells = [TableCell(None, None, "", None, False, False, [row for row in cell if _told(row)]) for cell in found]
        rows.append(
            TableRow(
                method,
                method.replace("-", " ") if " " not in method and method.islower() else method,
                SOURCES[source],
                "published",
                cells,
                None,
            )
        )
    return rows


def _told(row: Published) -> bool:
    return row.status != "not reported"


def published_text(row: Published) -> str:
    """The number, or the source's own words where it has none."""
    return row.status or "" if row.mean is None else percent(row.mean, row.std)
