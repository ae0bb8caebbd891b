"""A GraphSet on disk: a folder of .npy files and a JSON page, opened by mapping, never by reading or unpickling."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from gcaps.data.arrays import Array
from gcaps.data.graphset import GraphSet, SelfLoops
from gcaps.errors import DataError
from gcaps.files import replacing, write_json

PAGE = "graphset.json"
FORMAT = 2


def is_saved(path: Path) -> bool:
    """Whether ``path`` is a folder that :func:`save` wrote."""
    return (path / PAGE).is_file()


def save(graphs: GraphSet, path: str | Path) -> None:
    """Write the set to the folder ``path``; a set that stood there before is replaced as a whole."""
    goal = Path(path)
    require_replaceable(goal)
    with replacing(goal) as folder:
        folder.mkdir()
        arrays = graphs.arrays()
        for key, array in arrays.items():
            np.save(folder / f"{key}.npy", array, allow_pickle=False)
        write_page(folder, graphs.name, graphs.notes, {key: (a.dtype, a.shape) for key, a in arrays.items()})


def require_replaceable(goal: Path) -> None:
    """DataError where something other than a saved set stands at ``goal``."""
    if goal.exists() and not is_saved(goal):
        raise DataError("exists and is not a saved GraphSet; choose another name", str(goal))


def write_page(
    folder: Path, name: str, notes: Mapping[str, int], arrays: Mapping[str, tuple[np.dtype[Any], tuple[int, ...]]]
) -> None:
    """The page that makes a folder of arrays a saved set."""
    page = {
        "format": FORMAT,
        "name": name,
        "notes": dict(notes),
        "arrays": {key: {"dtype": dtype.str, "shape": list(shape)} for key, (dtype, shape) in arrays.items()},
    }
    write_json(folder / PAGE, page)


def open_saved(path: str | Path) -> GraphSet:
    """Map a saved set. Only the pages that are used are ever read from disk."""
    folder = Path(path)
    if not is_saved(folder):
        raise DataError(f"is not a saved GraphSet (no {PAGE})", str(folder))
    try:
        page: dict[str, Any] = json.loads((folder / PAGE).read_text(encoding="utf-8"))
        if page["format"] != FORMAT:
            problem = f"has format {page['format']}, this gcaps reads format {FORMAT}; convert the set anew"
            raise DataError(problem, str(folder / PAGE))
        arrays = {key: _mapped(folder / f"{key}.npy", facts) for key, facts in page["arrays"].items()}
        loops = {key.removeprefix("loops."): arrays.pop(key) for key in list(arrays) if key.startswith("loops.")}
        graphs = GraphSet(
            name=str(page["name"]),
            notes={str(k): int(v) for k, v in page["notes"].items()},
            loops=SelfLoops(**loops) if loops else None,
            **arrays,
        )
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise DataError(
            f"is damaged ({type(error).__name__}: {error}); save the set again", str(folder / PAGE)
        ) from error
    if not _fits(graphs):
        raise DataError("its arrays do not fit together; save the set again", str(folder))
    return graphs


def _fits(graphs: GraphSet) -> bool:
    """Whether every array has the rows that the others promise; looks at shapes and at the pointers' ends only."""
    if not len(graphs.ptr) or not len(graphs.rowptr):
        return False
    num_nodes, num_arcs = len(graphs.rowptr) - 1, len(graphs.col)
    rows = dict.fromkeys(("y", "given_ids"), len(graphs))
    rows |= dict.fromkeys(("node_labels", "x"), num_nodes)
    rows |= dict.fromkeys(("edge_labels", "edge_attr", "edge_weight"), num_arcs)
    arrays = graphs.arrays()
    fits = all(len(arrays[key]) == count for key, count in rows.items() if key in arrays)
    loops = {len(array) for key, array in arrays.items() if key.startswith("loops.")}
    return fits and len(loops) <= 1 and graphs.ptr[-1] == num_nodes and bool(graphs.rowptr[-1] == num_arcs)


def _mapped(file: Path, facts: dict[str, Any]) -> Array:
    if file.parent.resolve() != file.resolve().parent:
        raise DataError("points outside its folder", str(file))
    try:
        # an empty array cannot be mapped
        array: Array = np.load(file, mmap_mode="r" if 0 not in facts["shape"] else None, allow_pickle=False)
    except (OSError, EOFError) as error:
        raise DataError(f"cannot be read ({error}); save the set again", str(file)) from error
    if array.dtype.str != facts["dtype"] or list(array.shape) != facts["shape"]:
        raise DataError("is not the array that graphset.json describes; save the set again", str(file))
    return array.view(np.ndarray)
