"""The command ``gcaps``: its verbs, and how errors leave it.

A verb's module is imported when the verb is called, so that ``gcaps --help`` is quick.
"""

from __future__ import annotations

import difflib
import importlib
import os
import sys
import warnings
from collections.abc import Sequence
from typing import Any

from gcaps.errors import DataWarning, GcapsError
from gcaps.escaping import visible
from gcaps.version import __version__

VERBS = {
    "demo": "a two-minute tour: compare methods on 188 real molecules, train and use the best",
    "data": "data sets: list, get, check, convert",
    "train": "train any method on all graphs of a data set and save it",
    "predict": "classes and probabilities for graphs, as CSV",
    "explain": "which atoms of a molecule a prediction depends on, as a page",
    "evaluate": "cross-validate a method; every protocol from one run, the honest one first",
    "compare": "methods x data sets, fold by fold; resumable; on one machine or a cluster",
    "report": "a comparison as one page that opens offline, or as a table for a paper",
}

OVERVIEW = """usage: gcaps VERB ...      gcaps VERB --help explains a verb

Graph classification with graph capsules: train, predict, and find out honestly how good it is.

{verbs}

  gcaps demo                                 start here
  gcaps data check my-graphs.zip             what is in my graphs, and is it sound?
  gcaps evaluate my-graphs.zip -o r.json     how good is GCAPS-CNN on them?
  gcaps compare my-graphs.zip -o run         and all the other methods?
  gcaps report run -o report.html            which is best, and is the difference significant?
  gcaps train my-graphs.zip -o model         a classifier (--method NAME: any other method)
  gcaps predict model new-graphs.zip         its predictions"""


def main(arguments: Sequence[str] | None = None) -> None:
    """Run a verb; an error that the user can mend is one line and an exit code, never a traceback."""
    given = list(sys.argv[1:] if arguments is None else arguments)
    shown = warnings.showwarning
    notes: set[str] = set()

    def show(message: Warning | str, category: type[Warning], *rest: Any) -> None:
        if issubclass(category, DataWarning):
            note = " ".join(str(message).split())
            if note not in notes:  # a header is read twice: before heavy imports, and with the rest
                notes.add(note)
                print(f"note: {visible(note)}", file=sys.stderr)
        else:
            shown(message, category, *rest)

    try:
        with warnings.catch_warnings():
            warnings.showwarning = show  # type: ignore[assignment]  # passes on whatever it is given
            _run(given)
    except GcapsError as error:
        print(f"error: {visible(' '.join(str(error).split()))}", file=sys.stderr)
        sys.exit(error.exit_code)
    except KeyboardInterrupt:
        print("interrupted", file=sys.stderr)
        sys.exit(130)
    except BrokenPipeError:
        # the reader is gone, as in `gcaps … | head`; keep Python from failing again when it flushes
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(141)


def _run(given: list[str]) -> None:
    if not given or given[0] in ("--help", "-h", "help"):
        print(OVERVIEW.format(verbs="\n".join(f"  {verb:<10}{text}" for verb, text in VERBS.items())))
    elif given[0] in ("--version", "-V"):
        print(f"gcaps {__version__}")
    elif given[0] in VERBS:
        _typer_command(given[0], given[1:])(args=given[1:], prog_name=f"gcaps {given[0]}")
    else:
        near = difflib.get_close_matches(given[0], VERBS, 1)
        hint = f"did you mean {near[0]}?" if near else f"there are {', '.join(VERBS)}"
        print(f"error: there is no verb {given[0]!r}; {hint}", file=sys.stderr)
        sys.exit(2)


def _typer_command(verb: str, arguments: list[str]):  # type: ignore[no-untyped-def]  # typer has moved its type
    import typer

    module = importlib.import_module(f"gcaps.cli.{verb}")
    app = getattr(module, "app", None)
    if app is None:
        app = typer.Typer(add_completion=False, pretty_exceptions_enable=False, rich_markup_mode="rich")
        make = getattr(module, "command", None)  # a verb whose options depend on its arguments
        app.command()(module.run if make is None else make(arguments))
    return typer.main.get_command(app)
