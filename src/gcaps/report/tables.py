"""A result in the terminal: the honest number first, the other rules below it, and what was published."""

from __future__ import annotations

from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text

from gcaps.evaluation.published import RULES, SOURCES, Published, published
from gcaps.evaluation.result import Result
from gcaps.report.aggregate import baseline, percent, points


def print_result(result: Result, console: Console) -> None:
    """Print the honest accuracy against the majority class, every protocol, and the published rows if there are any."""
    name = str(result.data["name"])
    console.print()
    console.print(_headline(result, name))
    console.print()
    console.print(_protocols(result))
    rows = [row for row in published(name) if row.status != "not reported"]
    if rows:
        console.print(Text(f"Published for {name}", style="bold"))
        console.print(_published(rows))
        console.print(_legend(rows))
        console.print()


def _headline(result: Result, name: str) -> Text:
    honest, base = result.protocols["honest"], baseline(result)
    folds = len(result.folds)
    gain = honest.mean - base.share
    return Text.assemble(
        (f"{name} · {result.method}", "bold"),
        "\nhonest accuracy  ",
        (f"{percent(honest.mean, honest.std if folds > 1 else None, 1)} %", "bold cyan"),
        (f"  over {folds} fold{'s' if folds > 1 else ''}, {result.data['graphs']} graphs", "dim"),
        f"\nmajority class   {percent(base.share, digits=1)} %",
        (f"  always answering “{base.name}”: ", "dim"),
        (f"{points(gain, 1)} points", "green" if gain > 0 else "red"),
    )


def _table(*columns: str) -> Table:
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, header_style="dim")
    for column in columns:
        number = column in ("accuracy, %", "vs honest")
        table.add_column(column, justify="right" if number else "left", no_wrap=number)
    return table


def _protocols(result: Result) -> Table:
    table = _table("rule", "accuracy, %", "vs honest", "how the number is chosen")
    honest, spread = result.protocols["honest"], len(result.folds) > 1
    for key, summary in result.protocols.items():
        ours = key == "honest"
        table.add_row(
            Text(key, style="bold" if ours else ""),
            Text(percent(summary.mean, summary.std if spread else None), style="bold cyan" if ours else ""),
            "–" if ours else points(summary.mean - honest.mean),
            Text(summary.rule, style="" if ours else "dim"),
        )
    return table


def _published(rows: list[Published]) -> Table:
    """One line a row; what the protocols mean stands below, once each."""
    table = _table("method", "accuracy, %", "source", "protocol")
    for row in rows:
        number = Text(row.status or "", style="dim") if row.mean is None else Text(percent(row.mean, row.std))
        table.add_row(Text(row.method), number, Text(SOURCES[row.source]), Text(row.protocol))
    return table


def _legend(rows: list[Published]) -> Text:
    used = dict.fromkeys(row.protocol for row in rows)
    lines = [f"{protocol}: {RULES.get(protocol, protocol)}" for protocol in used]
    return Text("\n".join([*lines, "A number from another protocol is not comparable one to one."]), style="dim")
