"""Arguments that several verbs share."""

from __future__ import annotations

import functools
import inspect
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from gcaps.estimators.registry import METHODS
from gcaps.predictions import reading_of as reading_of

if TYPE_CHECKING:
    from rich.console import Console

    from gcaps.data.graphset import GraphSet, Skipped

Data = Annotated[
    str,
    typer.Argument(
        metavar="DATA",
        help="Graphs: a TU folder or zip, a table of molecules (CSV, TSV, SMI, SDF), GraphML, node-link JSON, NPZ, "
        "edge tables, a saved GraphSet, or a name: see [bold]gcaps data list[/bold].",
        show_default=False,
    ),
]
Seed = Annotated[int, typer.Option("--seed", min=0, max=2**32 - 1, help="The same seed gives the same predictions.")]
Model = Annotated[Path, typer.Argument(metavar="MODEL", help="A folder that gcaps train wrote.", show_default=False)]
MethodName = Annotated[
    str,
    typer.Option(
        "--method",
        metavar="NAME",
        help=f"{', '.join(METHODS)}. Each has settings of its own: --method NAME --help lists them.",
    ),
]

TaskName = Annotated[
    str,
    typer.Option(
        "--task",
        metavar="auto|classification|multilabel|regression",
        help="What the targets are: classes, several binary targets, or numbers. auto: told by their values.",
    ),
]

_PANEL = "Reading"
TargetColumns = Annotated[
    list[str] | None,
    typer.Option(
        "--target",
        metavar="NAME",
        help="Column to predict, or several: A,B or a pattern such as 'NR-*,SR-*'; may be repeated. Needed if a table "
        "leaves a choice.",
        rich_help_panel=_PANEL,
        show_default=False,
    ),
]
SmilesColumn = Annotated[
    str | None,
    typer.Option(
        "--smiles",
        metavar="NAME",
        help="Column of SMILES; by default found by its name or its content.",
        rich_help_panel=_PANEL,
        show_default=False,
    ),
]
IdColumn = Annotated[
    str | None,
    typer.Option(
        "--id",
        metavar="NAME",
        help="Column that names each graph; by default found by its name, else graphs are numbered.",
        rich_help_panel=_PANEL,
        show_default=False,
    ),
]
Strict = Annotated[
    bool,
    typer.Option(
        "--strict",
        help="Stop at the first row that is not a valid molecule; by default such rows are reported and left out.",
        rich_help_panel=_PANEL,
    ),
]
EmptyGraphs = Annotated[
    str | None,
    typer.Option(
        "--empty",
        metavar="drop|error",
        help="Graphs without nodes: leave them out, or stop (default: stop; gcaps predict leaves their rows empty).",
        rich_help_panel=_PANEL,
        show_default=False,
    ),
]
DirectedGraphs = Annotated[
    str | None,
    typer.Option(
        "--directed",
        metavar="error|symmetrize",
        help="Directed graphs: stop, or forget directions (default: stop).",
        rich_help_panel=_PANEL,
        show_default=False,
    ),
]

Hydrogens = Annotated[
    str | None,
    typer.Option(
        "--hydrogens",
        metavar="implicit|explicit",
        help="Hydrogens of molecules: counted at their atom (default), or nodes of their own.",
        rich_help_panel=_PANEL,
        show_default=False,
    ),
]
Salts = Annotated[
    str | None,
    typer.Option(
        "--salts",
        metavar="keep|strip",
        help="Molecules of several fragments: keep all (default), or only the largest organic one.",
        rich_help_panel=_PANEL,
        show_default=False,
    ),
]
Charges = Annotated[
    str | None,
    typer.Option(
        "--charges",
        metavar="keep|neutralize",
        help="Charged molecules: as they are (default), or neutralized by adding and removing protons.",
        rich_help_panel=_PANEL,
        show_default=False,
    ),
]
AtomFeatures = Annotated[
    str | None,
    typer.Option(
        "--atom-features",
        metavar="full|element",
        help="What atoms and bonds tell: element, charge, hydrogens, hybridization, rings, stereo and so on (default), "
        "or atomic numbers and bond orders.",
        rich_help_panel=_PANEL,
        show_default=False,
    ),
]

PREPARATION: dict[str, tuple[Any, Any]] = {
    "hydrogens": (Hydrogens, None),
    "salts": (Salts, None),
    "charges": (Charges, None),
    "atom_features": (AtomFeatures, None),
}
"""Options of the conversion of molecules to graphs, which a saved model fixes."""
READING: dict[str, tuple[Any, Any]] = {
    "target": (TargetColumns, None),
    "smiles": (SmilesColumn, None),
    "id": (IdColumn, None),
    "strict": (Strict, False),
    "empty": (EmptyGraphs, None),
    "directed": (DirectedGraphs, None),
}
"""Options about how data are read: type and default of each."""


def with_reading(
    command: Callable[..., None], options: Mapping[str, Any] = READING | PREPARATION
) -> Callable[..., None]:
    """Give a command options about reading; it receives their values, by name, as ``read``.

    An option that the command itself has means something else there and is left to it.
    """
    own = [p for p in inspect.signature(command, eval_str=True).parameters.values() if p.name != "read"]
    added = {name: option for name, option in options.items() if name not in {p.name for p in own}}

    @functools.wraps(command)
    def run(**given: Any) -> None:
        read = {name: given.pop(name) for name in added}
        if "target" in read:
            read["target"] = ",".join(read["target"] or ()) or None
        command(**given, read=read)

    made = [
        inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=annotation)
        for name, (annotation, default) in added.items()
    ]
    parameters = [*(p.replace(kind=inspect.Parameter.KEYWORD_ONLY) for p in own), *made]
    run.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    run.__annotations__ = {p.name: p.annotation for p in parameters}
    return run


