"""A comparison as text: Markdown, LaTeX and CSV tables, and a summary for the terminal."""

from __future__ import annotations

import csv
import io
from collections import Counter
from collections.abc import Callable

from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text

from gcaps.evaluation.comparison import Comparison
from gcaps.evaluation.published import RULES, SOURCES, Published, published
from gcaps.report.study import ALPHA, STATUS, Entry, Majority, Study
from gcaps.report.summary import TableCell, TableRow, percent, points, published_text, spread, table_rows

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
_NOTE = "Honest accuracy in percent, mean ± standard deviation over the folds."
_MARKS = (
    " Bold: the best. •: not significantly worse than the best (corrected resampled t-test, Holm correction over all "
    f"pairs of methods on a data set, level {ALPHA:g})."
)
_COLUMNS = (
    *("data", "method", "source", "protocol", "mean", "std", "folds", "planned", "status", "seconds", "peak_mib"),
    *("best", "difference_to_best", "p", "p_holm"),
)


def markdown(study: Study) -> str:
    """Return the main table; published accuracies are given in brackets below ours, with their protocol."""

    def shown(cell: TableCell) -> str:
        text = _markdown(cell.text)
        number = f"**{text}**" if cell.best else text + (" •" if cell.near else "")
        extra = [f"[{row.protocol}: {_markdown(published_text(row))}]" for row in cell.published]
        return "<br>".join([number, *extra] if number else extra) or "–"

    names = [_markdown(planned.name) for planned in study.sets]
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
    names = " & ".join(_tex(planned.name) for planned in study.sets)
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
    """Return a line for each data set, label and rule, as shares of one in full precision; then the published rows."""
    out = io.StringIO()
    writer = csv.DictWriter(out, _COLUMNS, restval="", lineterminator="\n")
    writer.writeheader()
    for entry in (entry for planned in study.sets for entry in study.of_set(planned.name)):
        best = study.best(entry.data)
        line: dict[str, object] = {
            "data": entry.data,
            "method": entry.label,
            "source": "ours",
            "planned": entry.planned,
            "status": "done" if entry.complete else entry.status,
        }
        costs = {"seconds": _number(entry.seconds), "peak_mib": _number(entry.peak_mib)}
        for rule, summary in entry.protocols.items():
            numbers = {"mean": repr(summary.mean), "std": repr(summary.std), "folds": len(summary.folds)}
            tests = {} if rule != "honest" else {"best": str(entry.label == best).lower()}
            test = study.tests[entry.data].get((entry.label, best or ""))
            if rule == "honest" and test is not None:
                tests |= {"difference_to_best": repr(test.difference), "p": repr(test.p), "p_holm": repr(test.holm)}
            writer.writerow(line | {"protocol": rule} | numbers | costs | tests)
        if not entry.protocols:
            writer.writerow(line | {"folds": 0})
    for name, row in ((planned.name, row) for planned in study.sets for row in published(planned.name)):
        writer.writerow(
            {
                "data": name,
                "method": row.method,
                "source": SOURCES[row.source],
                "protocol": row.protocol,
                "mean": _number(row.mean),
                "std": _number(row.std),
                "status": row.status or "",
            }
        )
    return out.getvalue()


FORMATS: dict[str, Callable[[Study], str]] = {"markdown": markdown, "latex": latex, "csv": comma_separated}
"""Text formats of a report."""


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
    return [_NOTE + ("" if study.single else _MARKS), *protocols]


def _markdown(text: str) -> str:
    clean = " ".join(text.split()).replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    return "".join("\\" + char if char in "\\|*_`[]" else char for char in clean)


def _tex(text: str) -> str:
    return "".join(_LATEX.get(char, char) for char in " ".join(text.split()))


def print_comparison(comparison: Comparison, console: Console) -> None:
    """Print the honest accuracies of a comparison.

    One method on one data set: the accuracy against the most frequent class, the accuracy under every rule, and the
    published results. One method on several data sets: a row for each data set, a column for each rule. Several
    methods: a row for each method, a column for each data set.
    """
    study = Study.of(comparison)
    entry = study.of_set(study.sets[0].name)[0] if study.single and len(study.sets) == 1 else None
    if entry is not None and entry.complete:
        _print_entry(study, entry, console)
        return
    console.print(_by_rule(study) if study.single else _by_method(study))
    counts = Counter(outcome.status for outcome in comparison.outcomes)
    parts = [f"{counts.pop('done', 0)} cells done", *(f"{count} {STATUS[status]}" for status, count in counts.items())]
    if study.missing:
        parts.append(f"{len(study.missing)} not run")
    console.print(", ".join(parts), highlight=False)


