"""Data sets by name, and :func:`load` and :func:`convert`, which take graphs from any source."""

from __future__ import annotations

import difflib
import fnmatch
import importlib.util
import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

import numpy as np

from gcaps.data.graphset import Graph, GraphSet
from gcaps.data.io.export import export, is_exported
from gcaps.data.io.objects import from_objects, require_list
from gcaps.data.io.smiles import molecule_chunks, read_molecules
from gcaps.data.io.sources import (
    check_path,
    format_of,
    has_known_ending,
    is_data_folder,
    open_molecules,
    read_files,
    read_path,
)
from gcaps.data.io.tables import Progress, frame_table
from gcaps.data.io.tu_stream import convert_tu
from gcaps.data.molecules.preparation import AtomFeatures, Charges, Hydrogens, Salts
from gcaps.data.reading import Directed, Empty, Invalid, Reading, listed
from gcaps.data.storage import open_saved
from gcaps.data.synthetic import make_families
from gcaps.data.targets import missing
from gcaps.data.writer import write_graphs
from gcaps.errors import DataError
from gcaps.files import cache_folder, exists, is_file, is_folder

if TYPE_CHECKING:
    import networkx as nx
    from torch_geometric.data import Data

Source: TypeAlias = "str | Path | GraphSet | Iterable[Graph] | Iterable[Data] | Iterable[nx.Graph] | Any"


class DataSet(NamedTuple):
    """An entry of the catalog."""

    name: str
    graphs: int
    classes: int
    nodes: float
    """Mean number of nodes of a graph."""
    source: str
    """``"TU"``: downloaded from the TU collection. ``"embedded"``: part of the demo extra. ``"generated"``: made by
    :func:`gcaps.data.make_families`. ``"local"``: not in the TU collection; the user provides the file."""
    remark: str = ""


CATALOG: dict[str, DataSet] = {
    entry.name: entry
    for entry in (
        DataSet("families", 240, 4, 26.6, "generated", "4-regular graphs that only their structure distinguishes"),
        DataSet("MUTAG", 188, 2, 17.93, "embedded", "small molecules, mutagenic or not"),
        DataSet("PTC", 344, 2, 25.56, "local", "the paper's version with hydrogens; the TU collection has PTC_MR"),
        DataSet("PROTEINS", 1113, 2, 39.06, "TU", "proteins, enzymes or not"),
        DataSet("NCI1", 4110, 2, 29.87, "TU", "molecules, active against lung cancer cells or not"),
        DataSet("NCI109", 4127, 2, 29.68, "TU", "molecules, active against ovarian cancer cells or not"),
        DataSet("DD", 1178, 2, 284.32, "TU", "proteins as amino acids, enzymes or not"),
        DataSet("ENZYMES", 600, 6, 32.63, "TU", "enzymes of six classes"),
        DataSet("COLLAB", 5000, 3, 74.49, "TU", "researchers' collaborations by field"),
        DataSet("IMDB-BINARY", 1000, 2, 19.77, "TU", "actors' collaborations by genre"),
        DataSet("IMDB-MULTI", 1500, 3, 13.0, "TU", "actors' collaborations by genre"),
        DataSet("REDDIT-BINARY", 2000, 2, 429.63, "TU", "discussion threads by kind of forum"),
        DataSet("REDDIT-MULTI-5K", 4999, 5, 508.52, "TU", "discussion threads by forum"),
    )
}


