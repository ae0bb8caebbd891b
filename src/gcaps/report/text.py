"""A comparison as text: Markdown, LaTeX and CSV tables."""

from __future__ import annotations

import csv
import io
from collections.abc import Callable

from gcaps.escaping import csv_cell
from gcaps.evaluation.published import RULES, SOURCES, published
from gcaps.evaluation.result import Summary
from gcaps.report.study import ALPHA, Study
from gcaps.report.summary import (
    TableCell,
    TableRow,
    published_text,
    spread_note,
    table_rows,
)

_LATEX = {
    **{char: "\\" + char for char in "&%$#_{}"},
    "\\": r"\textbackslash{}",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    "<": r"\textless{}",
    ">": r"\textgreater{}",
    "±": r"$\pm$",
    "–": "--",
}
_MARKS = (
    " Bold: the best. •: not significantly worse than the best (corrected resampled t-test, Holm correction over all "
    f"pairs of methods on a data set, level {ALPHA:g})."
)
_COLUMNS = (
    *("data", "method", "source", "protocol", "mean", "std", "folds", "planned", "status", "seconds", "peak_mib"),
    *("best", "difference_to_best", "p", "p_holm", "metric", "headline", "repetitions", "repetition_std"),
)


def markdown(study: Study) -> str:
    """Return the main table of the headline metric; published accuracies are in brackets below ours."""

    def shown(cell: TableCell) -> str:
        text = _markdown(cell.text)
        number = f"**{text}**" if cell.best else text + (" •" if cell.near else "")
        extra = [cell.repetitions] if cell.repetitions else []
        extra += [f"[{row.protocol}: {_markdown(published_text(row))}]" for row in cell.published]
        return "<br>".join([number, *extra] if number else extra) or "–"

    names = [_markdown(name) for name in set_names(study)]
    lines = [_row("method", *names), _row("---", *["---:"] * len(names))]
    rows = table_rows(study)
    lines += [_row(_title(row, _markdown), *(shown(cell) for cell in row.cells)) for row in rows]
    return "\n".join([*lines, "", *_notes(study, rows)]) + "\n"


def latex(study: Study) -> str:
    """Return the main table for ``booktabs``; published accuracies only for methods that were not run here."""

    def shown(cell: TableCell) -> str:
        text = _tex(cell.text)
        if cell.honest is None:
            return text or "; ".join(_tex(published_text(row)) for row in cell.published) or "--"
        return rf"\textbf{{{text}}}" if cell.best else text + (r"$^{\bullet}$" if cell.near else "")

    rows = table_rows(study)
    names = " & ".join(_tex(name) for name in set_names(study))
    body: list[str] = []
    for row in rows:
        if row.family == "published" and r"\midrule" not in body:
            body.append(r"\midrule")
        body.append(f"{_title(row, _tex)} & " + " & ".join(shown(cell) for cell in row.cells) + r" \\")
    return "\n".join(
        [
            *(f"% {line}" for line in _notes(study, rows)),
            rf"\begin{{tabular}}{{l{'r' * len(study.sets)}}}",
            r"\toprule",
            rf"method & {names} \\",
            r"\midrule",
            *body,
            r"\bottomrule",
            r"\end{tabular}",
            "",
        ]
    )


def comma_separated(study: Study) -> str:
    """Return a line for each data set, label, metric and rule in full precision; then the published rows.

    Accuracies are shares of one. Only the headline metric has other rules than honest, and tests.
    """
    out = io.StringIO()
    writer = csv.DictWriter(out, _COLUMNS, restval="", lineterminator="\n")
    writer.writeheader()
    for entry in (entry for planned in study.sets for entry in study.of_set(planned.name)):
        best = study.best(entry.data)
        line: dict[str, object] = {
            "data": csv_cell(entry.data),
            "method": csv_cell(entry.label),
            "source": "ours",
            "planned": entry.planned,
            "status": "done" if entry.complete else entry.status,
        }
        costs = {"seconds": _number(entry.seconds), "peak_mib": _number(entry.peak_mib)}
        for rule, summary in entry.protocols.items():
            tests = {} if rule != "honest" else {"best": str(entry.label == best).lower()}
            test = study.tests[entry.data].get((entry.label, best or ""))
            if rule == "honest" and test is not None:
                tests |= {"difference_to_best": repr(test.difference), "p": repr(test.p), "p_holm": repr(test.holm)}
            headline = {"metric": entry.metric.name, "headline": "true"}
            writer.writerow(line | {"protocol": rule} | _numbers(summary) | costs | tests | headline)
        for name, summary in entry.metrics.items():
            if name != entry.metric.name:
                other = {"metric": name, "headline": "false"}
                writer.writerow(line | {"protocol": "honest"} | _numbers(summary) | costs | other)
        if not entry.protocols:
            writer.writerow(line | {"folds": 0})
    sets = [planned.name for planned in study.sets if planned.task == "classification"]
    for name, row in ((one, row) for one in sets for row in published(one)):
        writer.writerow(
            {
                "data": name,
                "method": row.method,
                "source": SOURCES[row.source],
                "protocol": row.protocol,
                "mean": _number(row.mean),
                "std": _number(row.std),
                "status": row.status or "",
                "metric": "accuracy",
            }
        )
    return out.getvalue()


FORMATS: dict[str, Callable[[Study], str]] = {"markdown": markdown, "latex": latex, "csv": comma_separated}
"""Text formats of a report."""


def _numbers(summary: Summary) -> dict[str, object]:
    return {
        "mean": repr(summary.mean) if summary.folds else "",
        "std": repr(summary.std) if summary.folds else "",
        "folds": len(summary.folds),
        "repetitions": len(summary.repetitions) or 1,
        "repetition_std": _number(summary.repetition_std),
    }


def set_names(study: Study) -> list[str]:
    """Return the heading of each data set, with its metric where they differ."""
    if study.shared_metric is not None:
        return [planned.name for planned in study.sets]
    return [f"{planned.name} ({study.metric(planned.name).heading})" for planned in study.sets]


def _number(value: float | None) -> str:
    return "" if value is None else repr(value)


def _row(*cells: str) -> str:
    return f"| {' | '.join(cells)} |"


def _title(row: TableRow, escape: Callable[[str], str]) -> str:
    return escape(row.short) + (f" ({escape(row.long)})" if row.family == "published" else "")


def _notes(study: Study, rows: list[TableRow]) -> list[str]:
    """Return the note below a table and an explanation of each protocol of a published accuracy in it."""
    used = dict.fromkeys((row.protocol, row.source) for line in rows for cell in line.cells for row in cell.published)
    protocols = [f"{protocol}: {SOURCES[source]}, {RULES.get(protocol, protocol)}." for protocol, source in used]
    metric = study.shared_metric
    unit = " in percent" if metric is not None and metric.percent else ""
    better = "" if metric is None or metric.greater_is_better else " (lower is better)"
    spoken = spread_note(study).replace("; small:", "; below it the")
    note = f"Honest {study.title}{unit}{better}, {spoken}."
    return [note + ("" if study.single else _MARKS), *protocols]


def _markdown(text: str) -> str:
    clean = " ".join(text.split()).replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    return "".join("\\" + char if char in "\\|*_`[]" else char for char in clean)


def _tex(text: str) -> str:
    return "".join(_LATEX.get(char, char) for char in " ".join(text.split()))
