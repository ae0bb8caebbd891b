import json
from dataclasses import replace

import numpy as np
import pytest
from sklearn.metrics import accuracy_score

from gcaps.data import load, write_graphs
from gcaps.data.arrays import pointer
from gcaps.data.assemble import EdgeRows, assemble
from gcaps.data.graphset import GraphSet, Skipped
from gcaps.data.targets import Classes, target_array
from gcaps.errors import DataError, GcapsError


def full_set() -> GraphSet:
    """Four graphs with every field: a triangle, an edge with a loop, a lone node with a loop, a path with a loop."""
    sizes = np.array([3, 2, 1, 3])
    edges = np.array([[0, 1], [1, 2], [0, 2], [3, 4], [4, 4], [5, 5], [6, 7], [7, 8], [6, 6]])
    numbers = np.arange(len(edges))
    return assemble(
        "full",
        pointer(sizes),
        EdgeRows(edges[:, 0], edges[:, 1], numbers[:, None], numbers[:, None] / 4 + 0.25, numbers + 1.0),
        y=np.array([7, -2, 7, 3]),
        node_labels=np.arange(18).reshape(9, 2),
        x=np.arange(9, dtype=np.float32)[:, None],
    )


@pytest.fixture
def graphs() -> GraphSet:
    return full_set()


def test_adjacency_is_symmetric_sorted_and_without_loops(hostile):
    first = np.repeat(hostile.ptr[:-1], hostile.arc_counts)
    source = np.repeat(np.arange(hostile.num_nodes), hostile.degrees)
    target = hostile.col + first
    graph_of = np.repeat(np.arange(len(hostile)), hostile.sizes)
    key = source * hostile.num_nodes + target
    assert (np.diff(key) > 0).all(), "sorted, every arc once"
    assert (source != target).all()
    assert (graph_of[source] == graph_of[target]).all()
    assert np.array_equal(np.sort(target * hostile.num_nodes + source), key)
    assert hostile.rowptr[-1] == len(hostile.col)
    assert hostile.sizes.sum() == hostile.num_nodes
    assert hostile.arc_counts.sum() == 2 * hostile.num_edges


def test_single_graph_has_its_own_fields(graphs):
    path = graphs[3]
    assert path.edge_index.tolist() == [[0, 1, 1, 2], [1, 0, 2, 1]]
    assert (path.num_nodes, path.y) == (3, 3)
    assert path.node_labels.tolist() == [[12, 13], [14, 15], [16, 17]]
    assert path.x[:, 0].tolist() == [6, 7, 8]
    assert path.edge_labels[:, 0].tolist() == [6, 6, 7, 7]
    assert path.edge_attr[:, 0].tolist() == [1.75, 1.75, 2.0, 2.0]
    assert path.edge_weight.tolist() == [7, 7, 8, 8]
    assert path.loops.node.tolist() == [0]
    assert path.loops.labels.tolist() == [[8]]
    assert path.loops.weight.tolist() == [9]


def test_loops_go_with_their_graphs(graphs):
    chosen = graphs.subset([3, 0, 2])
    assert chosen.loops.node.tolist() == [0, 6]
    assert chosen.loops.attributes[:, 0].tolist() == [2.25, 1.5]
    assert graphs.subset([0]).loops is None


@pytest.mark.parametrize(
    ("which", "same_as"),
    [
        (slice(1, 3), [1, 2]),
        (slice(None, None, -1), [3, 2, 1, 0]),
        (np.array([True, False, False, True]), [0, 3]),
        (np.array([3, 3], dtype=np.int32), [3, 3]),
        ([-1, -4], [3, 0]),
        ((2,), [2]),
    ],
    ids=["slice", "backwards", "mask", "twice", "from the end", "tuple"],
)
def test_every_way_of_choosing_means_the_same(graphs, which, same_as):
    assert graphs[which].fingerprint() == graphs.subset(same_as).fingerprint()


def test_graphs_count_from_the_end_too(graphs):
    assert np.array_equal(graphs[-1].edge_index, graphs[3].edge_index)
    assert graphs[np.int64(-4)].num_nodes == 3


