"""Write a GraphSet in the formats of other programs: TU, GraphML, node-link JSON, tables of edges, CSV of SMILES."""

from __future__ import annotations

import csv
import io
import json
import zipfile
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from gcaps.data.arrays import Array
from gcaps.data.graphset import GraphSet
from gcaps.data.io.networkx import to_networkx
from gcaps.errors import DataError
from gcaps.files import replacing


def is_exported(path: Path) -> bool:
    """Whether a name ends like that of a format other than a GraphSet folder."""
    return _writer(path) is not None


def export(graphs: GraphSet, path: Path) -> None:
    """Write a set; the end of the name says how.

    ``.zip`` TU format; ``.json`` node-link JSON; ``.graphml`` GraphML, all graphs in one file; ``.csv`` or ``.tsv`` the
    SMILES, ids, targets and columns of molecules; ``.edges`` a folder with ``edges.csv``, ``nodes.csv`` and
    ``graphs.csv``.

    Raises:
        DataError: the format cannot hold the set; the message says why.
    """
    writer = _writer(path)
    if writer is None:
        wanted = "NAME.gset, .zip (TU), .json, .graphml, .csv (molecules) or .edges (a folder of tables)"
        raise DataError(f"is not a name whose end says a format: {wanted}", str(path))
    with replacing(path) as draft:
        writer(graphs, draft)


def _writer(path: Path) -> Callable[[GraphSet, Path], None] | None:
    return _WRITERS.get(path.suffix.lower())


def _tu(graphs: GraphSet, path: Path) -> None:
    """Write the zip of a TU data set; string labels and classes become numbers, listed in ``label_readme``."""
    name = path.stem
    if graphs.edge_weight is not None:
        raise DataError("has edge weights, which the TU format cannot hold; write .json or .gset", graphs.name)
    source = np.repeat(np.arange(graphs.num_nodes), graphs.degrees)
    target = graphs.col + np.repeat(graphs.ptr[:-1], graphs.arc_counts)
    parts: dict[str, Iterable[Sequence[Any]]] = {
        "A": np.stack([source, target], axis=1) + 1,
        "graph_indicator": np.repeat(np.arange(len(graphs)), graphs.sizes)[:, None] + 1,
    }
    readme: list[str] = []

    def coded(labels: Array | None, what: str) -> Array | None:
        if labels is None or not graphs.label_names:
            return labels
        distinct, inverse = np.unique(labels, return_inverse=True)
        readme.extend(f"{what} {i}: {graphs.label_names.get(int(code), code)}" for i, code in enumerate(distinct))
        codes: Array = inverse.reshape(labels.shape)
        return codes

    tables = {
        "node_labels": coded(graphs.node_labels, "node label"),
        "node_attributes": graphs.x,
        "edge_labels": coded(graphs.edge_labels, "edge label"),
        "edge_attributes": graphs.edge_attr,
    }
    parts |= {part: table for part, table in tables.items() if table is not None}
    if graphs.y is not None:
        y = graphs.y
        if y.dtype.kind in "fU" and (y == "" if y.dtype.kind == "U" else np.isnan(y)).any():
            raise DataError("has missing targets, which the TU format cannot hold; write .csv or .gset", graphs.name)
        if y.dtype.kind == "U":
            names, codes = np.unique(y, return_inverse=True)
            readme.extend(f"class {i}: {text}" for i, text in enumerate(names))
            y = codes.reshape(y.shape)
        whole = y.dtype.kind != "f" and y.ndim == 1
        parts["graph_labels" if whole else "graph_attributes"] = y.astype(np.int64)[:, None] if whole else _matrix(y)
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for part, rows in parts.items():
            text = "".join(", ".join(map(repr, row)) + "\n" for row in np.asarray(rows).tolist())
            archive.writestr(f"{name}/{name}_{part}.txt", text)
        if readme:
            archive.writestr(f"{name}/{name}_label_readme.txt", "\n".join(readme) + "\n")


def _matrix(y: Array) -> Array:
    return y[:, None] if y.ndim == 1 else y


def _described(graphs: GraphSet) -> list[Any]:
    """Return NetworkX graphs whose graph data are id and targets."""
    made = to_networkx(graphs)
    for i, graph in enumerate(made):
        graph.graph.clear()
        graph.graph["id"] = str(graphs.ids[i])
        graph.graph.update(_target_values(graphs, i))
    return made


def _target_values(graphs: GraphSet, i: int) -> dict[str, Any]:
    """Return the targets of a graph by name; a single one is called ``label``, missing ones are left out."""
    if graphs.y is None:
        return {}
    values = np.atleast_1d(graphs.y[i]).tolist()
    names = target_titles(graphs)
    return {name: value for name, value in zip(names, values, strict=True) if value == value and value != ""}


def target_titles(graphs: GraphSet) -> tuple[str, ...]:
    """Names of the columns of ``y``: ``label`` for one, their own or ``y0``, ``y1``, … for several."""
    if graphs.y is None:
        return ()
    if graphs.y.ndim == 1:
        return ("label",)
    return graphs.target_names or tuple(f"y{i}" for i in range(graphs.y.shape[1]))


