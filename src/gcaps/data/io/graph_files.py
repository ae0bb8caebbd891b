"""Files of graphs: GraphML and node-link JSON, in one file, several or a folder."""

from __future__ import annotations

import gzip
import io
import re
import zlib
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple
from xml.etree.ElementTree import ParseError  # nosec B405  # an exception
from xml.parsers import expat

import numpy as np
from pydantic import ConfigDict, Field

from gcaps.data.graphset import GraphSet
from gcaps.data.io.edge_tables import with_labels
from gcaps.data.io.networkx import from_networkx
from gcaps.data.io.tables import ending, stem
from gcaps.data.reading import Reading
from gcaps.documents import MAX_DEPTH, Label, Page, parse_json, validated
from gcaps.errors import DataError
from gcaps.files import MAX_PARSED_BYTES, max_unpacked, read_bytes, unpacks_to

if TYPE_CHECKING:
    import networkx as nx

GRAPHML = (".graphml", ".xml")
NODE_LINK = (".json", ".jsonl", ".ndjson")
SUFFIXES = (*GRAPHML, *NODE_LINK)


class Found(NamedTuple):
    """A graph and where it comes from."""

    graph: nx.Graph
    place: str
    id: str | None


def is_graph_file(path: Path) -> bool:
    """Whether the file name ends like that of GraphML or JSON, possibly gzipped."""
    return ending(path) in SUFFIXES


def files_in(folder: Path) -> list[Path]:
    """Return the graph files of a folder, numbers in their names in numerical order."""
    found = (path for path in folder.iterdir() if is_graph_file(path) and path.is_file())
    return sorted(found, key=lambda path: [(int(t), "") if t.isdigit() else (-1, t) for t in _parts(path.name)])


def _parts(name: str) -> list[str]:
    return [part for part in re.split(r"(\d+)", name) if part]


def read_graph_files(paths: Sequence[Path], reading: Reading, name: str | None = None) -> GraphSet:
    """Read all graphs of GraphML and node-link JSON files, in order.

    Fields are those of :func:`gcaps.data.from_networkx`; the id of a graph is that in the file, or the file's name if
    every file holds one graph. ``reading.labels`` may name a table with the targets.

    Raises:
        DataError: a file is malformed; the message names it.
    """
    found = [one for path in paths for one in (_graphml if ending(path) in GRAPHML else _node_link)(path)]
    if not found:
        raise DataError("holds no graphs", str(paths[0]) if paths else name)
    ids = [one.id for one in found]
    if len(paths) == len(found) > 1 and not _tell_apart(ids):
        ids = [stem(path) for path in paths]
    graphs = _converted(found, ids, name or stem(paths[0]), reading)
    return graphs if reading.labels is None else with_labels(graphs, reading.labels, reading)


def from_node_link(entries: Sequence[Any], reading: Reading) -> GraphSet:
    """Convert graphs in node-link form, as JSON values; otherwise as :func:`read_graph_files`.

    Raises:
        DataError: a graph is malformed; the message names it ``graph i``.
    """
    found = []
    for i, entry in enumerate(entries):
        graph = _built(entry, f"graph {i}")
        found.append(Found(graph, f"graph {i}", _id_of(entry, graph)))
    if not found:
        raise DataError("holds no graphs", "graphs")
    return _converted(found, [one.id for one in found], "graphs", reading)


def _converted(found: Sequence[Found], ids: Sequence[str | None], name: str, reading: Reading) -> GraphSet:
    """Return the set of some graphs, with their ids if these tell them apart."""
    try:
        graphs = from_networkx([one.graph for one in found], name=name, reading=reading)
    except DataError as error:
        raise _placed(error, found) from error
    if not _tell_apart(ids):
        return graphs
    gone = {one.row for one in graphs.skipped}
    kept = np.array([id_ for i, id_ in enumerate(ids) if i not in gone], dtype=np.str_)
    skipped = tuple(one._replace(id=str(ids[one.row])) for one in graphs.skipped)
    return replace(graphs, given_ids=kept, skipped=skipped)


def _tell_apart(ids: Sequence[str | None]) -> bool:
    return all(ids) and len(set(ids)) == len(ids)


def _placed(error: DataError, found: Sequence[Found]) -> DataError:
    """Return the error with the file in place of ``graphs[i]``."""
    match = re.fullmatch(r"graphs\[(\d+)\]", error.file or "")
    return DataError(error.problem, found[int(match[1])].place if match else error.file, error.line)


def _content(path: Path) -> bytes:
    content = read_bytes(path, MAX_PARSED_BYTES)
    if not content.startswith(b"\x1f\x8b"):
        return content
    packed, limit = len(content), max_unpacked(len(content), MAX_PARSED_BYTES)
    try:
        with gzip.GzipFile(fileobj=io.BytesIO(content)) as stream:
            content = stream.read(limit + 1)
    except (OSError, EOFError, zlib.error) as error:
        raise DataError(f"cannot be read ({error})", str(path)) from error
    if len(content) > limit:
        raise DataError(unpacks_to(None, packed), str(path))
    return content