def test_subset_of_a_subset_is_a_subset(hostile):
    twice = hostile.subset(np.arange(20)).subset([5, 7, 19, 0])
    assert twice.fingerprint() == hostile.subset([5, 7, 19, 0]).fingerprint()


def test_all_graphs_in_order_are_the_set(hostile):
    assert hostile.subset(np.arange(len(hostile))).fingerprint() == hostile.fingerprint()
    assert [g.num_nodes for g in hostile] == hostile.sizes.tolist()


def test_nothing_chosen_is_an_empty_set(graphs):
    none = graphs[[]]
    assert (len(none), none.num_nodes, none.num_edges) == (0, 0, 0)
    assert none.node_labels.shape == (0, 2)


@pytest.mark.parametrize(
    "which", [4, -5, [0, 4], [-5], [1.5], np.ones(3, dtype=bool), [[0, 1]]], ids=str
)  # fmt: skip
def test_wrong_choices_are_index_errors(graphs, which):
    with pytest.raises(IndexError):
        graphs[which]


def test_targets_stay_as_in_the_source_in_a_subset(graphs):
    assert graphs.num_classes == 3
    assert graphs.subset([3, 1]).y.tolist() == [3, -2]
    assert graphs.subset([3]).num_classes == 1
    assert replace(graphs, y=None)[0].y is None


def test_ids_are_positions_in_the_set_that_was_read_and_subsets_keep_them(graphs, tmp_path):
    assert graphs.ids.tolist() == [0, 1, 2, 3]
    chosen = graphs[[3, 1, 2]]
    assert chosen.ids.tolist() == [3, 1, 2]
    assert chosen[1:].ids.tolist() == [1, 2]
    assert replace(chosen, name="other").ids.tolist() == [3, 1, 2]
    chosen.save(tmp_path / "a.gset")
    assert GraphSet.open(tmp_path / "a.gset").ids.tolist() == [3, 1, 2]
    graphs.save(tmp_path / "a.gset")
    assert GraphSet.open(tmp_path / "a.gset").ids.tolist() == [0, 1, 2, 3]
    named = replace(graphs, given_ids=np.array(["a", "b", "mol 7", "d"]))
    named.save(tmp_path / "a.gset")
    assert GraphSet.open(tmp_path / "a.gset")[[2, 0]].ids.tolist() == ["mol 7", "a"]


VALUES = {
    "strings": (["yes", "no", "perhaps", "no"], "<U7"),
    "booleans": ([True, False, True, True], "|b1"),
    "numbers": ([0.5, -1.0, 2.0, 0.1], "<f8"),
    "integers": ([2**53 + 1, -1, 7, 0], "<i8"),
}


@pytest.mark.parametrize(("values", "dtype"), VALUES.values(), ids=VALUES)
def test_targets_of_every_type_survive_all_that_is_done_to_a_set(graphs, tmp_path, values, dtype):
    graphs = replace(graphs, y=target_array(values))
    assert graphs.y.dtype.str == dtype
    assert [one.y for one in graphs] == values
    assert {type(one.y) for one in graphs} == {type(values[0])}
    graphs.save(tmp_path / "a.gset")
    opened = GraphSet.open(tmp_path / "a.gset")
    assert (opened.y.tolist(), opened.y.dtype.str) == (values, dtype)
    assert opened.fingerprint() == graphs.fingerprint()
    assert graphs[[3, 0]].y.tolist() == [values[3], values[0]]
    assert opened.fingerprint([3, 0]) == graphs[[3, 0]].fingerprint()
    assert replace(graphs, y=graphs.y[::-1]).fingerprint() != graphs.fingerprint()


def test_how_wide_the_array_of_strings_is_does_not_change_the_fingerprint(graphs):
    few = replace(graphs, y=np.array(["a", "b", "longer", "c"])).subset([0, 1])
    assert few.fingerprint() == replace(graphs.subset([0, 1]), y=np.array(["a", "b"])).fingerprint()
    assert few.fingerprint() != replace(graphs.subset([0, 1]), y=np.array(["a", "bc"])).fingerprint()


