import json

import numpy as np
import pytest

from gcaps.data.sequence import Edges, GraphSequence, read_sequence
from gcaps.errors import DataError

FIXED = {"edges": [[0, 1], [1, 0], [2, 2]], "weights": [1.0, 2.0, 3.0], "X": [[1, 2, 3], [4, 5, 6.5]]}
DYNAMIC = {
    "edge_mapping": {
        "edge_index": {"0": [[0, 1]], "1": [[1, 0], [1, 1]]},
        "edge_weight": {"0": [5.0], "1": [6.0, 7.0]},
    },
    "time_periods": 2,
    "y": [[1.0, 2.0], [3.0, 4.0]],
}


def written(tmp_path, content):
    path = tmp_path / "some.json"
    path.write_text(json.dumps(content))
    return path


def test_fixed_edges_are_read(tmp_path):
    found = read_sequence(written(tmp_path, FIXED))
    assert (found.name, len(found), found.num_nodes) == ("some", 2, 3)
    np.testing.assert_array_equal(found.edges_at(1).edge_index, [[0, 1, 2], [1, 0, 2]])
    np.testing.assert_array_equal(found.edges_at(0).edge_weight, [1, 2, 3])


def test_edges_of_every_step_are_read_in_order(tmp_path):
    found = read_sequence(written(tmp_path, DYNAMIC))
    np.testing.assert_array_equal(found.edges_at(1).edge_index, [[1, 1], [0, 1]])
    np.testing.assert_array_equal(found.edges_at(1).edge_weight, [6, 7])
    assert len(found.until(1)) == len(found.until(1).edges) == 1


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ([1, 2], "no graph sequence"),
        ({"edges": [[0, 1]]}, "neither X nor FX"),
        (FIXED | {"X": [[1, 2], [3]]}, "different numbers of nodes"),
        (FIXED | {"edges": [[0, 7], [1, 0], [2, 2]]}, "outside of the 3 nodes"),
        (FIXED | {"weights": [1.0]}, "3 edges and 1 weights"),
        (FIXED | {"weights": [1.0, -2.0, 3.0]}, "negative"),
        (FIXED | {"X": []}, "values"),
        (FIXED | {"edges": [[0, "a"]]}, "edges"),
        (DYNAMIC | {"y": [[1.0, 2.0]] * 3}, "no edges for step 2"),
    ],
)
def test_files_of_another_form_are_refused_in_one_line(tmp_path, content, words):
    with pytest.raises(DataError, match=words) as error:
        read_sequence(written(tmp_path, content))
    assert "\n" not in str(error.value)


def test_values_that_are_not_finite_are_refused():
    edges = (Edges(np.zeros((2, 0), dtype=np.int64)),)
    with pytest.raises(DataError, match="not finite"):
        GraphSequence("bad", np.array([[1.0, np.nan]]), edges)


@pytest.mark.parametrize("name", ["chickenpox", "pedalme_london", "england_covid"])
def test_public_sets_are_read(data_folder, name):
    found = read_sequence(data_folder / "temporal" / f"{name}.json")
    shapes = {"chickenpox": (521, 20), "pedalme_london": (35, 15), "england_covid": (61, 129)}
    assert found.values.shape == shapes[name]
