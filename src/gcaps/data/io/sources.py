"""Read a file or folder of any format, which is found by its name and content."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Literal, TypeAlias

from gcaps.data.graphset import GraphSet
from gcaps.data.io import edge_tables, graph_files, smiles
from gcaps.data.io.adjacency import read_npz
from gcaps.data.io.table_cache import read_cached
from gcaps.data.io.tables import Progress, SmilesList, Table, ending, parquet_table
from gcaps.data.io.tu import read_tu
from gcaps.data.reading import Reading
from gcaps.data.storage import is_saved, open_saved
from gcaps.errors import DataError
from gcaps.files import exists, is_folder, opened, require_file

Format: TypeAlias = Literal["saved", "tu", "edges", "graphs", "npz", "parquet", "table"]
PARQUET = (".parquet", ".pq")
KNOWN = (
    "a TU folder or zip, a saved GraphSet, molecules (.csv, .tsv, .smi, .sdf, .parquet), GraphML, node-link JSON, "
    ".npz, or tables of edges"
)
SUFFIXES = (".zip", ".gset", ".npz", *PARQUET, *graph_files.SUFFIXES, *smiles.SUFFIXES)


def has_known_ending(path: Path) -> bool:
    """Whether a name ends like that of a format, possibly gzipped."""
    return ending(path) in SUFFIXES


def is_data_folder(path: Path) -> bool:
    """Whether a folder holds a data set of some format."""
    if not is_folder(path):
        return False
    return (
        is_saved(path) or any(path.glob("*_A.txt")) or bool(edge_tables.tables_of(path) or graph_files.files_in(path))
    )


def format_of(path: Path) -> Format:
    """Return the format of a file or folder; a DataError if it is none that can be read."""
    if is_folder(path):
        return _format_of_folder(path)
    require_file(path)
    end = ending(path)
    if end == ".npz":
        return "npz"
    if end in PARQUET:
        return "parquet"
    if graph_files.is_graph_file(path):
        return "graphs"
    if end == ".txt" and path.stem.endswith(("_A", "_graph_indicator", "_graph_labels", "_node_labels")):
        raise DataError(f"is one file of a TU data set; give its folder: {path.parent}", str(path))
    if smiles.is_table(path):
        return "table"
    with opened(path) as stream:
        begins = stream.read(4)
    if begins.startswith(b"PK") or end == ".zip":
        return "tu"
    raise DataError(f"is of no format that can be read: {KNOWN}", str(path))


def _format_of_folder(path: Path) -> Format:
    if is_saved(path):
        return "saved"
    if any(path.glob("*_A.txt")):
        return "tu"
    if edge_tables.tables_of(path):
        return "edges"
    if graph_files.files_in(path):
        return "graphs"
    wanted = "NAME_A.txt (TU), edges.csv, or GraphML or JSON files"
    raise DataError(f"is a folder without data that can be read; expected {wanted}", str(path))


def open_molecules(path: Path) -> Table | None:
    """Open a table of molecules; None if the file is something else, such as a table of edges."""
    format_ = format_of(path)
    if format_ not in ("table", "parquet"):
        return None
    table = parquet_table(path) if format_ == "parquet" else smiles.molecule_table(path)
    plain = table.form == "smiles" and not isinstance(table, SmilesList)
    return None if plain and edge_tables.is_edge_table(table.names) else table


def read_path(path: Path, reading: Reading, progress: Progress | None = None) -> GraphSet:
    """Read the graphs of a file or folder; ``progress`` is called while a table of molecules is read."""
    format_ = format_of(path)
    if format_ == "saved":
        return open_saved(path)
    if format_ == "tu":
        return read_tu(path, reading=reading)
    if format_ == "npz":
        return _labelled(read_npz(path, reading), reading)
    if format_ == "graphs":
        files = graph_files.files_in(path) if is_folder(path) else [path]
        return graph_files.read_graph_files(files, reading, path.name if is_folder(path) else None)
    if format_ == "edges":
        tables = edge_tables.tables_of(path)
        nodes, labels = reading.nodes or tables.get("nodes"), reading.labels or tables.get("graphs")
        reading = replace(reading, nodes=nodes, labels=labels)
        edges = edge_tables.open_any_table(tables["edges"])
        return edge_tables.read_edge_tables(edges, reading, path.name)
    table = open_molecules(path)
    if table is not None:
        return read_cached(path, table, reading, progress)
    return edge_tables.read_edge_tables(edge_tables.open_any_table(path), reading)


def read_files(paths: Sequence[str | Path], reading: Reading) -> GraphSet:
    """Read several graph files as one set."""
    files = [Path(path) for path in paths]
    for i, path in enumerate(files):
        if not exists(path):
            raise DataError(f"{str(path)!r} looks like a file name, and there is no such file", f"graphs[{i}]")
        if not graph_files.is_graph_file(path):
            raise DataError(f"{str(path)!r}: a list of files is one of GraphML or JSON; load others one by one")
    return graph_files.read_graph_files(files, reading, "graphs")


def _labelled(graphs: GraphSet, reading: Reading) -> GraphSet:
    return graphs if reading.labels is None else edge_tables.with_labels(graphs, reading.labels, reading)


def check_path(path: Path, reading: Reading) -> None:
    """Raise the DataError that :func:`read_path` would raise for the columns of a table, reading its first rows."""
    table = open_molecules(path)
    if table is not None:
        smiles.check_columns(table, reading)
