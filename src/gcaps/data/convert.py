"""From any source to a saved GraphSet, without holding the set in memory."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from gcaps.data.catalog import Source, load, located
from gcaps.data.graphset import GraphSet
from gcaps.data.molecules import molecule_chunks
from gcaps.data.smiles_table import Columns, is_table, table_name
from gcaps.data.storage import is_saved, open_saved
from gcaps.data.tu_stream import convert_tu
from gcaps.data.writer import write_graphs


def convert(
    source: Source,
    path: str | Path,
    root: str | Path | None = None,
    *,
    labelled: bool = True,
    columns: Columns | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> GraphSet:
    """Write what :func:`gcaps.load` would give to the folder ``path``, and open it.

    Files are read in strides and objects are taken one by one, so that memory does not grow with the set.

    Args:
        source: as for :func:`gcaps.load`.
        path: the folder, by convention ``NAME.gset``.
        root: a folder that is searched first for a name.
        labelled: the graphs must have labels, of at least two classes.
        columns: for a table of molecules, which columns count.
        progress: told now and then how much is done, and of how much.
    """
    if isinstance(source, str | Path):
        place = located(source, root)
        if place is not None and is_table(place):
            chunks = molecule_chunks(place, columns, labelled=labelled, progress=progress)
            return write_graphs(chunks, path, table_name(place))
        if place is not None and not is_saved(place):
            convert_tu(place, path, labelled=labelled, progress=progress)
            return open_saved(path)
        source = load(source, root, labelled=labelled)
    if isinstance(source, GraphSet):
        source.save(path)
        return open_saved(path)
    return write_graphs(source, path)