def _node_link(graphs: GraphSet, path: Path) -> None:
    rows = [
        {
            "directed": False,
            "multigraph": False,
            "graph": graph.graph,
            "nodes": [{"id": node, **_plain(values)} for node, values in graph.nodes(data=True)],
            "links": [{"source": u, "target": v, **_plain(values)} for u, v, values in graph.edges(data=True)],
        }
        for graph in _described(graphs)
    ]
    path.write_text("[\n" + ",\n".join(json.dumps(row, ensure_ascii=False) for row in rows) + "\n]\n", encoding="utf-8")


def _plain(values: dict[str, Any]) -> dict[str, Any]:
    """Return NumPy numbers as Python's."""
    return {key: np.asarray(value).tolist() for key, value in values.items()}


def _graphml(graphs: GraphSet, path: Path) -> None:
    from networkx.readwrite.graphml import GraphMLWriter

    writer = GraphMLWriter(encoding="utf-8", prettyprint=False)
    for graph in _described(graphs):
        for _, values in [*graph.nodes(data=True), *((None, values) for *_, values in graph.edges(data=True))]:
            _spread(values)
        writer.add_graph_element(graph)
    with path.open("wb") as stream:
        writer.dump(stream)


def _spread(values: dict[str, Any]) -> None:
    """Replace tuples, which GraphML cannot hold, by one entry for each of their values."""
    for key, value in list(values.items()):
        numbers = np.asarray(value).tolist()
        del values[key]
        if isinstance(numbers, list):
            letter = {"attributes": "x", "label": "type"}.get(key, key)
            values.update({f"{letter}{i}" if letter == "x" else f"{letter}_{i}": v for i, v in enumerate(numbers)})
        else:
            values[key] = numbers


def _edge_tables(graphs: GraphSet, path: Path) -> None:
    path.mkdir()
    made = to_networkx(graphs)
    for graph in made:
        for _, values in [*graph.nodes(data=True), *((None, values) for *_, values in graph.edges(data=True))]:
            _spread(values)
    ids = [str(id_) for id_ in graphs.ids]
    nodes = [(id_, n, values) for id_, graph in zip(ids, made, strict=True) for n, values in graph.nodes(data=True)]
    edges = [(id_, u, v, d) for id_, graph in zip(ids, made, strict=True) for u, v, d in graph.edges(data=True)]
    node_keys = list(nodes[0][2]) if nodes else []
    edge_keys = list(edges[0][3]) if edges else []
    _write_rows(path / "nodes.csv", ["graph_id", "node_id", *node_keys],
                ([id_, n, *(d[key] for key in node_keys)] for id_, n, d in nodes))  # fmt: skip
    _write_rows(path / "edges.csv", ["graph_id", "source", "target", *edge_keys],
                ([id_, u, v, *(d[key] for key in edge_keys)] for id_, u, v, d in edges))  # fmt: skip
    names, columns = _columns_of(graphs)
    _write_rows(
        path / "graphs.csv", ["graph_id", *names], ([id_, *row] for id_, *row in zip(ids, *columns, strict=True))
    )


def _molecules(graphs: GraphSet, path: Path) -> None:
    if "smiles" not in graphs.columns:
        raise DataError("has no SMILES; only molecules are written to a CSV, other graphs to .edges", graphs.name)
    names, columns = _columns_of(graphs)
    titles = ["smiles", "id", *names]
    values = [graphs.columns["smiles"].tolist(), graphs.ids.tolist(), *columns]
    _write_rows(path, titles, zip(*values, strict=True), "\t" if path.suffix.lower() == ".tsv" else ",")


def _columns_of(graphs: GraphSet) -> tuple[list[str], list[list[Any]]]:
    """Return names and values of targets and columns, missing ones as empty strings."""
    names: list[str] = []
    columns: list[list[Any]] = []
    if graphs.y is not None:
        table = _matrix(graphs.y)
        titles = graphs.target_names or target_titles(graphs)
        names += titles
        columns += [["" if value != value else value for value in column] for column in table.T.tolist()]
    for name, column in graphs.columns.items():
        if name not in (*names, "smiles", "id"):
            names.append(name)
            columns.append(["" if value != value else value for value in column.tolist()])
    return names, columns


def _write_rows(path: Path, titles: Sequence[str], rows: Iterable[Sequence[Any]], separator: str = ",") -> None:
    text = io.StringIO()
    writer = csv.writer(text, delimiter=separator, lineterminator="\n")
    writer.writerow(titles)
    writer.writerows(rows)
    path.write_text(text.getvalue(), encoding="utf-8")


_WRITERS: dict[str, Callable[[GraphSet, Path], None]] = {
    ".zip": _tu,
    ".json": _node_link,
    ".graphml": _graphml,
    ".csv": _molecules,
    ".tsv": _molecules,
    ".edges": _edge_tables,
}
