"""A comparison's table as Markdown, LaTeX or CSV."""

from __future__ import annotations

import csv
import io
from collections.abc import Callable

from gcaps.evaluation.published import RULES, SOURCES, published
from gcaps.report.main_table import TableCell, TableRow, published_text, table_rows
from gcaps.report.study import ALPHA, Study

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
_NOTE = (
    "Honest accuracy in percent, mean ± standard deviation over the folds. Bold: the best. •: not shown to be worse "
    f"than the best (corrected resampled t-test, Holm over all pairs of a data set, level {ALPHA:g})."
)
_COLUMNS = (
    *("data", "method", "source", "protocol", "mean", "std", "folds", "planned", "status", "seconds", "peak_mib"),
    *("best", "difference_to_best", "p", "p_holm"),
)


def markdown(study: Study) -> str:
    """The main table; below our number, in brackets, what was published and under which protocol."""

    def shown(cell: TableCell) -> str:
        text = _markdown(cell.text)
        number = f"**{text}**" if cell.best else text + (" •" if cell.near else "")
        extra = [f"[{row.protocol}: {_markdown(published_text(row))}]" for row in cell.published]
        return "<br>".join([number, *extra] if number else extra) or "–"

    names = [_markdown(planned.name) for planned in study.sets]
    lines = [_row("method", *names), _row("---", *["---:"] * len(names))]
    rows = table_rows(study)
    lines += [_row(_title(row, _markdown), *(shown(cell) for cell in row.cells)) for row in rows]
    return "\n".join([*lines, "", _NOTE, *_legend(rows)]) + "\n"


def latex(study: Study) -> str:
    """The main table for ``booktabs``, our numbers only where both exist and published rows below a rule."""

    def shown(cell: TableCell) -> str:
        text = _tex(cell.text)
        if cell.honest is None:
            return text or "; ".join(_tex(published_text(row)) for row in cell.published) or "--"
        return rf"\textbf{{{text}}}" if cell.best else text + (r"$^{\bullet}$" if cell.near else "")

    rows = table_rows(study)
    names = " & ".join(_tex(planned.name) for planned in study.sets)
    body: list[str] = []
    for row in rows:
        if row.family == "published" and r"\midrule" not in body:
            body.append(r"\midrule")
        body.append(f"{_title(row, _tex)} & " + " & ".join(shown(cell) for cell in row.cells) + r" \\")
    return "\n".join(
        [
            *(f"% {line}" for line in [_NOTE, *_legend(rows)]),
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
    """One line for each data set, method and rule, shares of one in full precision; then the published numbers."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(_COLUMNS)
    for planned in study.sets:
        best = study.best(planned.name)
        for method in study.methods:
            entry = study.entry(planned.name, method)
            status = "done" if entry.complete else entry.status
            costs = [_number(entry.seconds), _number(entry.peak_mib)]
            test = None if best is None else study.tests(planned.name).get((method, best))
            against = [] if test is None else [repr(test.difference), repr(test.p), repr(test.holm)]
            for rule, summary in entry.protocols.items():
                line = [planned.name, method, "ours", rule, repr(summary.mean), repr(summary.std), len(summary.folds)]
                tail = [str(method == best).lower(), *against] if rule == "honest" else []
                writer.writerow([*line, entry.planned, status, *costs, *tail, *[""] * (4 - len(tail))])
            if not entry.protocols:
                writer.writerow([planned.name, method, "ours", "", "", "", 0, entry.planned, status, *[""] * 6])
    for planned in study.sets:
        for row in published(planned.name):
            numbers = [_number(row.mean), _number(row.std)]
            writer.writerow(
                [
                    planned.name,
                    row.method,
                    SOURCES[row.source],
                    row.protocol,
                    *numbers,
                    "",
                    "",
                    row.status or "",
                    *[""] * 6,
                ]
            )
    return out.getvalue()


FORMATS: dict[str, Callable[[Study], str]] = {"markdown": markdown, "latex": latex, "csv": comma_separated}
"""Beside html."""


def _number(value: float | None) -> str:
    return "" if value is None else repr(value)


def _row(*cells: str) -> str:
    return f"| {' | '.join(cells)} |"


def _title(row: TableRow, escape: Callable[[str], str]) -> str:
    return escape(row.short) + (f" ({escape(row.long)})" if row.family == "published" else "")


def _legend(rows: list[TableRow]) -> list[str]:
    """What the protocols of the published numbers mean."""
    used = dict.fromkeys((row.protocol, row.source) for line in rows for cell in line.cells for row in cell.published)
    return [f"{protocol}: {SOURCES[source]}, {RULES.get(protocol, protocol)}." for protocol, source in used]


def _markdown(text: str) -> str:
    clean = " ".join(text.split()).replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    return "".join("\\" + char if char in "\\|*_`[]" else char for char in clean)


def _tex(text: str) -> str:
    return "".join(_LATEX.get(char, char) for char in " ".join(text.split()))
