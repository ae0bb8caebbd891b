"""A GraphSet on disk, a folder of .npy files and a JSON file opened by memory-mapping, and its fingerprint."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Collection, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from gcaps.data.arrays import Array, Ints, pointer, strides
from gcaps.data.graphset import OWNERS, GraphSet, Selection, SelfLoops, Skipped
from gcaps.data.molecules.preparation import MoleculePreparation
from gcaps.errors import DataError
from gcaps.files import replacing, write_json

PAGE = "graphset.json"
FORMAT = 2
COLUMN = "column."
"""Name of the files of :attr:`GraphSet.columns`, followed by a number; the JSON file lists their names."""
STRIDE = 1 << 19
"""Nodes that are hashed together in a fingerprint."""


class Description(NamedTuple):
    """What a saved set has beside its arrays."""

    name: str
    notes: Mapping[str, int]
    target_names: Sequence[str] = ()
    columns: Collection[str] = ()
    label_names: Mapping[int, str] = {}
    skipped: Sequence[Skipped] = ()
    preparation: MoleculePreparation | None = None


def is_saved(path: Path) -> bool:
    """Whether ``path`` is a folder written by :func:`save`."""
    return (path / PAGE).is_file()


def save(graphs: GraphSet, path: str | Path) -> None:
    """Write a set to the folder ``path``, atomically replacing a set that was there before."""
    goal = Path(path)
    require_replaceable(goal)
    with replacing(goal) as folder:
        folder.mkdir()
        arrays = graphs.arrays() | {f"{COLUMN}{i}": array for i, array in enumerate(graphs.columns.values())}
        for key, array in arrays.items():
            np.save(folder / f"{key}.npy", array, allow_pickle=False)
        write_page(folder, graphs, {key: (a.dtype, a.shape) for key, a in arrays.items()})


def require_replaceable(goal: Path) -> None:
    """Raise a DataError if ``goal`` exists and is not a saved set."""
    if goal.exists() and not is_saved(goal):
        raise DataError("exists and is not a saved GraphSet; choose another name", str(goal))


def write_page(
    folder: Path, described: GraphSet | Description, arrays: Mapping[str, tuple[np.dtype[Any], tuple[int, ...]]]
) -> None:
    """Write the JSON file that makes a folder of arrays a saved set."""
    page: dict[str, Any] = {
        "format": FORMAT,
        "name": described.name,
        "notes": dict(described.notes),
        "arrays": {key: {"dtype": dtype.str, "shape": list(shape)} for key, (dtype, shape) in arrays.items()},
    }
    optional = {
        "target_names": list(described.target_names),
        "columns": list(described.columns),
        "label_names": {str(code): name for code, name in described.label_names.items()},
        "skipped": [list(one) for one in described.skipped],
        "preparation": None if described.preparation is None else described.preparation.to_dict(),
    }
    write_json(folder / PAGE, page | {key: value for key, value in optional.items() if value})


def open_saved(path: str | Path) -> GraphSet:
    """Open a saved set by mapping its arrays, of which only the used parts are read from disk."""
    folder = Path(path)
    if not is_saved(folder):
        raise DataError(f"is not a saved GraphSet (no {PAGE})", str(folder))
    try:
        page: dict[str, Any] = json.loads((folder / PAGE).read_text(encoding="utf-8"))
        if page["format"] != FORMAT:
            problem = f"has format {page['format']}, this version reads format {FORMAT}; convert the set again"
            raise DataError(problem, str(folder / PAGE))
        arrays = {key: _mapped(folder / f"{key}.npy", facts) for key, facts in page["arrays"].items()}
        loops = {key.removeprefix("loops."): arrays.pop(key) for key in list(arrays) if key.startswith("loops.")}
        graphs = GraphSet(
            name=str(page["name"]),
            notes={str(k): int(v) for k, v in page["notes"].items()},
            loops=SelfLoops(**loops) if loops else None,
            target_names=tuple(map(str, page.get("target_names", ()))),
            columns={name: arrays.pop(f"{COLUMN}{i}") for i, name in enumerate(page.get("columns", ()))},
            label_names={int(code): str(name) for code, name in page.get("label_names", {}).items()},
            skipped=tuple(Skipped(int(row), str(id_), str(why)) for row, id_, why in page.get("skipped", ())),
            preparation=MoleculePreparation.from_dict(page["preparation"]) if page.get("preparation") else None,
            **arrays,
        )
    except DataError:
        raise
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise DataError(
            f"is damaged ({type(error).__name__}: {error}); save the set again", str(folder / PAGE)
        ) from error
    if not _fits(graphs):
        raise DataError("has arrays whose lengths do not agree; save the set again", str(folder))
    return graphs


def _fits(graphs: GraphSet) -> bool:
    """Whether the numbers of rows agree, from shapes and the last entries of the pointers."""
    if not len(graphs.ptr) or not len(graphs.rowptr):
        return False
    num_nodes, num_arcs = len(graphs.rowptr) - 1, len(graphs.col)
    counts = {"graphs": len(graphs), "nodes": num_nodes, "arcs": num_arcs}
    arrays = graphs.arrays()
    fits = all(len(arrays[key]) == counts[owner] for key, owner in OWNERS.items() if key in arrays)
    fits &= all(len(column) == len(graphs) for column in graphs.columns.values())
    loops = {len(array) for key, array in arrays.items() if key.startswith("loops.")}
    return fits and len(loops) <= 1 and graphs.ptr[-1] == num_nodes and bool(graphs.rowptr[-1] == num_arcs)


def _mapped(file: Path, facts: dict[str, Any]) -> Array:
    if file.parent.resolve() != file.resolve().parent:
        raise DataError("points outside its folder; refused", str(file))
    try:
        # an empty array cannot be mapped
        array: Array = np.load(file, mmap_mode="r" if 0 not in facts["shape"] else None, allow_pickle=False)
    except (OSError, EOFError) as error:
        raise DataError(f"cannot be read ({error}); save the set again", str(file)) from error
    if array.dtype.str != facts["dtype"] or list(array.shape) != facts["shape"]:
        raise DataError(f"does not match {PAGE}; save the set again", str(file))
    return array.view(np.ndarray)


def fingerprint(graphs: GraphSet, indices: Sequence[int] | Array | None = None) -> str:
    """SHA-256 of all arrays but the ids, with their names, types and shapes, of a set or its subset at ``indices``.

    Strings count with their characters and not with the width of their array.
    """
    if indices is None:
        every = graphs.arrays()
        every.pop("given_ids", None)
        arrays = {key: (array, array.shape, _rows(array)) for key, array in every.items()}
    else:
        arrays = _chosen(graphs, graphs.positions(indices))
    digest = hashlib.sha256()
    for key, (array, shape, parts) in sorted(arrays.items()):
        text = array.dtype.kind == "U"
        digest.update(f"{key}:{'U' if text else array.dtype.str}:{shape};".encode())
        for part in parts:
            digest.update(_encoded(part) if text else np.ascontiguousarray(part).data)
    return digest.hexdigest()


def _encoded(strings: Array) -> bytes:
    return "".join(json.dumps(value) for value in strings.tolist()).encode()


def _rows(array: Array) -> Iterator[Array]:
    return (array[first : first + STRIDE] for first in range(0, len(array), STRIDE))


def _chosen(graphs: GraphSet, chosen: Ints) -> dict[str, tuple[Array, tuple[int, ...], Iterator[Array]]]:
    """For each array of the subset: an array of its type, its shape, and its rows piece by piece."""
    sizes = graphs.sizes[chosen]
    first_arc = graphs.rowptr[graphs.ptr[chosen]]
    rows = {
        "graphs": len(chosen),
        "nodes": int(sizes.sum()),
        "arcs": int((graphs.rowptr[graphs.ptr[chosen + 1]] - first_arc).sum()),
    }
    pieces = [chosen[first:last] for first, last in strides(sizes, STRIDE)]

    def selections() -> Iterator[Selection]:
        return (Selection.of(graphs.ptr, graphs.rowptr, piece) for piece in pieces)

    def gathered(array: Array, key: str) -> Iterator[Array]:
        return (array[where.rows(key)] for where in selections())

    def rowptr() -> Iterator[Ints]:
        yield np.zeros(1, dtype=np.int64)
        before = 0
        for where in selections():
            part = where.rowptr(graphs.rowptr)[1:] + before
            before = int(part[-1])
            yield part

    ptr = pointer(sizes)
    found = {
        "ptr": (ptr, ptr.shape, _rows(ptr)),
        "rowptr": (graphs.rowptr, (rows["nodes"] + 1,), rowptr()),
    }
    for key, array in graphs.arrays().items():
        if key in OWNERS and key != "given_ids":
            found[key] = (array, (rows[OWNERS[key]], *array.shape[1:]), gathered(array, key))
    loops = graphs.loops_of(chosen, ptr)
    if loops is not None:
        there = {f"loops.{key}": array for key, array in loops._asdict().items() if array is not None}
        found |= {key: (array, array.shape, _rows(array)) for key, array in there.items()}
    return found
