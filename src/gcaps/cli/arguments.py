"""Arguments that several verbs share."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from gcaps.estimators.registry import METHODS

Data = Annotated[
    str,
    typer.Argument(
        metavar="DATA",
        help="A TU folder or zip, a saved GraphSet, a CSV of SMILES, or a name: see [bold]gcaps data list[/bold].",
        show_default=False,
    ),
]
Seed = Annotated[int, typer.Option("--seed", min=0, help="The same seed gives the same predictions.")]
Model = Annotated[Path, typer.Argument(metavar="MODEL", help="A folder that gcaps train wrote.", show_default=False)]
MethodName = Annotated[
    str,
    typer.Option(
        "--method",
        metavar="NAME",
        help=f"{', '.join(METHODS)}. Each has settings of its own: --method NAME --help lists them.",
    ),
]
