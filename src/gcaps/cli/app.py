"""The command ``gcaps``: its verbs, and how errors leave it."""

from __future__ import annotations

import os
import sys
from typing import Annotated

import typer

from gcaps import __version__
from gcaps.cli import data, demo, evaluate, predict, train
from gcaps.errors import GcapsError

app = typer.Typer(
    name="gcaps",
    help="Graph classification with graph capsules: train, predict, and find out honestly how good it is.\n\n"
    "Start with [bold]gcaps demo[/bold]; every verb explains itself with --help.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    add_completion=False,
    rich_markup_mode="rich",
)
app.command("demo")(demo.run)
app.add_typer(data.app, name="data")
app.command("train")(train.run)
app.command("predict")(predict.run)
app.command("evaluate")(evaluate.run)


def _version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"gcaps {__version__}")
        raise typer.Exit


@app.callback()
def _root(
    version: Annotated[bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version.")] = False,
) -> None:
    pass


def main() -> None:
    """Entry point: run the verb; an error of the user's is one line and an exit code, never a traceback."""
    try:
        app()
    except GcapsError as error:
        typer.echo(f"error: {' '.join(str(error).split())}", err=True)
        sys.exit(error.exit_code)
    except KeyboardInterrupt:
        typer.echo("interrupted", err=True)
        sys.exit(130)
    except BrokenPipeError:
        # the reader has gone, as in `gcaps … | head`; keep Python from complaining when it flushes
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(141)
