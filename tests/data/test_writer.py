import signal
import subprocess
import sys
from dataclasses import replace

import numpy as np
import pytest

from gcaps.data import GraphSet, GraphSetWriter, from_graphs, write_graphs
from gcaps.data.assemble import EdgeRows, assemble
from gcaps.data.graphset import Graph, SelfLoops
from gcaps.errors import DataError, GcapsError
from tests.data.folders import contents
from tests.data.test_graphset import full_set


def graph(nodes: int = 2, **fields) -> Graph:
    """A path, with whatever fields a test wants."""
    i = np.arange(nodes - 1)
    given = {"edge_index": np.stack([i, i + 1]), "num_nodes": nodes, **dict.fromkeys(Graph._fields[2:])}
    return Graph(**{**given, **fields})


def written(chunks, path, name, notes=None):
    """The chunks as a set; the notes of a whole set go with its first piece."""
    with GraphSetWriter(path, name) as writer:
        for number, chunk in enumerate(chunks):
            writer.extend(replace(chunk, notes=notes or {}) if number == 0 else chunk)
    return path


@pytest.mark.parametrize("nodes", [1, 40, 10**6])
def test_chunks_give_byte_for_byte_what_saving_the_whole_gives(hostile, tmp_path, nodes):
    hostile.save(tmp_path / "whole.gset")
    written(hostile.chunks(nodes), tmp_path / "chunks.gset", hostile.name, hostile.notes)
    assert contents(tmp_path / "chunks.gset") == contents(tmp_path / "whole.gset")


def test_every_field_goes_through_chunks_of_one_graph(tmp_path):
    graphs = full_set()
    graphs.save(tmp_path / "whole.gset")
    written(graphs.chunks(1), tmp_path / "chunks.gset", graphs.name, graphs.notes)
    assert contents(tmp_path / "chunks.gset") == contents(tmp_path / "whole.gset")


@pytest.mark.parametrize("form", ["graphs", "pyg", "networkx"])
def test_single_objects_are_taken_as_by_the_adapters(hostile, tmp_path, monkeypatch, form):
    monkeypatch.setattr("gcaps.data.writer.BUFFER", 500)
    objects = {"graphs": list, "pyg": GraphSet.to_pyg, "networkx": GraphSet.to_networkx}[form](hostile)
    opened = write_graphs(iter(objects), tmp_path / "set.gset")
    assert opened.fingerprint() == hostile.fingerprint()
    assert opened.name == "set"


def test_kinds_of_objects_may_be_mixed(tmp_path):
    graphs = replace(full_set(), edge_weight=None, loops=None)
    listed = [graphs[:1], *graphs[1:2].to_pyg(), *graphs[2:].to_pyg()]
    assert write_graphs(listed, tmp_path / "set.gset").fingerprint() == graphs.fingerprint()


def test_a_list_of_graphs_is_the_set_it_was_taken_from():
    graphs = full_set()
    assert from_graphs(list(graphs)).fingerprint() == graphs.fingerprint()


@pytest.mark.parametrize(
    "values",
    [[[7, 7], [-2], [100, 7]], [["no", "no"], ["perhaps"], ["", "yes"]], [[True, True], [False]], [[1, 2], [0.5], [3]]],
    ids=["integers", "strings", "booleans", "numbers"],
)
def test_targets_of_all_chunks_are_those_of_the_whole(tmp_path, values):
    chunks = [from_graphs([graph(y=y) for y in some]) for some in values]
    opened = write_graphs(chunks, tmp_path / "set.gset")
    whole = from_graphs([graph(y=y) for some in values for y in some])
    assert opened.y.tolist() == [y for some in values for y in some]
    assert opened.y.dtype == whole.y.dtype
    assert opened.fingerprint() == whole.fingerprint()


def test_ids_that_chunks_bring_are_kept_and_others_are_positions(tmp_path):
    graphs = from_graphs([graph(n) for n in range(1, 6)])
    assert write_graphs([graphs, graphs], tmp_path / "a.gset").ids.tolist() == [*range(10)]
    assert write_graphs([graphs[3:], graphs[:2]], tmp_path / "b.gset").ids.tolist() == [3, 4, 0, 1]
    late = write_graphs([graph(2), graphs[:3], graphs[[4, 1]], graph(2)], tmp_path / "c.gset")
    assert late.ids.tolist() == [0, 0, 1, 2, 4, 1, 6]
    named = replace(graphs, given_ids=np.array(["a", "bb", "c", "d", "eeee"]))
    opened = write_graphs(named.chunks(1), tmp_path / "d.gset")
    assert opened.ids.tolist() == ["a", "bb", "c", "d", "eeee"]
    named.save(tmp_path / "e.gset")
    assert contents(tmp_path / "e.gset")["given_ids.npy"] == contents(tmp_path / "d.gset")["given_ids.npy"]


