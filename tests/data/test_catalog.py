import builtins
import os
import sys

import networkx as nx
import pytest

from gcaps.data import CATALOG, load, make_families
from gcaps.data.catalog import find
from gcaps.errors import DataError
from gcaps.files import cache_folder
from tests.tu_files import write_folder, zipped


@pytest.fixture(autouse=True)
def _nothing_at_hand(tmp_path, monkeypatch):
    monkeypatch.delenv("GCAPS_DATA", raising=False)
    monkeypatch.setenv("GCAPS_CACHE", str(tmp_path / "cache"))
    monkeypatch.chdir(tmp_path)


def test_catalog_holds_the_papers_sets_and_two_that_need_no_download():
    assert len(CATALOG) == 13
    assert load("families").fingerprint() == make_families().fingerprint()
    for name in ("families", "MUTAG"):
        graphs, entry = load(name), CATALOG[name]
        assert (len(graphs), graphs.num_classes) == (entry.graphs, entry.classes)
        assert graphs.num_nodes / len(graphs) == pytest.approx(entry.nodes, abs=0.05)


def test_mutag_is_found_without_importing_grakel(monkeypatch):
    imported = builtins.__import__

    def without_grakel(name, *rest):
        assert not name.startswith("grakel")
        return imported(name, *rest)

    monkeypatch.setattr(builtins, "__import__", without_grakel)
    assert len(load("MUTAG")) == 188


def test_mutag_without_the_demo_extra_says_what_to_install(monkeypatch):
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    with pytest.raises(DataError, match=r'pip install "gcaps\[demo\]"'):
        load("MUTAG")


def test_a_graphset_is_returned_as_it_is():
    graphs = make_families(4)
    assert load(graphs) is graphs


def test_lists_of_networkx_graphs_and_pyg_data_are_taken():
    graphs = make_families(8)
    assert load(graphs.to_networkx()).fingerprint() == graphs.fingerprint()
    assert load(graphs.to_pyg()).fingerprint() == graphs.fingerprint()


def test_paths_to_folder_zip_and_saved_set_are_taken(tmp_path):
    folder = write_folder(tmp_path / "some" / "DS")
    expected = load(folder)
    expected.save(tmp_path / "saved")
    for path in (str(folder), zipped(folder, tmp_path / "DS.zip"), "DS.zip", "./saved", "saved", tmp_path / "saved"):
        assert load(path).fingerprint() == expected.fingerprint()


def _name_it(folder, labels):
    folder.mkdir(parents=True, exist_ok=True)
    zipped(write_folder(folder / ".raw", "NCI1", graph_labels=labels), folder / "NCI1.zip")


def test_a_name_is_looked_up_in_root_then_in_gcaps_data_then_in_the_cache(tmp_path, monkeypatch):
    _name_it(cache_folder(), "1\n2\n")
    assert load("NCI1").y.tolist() == [1, 2]
    _name_it(tmp_path / "b", "3\n4\n")
    monkeypatch.setenv("GCAPS_DATA", os.pathsep.join([str(tmp_path / "a"), "", str(tmp_path / "b")]))
    assert load("NCI1").y.tolist() == [3, 4]
    _name_it(tmp_path / "a", "5\n6\n")
    assert load("NCI1").y.tolist() == [5, 6]
    _name_it(tmp_path / "root", "7\n8\n")
    assert load("NCI1", tmp_path / "root").y.tolist() == [7, 8]


def test_a_folder_may_hold_a_saved_set_a_zip_or_a_tu_folder(tmp_path):
    write_folder(tmp_path / "root" / "NCI1", "NCI1")
    assert find("NCI1", tmp_path / "root") == tmp_path / "root" / "NCI1"
    zipped(tmp_path / "root" / "NCI1", tmp_path / "root" / "NCI1.zip")
    assert find("NCI1", tmp_path / "root") == tmp_path / "root" / "NCI1.zip"
    load("NCI1", tmp_path / "root").save(tmp_path / "root" / "NCI1.gset")
    assert find("NCI1", tmp_path / "root") == tmp_path / "root" / "NCI1.gset"


def test_a_folder_that_only_shares_the_name_is_no_data(tmp_path):
    (tmp_path / "families").mkdir()
    assert load("families").name == "families"


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("NCI1", "NCI1 has not been downloaded yet; fetch it: gcaps data get NCI1"),
        ("PTC", "the TU collection has PTC_MR"),
        ("mutag", "did you mean MUTAG"),
        ("PROTIENS", "did you mean PROTEINS"),
        ("AIDS", "fetch it: gcaps data get AIDS"),
        ("nothing/here", "nothing/here: does not exist"),
        ("here.zip", "here.zip: does not exist"),
    ],
)
def test_what_is_not_here_is_an_error_that_says_what_to_do(name, message):
    with pytest.raises(DataError, match=message):
        load(name)


def test_labels_are_demanded_of_every_kind_of_source(tmp_path):
    unlabelled = load([nx.path_graph(3)], labelled=False)
    unlabelled.save(tmp_path / "new.gset")
    for source in ([nx.path_graph(3)], tmp_path / "new.gset", write_folder(tmp_path / "tu", graph_labels=None)):
        with pytest.raises(DataError, match="label"):
            load(source)
        assert load(source, labelled=False).y is None
    load([nx.path_graph(3, create_using=nx.Graph)] * 2, labelled=False)
    one = [nx.Graph(nx.path_graph(3), label=1), nx.Graph(nx.path_graph(2), label=1)]
    with pytest.raises(DataError, match="one class only"):
        load(one)


def test_cache_folder_follows_the_environment(monkeypatch, tmp_path):
    monkeypatch.delenv("GCAPS_CACHE")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "xdg"))
    assert cache_folder() == tmp_path / "xdg" / "gcaps"


@pytest.mark.skipif(sys.platform == "win32", reason="starts a shell's python")
def test_importing_gcaps_data_brings_neither_torch_nor_networkx():
    import subprocess

    code = "import gcaps.data, sys; sys.exit(any(m in sys.modules for m in ('torch', 'torch_geometric', 'networkx')))"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