def _print_entry(study: Study, entry: Entry, console: Console) -> None:
    majority = study.majority(entry.data)
    assert majority is not None
    console.print()
    console.print(_headline(entry, study.plan.of(entry.data).graphs, majority))
    console.print()
    console.print(_protocols(entry))
    rows = [row for row in published(entry.data) if row.status != "not reported"]
    if rows:
        console.print(Text(f"Published for {entry.data}", style="bold"))
        console.print(_published(rows))
        console.print(_legend(rows))
        console.print()


def _headline(entry: Entry, graphs: int, majority: Majority) -> Text:
    honest, folds = entry.protocols["honest"], len(entry.folds)
    gain = honest.mean - majority.share
    return Text.assemble(
        (f"{entry.data} · {entry.label}", "bold"),
        "\nhonest accuracy  ",
        (f"{spread(honest, 1)} %", "bold cyan"),
        (f"  over {folds} fold{'s' if folds > 1 else ''}, {graphs} graphs", "dim"),
        f"\nmajority class   {percent(majority.share, digits=1)} %",
        (f"  always predicting “{majority.name}”: ", "dim"),
        (f"{points(gain, 1)} points", "green" if gain > 0 else "red"),
    )


def _table(*columns: str) -> Table:
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, header_style="dim")
    for column in columns:
        number = column in ("accuracy, %", "vs honest")
        table.add_column(column, justify="right" if number else "left", no_wrap=number)
    return table


def _protocols(entry: Entry) -> Table:
    table = _table("rule", "accuracy, %", "vs honest", "how it is chosen")
    honest = entry.protocols["honest"]
    for rule, summary in entry.protocols.items():
        main = rule == "honest"
        table.add_row(
            Text(rule, style="bold" if main else ""),
            Text(spread(summary), style="bold cyan" if main else ""),
            "–" if main else points(summary.mean - honest.mean),
            Text(summary.rule, style="" if main else "dim"),
        )
    return table


def _published(rows: list[Published]) -> Table:
    table = _table("method", "accuracy, %", "source", "protocol")
    for row in rows:
        accuracy = Text(published_text(row), style="dim" if row.mean is None else "")
        table.add_row(Text(row.method), accuracy, Text(SOURCES[row.source]), Text(row.protocol))
    return table


def _legend(rows: list[Published]) -> Text:
    used = dict.fromkeys(row.protocol for row in rows)
    lines = [f"{protocol}: {RULES.get(protocol, protocol)}" for protocol in used]
    return Text("\n".join([*lines, "Accuracies of different protocols are not directly comparable."]), style="dim")


def _by_rule(study: Study) -> Table:
    """Return the table of one method: data sets by rules."""
    rules = list(dict.fromkeys(rule for entry in study.entries.values() for rule in entry.protocols)) or ["honest"]
    table = Table(box=None, pad_edge=False)
    table.add_column(Text(f"{next(iter(study.names))}, %"))
    for rule in rules:
        table.add_column(rule, justify="right")
    for entry in study.entries.values():
        known = [spread(entry.protocols[rule], 1) if rule in entry.protocols else "–" for rule in rules]
        table.add_row(Text(entry.data), *(known if entry.complete else [Text(entry.status)]))
    return table


def _by_method(study: Study) -> Table:
    """Return the table of several methods: labels by data sets."""
    table = Table(box=None, pad_edge=False)
    table.add_column("honest, %")
    for planned in study.sets:
        table.add_column(Text(planned.name), justify="right")
    for label in study.names:
        entries = [study.entries.get((planned.name, label)) for planned in study.sets]
        cells = ["–" if e is None else e.status if e.honest is None else spread(e.honest, 1) for e in entries]
        table.add_row(Text(label), *map(Text, cells))
    return table