@pytest.mark.parametrize("chunks", [["named", "plain"], ["plain", "named"]], ids=str)
def test_names_and_positions_are_not_mixed(tmp_path, chunks):
    plain = from_graphs([graph(), graph()])
    sets = {"plain": plain, "named": replace(plain, given_ids=np.array(["a", "b"]))}
    with pytest.raises(DataError, match=r"^graphs\[2\]: has the id ('a'|0) while graphs\[0\] has a (string|number)"):
        write_graphs([sets[chunk] for chunk in chunks], tmp_path / "set.gset")


def test_weights_that_come_late_are_one_in_all_graphs_before(tmp_path):
    loop = SelfLoops(np.array([0]), weight=None)
    first = from_graphs([graph(3), graph(2, loops=loop)])
    second = from_graphs([graph(2, edge_weight=np.array([2.5]))])
    third = from_graphs([graph(2, loops=loop)])
    opened = write_graphs([first, second, third], tmp_path / "set.gset")
    assert opened.edge_weight.tolist() == [1] * 6 + [2.5] * 2 + [1] * 2
    assert opened.loops.node.tolist() == [3, 7]
    assert opened.loops.weight.tolist() == [1, 1]
    listed = [*first, *second, *third]
    assert from_graphs(listed).fingerprint() == opened.fingerprint(), "as if they had come at once"


def test_a_wider_type_widens_what_stands_there(tmp_path, monkeypatch):
    monkeypatch.setattr("gcaps.data.writer.STRIDE", 3)
    narrow = from_graphs([graph(7, x=np.arange(7, dtype=np.float32)[:, None])])
    wide = from_graphs([graph(2, x=np.full((2, 1), 0.1))])
    opened = write_graphs([narrow, wide, narrow], tmp_path / "set.gset")
    assert opened.x.dtype == np.float64
    assert opened.x[:, 0].tolist() == [*range(7), 0.1, 0.1, *range(7)]
    assert sorted(p.name for p in (tmp_path / "set.gset").iterdir() if "narrow" in p.name) == []


def test_edgeless_chunks_go_with_labelled_edges(tmp_path):
    bare = from_graphs([graph(1, node_labels=np.array([[3]]))])
    bonds = from_graphs([graph(2, node_labels=np.array([[1], [2]]), edge_labels=np.array([[9]]))])
    opened = write_graphs([bare, bonds, bare], tmp_path / "set.gset")
    assert opened.edge_labels.tolist() == [[9], [9]]
    assert opened.sizes.tolist() == [1, 2, 1]


FAULTS = {
    "string after numbers": ([graph(y=1), graph(y="1")], "graphs[1]: has the label '1' while graphs[0] has a number"),
    "number after strings": ([graph(y="a"), graph(y=1.5)], "graphs[1]: has the label 1.5 while graphs[0] has a string"),
    "boolean after numbers": ([graph(y=0), graph(y=True)], "graphs[1]: has the label True while graphs[0]"),
    "node labels missing": (
        [graph(node_labels=np.zeros((2, 1), np.int64)), graph()],
        "graphs[1]: has no node labels while graphs[0] has; give it to all graphs or to none",
    ),
    "node attributes late": (
        [graph(), graph(x=np.zeros((2, 1)))],
        "graphs[0]: has no node attributes while graphs[1] has",
    ),
    "edge labels late": (
        [graph(1), graph(3), graph(2, edge_labels=np.zeros((1, 1), np.int64))],
        "graphs[1]: has no edge labels while graphs[2] has",
    ),
    "columns differ": (
        [graph(node_labels=np.zeros((2, 1), np.int64)), graph(node_labels=np.zeros((2, 3), np.int64))],
        "graphs[1]: node labels: 3 columns; graphs[0] has 1",
    ),
    "edge outside": ([graph(), graph(edge_index=np.array([[0], [5]]))], "graphs[1]: edge_index joins nodes 0 and 5"),
    "not a number": ([graph(2, x=np.full((2, 1), x)) for x in (0, np.nan)], "graphs[1]: node attributes"),
    "weight of zero": ([graph(), graph(edge_weight=np.zeros(1))], "graphs[1]: has an edge of weight 0"),
    "no nodes": ([graph(), graph(edge_index=np.zeros((2, 0), np.int64), num_nodes=0)], "graphs[1]: has no nodes"),
    "rows missing": ([graph(), graph(node_labels=np.zeros((1, 1), np.int64))], "graphs[1]: node labels: 1 rows"),
    "not a graph": ([graph(), "CCO"], "graphs[1]: is a string while graphs[0] is a gcaps Graph"),
    "nothing": ([], "there are no graphs"),
}  # fmt: skip


@pytest.mark.parametrize("buffer", [1, 10**6], ids=["one by one", "together"])
@pytest.mark.parametrize(("graphs", "message"), FAULTS.values(), ids=FAULTS)
def test_graphs_that_do_not_go_together_are_named_and_leave_nothing(tmp_path, monkeypatch, graphs, message, buffer):
    monkeypatch.setattr("gcaps.data.writer.BUFFER", buffer)
    with pytest.raises(DataError) as caught:
        write_graphs(graphs, tmp_path / "set.gset")
    assert message.split(" while ")[0] in str(caught.value)
    assert "\n" not in str(caught.value)
    assert list(tmp_path.iterdir()) == []


