"""Compile the CPU kernels into numba's cache, before a first training waits for each of them.

``python -m gcaps.compile`` compiles what is listed in ``signatures.json``: kernels with the types that trainings and
predictions call them with. ``gcaps train`` and its like call :func:`require` first, which does the same for the
capsule networks where it has not been done for this version, processor and numba. What is not listed is compiled when
it is first called, so a list that is not up to date costs time and nothing else.
"""

from __future__ import annotations

import importlib
import json
import multiprocessing
import os
import sys
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from contextlib import contextmanager
from functools import cache
from hashlib import sha256
from pathlib import Path
from time import perf_counter
from typing import Any, Literal, NamedTuple

from gcaps.files import write_text

Part = Literal["prediction", "training", "methods"]
PARTS: tuple[Part, ...] = ("prediction", "training", "methods")
"""Groups of functions: prediction with capsule networks, their training, and all other methods."""
SIGNATURES = Path(__file__).with_name("signatures.json")
WORKERS = 8
"""Largest number of processes; with more, all would wait for the largest kernel."""


class Kernel(NamedTuple):
    """A compiled function with the types of its arguments."""

    name: str
    """module:function"""
    types: list[Any]
    """See :func:`gcaps.compile.types.encode`."""
    part: Part
    seconds: float
    """Processor seconds that compiling it took where it was recorded; the longest are compiled first."""


def kernels(parts: Sequence[Part] = PARTS) -> list[Kernel]:
    """Return the listed kernels of some parts, those first that take longest."""
    listed = [Kernel(**entry) for entry in json.loads(SIGNATURES.read_text(encoding="utf-8"))]
    return sorted((one for one in listed if one.part in parts), key=lambda one: -one.seconds)


def dispatcher_of(name: str) -> Any:
    """Return numba's dispatcher of the kernel ``module:function``."""
    module, function = name.split(":")
    found = getattr(importlib.import_module(module), function)
    return getattr(found, "serial", found)


def compile_kernel(kernel: Kernel) -> str:
    """Compile a kernel into the cache, or load it from there; return its name."""
    from gcaps.compile.types import decode

    dispatcher_of(kernel.name).compile(tuple(map(decode, kernel.types)))
    return kernel.name


def compile_kernels(parts: Sequence[Part] = PARTS, report: Callable[[int, int], None] | None = None) -> int:
    """Compile all kernels of some parts in several processes; return their number.

    Args:
        parts: which kernels.
        report: is called with the number of finished kernels and of all.
    """
    wanted = kernels(parts)
    # of other methods, kernels call one another and store both: one process compiles them all, so that no two write
    # the same entry of the cache
    tasks = [[one] for one in wanted if one.part != "methods"]
    if methods := [one for one in wanted if one.part == "methods"]:
        tasks.insert(0, methods)
    for module in {one.name.split(":")[0] for one in wanted}:  # imported once, before processes are forked
        importlib.import_module(module)
    done, count = 0, min(len(tasks), _processors(), WORKERS)
    if report is not None:
        report(0, len(wanted))
    if count <= 1:
        for one in wanted:
            compile_kernel(one)
            done += 1
            if report is not None:
                report(done, len(wanted))
    else:
        context = multiprocessing.get_context("fork" if sys.platform == "linux" else "spawn")
        with ProcessPoolExecutor(count, mp_context=context) as pool:
            for finished in as_completed([pool.submit(_compile_all, task) for task in tasks]):
                done += finished.result()
                if report is not None:
                    report(done, len(wanted))
    _mark(parts)
    return len(wanted)


def require(parts: Sequence[Part]) -> None:
    """Compile kernels unless that has been done, with a progress bar on standard error.

    Never fails: what could not be compiled ahead is compiled when it is called.
    """
    if is_compiled(parts):
        return
    from gcaps.terminal import Terminal

    console, begin = Terminal(stderr=True), perf_counter()
    with compiling_bar("compiling for this processor, once after installation", console) as report:
        try:
            count = compile_kernels(parts, report)
        except Exception as error:  # a killed process, a full disk: the training itself will tell
            console.print(f"kernels could not be compiled ahead ({error}); each is compiled when it is called")
            return
    console.print(
        f"compiled {count} kernels for this processor in {perf_counter() - begin:.0f} s, once; kept in {folder()}"
    )


@contextmanager
def compiling_bar(title: str, console: Any) -> Iterator[Callable[[int, int], None]]:
    """Yield a callback for the number of finished kernels and of all, which a bar shows."""
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

    columns = (TextColumn("{task.description}"), BarColumn(bar_width=12), MofNCompleteColumn(), TimeElapsedColumn())
    with Progress(*columns, console=console, transient=True) as bar:
        task = bar.add_task(title, total=None)
        yield lambda done, total: bar.update(task, completed=done, total=total)


def is_compiled(parts: Sequence[Part]) -> bool:
    """Whether :func:`compile_kernels` has finished for this code, processor and numba."""
    try:
        return all(_marker(part).read_text(encoding="ascii").strip() == state() for part in parts)
    except Exception:  # unreadable or missing: not compiled
        return False


def folder() -> Path:
    """Return the folder of numba's cache of the capsule layers."""
    from gcaps.nn.cpu import stages

    return Path(stages.forward.serial.stats.cache_path)  # type: ignore[attr-defined]


@cache
def state() -> str:
    """Checksum of what compiled code depends on: sources, their dates, numba, Python and the processor."""
    import llvmlite.binding as llvm
    import numba

    root = Path(__file__).parents[1]
    files = [SIGNATURES, *(root.joinpath(*name.split(".")[1:]).with_suffix(".py") for name in _modules())]
    sources = [(str(file), file.stat().st_mtime, file.stat().st_size) for file in files]
    processor = llvm.get_host_cpu_name(), llvm.get_host_cpu_features().flatten()
    return sha256(repr((sources, numba.__version__, sys.version, processor)).encode()).hexdigest()


def _modules() -> list[str]:
    """Names of the modules whose kernels are listed, and of those that these call."""
    called = ("blocks", "state", "products", "relations", "layout", "moments", "layers", "stages", "readout", "head")
    return sorted({one.name.split(":")[0] for one in kernels()} | {f"gcaps.nn.cpu.{name}" for name in called})


def _marker(part: Part) -> Path:
    return folder() / f"gcaps-{part}.compiled"


def _mark(parts: Sequence[Part]) -> None:
    """Remember that parts are compiled."""
    try:
        for part in parts:
            write_text(_marker(part), state() + "\n")
    except Exception:  # a folder that cannot be written: they are loaded, but not remembered
        return


def _compile_all(wanted: list[Kernel]) -> int:
    for one in wanted:
        compile_kernel(one)
    return len(wanted)


def _processors() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
