"""GraphML and node-link JSON, one file, several, or a folder."""

import gzip
import json

import networkx as nx
import pytest

import gcaps
from gcaps.data.io.graph_files import files_in
from gcaps.errors import DataError

NODE_LINK = {
    "directed": False,
    "multigraph": False,
    "graph": {"label": "toxic", "id": "m1"},
    "nodes": [{"id": "a", "label": "C", "x": [0.5, 1.0]}, {"id": "b", "label": "N", "x": [1.5, 2.0]}],
    "links": [{"source": "a", "target": "b", "weight": 2.0}],
}


def other(**changes):
    return NODE_LINK | {"graph": {"label": "safe", "id": "m2"}} | changes


def graph(label, n=3):
    made = nx.path_graph(n)
    made.graph["label"] = label
    nx.set_node_attributes(made, {i: f"kind {i % 2}" for i in range(n)}, "type")
    nx.set_edge_attributes(made, 0.5, "length")
    return made


def test_a_folder_of_graphml_is_a_set_named_by_its_files(tmp_path):
    folder = tmp_path / "shapes"
    folder.mkdir()
    for i in (10, 9, 2):
        nx.write_graphml(graph(f"class {i % 2}", i), folder / f"g{i}.graphml")
    assert [path.name for path in files_in(folder)] == ["g2.graphml", "g9.graphml", "g10.graphml"]
    graphs = gcaps.load(folder)
    assert (graphs.name, graphs.ids.tolist()) == ("shapes", ["g2", "g9", "g10"])
    assert graphs.y.tolist() == ["class 0", "class 1", "class 0"]
    assert sorted(graphs.label_names.values()) == ["kind 0", "kind 1"]
    assert set(graphs.edge_attr[:, 0].tolist()) == {0.5}
    listed = [str(path) for path in files_in(folder)]
    assert gcaps.load(listed).fingerprint() == graphs.fingerprint()


def test_one_graphml_file_may_hold_several_graphs(tmp_path):
    from networkx.readwrite.graphml import GraphMLWriter

    writer = GraphMLWriter()
    writer.add_graphs([graph("a"), graph("b", 4)])
    with (tmp_path / "two.graphml").open("wb") as stream:
        writer.dump(stream)
    assert gcaps.load(tmp_path / "two.graphml").y.tolist() == ["a", "b"]


@pytest.mark.parametrize("form", ["list", "graphs", "edges", "lines", "gzipped"])
def test_node_link_json_in_every_form(tmp_path, form):
    both = [NODE_LINK, other()]
    name, text = {
        "list": ("t.json", json.dumps(both)),
        "graphs": ("t.json", json.dumps({"graphs": both})),
        "edges": ("t.json", json.dumps([{("edges" if k == "links" else k): v for k, v in g.items()} for g in both])),
        "lines": ("t.jsonl", "\n".join(map(json.dumps, both))),
        "gzipped": ("t.json.gz", json.dumps(both)),
    }[form]
    (tmp_path / name).write_bytes(gzip.compress(text.encode()) if form == "gzipped" else text.encode())
    graphs = gcaps.load(tmp_path / name)
    assert (graphs.y.tolist(), graphs.ids.tolist()) == (["toxic", "safe"], ["m1", "m2"])
    assert graphs.x.tolist() == [[0.5, 1.0], [1.5, 2.0]] * 2
    assert graphs.edge_weight.tolist() == [2.0] * 4


def test_targets_may_come_from_a_table(tmp_path):
    (tmp_path / "t.json").write_text(json.dumps([NODE_LINK, other()]))
    (tmp_path / "y.csv").write_text("id,logp\nm2,0.5\nm1,1.5\n")
    graphs = gcaps.load(tmp_path / "t.json", labels=tmp_path / "y.csv")
    assert (graphs.y.tolist(), graphs.target_names) == ([1.5, 0.5], ("logp",))


FAULTS = {
    "not JSON": ("{", "t.json: is not JSON"),
    "deep": ("[" * 100_000, "levels of brackets"),
    "no nodes": (json.dumps([NODE_LINK, {"links": []}]), "t.json: graph 1: is not a graph in node-link form"),
    "unknown node": (json.dumps([other(links=[{"source": "a", "target": "z"}])]), "has an edge of node 'z'"),
    "no target": (json.dumps([other(links=[{"source": "a"}])]), "has a malformed node or edge (KeyError"),
    "directed": (json.dumps([NODE_LINK, other(directed=True)]), "t.json: graph 1: is directed"),
    "no graphs": ("[]", "t.json: holds no graphs"),
}


@pytest.mark.parametrize(("text", "message"), FAULTS.values(), ids=FAULTS)
def test_fault_of_json_names_the_graph(tmp_path, text, message):
    (tmp_path / "t.json").write_text(text)
    with pytest.raises(DataError) as caught:
        gcaps.load(tmp_path / "t.json")
    assert message in str(caught.value)


def test_broken_graphml_is_named(tmp_path):
    (tmp_path / "t.graphml").write_text("<graphml><graph>")
    with pytest.raises(DataError, match=r"t.graphml: is not GraphML"):
        gcaps.load(tmp_path / "t.graphml")
    (tmp_path / "t.graphml").write_text('<graphml xmlns="http://graphml.graphdrawing.org/xmlns"></graphml>')
    with pytest.raises(DataError, match=r"t.graphml: holds no graphs"):
        gcaps.load(tmp_path / "t.graphml")


def test_a_list_of_files_is_one_of_graph_files(tmp_path):
    (tmp_path / "a.csv").write_text("smiles,y\nC,1\n")
    with pytest.raises(DataError, match="load others one by one"):
        gcaps.load([tmp_path / "a.csv", tmp_path / "a.csv"])


def test_graphs_without_nodes_in_files_keep_the_names_of_the_others(tmp_path):
    empty = {"nodes": [], "links": [], "graph": {"id": "m0", "label": "safe"}}
    (tmp_path / "t.json").write_text(json.dumps([empty, NODE_LINK, other()]))
    graphs = gcaps.load(tmp_path / "t.json", empty="drop")
    assert graphs.ids.tolist() == ["m1", "m2"]
    assert [(one.row, one.id) for one in graphs.skipped] == [(0, "m0")]
