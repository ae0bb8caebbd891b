"""A small model of molecules and one of other graphs, and clients of their servers."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import gcaps
from tests.servers import Server, save_alcohols, save_mutag

pytest.importorskip("fastapi")
pytest.importorskip("httpx")
pytest.importorskip("rdkit")
with warnings.catch_warnings():
    warnings.simplefilter("ignore")  # newer ones of starlette would rather have httpx2
    from fastapi.testclient import TestClient


@pytest.fixture(scope="session")
def molecules(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A calibrated classifier of molecules with an oxygen."""
    return save_alcohols(tmp_path_factory.mktemp("serve") / "alcohols")


@pytest.fixture(scope="session")
def mutag(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A network on graphs that are no molecules, without calibration."""
    pytest.importorskip("grakel")
    return save_mutag(tmp_path_factory.mktemp("serve") / "mutag")


@pytest.fixture(scope="session")
def running(molecules: Path) -> Iterator[Server]:
    """A server of the classifier of molecules, in processes of its own."""
    with Server(molecules) as server:
        yield server


@pytest.fixture
def client_of() -> Iterator[Callable[..., Any]]:
    """Open a client of an app that predicts in this process: a path or estimator, settings and limits."""
    from gcaps.serve import Limits, ServerSettings, make_app

    opened = []

    def open_client(model: Any, settings: dict[str, Any] | None = None, host: str = "localhost", **limits: Any) -> Any:
        model = gcaps.load_model(model) if isinstance(model, Path) else model
        app = make_app(model, "the-model", ServerSettings(**(settings or {})), Limits(**limits))
        client = TestClient(app, base_url=f"http://{host}", raise_server_exceptions=False)
        client.__enter__()
        opened.append(client)
        return client

    yield open_client
    for client in opened:
        client.__exit__(None, None, None)


@pytest.fixture
def client(client_of: Callable[..., Any], molecules: Path) -> Any:
    """A client of the classifier of molecules."""
    return client_of(molecules)
