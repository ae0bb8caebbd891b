"""A GraphSet on disk, a folder of .npy files and a JSON file opened by memory-mapping, and its fingerprint."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Literal, NamedTuple

import numpy as np
from pydantic import Field

from gcaps.data.arrays import Array, Ints, pointer, strides
from gcaps.data.graphset import OWNERS, GraphSet, Selection, SelfLoops, Skipped
from gcaps.data.molecules.preparation import MoleculePreparation
from gcaps.data.npy import map_array
from gcaps.documents import Count, Digest, Name, Page, read_json, validated
from gcaps.errors import DataError
from gcaps.files import exists, is_file, replacing, write_json

PAGE = "graphset.json"
FORMAT = 3
COLUMN = "column."
"""Name of the files of :attr:`GraphSet.columns`, followed by a number; the JSON file lists their names."""
STRIDE = 1 << 19
"""Nodes that are hashed together in a fingerprint."""


class Description(NamedTuple):
    """JSON values of a saved set."""

    name: str
    notes: Mapping[str, int]
    target_names: Sequence[str] = ()
    columns: Collection[str] = ()
    label_names: Mapping[int, str] = {}
    skipped: Sequence[Skipped] = ()
    preparation: MoleculePreparation | None = None


class ArrayFacts(Page):
    """Entry of an array in the manifest of a saved set."""

    dtype: Annotated[str, Field(pattern=r"^[<|][biufU][0-9]{1,6}$")]
    shape: Annotated[tuple[Count, ...], Field(min_length=1, max_length=2)]
    sha256: Digest
    """Of its values, row by row, without the header of the file."""


ArrayName = Annotated[
    str,
    Field(
        pattern=r"^(ptr|rowptr|col|y|given_ids|node_labels|x|edge_(labels|attr|weight)|loops\.(node|labels|attributes|weight))$"
    ),
]
Text = Annotated[str, Field(max_length=1 << 20)]


class Manifest(Page):
    """The JSON file of a saved set."""

    format: Literal[3]
    name: Name
    notes: dict[Name, Count] = Field({})
    arrays: dict[ArrayName, ArrayFacts]
    columns: dict[Name, ArrayFacts] = Field({})
    """By name, in order; column i is in the file ``column.i.npy``."""
    target_names: tuple[Text, ...] = ()
    label_names: dict[Annotated[str, Field(pattern=r"^-?[0-9]{1,19}$")], Text] = Field({})
    skipped: tuple[tuple[Count, Text, Text], ...] = ()
    preparation: MoleculePreparation | None = None

    def files(self) -> dict[str, ArrayFacts]:
        """Return all arrays by the names of their files without ``.npy``."""
        return {**self.arrays, **{f"{COLUMN}{i}": facts for i, facts in enumerate(self.columns.values())}}


def is_saved(path: Path) -> bool:
    """Whether ``path`` is a folder written by :func:`save`."""
    return is_file(path / PAGE)


def save(graphs: GraphSet, path: str | Path) -> None:
    """Write a set to the folder ``path``, atomically replacing a set that was there before.

    Raises:
        DataError: something else is at ``path``, or the set is not sound (:func:`check_structure`).
    """
    from gcaps.data.structure import check_structure

    goal = Path(path)
    require_replaceable(goal)
    check_structure(graphs, _reporter(graphs.name, "cannot be saved"))
    with replacing(goal) as folder:
        folder.mkdir()
        arrays = graphs.arrays() | {f"{COLUMN}{i}": array for i, array in enumerate(graphs.columns.values())}
        for key, array in arrays.items():
            np.save(folder / f"{key}.npy", np.ascontiguousarray(array), allow_pickle=False)
        write_page(folder, graphs, {key: facts_of(array) for key, array in arrays.items()})


def facts_of(array: Array) -> ArrayFacts:
    """Return type, shape and checksum of an array."""
    return ArrayFacts(dtype=array.dtype.str, shape=array.shape, sha256=_checksum(array))


def _checksum(array: Array) -> str:
    from gcaps.data.structure import pieces

    digest = hashlib.sha256()
    for piece in pieces(array) if array.nbytes else ():
        digest.update(piece.view(np.uint8).data if piece.dtype.kind == "U" else piece.data)
    return digest.hexdigest()


def require_replaceable(goal: Path) -> None:
    """Raise a DataError if ``goal`` exists and is not a saved set."""
    if exists(goal) and not is_saved(goal):
        raise DataError("exists and is not a saved GraphSet; choose another name", str(goal))


def write_page(folder: Path, described: GraphSet | Description, files: Mapping[str, ArrayFacts]) -> None:
    """Write the JSON file that makes a folder of arrays a saved set."""
    page = Manifest.model_validate(
        {
            "format": FORMAT,
            "name": described.name,
            "notes": {key: int(count) for key, count in described.notes.items()},
            "arrays": {key: facts for key, facts in files.items() if not key.startswith(COLUMN)},
            "columns": {name: files[f"{COLUMN}{i}"] for i, name in enumerate(described.columns)},
            "target_names": tuple(described.target_names),
            "label_names": {str(code): name for code, name in described.label_names.items()},
            "skipped": tuple(tuple(one) for one in described.skipped),
            "preparation": described.preparation,
        }
    )
    write_json(folder / PAGE, page.model_dump(mode="json", exclude_defaults=True) | {"format": FORMAT})


def read_manifest(folder: Path) -> Manifest:
    """Read the manifest of a saved set.

    Raises:
        DataError: the folder is none, or its manifest is damaged.
    """
    file = folder / PAGE
    if not is_saved(folder):
        raise DataError(f"is not a saved GraphSet (no {PAGE})", str(folder))
    raw = read_json(file)
    found = raw.get("format") if isinstance(raw, dict) else None
    if isinstance(found, int) and found != FORMAT:
        raise DataError(f"has format {found}, this version reads format {FORMAT}; convert the set again", str(file))
    return validated(Manifest, raw, "is damaged; save the set again", lambda problem: DataError(problem, str(file)))


def open_saved(path: str | Path, verify: bool = False) -> GraphSet:
    """Open a saved set by mapping its arrays, of which later only the used parts are read from disk.

    Its structure is always checked, which reads the arrays once (:func:`gcaps.data.structure.check_structure`).

    Args:
        path: the folder.
        verify: compare the checksum of every array, too.

    Raises:
        DataError: it is not a saved set, or damaged.
    """
    from gcaps.data.structure import check_structure

    folder = Path(path)
    page = read_manifest(folder)
    arrays = {key: _mapped(folder / f"{key}.npy", facts, verify) for key, facts in page.files().items()}
    columns = {name: arrays.pop(f"{COLUMN}{i}") for i, name in enumerate(page.columns)}
    loops = {key.removeprefix("loops."): arrays.pop(key) for key in list(arrays) if key.startswith("loops.")}
    report = _reporter(str(folder), "is damaged; save the set again")
    if not {"ptr", "rowptr", "col"} <= arrays.keys() or (loops and "node" not in loops):
        raise report("it lacks an array", None)
    graphs = GraphSet(
        name=page.name,
        notes=page.notes,
        loops=SelfLoops(**loops) if loops else None,
        target_names=page.target_names,
        columns=columns,
        label_names={int(code): name for code, name in page.label_names.items()},
        skipped=tuple(Skipped(*one) for one in page.skipped),
        preparation=page.preparation,
        **arrays,
    )
    check_structure(graphs, report)
    return graphs


def _reporter(place: str, remedy: str) -> Callable[[str, str | None], DataError]:
    def report(problem: str, key: str | None) -> DataError:
        return DataError(f"{remedy}: {problem if key is None else f'{key} {problem}'}", place)

    return report


def _mapped(file: Path, facts: ArrayFacts, verify: bool) -> Array:
    if file.is_symlink():
        raise DataError("is a link; the arrays of a saved set are files in its folder", str(file))
    array = map_array(file, facts.dtype, facts.shape)
    if verify and _checksum(array) != facts.sha256:
        raise DataError(f"was changed after it was saved (its SHA-256 is not that of {PAGE}); save the set again",
                        str(file))  # fmt: skip
    return array


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