def load(
    source: Source,
    root: str | Path | None = None,
    *,
    target: str | Sequence[str] | None = None,
    smiles: str | None = None,
    id: str | None = None,  # noqa: A002 - the word of the command line and of tables
    columns: Sequence[str] = (),
    invalid: Invalid = "error",
    empty: Empty = "error",
    directed: Directed = "error",
    labelled: bool = True,
    nodes: str | Path | None = None,
    labels: str | Path | None = None,
    atom_features: AtomFeatures = "full",
    hydrogens: Hydrogens = "implicit",
    salts: Salts = "keep",
    charges: Charges = "keep",
    n_jobs: int | None = None,
    progress: Progress | None = None,
) -> GraphSet:
    """Load graphs from any source.

    Args:
        source: one of

            - a GraphSet, which is returned as it is;
            - a list or array of PyG ``Data`` objects, NetworkX graphs, RDKit molecules, SMILES or :class:`Graph`
              objects; a pandas DataFrame or Series with a column of SMILES;
            - the path of a TU folder or zip; of a saved GraphSet; of a table of molecules (CSV, TSV, list of SMILES,
              SDF, parquet); of GraphML, node-link JSON or .npz; of a table of edges, or a folder with ``edges.csv``,
              ``nodes.csv`` and ``graphs.csv``;
            - a name, which is searched for in ``root``, in the folders of the environment variable ``GCAPS_DATA``, in
              the download cache, and among the sets that need no file; a folder may hold ``NAME.gset``, ``NAME.zip`` or
              ``NAME/``.
        root: folder that is searched first.
        target: column to predict, by name or pattern (``"NR-*"``), or several of them; a string may hold several
            separated by commas. Needed if a table leaves a choice.
        smiles: column of SMILES; by default found by its name or content.
        id: column that names each graph; by default found by its name, else graphs are numbered.
        columns: further columns of a table to keep in :attr:`GraphSet.columns`, by name.
        invalid: ``"skip"`` lists molecules that cannot be read in :attr:`GraphSet.skipped`; ``"error"`` raises.
        empty: ``"drop"`` lists graphs without nodes in :attr:`GraphSet.skipped`; ``"error"`` raises.
        directed: ``"symmetrize"`` forgets the directions of directed graphs; ``"error"`` raises.
        labelled: require targets. Otherwise they are read if they are there.
        nodes: node table of a table of edges.
        labels: table with the target of each graph, for tables of edges and graph files.
        atom_features: what the atoms and bonds of molecules tell: ``"full"``, all that
            :mod:`gcaps.data.molecules.featurizer` lists, or ``"element"``, atomic numbers and bond orders.
        hydrogens: hydrogens of molecules: ``"implicit"``, counted at their atom, or ``"explicit"``, nodes.
        salts: fragments of molecules: ``"keep"`` all, or ``"strip"`` all but the largest organic one.
        charges: ``"keep"``, or ``"neutralize"`` by adding and removing protons.
        n_jobs: processes that parse a large table of molecules; by default ``GCAPS_JOBS`` or all CPUs.
        progress: called with the amount read and the total while a table of molecules is read.

    Raises:
        DataError: the data are malformed, or there is no data set of that name; the message says what to do.
    """
    reading = Reading(
        *(target, smiles, id, columns, invalid, empty, directed, labelled, nodes, labels),
        *(atom_features, hydrogens, salts, charges, n_jobs),
    )
    place: str | None = None
    if isinstance(source, GraphSet):
        if target is None:
            return source
        graphs = source
    elif isinstance(source, str | Path):
        path = located(source, root)
        graphs = make_families() if path is None else read_path(path, reading, progress)
        place = None if path is None else str(path)
    else:
        graphs = _from_objects(source, reading)
    return _required(with_target(graphs, reading), reading, place)


def _from_objects(source: Any, reading: Reading) -> GraphSet:
    if type(source).__module__.partition(".")[0] == "pandas":
        return read_molecules(frame_table(source, "table"), reading)
    objects = require_list(source)
    texts = bool(objects) and all(isinstance(one, str | Path) for one in objects)
    if texts and any(isinstance(one, Path) or has_known_ending(Path(one)) for one in objects):
        return read_files(objects, reading)
    return from_objects(objects, "graphs", reading)


def with_target(graphs: GraphSet, reading: Reading) -> GraphSet:
    """Return the set with the targets that were asked for, out of its targets and columns."""
    if reading.targets is None or graphs.target_names == reading.targets:
        return graphs
    known = dict.fromkeys((*graphs.target_names, *graphs.columns))
    names: list[str] = []
    for text in reading.targets:
        for part in [text] if text in known else text.split(","):
            names += [name for name in known if name == part or fnmatch.fnmatchcase(name, part)] or [part]
    if list(graphs.target_names) == names:
        return graphs
    absent = [name for name in names if name not in known]
    if absent:
        if not reading.labelled or not known:
            return graphs
        raise DataError(f"has no target or column {absent[0]!r}; it has {listed(known)}", graphs.name)
    picked = []
    for name in dict.fromkeys(names):
        if name in graphs.target_names and graphs.y is not None:
            at = graphs.target_names.index(name)
            picked.append(graphs.y if graphs.y.ndim == 1 else graphs.y[:, at])
        else:
            picked.append(graphs.columns[name])
    if len({array.dtype.kind == "U" for array in picked}) > 1:
        raise DataError(f"the targets {listed(names)} mix strings and numbers", graphs.name)
    y = picked[0] if len(picked) == 1 else np.stack(picked, axis=1)
    return replace(graphs, y=y, target_names=tuple(dict.fromkeys(names)))


def convert(
    source: Source,
    path: str | Path,
    root: str | Path | None = None,
    *,
    progress: Callable[[int, int], None] | None = None,
    **options: Any,
) -> GraphSet:
    """Write the set that :func:`load` would return to ``path``.

    A GraphSet folder is written from a TU set or a table of molecules in strides, and from objects one by one, so
    memory does not grow with the set.

    Args:
        source: as for :func:`load`.
        path: the end of the name says the format: ``NAME.gset`` or any other folder, or a format of
            :func:`gcaps.data.io.export.export`.
        root: folder that is searched first for a name.
        progress: called now and then with the amount done and the total.
        options: those of :func:`load`.

    Returns:
        The set, opened again if it is a GraphSet folder.
    """
    reading = Reading(**options)
    if is_exported(Path(path)):
        graphs = load(source, root, **options)
        export(graphs, Path(path))
        return graphs
    if isinstance(source, str | Path):
        place = located(source, root)
        table = None if place is None else open_molecules(place)
        if table is not None:
            chunks = molecule_chunks(table, reading, progress=progress)
            return _required(write_graphs(chunks, path, table.name), reading, table.place)
        if place is not None and format_of(place) == "tu":
            convert_tu(place, path, reading=reading, progress=progress)
            return open_saved(path)
    elif not isinstance(source, GraphSet) and not hasattr(source, "columns") and reading == Reading(labelled=False):
        return write_graphs(source, path)
    load(source, root, **options).save(path)
    return open_saved(path)


