"""``gcaps serve``: a saved model as a web page and a JSON interface."""

from __future__ import annotations

import os
import signal
from typing import Annotated

import typer

from gcaps.cli.arguments import Model
from gcaps.cli.signals import GRACE, meanings, patient

TOKEN = "GCAPS_TOKEN"  # nosec B105  # its name
"""Environment variable of the token; command lines are visible to other users."""
_LIMITS = "Limits of a request"
_WORK = "Work"


def run(
    model: Model,
    port: Annotated[int, typer.Option("--port", metavar="N", help="Port; 0: any free one.")] = 8000,
    host: Annotated[
        str, typer.Option("--host", metavar="ADDRESS", help="Address to listen at; 0.0.0.0: all of this machine.")
    ] = "127.0.0.1",
    token: Annotated[
        str | None,
        typer.Option(
            "--token",
            metavar="TEXT",
            help=f"Clients must send it (Authorization: Bearer TEXT); better in the environment variable {TOKEN}, as "
            "others see command lines.",
            show_default=False,
        ),
    ] = None,
    allow_host: Annotated[
        list[str] | None,
        typer.Option(
            "--allow-host",
            metavar="NAME",
            help="Another name under which clients reach the server, as behind a reverse proxy; may be repeated; "
            "'*': any.",
            show_default=False,
        ),
    ] = None,
    coverage: Annotated[
        float,
        typer.Option("--coverage", metavar="X", help="Of sets and intervals, unless a request asks for another."),
    ] = 0.9,
    workers: Annotated[
        int,
        typer.Option(
            "--workers",
            metavar="N",
            min=1,
            help="Processes that predict; they share the model's memory.",
            rich_help_panel=_WORK,
        ),
    ] = 2,
    window: Annotated[
        float,
        typer.Option(
            "--window",
            metavar="MS",
            min=0,
            max=1000,
            help="Milliseconds that a request waits for others to be predicted with.",
            rich_help_panel=_WORK,
        ),
    ] = 3,
    max_batch: Annotated[
        int,
        typer.Option(
            "--max-batch", metavar="N", min=1, help="Requests that are predicted together.", rich_help_panel=_WORK
        ),
    ] = 64,
    max_waiting: Annotated[
        int,
        typer.Option(
            "--max-waiting", metavar="N", min=1, help="Requests under way; more are refused.", rich_help_panel=_WORK
        ),
    ] = 1000,
    max_bytes: Annotated[
        int, typer.Option("--max-bytes", metavar="N", help="Bytes of the body.", rich_help_panel=_LIMITS)
    ] = 10 << 20,
    max_graphs: Annotated[
        int, typer.Option("--max-graphs", metavar="N", help="Graphs, or rows of a file.", rich_help_panel=_LIMITS)
    ] = 5_000,
    max_nodes: Annotated[
        int, typer.Option("--max-nodes", metavar="N", help="Nodes of all graphs together.", rich_help_panel=_LIMITS)
    ] = 200_000,
    max_edges: Annotated[
        int, typer.Option("--max-edges", metavar="N", help="Edges of all graphs together.", rich_help_panel=_LIMITS)
    ] = 1_000_000,
    max_seconds: Annotated[
        float,
        typer.Option(
            "--max-seconds", metavar="X", help="Seconds until a request is given up.", rich_help_panel=_LIMITS
        ),
    ] = 30.0,
) -> None:
    """Serve a model: a page to try it on, and a JSON interface for programs.

    Example: [cyan]gcaps serve mutag-model[/cyan], then open http://127.0.0.1:8000 in a browser

    Example: [cyan]curl -d '{"smiles": "CCO"}' http://127.0.0.1:8000/predict[/cyan]

    Example: [cyan]curl --data-binary @new.csv 'http://127.0.0.1:8000/predict/file?name=new.csv'[/cyan]

    The interface is described at /openapi.json: /predict and /explain take SMILES or graphs as JSON, /predict/file and
    /explain/file an uploaded file; /model, /health and /metrics (for Prometheus) tell about the server. A model trained
    with --calibrate answers with sets or intervals, and with what is unlike anything seen.

    Only this machine can reach the server, unless --host says otherwise; then give a token:

    Example: [cyan]GCAPS_TOKEN=$(openssl rand -hex 16) gcaps serve mutag-model --host 0.0.0.0[/cyan]

    SIGTERM and Ctrl-C end it within two seconds; requests under way are answered before.
    """
    from gcaps.documents import in_words
    from gcaps.errors import ConfigError

    try:
        import fastapi  # noqa: F401
        import uvicorn  # noqa: F401
    except ImportError as error:
        raise ConfigError(
            f"serving needs the extra serve: pip install 'gcaps[serve]' ({error.name} is missing)"
        ) from error
    from pydantic import ValidationError

    from gcaps.serve.limits import Limits, ServerSettings
    from gcaps.serve.supervisor import DRAIN, serve

    try:
        settings = ServerSettings(
            host=host,
            port=port,
            token=token or os.environ.get(TOKEN) or None,
            allow_hosts=tuple(allow_host or ()),
            workers=workers,
            window=window / 1000,
            max_batch=max_batch,
            max_waiting=max_waiting,
            coverage=coverage,
        )
        limits = Limits(
            max_bytes=max_bytes,
            max_graphs=max_graphs,
            max_nodes=max_nodes,
            max_edges=max_edges,
            max_seconds=max_seconds,
        )
    except ValidationError as error:
        raise ConfigError(in_words(error)) from error
    if settings.token is not None and not (settings.token.isascii() and settings.token.isprintable()):
        raise ConfigError("the token holds characters that a header cannot; use letters and digits")
    if host not in ("127.0.0.1", "localhost", "::1") and settings.token is None:
        typer.echo(
            f"warning: {host} can be reached from other machines, and there is no token: everybody who reaches it can "
            f"use the model; set {TOKEN}",
            err=True,
        )

    def ready(address: str) -> None:
        needs = " with a token" if settings.token is not None else ""
        typer.echo(f"serving {model} at {address}{needs}; Ctrl-C stops", err=True)

    meanings[signal.SIGTERM] = ("stopped by SIGTERM", 0)
    with patient(GRACE + DRAIN):
        serve(model, settings, limits, ready)
