"""Data sets by name, and :func:`load`, which takes whatever holds graphs."""

from __future__ import annotations

import difflib
import importlib.util
import os
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

from gcaps.data.families import make_families
from gcaps.data.graphset import Graph, GraphSet
from gcaps.data.molecules import read_smiles
from gcaps.data.objects import from_objects
from gcaps.data.smiles_table import is_table
from gcaps.data.storage import is_saved, open_saved
from gcaps.data.tu import read_tu
from gcaps.errors import DataError

if TYPE_CHECKING:
    import networkx as nx
    from torch_geometric.data import Data

Source: TypeAlias = "str | Path | GraphSet | Iterable[Graph] | Iterable[Data] | Iterable[nx.Graph]"


class DataSet(NamedTuple):
    """An entry of the catalog."""

    name: str
    graphs: int
    classes: int
    nodes: float
    """A graph's average number of nodes."""
    source: str
    """``"TU"``: fetched from the TU collection. ``"embedded"``: comes with the demo extra. ``"generated"``: made on the
    spot. ``"local"``: not to be had from the TU collection; the user brings the file."""
    remark: str = ""


CATALOG: dict[str, DataSet] = {
    entry.name: entry
    for entry in (
        DataSet("families", 240, 4, 26.6, "generated", "4-regular graphs that only their structure tells apart"),
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


def load(source: Source, root: str | Path | None = None, *, labelled: bool = True) -> GraphSet:
    """Graphs from wherever they are.

    Args:
        source: a GraphSet (returned as it is), PyG ``Data`` objects, NetworkX graphs or :class:`Graph` objects, the
            path of a TU folder or zip, of a saved GraphSet or of a table of molecules (``.csv`` or ``.tsv``; see
            :func:`gcaps.data.read_smiles`, which takes the names of its columns), or a name. A name is looked for in
            ``root``, in the folders of the environment variable ``GCAPS_DATA``, in the download cache, and at last
            among the sets that need no file; in a folder it may be ``NAME.gset``, ``NAME.zip`` or ``NAME/``.
        root: a folder that is searched first.
        labelled: the graphs must have labels, of at least two classes.

    Raises:
        DataError: what is wrong with the data, or what to do where there are none of that name.
    """
    if isinstance(source, GraphSet):
        return source
    if not isinstance(source, str | Path):
        return _required(_from_objects(source), labelled)
    if (path := located(source, root)) is not None:
        return read(path, labelled=labelled)
    return make_families()


def located(source: str | Path, root: str | Path | None = None) -> Path | None:
    """The file or folder that a path or a name means, None for a set that is generated; DataError where it is not."""
    if isinstance(source, Path) or looks_like_path(source):
        if not Path(source).exists():
            raise DataError("does not exist", str(source))
        return Path(source)
    path = find(source, root)
    if path is None and source != "families":
        raise DataError(_advice(source))
    return path


def read(path: Path, *, labelled: bool = True) -> GraphSet:
    """A TU folder, a TU zip, a saved GraphSet or a table of molecules."""
    if not path.exists():
        raise DataError("does not exist", str(path))
    if is_saved(path):
        return _required(open_saved(path), labelled, str(path))
    if is_table(path):
        return read_smiles(path, labelled=labelled)
    return read_tu(path, labelled=labelled)


def find(name: str, root: str | Path | None = None) -> Path | None:
    """Where the data set of that name lies, or None; the order is that of :func:`load`."""
    folders = [] if root is None else [Path(root)]
    folders += [Path(part) for part in os.environ.get("GCAPS_DATA", "").split(os.pathsep) if part]
    folders.append(cache_folder())
    for folder in folders:
        for path in (folder / f"{name}.gset", folder / f"{name}.zip", folder / name):
            if _is_data(path):
                return path
    return _embedded(name)


def cache_folder() -> Path:
    """Where downloads go: ``GCAPS_CACHE``, else ``gcaps`` in the user's cache folder."""
    if own := os.environ.get("GCAPS_CACHE"):
        return Path(own)
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "gcaps"


def looks_like_path(source: str) -> bool:
    """Whether a string means a place on disk: it has a separator or an ending, or data of that name stand here."""
    path = Path(source)
    return path.name != source or source.endswith((".zip", ".gset")) or is_table(path) or _is_data(path)


def _is_data(path: Path) -> bool:
    if path.is_dir():
        return is_saved(path) or any(path.glob("*_A.txt"))
    return path.is_file() and path.suffix == ".zip"


def _embedded(name: str) -> Path | None:
    if name != "MUTAG":
        return None
    # grakel's wheel carries the set; find_spec looks for the package without importing it
    found = importlib.util.find_spec("grakel")
    for place in (found.submodule_search_locations or []) if found is not None else []:
        folder = Path(place) / "tests" / "data" / name
        if _is_data(folder):
            return folder
    return None


def _from_objects(graphs: Iterable[Graph] | Iterable[Data] | Iterable[nx.Graph]) -> GraphSet:
    listed = graphs.to_data_list() if hasattr(graphs, "to_data_list") else list(graphs)
    return from_objects(listed, "graphs")


def _required(graphs: GraphSet, labelled: bool, place: str | None = None) -> GraphSet:
    if not labelled:
        return graphs
    if graphs.y is None:
        raise DataError("has no graph labels; training and evaluation need them", place or graphs.name)
    if (graphs.y == graphs.y[:1]).all():
        raise DataError("has graphs of one class only; a classifier needs at least two", place or graphs.name)
    return graphs


def _advice(name: str) -> str:
    """What to do about a name that is nowhere to be found."""
    if name == "MUTAG":
        return 'MUTAG comes with the demo extra: pip install "gcaps[demo]", or fetch it: gcaps data get MUTAG'
    entry = CATALOG.get(name)
    if entry is not None and entry.source == "local":
        return f"{name}.zip is not here: {entry.remark}; put the file into a folder that GCAPS_DATA names"
    if entry is not None:
        return f"{name} is not here yet; fetch it: gcaps data get {name}"
    return f"there is no data set {name!r} here{near_names(name)}; fetch it: gcaps data get {name}, or give a path"


def near_names(name: str) -> str:
    """`` (did you mean …?)``, or nothing where no name of the catalog is near."""
    lower = {known.lower(): known for known in CATALOG}
    near = [lower[match] for match in difflib.get_close_matches(name.lower(), lower, n=3, cutoff=0.6)]
    return f" (did you mean {' or '.join(near)}?)" if near else ""