def stream(
    source: Source, root: str | Path | None = None, *, progress: Progress | None = None, **options: Any
) -> Iterator[GraphSet]:
    """Yield the set that :func:`load` would return in pieces, in order: memory does not grow with the set.

    Tables of molecules are read and saved sets are opened piece by piece; other sources are read at once. The rows of a
    table that are skipped belong to the piece before them, and the pieces' positions follow one another.

    Args:
        source: as for :func:`load`.
        root: folder that is searched first for a name.
        progress: called with the amount read and the total.
        options: those of :func:`load`.
    """
    reading = Reading(**options)
    path = located(source, root) if isinstance(source, str | Path) else None
    table = None if path is None else open_molecules(path)
    if table is not None:
        yield from (with_target(piece, reading) for piece in molecule_chunks(table, reading, progress=progress))
        return
    graphs = load(source, root, **options)
    yield from graphs.chunks() if graphs.mapped else [graphs]


def check_header(source: str | Path, reading: Reading, root: str | Path | None = None) -> None:
    """Raise the DataError that :func:`load` would raise for the columns of a table, reading only its first rows."""
    path = located(source, root)
    if path is not None:
        check_path(path, reading)


def located(source: str | Path, root: str | Path | None = None) -> Path | None:
    """Return the file or folder of a path or name, None for a generated set; raise a DataError if there is none."""
    if isinstance(source, Path) or looks_like_path(source):
        if not exists(source):
            raise DataError("does not exist", str(source))
        return Path(source)
    path = find(source, root)
    if path is None and source != "families":
        raise DataError(_advice(source))
    return path


def find(name: str, root: str | Path | None = None) -> Path | None:
    """Return the path of the data set of that name, or None; folders are searched as in :func:`load`."""
    folders = [] if root is None else [Path(root)]
    folders += [Path(part) for part in os.environ.get("GCAPS_DATA", "").split(os.pathsep) if part]
    folders.append(cache_folder())
    for folder in folders:
        for path in (folder / f"{name}.gset", folder / f"{name}.zip", folder / name):
            if _is_data(path):
                return path
    return _embedded(name)


def looks_like_path(source: str) -> bool:
    """Whether a string is a path: it has a separator or a known ending, or data of that name are in this folder."""
    path = Path(source)
    return path.name != source or has_known_ending(path) or _is_data(path)


def _is_data(path: Path) -> bool:
    return is_data_folder(path) if is_folder(path) else is_file(path) and path.suffix == ".zip"


def _embedded(name: str) -> Path | None:
    if name != "MUTAG":
        return None
    # grakel's wheel contains the set; find_spec finds the package without importing it
    found = importlib.util.find_spec("grakel")
    roots = [] if found is None else found.submodule_search_locations or []
    folders = (Path(root) / "tests" / "data" / name for root in roots)
    return next((folder for folder in folders if _is_data(folder)), None)


def _required(graphs: GraphSet, reading: Reading, place: str | None = None) -> GraphSet:
    if not reading.labelled:
        return graphs
    if graphs.y is None:
        problem = "has no targets (labels); training and evaluation need them (gcaps data check --unlabelled does not)"
        raise DataError(problem, place or graphs.name)
    known = graphs.y[~missing(graphs.y)]
    if not len(known):
        raise DataError("has no targets: all values are missing", place or graphs.name)
    if (known == known[:1]).all():
        problem = f"has graphs of one class only: all have the target {known[0]}; two values are needed"
        raise DataError(problem, place or graphs.name)
    return graphs


def _advice(name: str) -> str:
    """Error message for a name that was not found."""
    if name == "MUTAG":
        return 'MUTAG comes with the demo extra: pip install "gcaps[demo]", or fetch it: gcaps data get MUTAG'
    entry = CATALOG.get(name)
    if entry is not None and entry.source == "local":
        return f"{name}.zip was not found: {entry.remark}; put the file into a folder listed in GCAPS_DATA"
    if entry is not None:
        return f"{name} has not been downloaded yet; fetch it: gcaps data get {name}"
    advice = "or give a path (molecules: a table, such as a CSV; in Python one molecule is a list: [SMILES])"
    return f"no data set {name!r} was found{near_names(name)}; fetch it: gcaps data get {name}, {advice}"


def near_names(name: str) -> str:
    """Return `` (did you mean …?)`` with similar names of the catalog, or nothing."""
    lower = {known.lower(): known for known in CATALOG}
    near = [lower[match] for match in difflib.get_close_matches(name.lower(), lower, n=3, cutoff=0.6)]
    return f" (did you mean {' or '.join(near)}?)" if near else ""