def _require_plain_xml(content: bytes, path: Path) -> None:
    """Raise a DataError for XML with a document type, which can define entities, or nested too deeply."""
    parser = expat.ParserCreate()
    depth = 0

    def refuse(*_: object) -> None:
        raise DataError("has a document type (<!DOCTYPE>), which GraphML does not need; remove it", str(path))

    def begin(*_: object) -> None:
        nonlocal depth
        depth += 1
        if depth > MAX_DEPTH:
            raise DataError(f"has more than {MAX_DEPTH} elements within one another; refused", str(path))

    def end(*_: object) -> None:
        nonlocal depth
        depth -= 1

    parser.StartDoctypeDeclHandler, parser.StartElementHandler, parser.EndElementHandler = refuse, begin, end
    try:
        parser.Parse(content, True)
    except (expat.ExpatError, ValueError) as error:
        if isinstance(error, DataError):
            raise
        raise DataError(f"is not GraphML ({str(error)[:120]})", str(path)) from error


def _graphml(path: Path) -> Iterator[Found]:
    from networkx import NetworkXError
    from networkx.readwrite.graphml import GraphMLReader

    try:
        content = _content(path)
        _require_plain_xml(content, path)
        graphs = list(GraphMLReader()(path=io.BytesIO(content)))
    except (ParseError, NetworkXError, KeyError, ValueError, AttributeError, TypeError, OverflowError) as error:
        if isinstance(error, DataError):
            raise
        raise DataError(f"is not GraphML ({' '.join(str(error).split())[:120]})", str(path)) from error
    for i, graph in enumerate(graphs):
        place = str(path) if len(graphs) == 1 else f"{path}: graph {i}"
        yield Found(graph, place, _id(graph.graph))


def _node_link(path: Path) -> Iterator[Found]:
    for i, (line, entry) in enumerate(_entries(path)):
        place = f"{path}: graph {i}" if line is None else f"{path}:{line}"
        graph = _built(entry, place)
        yield Found(graph, place, _id_of(entry, graph))


def _entries(path: Path) -> Iterator[tuple[int | None, dict[str, Any]]]:
    """Yield the graphs of a JSON file: one, a list, ``{"graphs": […]}``, or one a line."""
    content = _content(path)
    if ending(path) in (".jsonl", ".ndjson"):
        rows = ((i, row) for i, row in enumerate(content.split(b"\n"), 1) if row.strip())
        yield from ((line, parse_json(row, str(path), line)) for line, row in rows)
        return
    read = parse_json(content, str(path))
    if isinstance(read, dict) and isinstance(read.get("graphs"), list):
        read = read["graphs"]
    yield from ((None, entry) for entry in (read if isinstance(read, list) else [read]))


class NodeLink(Page):
    """A graph in NetworkX's node-link form; nodes and links have attributes of any name."""

    model_config = ConfigDict(extra="ignore", strict=True)

    nodes: list[dict[str, Any] | Label | float | str]
    links: list[dict[str, Any]] | None = None
    edges: list[dict[str, Any]] = Field([])
    directed: bool = False
    multigraph: bool = False
    graph: dict[str, Any] | list[tuple[str, Any]] = Field({})


def _built(entry: Any, place: str) -> nx.Graph:
    """Return the graph of one node-link dictionary."""
    import networkx as nx

    problem = 'is not a graph in node-link form: {"nodes": [{"id": …}], "links": [{"source": …, …}]}'
    if not isinstance(entry, dict):
        raise DataError(problem, place)
    found = validated(NodeLink, entry, problem, lambda text: DataError(text, place))
    links = found.edges if found.links is None else found.links
    kind = {
        (False, False): nx.Graph,
        (True, False): nx.DiGraph,
        (False, True): nx.MultiGraph,
        (True, True): nx.MultiDiGraph,
    }[found.directed, found.multigraph]
    graph = kind()
    try:
        graph.graph.update(found.graph)
        for i, node in enumerate(found.nodes):
            values = dict(node) if isinstance(node, dict) else {"id": node}
            graph.add_node(_hashable(values.pop("id", i)), **{str(k): v for k, v in values.items()})
        for link in links:
            values = dict(link)
            values.pop("key", None)
            ends = [_hashable(values.pop(side)) for side in ("source", "target")]
            for end in ends:
                if end not in graph:
                    raise DataError(f"has an edge of node {end!r}, which is not among its nodes", place)
            graph.add_edge(*ends, **{str(k): v for k, v in values.items()})
    except (KeyError, TypeError, ValueError) as error:
        raise DataError(f"has a malformed node or edge ({type(error).__name__}: {error})", place) from error
    return graph


def _hashable(id_: Any) -> Any:
    return tuple(id_) if isinstance(id_, list) else id_


def _id_of(entry: dict[str, Any], graph: nx.Graph) -> str | None:
    return _id({**graph.graph, **{k: v for k, v in entry.items() if k in ("id", "name")}})


def _id(values: dict[str, Any]) -> str | None:
    found = next((values[key] for key in ("id", "name") if values.get(key) not in (None, "")), None)
    return None if found is None else str(found)
