"""Adjacency matrices in .npz files."""

import networkx as nx
import numpy as np
import pytest
from scipy.sparse import block_diag, csr_array

import gcaps
from gcaps.errors import DataError

GRAPHS = [nx.cycle_graph(4), nx.path_graph(3), nx.complete_graph(4)]
MATRICES = [nx.to_numpy_array(graph) for graph in GRAPHS]
Y = np.array([0, 1, 0])


def padded():
    stack = np.zeros((3, 4, 4))
    for i, matrix in enumerate(MATRICES):
        stack[i, : len(matrix), : len(matrix)] = matrix
    return stack


@pytest.mark.parametrize("form", ["stack", "numbered", "savez", "sparse"])
def test_every_form_gives_the_same_graphs(tmp_path, form):
    whole = csr_array(block_diag(MATRICES))
    sizes = np.array([len(matrix) for matrix in MATRICES])
    arrays = {
        "stack": {"adjacency": padded(), "sizes": sizes},
        "numbered": {f"adj_{i}": matrix for i, matrix in enumerate(MATRICES)},
        "savez": {f"arr_{i}": matrix for i, matrix in enumerate(MATRICES)},
        "sparse": {"indptr": whole.indptr, "indices": whole.indices, "data": whole.data,
                   "batch": np.repeat([0, 1, 2], sizes)},
    }[form]  # fmt: skip
    x = np.arange(sizes.sum())[:, None] / 2
    np.savez(tmp_path / "t.npz", **arrays, y=Y, x=x)
    graphs = gcaps.load(tmp_path / "t.npz")
    expected = gcaps.data.from_networkx(GRAPHS, Y.tolist())
    assert graphs.y.tolist() == Y.tolist()
    assert np.array_equal(graphs.col, expected.col)
    assert np.array_equal(graphs.ptr, expected.ptr)
    assert np.array_equal(graphs.x, x)
    assert graphs.edge_weight is None


def test_entries_other_than_one_are_weights_and_padded_features_are_cut(tmp_path):
    features = np.arange(3 * 4 * 2).reshape(3, 4, 2).astype(float)
    np.savez(
        tmp_path / "t.npz", adjacency=2.5 * padded(), sizes=[4, 3, 4], x=features, labels=np.array(["a", "b", "a"])
    )
    graphs = gcaps.load(tmp_path / "t.npz")
    assert set(graphs.edge_weight.tolist()) == {2.5}
    assert graphs.x.tolist() == np.concatenate([features[0], features[1, :3], features[2]]).tolist()
    assert graphs.y.tolist() == ["a", "b", "a"]


def test_a_target_can_be_named(tmp_path):
    np.savez(tmp_path / "t.npz", adjacency=np.stack(MATRICES[::2]), logp=np.array([0.5, 1.5]))
    assert gcaps.load(tmp_path / "t.npz", target="logp").y.tolist() == [0.5, 1.5]
    with pytest.raises(DataError, match="has no array 'gone'; it has adjacency, logp"):
        gcaps.load(tmp_path / "t.npz", target="gone")


FAULTS = {
    "nothing": ({"z": Y}, "has no adjacency: it holds z"),
    "not square": ({"adj_0": np.zeros((2, 3))}, "an adjacency is square"),
    "negative": ({"adjacency": -np.ones((1, 2, 2))}, "negative entries"),
    "NaN": ({"adjacency": np.full((1, 2, 2), np.nan)}, "NaN or infinity"),
    "asymmetric weights": ({"adjacency": np.array([[[0, 2.0], [3, 0]]])}, "in one direction and"),
    "rows of x": ({"adjacency": np.ones((1, 2, 2)), "x": np.ones((3, 1))}, "x has 3 rows, expected 2"),
    "targets": ({"adjacency": np.ones((1, 2, 2)), "y": np.ones(3)}, "expected a target for each of 1 graphs"),
    "no batch": ({"indptr": np.array([0, 1]), "indices": np.array([0])}, "add batch"),
    "batch": ({"indptr": np.array([0, 1]), "indices": np.array([9]), "batch": np.array([0])}, "do not agree"),
    "sizes": ({"adjacency": np.ones((1, 2, 2)), "sizes": np.array([9])}, "integers of at most 2"),
}


@pytest.mark.parametrize(("arrays", "message"), FAULTS.values(), ids=FAULTS)
def test_fault_of_npz_says_what_is_expected(tmp_path, arrays, message):
    np.savez(tmp_path / "t.npz", **arrays)
    with pytest.raises(DataError) as caught:
        gcaps.load(tmp_path / "t.npz", labelled=False)
    assert message in str(caught.value)


def test_objects_and_other_files_are_refused(tmp_path, monkeypatch):
    np.savez(tmp_path / "t.npz", adjacency=np.array([{}], dtype=object))
    with pytest.raises(DataError, match="holds Python objects, which are not read"):
        gcaps.load(tmp_path / "t.npz")
    (tmp_path / "u.npz").write_text("text")
    with pytest.raises(DataError, match=r"is not an .npz file"):
        gcaps.load(tmp_path / "u.npz")
    np.savez_compressed(tmp_path / "v.npz", adjacency=np.zeros((10, 100, 100)))
    monkeypatch.setenv("GCAPS_MAX_BYTES", "10000")
    with pytest.raises(DataError, match="more than the limit of 10,000"):
        gcaps.load(tmp_path / "v.npz")