@pytest.mark.parametrize("values", [["a", "b", "a", "c"], [True, False, True, True], [3, 7, 3, -1]], ids=str)
def test_predictions_in_the_sources_words_are_scored_against_y(graphs, values):
    graphs = replace(graphs, y=target_array(values))
    classes = Classes.of(graphs.y)
    test = np.array([3, 1, 0])
    codes = classes.encode(graphs.y)
    assert sorted(set(codes.tolist())) == [*range(len(classes))]
    assert accuracy_score(graphs.y[test], classes.decode(codes[test])) == 1
    assert accuracy_score(graphs.y[test], classes.decode(codes[[1, 1, 0]])) == pytest.approx(2 / 3)
    assert classes.encode(np.array(["unknown", "a"])).tolist() == [-1, 0 if "a" in values else -1]
    assert classes.encode(np.array([99])).tolist() == [-1]


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ([1, 2, "b"], r"^graphs\[2\]: has the label 'b' while graphs\[0\] has a number"),
        (["a", True], r"^graphs\[1\]: has the label True while graphs\[0\] has a string"),
        ([False, 1], r"^graphs\[1\]: has the label 1 while graphs\[0\] has a boolean"),
        ([1, [2]], r"^graphs\[0\]: has one target while others have several"),
        ([1, 2**70], "at most 64 bits"),
    ],
    ids=str,
)
def test_targets_of_different_kinds_are_refused_in_one_line(values, message):
    with pytest.raises(DataError, match=message) as caught:
        target_array(values)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("y", "message"),
    [
        (np.array([1, 1]), "all graphs have the label 1"),
        (np.array([0.5, 1]), "contains real numbers, not classes"),
        (np.zeros((2, 2)), r"has shape \(2, 2\)"),
        (np.array([]), "no label"),
    ],
    ids=["one class", "real numbers", "two columns", "nothing"],
)
def test_what_is_not_two_classes_is_refused(y, message):
    with pytest.raises(DataError, match=message):
        Classes.of(y)


def test_fingerprint_changes_with_any_array_and_with_nothing_else(graphs):
    expected = graphs.fingerprint()
    assert full_set().fingerprint() == expected
    assert replace(graphs, name="other", notes={"rows": 0}).fingerprint() == expected
    assert replace(graphs, given_ids=np.array(list("abcd"))).fingerprint() == expected
    for key, array in graphs.arrays().items():
        other = array.copy()
        other.reshape(-1)[0] += 1
        if key.startswith("loops."):
            changed = replace(graphs, loops=graphs.loops._replace(**{key.removeprefix("loops."): other}))
        else:
            changed = replace(graphs, **{key: other})
        assert changed.fingerprint() != expected, key
    assert replace(graphs, x=graphs.x.astype(np.float64)).fingerprint() != expected
    assert replace(graphs, edge_weight=None).fingerprint() != expected


@pytest.mark.parametrize("second", [(3, 4), (4, 3)], ids=["same direction", "other direction"])
def test_weights_that_contradict_each_other_are_an_error(second):
    rows = EdgeRows(np.array([3, second[0]]), np.array([4, second[1]]), weight=np.array([1.0, 2.0]))
    with pytest.raises(DataError, match=r"nodes [01] and [01] of graph 1"):
        assemble("uneven", np.array([0, 3, 5]), rows)


def test_saved_set_opens_equal_and_mapped(graphs, tmp_path):
    graphs.save(tmp_path / "full.gset")
    opened = GraphSet.open(tmp_path / "full.gset")
    assert opened.fingerprint() == graphs.fingerprint()
    assert (opened.name, dict(opened.notes)) == (graphs.name, dict(graphs.notes))
    assert isinstance(opened.col.base, np.memmap)
    assert opened.subset([3, 1]).fingerprint() == graphs.subset([3, 1]).fingerprint()


def test_sets_without_edges_or_labels_are_saved_too(tmp_path):
    bare = assemble("bare", np.array([0, 2]), EdgeRows(np.zeros(0, np.int64), np.zeros(0, np.int64)))
    bare.save(tmp_path / "bare.gset")
    assert GraphSet.open(tmp_path / "bare.gset").fingerprint() == bare.fingerprint()


def test_saving_again_replaces_the_whole_set(graphs, tmp_path):
    graphs.save(tmp_path / "a.gset")
    small = assemble("small", np.array([0, 2]), EdgeRows(np.array([0]), np.array([1])))
    small.save(tmp_path / "a.gset")
    assert GraphSet.open(tmp_path / "a.gset").fingerprint() == small.fingerprint()
    assert not (tmp_path / "a.gset" / "node_labels.npy").exists()
    assert [p.name for p in tmp_path.iterdir()] == ["a.gset"]


