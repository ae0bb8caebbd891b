"""Saved sets with altered bytes: refused in one line, never a crash, never another exception."""

import json
import random
from pathlib import Path

import numpy as np
import pytest

from gcaps.data.graphset import GraphSet
from gcaps.data.storage import open_saved
from gcaps.data.structure import long_rows_fault, short_rows_fault
from gcaps.errors import DataError
from gcaps.testing import hostile_graphs


@pytest.fixture(params=[False, True], ids=["unweighted", "weighted"])
def folder(request, tmp_path) -> Path:
    hostile_graphs(16, seed=3, weighted=request.param).save(tmp_path / "a.gset")
    return tmp_path / "a.gset"


def change(folder: Path, name: str, edit) -> None:
    array = np.load(folder / f"{name}.npy")
    edit(array)
    np.save(folder / f"{name}.npy", array)


@pytest.mark.parametrize(
    ("name", "value", "words"),
    [
        ("col", 1 << 30, "an arc whose target"),
        ("col", -1, "an arc whose target"),
        ("rowptr", -5, "first arc"),
        ("rowptr", 1 << 60, "first arc"),
        ("ptr", 1 << 60, "ascend"),
        ("x", np.nan, "NaN"),
    ],
)
def test_arrays_out_of_range_reach_no_compiled_code(folder, name, value, words):
    if not (folder / f"{name}.npy").exists():
        graphs = GraphSet.open(folder).in_memory()
        graphs = type(graphs)(**{**vars(graphs), "x": np.ones((graphs.num_nodes, 1))})
        graphs.save(folder)
    change(folder, name, lambda array: array.__setitem__(len(array) // 2, value))
    with pytest.raises(DataError, match=words):
        open_saved(folder)


def test_every_arc_has_its_reverse_with_the_same_weight(folder):
    graphs = open_saved(folder).in_memory()
    degrees = np.diff(graphs.rowptr)
    node = int(np.flatnonzero((degrees == 1) & (np.repeat(graphs.sizes, graphs.sizes) > 3))[0])
    graph = int(np.searchsorted(graphs.ptr, node, side="right") - 1)
    here, arc = node - graphs.ptr[graph], graphs.rowptr[node]
    other = next(v for v in range(graphs.sizes[graph]) if v not in (here, graphs.col[arc]))
    change(folder, "col", lambda array: array.__setitem__(arc, other))
    with pytest.raises(DataError, match="without its reverse"):
        open_saved(folder)
    if graphs.edge_weight is not None:
        graphs.save(folder)
        change(folder, "edge_weight", lambda array: array.__setitem__(arc, array[arc] + 1))
        with pytest.raises(DataError, match="two weights"):
            open_saved(folder)


def test_a_header_that_promises_more_than_the_file_holds_allocates_nothing(folder):
    file = folder / "col.npy"
    content = file.read_bytes()
    file.write_bytes(content.replace(b"'shape': (", b"'shape': (99", 1).replace(b"  \n", b"\n", 1))
    page = json.loads((folder / "graphset.json").read_text())
    page["arrays"]["col"]["shape"][0] = int(f"99{page['arrays']['col']['shape'][0]}")
    (folder / "graphset.json").write_text(json.dumps(page))
    with pytest.raises(DataError, match="where its header says"):
        open_saved(folder)


def test_checksums_find_what_the_structure_does_not_tell(folder):
    change(folder, "node_labels", lambda array: array.__setitem__((0, 0), array[0, 0] + 1))
    open_saved(folder)
    with pytest.raises(DataError, match="was changed after it was saved"):
        open_saved(folder, verify=True)


def test_mutants_are_refused_or_unchanged(folder):
    rng, known = random.Random(0), open_saved(folder).fingerprint()
    files, lines = sorted(folder.iterdir()), set()
    for _ in range(400):
        file = rng.choice(files)
        before = file.read_bytes()
        content = bytearray(before)
        for _ in range(rng.choice((1, 1, 4))):
            content[rng.randrange(len(content))] = rng.randrange(256)
        file.write_bytes(content[: rng.choice((len(content), rng.randrange(len(content) + 1)))])
        try:
            assert open_saved(folder, verify=True).fingerprint() == known
        except DataError as error:
            lines.add(str(error).count("\n"))
        finally:
            file.write_bytes(before)
    assert lines == {0}


def faulty(n: int, rowptr: np.ndarray, col: np.ndarray) -> bool:
    """Whether a graph's arcs are not those of a symmetric relation without loops, in order; by a dense matrix."""
    if rowptr[0] < 0 or rowptr[-1] > len(col) or (np.diff(rowptr) < 0).any():
        return True
    A = np.zeros((n, n))
    for u in range(n):
        row = col[rowptr[u] : rowptr[u + 1]]
        if (row < 0).any() or (row >= n).any() or (np.diff(row) <= 0).any():
            return True
        A[u, row] = 1
    return bool((A != A.T).any() or A.trace())


@pytest.mark.parametrize("check", [short_rows_fault, long_rows_fault])
def test_both_checks_of_arcs_find_what_a_dense_matrix_shows(check):
    rng = np.random.default_rng(0)
    found = [0, 0]
    for trial in range(600):
        n = int(rng.integers(1, 9))
        A = np.triu(rng.random((n, n)) < rng.random(), 1)
        rowptr = np.append(0, np.cumsum((A + A.T).sum(1)))
        col = np.nonzero(A + A.T)[1].astype(np.int32)
        for array in (col, rowptr)[: trial % 3]:
            if len(array):
                array[rng.integers(len(array))] = rng.choice([-(2**31), -1, 0, 1, n - 1, n, 2**31 - 1])
        numbers = rng.integers(0, 2**64, size=(2, n), dtype=np.uint64)
        expected = faulty(n, rowptr, col)
        assert bool(check(0, n, rowptr, col, *numbers)) == expected, (n, rowptr, col)
        found[expected] += 1
    assert min(found) > 100
