"""A bar on standard error for kernels that take their time; silent unless asked for."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TypeVar

from rich.console import Console
from rich.progress import track

T = TypeVar("T")


def steps(items: Iterable[T], total: int, title: str, verbose: bool) -> Iterator[T]:
    """Yield ``total`` items, with a bar where ``verbose``."""
    yield from track(items, title, total, console=Console(stderr=True)) if verbose else items
