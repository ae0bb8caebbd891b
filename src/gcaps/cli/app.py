"""The command ``gcaps``: its verbs, and the handling of errors.

A verb's module is imported when the verb is called, so that ``gcaps --help`` is quick.
"""

from __future__ import annotations

import difflib
import importlib
import os
import sys
import traceback
import warnings
from collections.abc import Sequence
from typing import Any

from gcaps.cli.signals import StoppedError, end, ending_on_signals, say
from gcaps.disk import StorageError, storage_error
from gcaps.errors import CheckpointWarning, DataError, DataWarning, GcapsError, MemoryLimitError
from gcaps.escaping import visible
from gcaps.version import __version__

BUG = 70
"""Exit code of a bug, as EX_SOFTWARE of sysexits.h."""
REPORT = (
    "this is a bug of gcaps: please report the lines above with the command, the version (gcaps --version) and, if you "
    "may, the input, where you got gcaps from (CONTRIBUTING.md says how)"
)

VERBS = {
    "demo": "a two-minute tour: compare methods on 188 real molecules, train and use the best",
    "data": "data sets: list, get, check, convert",
    "train": "train any method on all graphs of a data set and save it",
    "predict": "classes and probabilities for graphs, as CSV",
    "explain": "which nodes, edges and features a prediction depends on, as a page",
    "export": "a trained network as an ONNX or torch.export file that runs without gcaps",
    "serve": "a trained model as a web page and a JSON interface",
    "evaluate": "cross-validate a method; every protocol from one run, the honest one first",
    "compare": "methods x data sets, fold by fold; resumable; on one machine or a cluster",
    "tune": "search a method's settings on inner folds; resumable",
    "tasks": "beyond whole graphs: classes of nodes, links, sequences, new graphs",
    "embed": "vectors of graphs as a table, their nearest neighbors, and a map",
    "report": "a comparison or a search as one page that opens offline, or as a table for a paper",
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
  gcaps predict model new-graphs.zip         its predictions
  gcaps serve model                          a page to try it on, and an interface for programs"""


def main(arguments: Sequence[str] | None = None) -> None:
    """Run a verb; an error that the user can correct is one line and an exit code, without traceback."""
    given = list(sys.argv[1:] if arguments is None else arguments)
    shown = warnings.showwarning
    notes: set[str] = set()

    def show(message: Warning | str, category: type[Warning], *rest: Any) -> None:
        if issubclass(category, DataWarning | CheckpointWarning):
            note = " ".join(str(message).split())
            if note not in notes:  # a header is read twice: before heavy imports, and with the rest
                notes.add(note)
                print(f"note: {visible(note)}", file=sys.stderr)
        else:
            shown(message, category, *rest)

    try:
        with ending_on_signals(), warnings.catch_warnings():
            warnings.showwarning = show  # type: ignore[assignment]  # passes on whatever it is given
            try:
                _run(given)
            finally:
                sys.stdout.flush()  # raises on a full disk
    except StoppedError as stopped:
        say(stopped)
        end(stopped.number)  # an interpreter with torch takes most of a second to shut down
    except KeyboardInterrupt as stopped:
        sys.exit(say(stopped))
    except BrokenPipeError:
        # the reader is gone, as in `gcaps … | head`; keep Python from failing again when it flushes
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(141)
    except Exception as error:
        known = as_error(error)
        if known is None:
            traceback.print_exc()
            print(REPORT, file=sys.stderr)
            sys.exit(BUG)
        print(f"error: {visible(' '.join(str(known).split()))}", file=sys.stderr)
        if isinstance(known, StorageError):
            os.dup2(os.open(os.devnull, os.O_WRONLY), 1)  # standard output may be what is full
        sys.exit(known.exit_code)


def as_error(error: BaseException) -> GcapsError | None:
    """Convert an exception to one that the user can correct; return None for a bug of gcaps."""
    if isinstance(error, GcapsError):
        return error
    place = getattr(error, "filename", None) or "standard output or a temporary file"
    if (full := storage_error(error, place)) is not None:
        return full
    if isinstance(error, MemoryError) or "can't allocate memory" in str(error):
        return MemoryLimitError("memory ran out; use fewer or smaller graphs, or a smaller network")
    if isinstance(error, OSError) and error.filename is not None:
        return DataError(f"{error.strerror or error}", str(error.filename))
    return None


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

    from gcaps.cli.help_pages import tidy

    module = importlib.import_module(f"gcaps.cli.{verb}")
    app = getattr(module, "app", None)
    if app is None:
        app = typer.Typer(add_completion=False, pretty_exceptions_enable=False, rich_markup_mode="rich")
        make = getattr(module, "command", None)  # a verb whose options depend on its arguments
        app.command()(module.run if make is None else make(arguments))
    return tidy(typer.main.get_command(app))