def test_weights_contradict_each_other_in_a_graph_of_the_stream(tmp_path, monkeypatch):
    monkeypatch.setattr("gcaps.data.writer.BUFFER", 1)
    uneven = graph(edge_index=np.array([[0, 1], [1, 0]]), edge_weight=np.array([1.0, 2.0]))
    with pytest.raises(DataError, match=r"nodes 0 and 1 of graph 2 \(numbered from 0\)"):
        write_graphs([graph(), graph(), uneven], tmp_path / "set.gset")


@pytest.mark.parametrize("buffer", [1, 10**6], ids=["one by one", "together"])
def test_pyg_graphs_have_weights_all_or_none_as_in_memory(tmp_path, monkeypatch, buffer):
    monkeypatch.setattr("gcaps.data.writer.BUFFER", buffer)
    plain = from_graphs([graph()]).to_pyg()
    weighted = from_graphs([graph(edge_weight=np.array([2.0]))]).to_pyg()
    with pytest.raises(DataError, match=r"edge.weight"):
        write_graphs([*plain, *weighted], tmp_path / "set.gset")


def test_an_error_that_the_caller_swallows_still_writes_nothing(tmp_path):
    def swallowing() -> None:
        with GraphSetWriter(tmp_path / "set.gset") as writer:
            writer.extend(from_graphs([graph(y=1)]))
            with pytest.raises(DataError):
                writer.extend(from_graphs([graph(y="one")]))

    with pytest.raises(GcapsError, match="graphs are missing because of an earlier error; nothing was written"):
        swallowing()
    assert list(tmp_path.iterdir()) == []


def test_a_failure_keeps_the_set_that_stood_there(tmp_path):
    full_set().save(tmp_path / "set.gset")

    def broken():
        yield full_set()
        raise RuntimeError("the source failed")

    with pytest.raises(RuntimeError, match="the source failed"):
        write_graphs(broken(), tmp_path / "set.gset")
    assert GraphSet.open(tmp_path / "set.gset").fingerprint() == full_set().fingerprint()
    assert [p.name for p in tmp_path.iterdir()] == ["set.gset"]


def test_other_folders_are_never_overwritten(tmp_path):
    (tmp_path / "thesis").mkdir()
    with pytest.raises(DataError, match="is not a saved GraphSet; choose another name"):
        write_graphs([full_set()], tmp_path / "thesis")


def test_full_disk_is_one_line_and_leaves_nothing(tmp_path, monkeypatch):
    def full(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("gcaps.data.writer.GrowingArray.append", full)
    with pytest.raises(GcapsError, match=r"set\.gset: cannot be written: no space is left on the disk"):
        write_graphs([full_set()], tmp_path / "set.gset")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.skipif(sys.platform == "win32", reason="the leavings of dead writers are told by a POSIX lock")
def test_a_killed_writer_leaves_nothing_at_its_goal_and_the_next_one_cleans_up(tmp_path):
    code = (
        "import sys; from gcaps.data import GraphSetWriter, make_families\n"
        "with GraphSetWriter(sys.argv[1]) as writer:\n"
        "    writer.extend(make_families(8)); print('half', flush=True); sys.stdin.read()"
    )
    goal = tmp_path / "set.gset"
    killed, alive = (
        subprocess.Popen([sys.executable, "-c", code, str(goal)], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        for _ in range(2)
    )
    try:
        assert killed.stdout.readline() == alive.stdout.readline() == b"half\n"
        killed.send_signal(signal.SIGKILL)
        killed.wait()
        assert not goal.exists()
        assert len(list(tmp_path.iterdir())) == 2
        write_graphs([full_set()], goal)
        assert len(list(tmp_path.glob(".set.gset.*"))) == 1, "the living writer's folder is left alone"
        assert GraphSet.open(goal).fingerprint() == full_set().fingerprint()
    finally:
        alive.communicate()
        killed.communicate()
    assert len(GraphSet.open(goal)) == 8, "the last to finish wins"
    assert [p.name for p in tmp_path.iterdir()] == ["set.gset"]


def test_self_loops_that_come_late_have_all_their_fields(tmp_path):
    plain = assemble("s", np.array([0, 2]), EdgeRows(np.array([0]), np.array([1]), np.array([[1]])))
    looped = assemble("s", np.array([0, 1]), EdgeRows(np.array([0]), np.array([0]), np.array([[5]])))
    opened = write_graphs([plain, looped], tmp_path / "set.gset", "s")
    assert opened.loops.node.tolist() == [2]
    assert opened.loops.labels.tolist() == [[5]]
    assert opened.notes["self_loops"] == 1