def test_failed_saving_leaves_the_old_set_and_nothing_else(graphs, tmp_path, monkeypatch):
    graphs.save(tmp_path / "a.gset")

    def full_disk(*_, **__):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("numpy.save", full_disk)
    with pytest.raises(GcapsError, match="no space is left on the disk"):
        graphs.subset([0]).save(tmp_path / "a.gset")
    assert GraphSet.open(tmp_path / "a.gset").fingerprint() == graphs.fingerprint()
    assert [p.name for p in tmp_path.iterdir()] == ["a.gset"]


def test_other_folders_and_files_are_never_overwritten(graphs, tmp_path):
    (tmp_path / "thesis").mkdir()
    (tmp_path / "thesis" / "chapter.tex").write_text("years of work")
    (tmp_path / "file").write_text("likewise")
    for name in ("thesis", "file"):
        with pytest.raises(DataError, match="is not a saved GraphSet; choose another name"):
            graphs.save(tmp_path / name)
    assert (tmp_path / "thesis" / "chapter.tex").read_text() == "years of work"


def _page(folder, **changes):
    page = json.loads((folder / "graphset.json").read_text())
    (folder / "graphset.json").write_text(json.dumps({**page, **changes}))


def _array(folder, key, array):
    """Another array, and a page that agrees with it."""
    np.save(folder / f"{key}.npy", array)
    arrays = json.loads((folder / "graphset.json").read_text())["arrays"]
    _page(folder, arrays={**arrays, key: {"dtype": array.dtype.str, "shape": list(array.shape)}})


DAMAGE = {
    "no page": lambda f: (f / "graphset.json").unlink(),
    "page is garbage": lambda f: (f / "graphset.json").write_bytes(b"\xff\xfe{"),
    "page is a list": lambda f: (f / "graphset.json").write_text("[]"),
    "page lacks a key": lambda f: (f / "graphset.json").write_text('{"format": 1}'),
    "other format": lambda f: _page(f, format=99),
    "unknown array": lambda f: _page(f, arrays={"col": {"dtype": "<i4", "shape": [10]}, "sizes": {}}),
    "array missing": lambda f: (f / "col.npy").unlink(),
    "array empty": lambda f: (f / "col.npy").write_bytes(b""),
    "array garbage": lambda f: (f / "col.npy").write_bytes(b"garbage"),
    "array cut": lambda f: (f / "col.npy").write_bytes((f / "col.npy").read_bytes()[:-4]),
    "array of another set": lambda f: np.save(f / "y.npy", np.zeros(9)),
    "pickled array": lambda f: np.save(f / "y.npy", np.array([{}], dtype=object), allow_pickle=True),
    "rows too few": lambda f: _array(f, "y", np.zeros(2, np.int64)),
    "names too few": lambda f: _array(f, "given_ids", np.zeros(2, np.int64)),
    "pointer empty": lambda f: _array(f, "ptr", np.zeros(0, np.int64)),
}


@pytest.mark.parametrize("damage", DAMAGE.values(), ids=DAMAGE)
def test_damaged_folder_is_a_data_error_that_names_it(graphs, tmp_path, damage):
    folder = tmp_path / "a.gset"
    graphs.save(folder)
    damage(folder)
    with pytest.raises(DataError) as caught:
        GraphSet.open(folder)
    assert caught.value.file.startswith(str(folder))
    assert "\n" not in str(caught.value)


def test_array_that_points_outside_its_folder_is_refused(graphs, tmp_path):
    folder = tmp_path / "a.gset"
    graphs.save(folder)
    (folder / "y.npy").rename(tmp_path / "elsewhere.npy")
    (folder / "y.npy").symlink_to(tmp_path / "elsewhere.npy")
    with pytest.raises(DataError, match="is a link"):
        GraphSet.open(folder)


