"""Graphs of requests, within limits: SMILES, node-link JSON and uploaded files."""

from __future__ import annotations

import os
import re
import shutil
import tempfile
import warnings
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from gcaps.data.catalog import stream
from gcaps.data.graphset import GraphSet
from gcaps.data.io import smiles as smiles_files
from gcaps.data.io.graph_files import SUFFIXES as GRAPH_FILES
from gcaps.data.io.graph_files import from_node_link
from gcaps.data.io.tables import ending
from gcaps.data.joining import fields_of, join_sets
from gcaps.data.molecules.parsing import Parser
from gcaps.data.reading import Reading
from gcaps.errors import DataError, DataWarning
from gcaps.estimators.base import GraphEstimator
from gcaps.predictions import reading_of
from gcaps.serve.limits import Limits, RefusedError, for_clients, too_many

SUFFIXES = (*smiles_files.SUFFIXES, *GRAPH_FILES, ".zip")
"""Suffixes of supported files, possibly before .gz."""
OPTIONS: dict[str, Any] = {"invalid": "skip", "empty": "drop", "labelled": False, "n_jobs": 1}
_SAFE = re.compile(r"[^\w.+-]")


class Rows(NamedTuple):
    """Rows of a request: graphs, and rows that could not be read."""

    names: list[str]
    """Of all rows."""
    problems: dict[int, str]
    """Error messages of the rows that are no graphs, by position."""
    graphs: GraphSet | None
    """The others, in order; None if there are none."""
    notes: list[str]
    """Warnings about parts of the source that were not used."""

    @property
    def kept(self) -> list[int]:
        """Positions of the graphs."""
        return [row for row in range(len(self.names)) if row not in self.problems]


class Reader:
    """Reads graphs for one model.

    Args:
        model: its molecules are prepared as those of the training were.
        limits: of a request.
    """

    def __init__(self, model: GraphEstimator, limits: Limits) -> None:
        self.model, self.limits = model, limits
        self._parser: Parser | None = None

    def of_smiles(self, requests: Sequence[Sequence[str]]) -> list[Rows]:
        """Read the molecules of several requests together."""
        preparation = self.model.preparation_
        if preparation is None:
            raise RefusedError(
                422, "no_molecules", 'this model was trained on graphs that are no molecules; send "graphs" or a file'
            )
        if self._parser is None:
            self._parser = Parser("SMILES", "smiles", preparation)
        parsed = self._parser.parse([text for texts in requests for text in texts])
        graphs = None
        if parsed.block is not None:
            texts = np.array(parsed.smiles, dtype=np.str_)
            graphs = replace(parsed.block.to_graphs("molecules", preparation), columns={"smiles": texts})
        found, first, position = [], 0, 0
        for texts_of in requests:
            rows = range(position, position + len(texts_of))
            problems = {row - position: parsed.problems[row] for row in rows if row in parsed.problems}
            count = len(texts_of) - len(problems)
            own = None if graphs is None or not count else graphs.subset(np.arange(first, first + count))
            found.append(Rows([str(row) for row in range(len(texts_of))], problems, own, []))
            first, position = first + count, position + len(texts_of)
        return found

    def of_graphs(self, entries: Sequence[Any]) -> Rows:
        """Read graphs in node-link form."""
        nodes = sum(len(one.get("nodes", ())) for one in entries if isinstance(one.get("nodes"), list))
        edges = sum(len(one[key]) for one in entries for key in ("links", "edges") if isinstance(one.get(key), list))
        self._require_few(len(entries), nodes, edges)
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            graphs = from_node_link(entries, Reading(**reading_of(self.model, {**OPTIONS, "target": None})))
        return self._rows([graphs], caught)

    def of_file(self, name: str, body: bytes, smiles: str | None = None, id_: str | None = None) -> Rows:
        """Read an uploaded file, in the format of its suffix.

        Args:
            name: file name on the client.
            body: content.
            smiles: column of SMILES of a table.
            id_: column that names each row.
        """
        safe = safe_name(name)
        if ending(Path(safe)) not in SUFFIXES:
            known = ", ".join(sorted({*SUFFIXES}))
            raise RefusedError(415, "unknown_format", f"{safe!r} is of no format that can be read; there are {known}")
        options = reading_of(self.model, {**OPTIONS, "target": None, "smiles": smiles, "id": id_})
        with (
            tempfile.TemporaryDirectory(prefix=_uploads(os.getpid())) as folder,
            warnings.catch_warnings(record=True) as caught,
        ):
            warnings.simplefilter("always")
            path = Path(folder) / safe
            path.write_bytes(body)
            try:
                pieces, graphs, nodes, edges = [], 0, 0, 0
                for piece in stream(path, **options):
                    pieces.append(piece)
                    graphs += len(piece) + len(piece.skipped)
                    nodes, edges = nodes + piece.num_nodes, edges + piece.num_edges
                    self._require_few(graphs, nodes, edges)
            except DataError as error:
                raise RefusedError(422, "invalid", for_clients(str(error), folder)) from error
        return self._rows(pieces, caught)

    def _require_few(self, graphs: int, nodes: int, edges: int) -> None:
        limits = self.limits
        for what, found, limit, option in (
            ("graphs", graphs, limits.max_graphs, "--max-graphs"),
            ("nodes", nodes, limits.max_nodes, "--max-nodes"),
            ("edges", edges, limits.max_edges, "--max-edges"),
        ):
            if found > limit:
                raise too_many(what, found, limit, option)

    def require_small(self, rows: Rows) -> None:
        """Raise a RefusedError for graphs with too many nodes or edges."""
        if rows.graphs is not None:
            self._require_few(len(rows.names), rows.graphs.num_nodes, rows.graphs.num_edges)

    @staticmethod
    def _rows(pieces: Sequence[GraphSet], caught: Sequence[warnings.WarningMessage]) -> Rows:
        skipped = [one for piece in pieces for one in piece.skipped]
        count = sum(map(len, pieces)) + len(skipped)
        problems = {one.row: for_clients(one.reason) for one in skipped}
        given = iter([str(name) for piece in pieces for name in piece.ids.tolist()])
        named = {one.row: one.id for one in skipped}
        names = [named[row] if row in problems else next(given) for row in range(count)]
        notes = [for_clients(str(one.message)) for one in caught if issubclass(one.category, DataWarning)]
        kept = [piece for piece in pieces if len(piece)]
        graphs = None if not kept else kept[0] if len(kept) == 1 else join_sets(kept)
        return Rows(names, problems, graphs, list(dict.fromkeys(notes)))


def _uploads(pid: int) -> str:
    """Return the prefix of the upload folders of a process."""
    return f"gcaps-serve-{pid}-"


def remove_uploads(pid: int) -> None:
    """Remove the upload folders of a killed process."""
    for folder in Path(tempfile.gettempdir()).glob(f"{_uploads(pid)}*"):
        shutil.rmtree(folder, ignore_errors=True)


def safe_name(name: str) -> str:
    """Return the last part of a client's file name, restricted to characters that are safe in paths and terminals."""
    last = name.replace("\\", "/").rsplit("/", 1)[-1]
    stem = _SAFE.sub("_", last).lstrip(".")[-100:]
    return stem or "upload"


def joined_where_alike(sets: Sequence[GraphSet]) -> list[list[int]]:
    """Return positions of the sets that can be joined, group by group."""
    groups: dict[Any, list[int]] = {}
    for position, one in enumerate(sets):
        groups.setdefault(fields_of(one), []).append(position)
    return list(groups.values())