def with_model_reading(command: Callable[..., None]) -> Callable[..., None]:
    """Give a command the options of :data:`READING`: molecules are prepared as the model's training graphs were."""
    made = with_reading(command, READING)

    @functools.wraps(made)  # with its signature
    def run(**given: Any) -> None:
        _require_model_first(given["model"], given.get("data"))
        made(**given)

    return run


def _require_model_first(model: Path, data: str | None) -> None:
    """Raise a ConfigError if MODEL and DATA were given in the other order."""
    from gcaps.errors import ConfigError
    from gcaps.files import is_file

    if data is not None and is_file(Path(data) / "model.json") and not is_file(model / "model.json"):
        raise ConfigError(f"{data} is a model and {model} is not: give the model first, then the data")


def reading_options(
    source: str | Path | Sequence[str] | None = None,
    *,
    target: str | None = None,
    smiles: str | None = None,
    id: str | None = None,  # noqa: A002 - the option's name
    strict: bool = False,
    empty: str | None = None,
    directed: str | None = None,
    hydrogens: str | None = None,
    salts: str | None = None,
    charges: str | None = None,
    atom_features: str | None = None,
    columns: Sequence[str] = (),
    predicting: bool = False,
    root: str | Path | None = None,
) -> dict[str, Any]:
    """Return the keyword arguments of :func:`gcaps.load` for the shared options of a verb.

    Call it before anything heavy is imported: the header of each table of ``source`` is checked here, so that a wrong
    column name is reported within a second.

    Args:
        source: the verb's DATA, one or several; None if there is nothing to check.
        target: value of ``--target``, and so on for the other options.
        smiles: of ``--smiles``.
        id: of ``--id``.
        strict: of ``--strict``.
        empty: of ``--empty``.
        directed: of ``--directed``.
        hydrogens: of ``--hydrogens``.
        salts: of ``--salts``.
        charges: of ``--charges``.
        atom_features: of ``--atom-features``.
        columns: further columns of a table that the verb needs, such as that of ``--split group:COLUMN``.
        predicting: graphs need no targets, and those without nodes are left out by default.
        root: folder that is searched first for names.
    """
    options: dict[str, Any] = {
        "target": target,
        "smiles": smiles,
        "id": id,
        "columns": tuple(columns),
        "invalid": "error" if strict else "skip",
        "empty": empty or ("drop" if predicting else "error"),
        "directed": directed or "error",
        "labelled": not predicting,
        "hydrogens": hydrogens,
        "salts": salts,
        "charges": charges,
        "atom_features": atom_features,
    }
    options = {name: value for name, value in options.items() if name not in PREPARATION or value is not None}
    from gcaps.data.catalog import check_header
    from gcaps.data.reading import Reading

    reading = Reading(**options)
    sources = [] if source is None else [source] if isinstance(source, str | Path) else list(source)
    for one in sources:
        check_header(one, reading, root)
    return options


def compile_ahead(methods: Iterable[str]) -> None:
    """Compile the CPU kernels of capsule networks where one of the methods uses them, unless that has been done."""
    if not {"gcaps", "capsule-svm"} & set(methods):
        return
    import torch

    from gcaps.compile import require

    if not torch.cuda.is_available():
        require(("prediction", "training"))


@contextmanager
def reading_bar(title: str, console: Console | None = None) -> Iterator[Callable[[int, int], None]]:
    """Yield a callback for the amount read and the total; a bar on standard error appears after a second."""
    from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeRemainingColumn

    from gcaps.terminal import Terminal

    columns = (
        TextColumn("{task.description}", markup=False),
        BarColumn(bar_width=24),
        TaskProgressColumn(),
        TimeRemainingColumn(),
    )
    console = console or Terminal(stderr=True)
    bar = Progress(*columns, console=console, transient=True, disable=not console.is_terminal)  # else an empty line
    began = time.monotonic()
    task = bar.add_task(Path(title).name, total=None)

    def report(done: int, total: int) -> None:
        if time.monotonic() - began > 1:
            bar.start()
        bar.update(task, completed=done, total=total)

    try:
        yield report
    finally:
        if bar.live.is_started:
            bar.stop()


def streamed(data: str, options: dict[str, Any]) -> Iterator[GraphSet]:
    """Yield graphs piece by piece, so that memory does not grow with the source, with a progress bar."""
    from gcaps.data.catalog import stream

    with reading_bar(data) as progress:
        yield from stream(data, progress=progress, **options)


def report_skipped(skipped: Sequence[Skipped], more: int = 0, most: int = 5) -> None:
    """Print the rows of the source that were left out, with reasons, on standard error.

    Args:
        skipped: the rows, or the first of them.
        more: how many others there are.
        most: rows that are listed.
    """
    from gcaps.escaping import visible

    for one in skipped[:most]:
        typer.echo(visible(f"left out: row {one.row + 1} ({one.id}): {one.reason}"), err=True)
    if (rest := len(skipped[most:]) + more) > 0:
        typer.echo(f"left out: {rest:,} more; gcaps data check lists them", err=True)