@pytest.mark.parametrize("nodes", [1, 30, 10**6])
def test_chunks_are_the_set_in_pieces_within_the_budget(hostile, nodes):
    pieces = list(hostile.chunks(nodes))
    assert sum(map(len, pieces)) == len(hostile)
    assert all(piece.num_nodes <= nodes or len(piece) == 1 for piece in pieces)
    position = 0
    for piece in pieces:
        assert piece.fingerprint() == hostile.subset(np.arange(position, position + len(piece))).fingerprint()
        assert piece.notes == {}
        position += len(piece)
    order = np.random.default_rng(0).permutation(len(hostile))
    sizes = np.concatenate([piece.sizes for piece in hostile.chunks(nodes, order)])
    assert sizes.tolist() == hostile.sizes[order].tolist()


@pytest.mark.parametrize("stride", [1, 50, 1 << 19])
def test_fingerprint_of_chosen_graphs_is_that_of_their_subset(hostile, graphs, monkeypatch, stride):
    monkeypatch.setattr("gcaps.data.storage.STRIDE", stride)
    rng = np.random.default_rng(0)
    for some in (hostile, graphs):
        for chosen in (np.arange(len(some)), rng.permutation(len(some))[:3], [0], [], np.arange(2, len(some))):
            assert some.fingerprint(chosen) == some.subset(chosen).fingerprint()
    assert hostile.fingerprint(np.arange(len(hostile))) == hostile.fingerprint()


def test_neighboring_graphs_are_views_and_others_are_copies(graphs):
    assert np.shares_memory(graphs[1:3].col, graphs.col)
    assert np.shares_memory(graphs[3].node_labels, graphs.node_labels)
    assert not np.shares_memory(graphs[[0, 2]].col, graphs.col)
    assert not np.shares_memory(graphs[::-1].col, graphs.col)


def test_degrees_of_some_nodes_are_among_those_of_all(hostile):
    nodes = np.random.default_rng(0).permutation(hostile.num_nodes)[:50]
    assert hostile.degrees_of(nodes).tolist() == hostile.degrees[nodes].tolist()


def test_choosing_from_a_mapped_set_reads_nothing_of_the_other_graphs(hostile, tmp_path, monkeypatch):
    """Arrays with a row for each node or arc are never asked for as a whole."""
    hostile.save(tmp_path / "a.gset")
    opened = GraphSet.open(tmp_path / "a.gset")

    def whole(self):
        raise AssertionError("asked for the degrees of all nodes")

    monkeypatch.setattr(GraphSet, "degrees", property(whole))
    monkeypatch.setattr(GraphSet, "arc_counts", property(whole))
    for chosen in ([3, 5, 4], [7], np.arange(4, 9)):
        assert opened.fingerprint(chosen) == hostile.fingerprint(chosen)
        assert opened.subset(chosen).sizes.tolist() == hostile.sizes[chosen].tolist()


def test_targets_columns_names_and_skipped_rows_are_saved(tmp_path):
    graphs = replace(
        load("MUTAG")[:3],
        y=np.array([[1.0, np.nan], [0, 1], [1, 0]]),
        target_names=("a/b", "c"),
        columns={"smiles": np.array(["C", "CC", "süß"]), "year": np.array([1, 2, 3])},
        label_names={7: "C"},
        skipped=(Skipped(1, "x", "is not a SMILES"),),
    )
    graphs.save(tmp_path / "m.gset")
    for opened in (GraphSet.open(tmp_path / "m.gset"), write_graphs([graphs], tmp_path / "w.gset")):
        assert np.array_equal(opened.y, graphs.y, equal_nan=True)
        assert (opened.target_names, opened.label_names, opened.skipped) == (("a/b", "c"), {7: "C"}, graphs.skipped)
        assert {name: column.tolist() for name, column in opened.columns.items()} == {
            "smiles": ["C", "CC", "süß"],
            "year": [1, 2, 3],
        }
        assert opened.fingerprint() == graphs.fingerprint()
    assert replace(graphs, columns={}, label_names={}, skipped=()).fingerprint() == graphs.fingerprint()
    assert replace(graphs, y=graphs.y[:, 0]).fingerprint() != graphs.fingerprint()


def test_the_fingerprint_of_mutag_is_what_it_always_was():
    assert load("MUTAG").fingerprint() == "51730f3a775eaee03a492577651dc52e82e3dc897482794aad80aa7de27f2cf4"
