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
            help="The folder of a comparison, finished or not; records that gcaps evaluate or compare wrote; or the "
            "folder of a search (gcaps tune).",
            show_default=False,
        ),
    ],
    output: Annotated[
        Path | None,
        typer.Option("-o", "--output", metavar="FILE", help="Where to write (default: report.html; text: the screen)."),
    ] = None,
    format: Annotated[  # noqa: A002  # the option's name
        str,
        typer.Option("--format", metavar="html|markdown|latex|csv", help="csv holds every protocol and metric."),
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

    from gcaps.errors import ConfigError
    from gcaps.evaluation.comparison import Comparison
    from gcaps.evaluation.tuning_study import TuningStudy, is_study
    from gcaps.files import write_text
    from gcaps.report import report_text
    from gcaps.report.tuning import tuning_page
    from gcaps.terminal import Terminal

    if len(sources) == 1 and is_study(sources[0]):
        if format != "html" or metric is not None:
            raise ConfigError("a search has a page only (--format html), with the metric that it was made for")
        goal = output or Path("report.html")
        write_text(goal, text := tuning_page(TuningStudy.read(sources[0])))
        Terminal(stderr=True, highlight=False).print(
            f"wrote {goal}, {len(text.encode()) / 1024:.0f} KiB", markup=False, soft_wrap=True
        )
        return
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
