"""Keep large tables of molecules as saved GraphSets in the cache folder, named by their content."""

from __future__ import annotations

import hashlib
import shutil
import time
from contextlib import suppress
from dataclasses import asdict
from pathlib import Path

from gcaps.data.graphset import GraphSet
from gcaps.data.io.smiles import read_molecules
from gcaps.data.io.tables import Progress, Table
from gcaps.data.molecules.featurizer import VERSION
from gcaps.data.molecules.structures import require_rdkit
from gcaps.data.reading import Reading
from gcaps.data.storage import FORMAT, open_saved, save
from gcaps.errors import DataError
from gcaps.files import cache_folder, opened

SLOW = 3.0
"""Seconds from which on it pays to keep a table that was read."""
KEPT = 16
"""Tables that are kept; of more, the longest unused are removed."""


def read_cached(path: Path, table: Table, reading: Reading, progress: Progress | None = None) -> GraphSet:
    """Read a table of molecules, or open what was kept of an earlier reading of the same content.

    Args:
        path: the file; its content, and not its name or time, says whether it is known.
        table: the table in it.
        reading: options of :func:`gcaps.load`; another option is another entry.
        progress: called with the amount read and the total.
    """
    goal = cache_folder() / "tables" / f"{_digest(path, table, reading)}.gset"
    if goal.exists():
        with suppress(DataError, OSError):
            graphs = open_saved(goal).in_memory()
            (goal / "graphset.json").touch()
            return graphs
    began = time.perf_counter()
    graphs = read_molecules(table, reading, progress)
    if time.perf_counter() - began > SLOW:
        with suppress(DataError, OSError):  # a full or read-only disk must not stop the reading
            goal.parent.mkdir(parents=True, exist_ok=True)
            save(graphs, goal)
            _prune(goal.parent)
    return graphs


def _digest(path: Path, table: Table, reading: Reading) -> str:
    """Return SHA-256 of the file's content and of everything else that the set depends on."""
    require_rdkit(table.place)
    from rdkit import __version__ as rdkit_version

    options = asdict(reading)
    del options["n_jobs"]
    with opened(path) as stream:
        content = hashlib.file_digest(stream, "sha256").hexdigest()
    parts = (content, table.name, table.form, sorted(options.items()), FORMAT, VERSION, rdkit_version)
    return hashlib.sha256(repr(parts).encode()).hexdigest()


def _prune(folder: Path) -> None:
    """Remove all but the :data:`KEPT` sets that were used last."""
    pages = sorted(folder.glob("*.gset/graphset.json"), key=lambda page: page.stat().st_mtime, reverse=True)
    for page in pages[KEPT:]:
        shutil.rmtree(page.parent, ignore_errors=True)
