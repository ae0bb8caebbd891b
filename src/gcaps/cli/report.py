"""``gcaps report``: a comparison as a page, or its table for a paper."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from gcaps.cli.evaluate import MetricName


def run(
    sources: Annotated[
        list[Path],
        typer.Argument(
            metavar="RUN...",
            help="The folder of a comparison, finished or not; or records that gcaps evaluate or compare wrote.",
            show_default=False,
        ),
    ],
    output: Annotated[
        Path | None,
        typer.Option("-o", "--output", metavar="FILE", help="Where to write (default: report.html; text: the screen)."),
    ] = None,
    format: Annotated[  # noqa: A002  # the option's name
        str, typer.Option("--format", help="html, markdown, latex or csv; csv holds every protocol and metric.")
    ] = "html",
    metric: MetricName = None,
) -> None:
    """Write a comparison as one page that opens offline: which method is best, and whether that is significant.

    Besides the table: all metrics, the effect of each protocol, ranks, learning curves, cost, confusion, calibration or
    residuals, drawings of the hardest graphs, and an audit of the data. For an unfinished run the page says what is
    missing.

    Example: [cyan]gcaps report RUN -o report.html[/cyan]

    For a paper: [cyan]gcaps report RUN --format latex -o table.tex[/cyan]

    From several records: [cyan]gcaps report gcaps.json wl.json -o report.html[/cyan]
    """
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn

    from gcaps.evaluation.comparison import Comparison
    from gcaps.files import write_text
    from gcaps.report import report_text
    from gcaps.terminal import Terminal

    found = [Comparison.read(source) for source in sources]
    comparison = found[0] if len(found) == 1 else Comparison.join(found)
    if metric is not None:
        comparison = comparison.with_metric(metric)
    console = Terminal(stderr=True, highlight=False)
    columns = (TextColumn("{task.description}", markup=False), BarColumn(), MofNCompleteColumn())
    with Progress(*columns, console=console, transient=True, disable=not console.is_terminal) as bar:
        task = bar.add_task("report", total=None)

        def tell(what: str, step: int, steps: int) -> None:
            bar.update(task, description=what, completed=step, total=steps)

        text = report_text(comparison, format, tell)
    if output is None and format != "html":
        typer.echo(text, nl=False)
        return
    goal = output or Path("report.html")
    write_text(goal, text)
    console.print(f"wrote {goal}, {len(text.encode()) / 1024:.0f} KiB", markup=False, soft_wrap=True)
