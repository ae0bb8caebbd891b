import numpy as np
import pytest

from gcaps.data.catalog import find
from gcaps.data.io.tu import read_tu
from gcaps.data.io.tu_stream import convert_tu
from tests.data.folders import contents
from tests.data.io.test_tu import CUNEIFORM
from tests.tu_files import TWO_GRAPHS, write_folder, zipped


@pytest.fixture(params=[(1 << 20, 1 << 24), (200, 300), (1, 40)], ids=["at once", "in blocks", "graph by graph"])
def _pieces(request, monkeypatch):
    block, stride = request.param
    monkeypatch.setattr("gcaps.data.io.tu_stream.BLOCK", block)
    monkeypatch.setattr("gcaps.data.io.tu.STRIDE", stride)


def assert_same_bytes(source, tmp_path, **options):
    """Streaming writes what reading and saving writes, and leaves nothing else."""
    read_tu(source, **options).save(tmp_path / "out" / "read.gset")
    convert_tu(source, tmp_path / "out" / "streamed.gset", **options)
    assert contents(tmp_path / "out" / "streamed.gset") == contents(tmp_path / "out" / "read.gset")
    assert len(list((tmp_path / "out").iterdir())) == 2


@pytest.mark.usefixtures("_pieces")
@pytest.mark.parametrize("source", [find("MUTAG"), CUNEIFORM], ids=["MUTAG", "Cuneiform"])
def test_real_sets_are_converted_byte_for_byte(source, tmp_path):
    assert_same_bytes(source, tmp_path)


CHANGES = {
    "as it is": {},
    "no edges": {"A": "", "edge_labels": None},
    "last graph without edges": {"A": "1, 2\n2, 1\n", "edge_labels": "1\n2\n"},
    "duplicates, one-way edges, loops": {
        "A": "1, 2\n1, 2\n2, 3\n3, 3\n5, 4\n4, 5\n6, 6\n", "edge_labels": "1\n2\n3\n4\n5\n6\n7\n"
    },
    "edges out of order": {
        "A": "4, 5\n1, 2\n5, 6\n2, 1\n5, 4\n3, 2\n6, 5\n2, 3\n1, 2\n", "edge_labels": "1\n2\n3\n4\n5\n6\n7\n8\n9\n"
    },
    "nodes out of order": {
        "A": "1, 3\n3, 1\n2, 4\n4, 2\n5, 5\n", "graph_indicator": "2\n1\n2\n1\n3\n2\n", "graph_labels": "0\n1\n0\n",
        "edge_labels": "5\n6\n7\n8\n9\n",
    },
    "edge attributes": {"edge_attributes": "".join(f"{i / 7}, {-i}\n" for i in range(10))},
    "labels beyond 32 bits in one stride": {"node_labels": f"{2**40}\n1\n2\n0\n1\n2\n"},
}  # fmt: skip


@pytest.mark.usefixtures("_pieces")
@pytest.mark.parametrize("changes", CHANGES.values(), ids=CHANGES)
def test_every_peculiarity_is_settled_as_in_memory(tmp_path, changes):
    assert_same_bytes(write_folder(tmp_path / "DS", **changes), tmp_path)


def test_edges_in_random_order_are_sorted_on_disk(tmp_path, monkeypatch):
    monkeypatch.setattr("gcaps.data.io.tu_stream.BLOCK", 3000)
    monkeypatch.setattr("gcaps.data.io.tu.STRIDE", 20_000)
    names = ("A", "edge_labels", "edge_attributes")
    tables = {name: (CUNEIFORM / f"Cuneiform_{name}.txt").read_text().splitlines() for name in names[::2]}
    order = np.random.default_rng(0).permutation(len(tables["A"]))
    for file in CUNEIFORM.glob("*.txt"):
        part = file.stem.removeprefix("Cuneiform_")
        text = "\n".join(tables[part][i] for i in order) if part in tables else file.read_text()
        (tmp_path / "DS").mkdir(exist_ok=True)
        (tmp_path / "DS" / f"DS_{part}.txt").write_text(text)
    assert_same_bytes(tmp_path / "DS", tmp_path)


@pytest.mark.parametrize("labels", [None, "3\n3\n"], ids=["no labels", "one class"])
def test_unlabelled_sets_are_converted_when_asked_for(tmp_path, labels):
    assert_same_bytes(write_folder(tmp_path / "DS", graph_labels=labels), tmp_path, labelled=False)


def test_zip_is_converted_without_unpacking_and_progress_is_told(tmp_path, monkeypatch):
    monkeypatch.setattr("gcaps.data.io.tu_stream.BLOCK", 1)
    archive = zipped(write_folder(tmp_path / "DS", **TWO_GRAPHS), tmp_path / "DS.zip")
    told = []
    convert_tu(archive, tmp_path / "DS.gset", progress=lambda done, total: told.append((done, total)))
    assert told == [(1, 2), (2, 2)]
    read_tu(archive).save(tmp_path / "read.gset")
    assert contents(tmp_path / "DS.gset") == contents(tmp_path / "read.gset")


@pytest.mark.slow
@pytest.mark.parametrize("name", ["NCI1", "ENZYMES", "PTC", "DD", "IMDB-BINARY", "REDDIT-BINARY"])
def test_papers_sets_are_converted_byte_for_byte(data_folder, tmp_path, name):
    assert_same_bytes(data_folder / f"{name}.zip", tmp_path)
