import numpy as np
import pytest
from scipy.sparse import block_diag, csr_array

from gcaps.data import FAMILIES, facts, make_families, random_molecules, write_graphs
from gcaps.features import component_distances

graphs = make_families()


def adjacency(which) -> csr_array:
    chosen = graphs.subset(which)
    return csr_array(block_diag([csr_array((np.ones(g.edge_index.shape[1]), g.edge_index)) for g in chosen]))


def test_every_node_has_four_neighbors_and_graphs_are_simple_and_connected():
    assert (graphs.degrees == 4).all()
    assert graphs.loops is None
    assert facts(graphs).disconnected == 0
    first = np.repeat(graphs.ptr[:-1], graphs.arc_counts)
    source = np.repeat(np.arange(graphs.num_nodes), graphs.degrees)
    assert (np.diff(source * graphs.num_nodes + graphs.col + first) > 0).all()


def test_classes_have_the_same_sizes_and_nothing_else_to_go_by():
    sizes = [np.sort(graphs.sizes[graphs.y == c]).tolist() for c in range(len(FAMILIES))]
    assert all(s == sizes[0] for s in sizes)
    assert (min(sizes[0]), max(sizes[0])) == (12, 40)
    assert graphs.node_labels is None
    assert graphs.x is None


def test_classes_differ_in_triangles_and_distances():
    triangles, spread = [], []
    for c in range(len(FAMILIES)):
        A = adjacency(graphs.y == c)
        triangles.append((A @ A).multiply(A).sum() / 6 / len(graphs.subset(graphs.y == c)))
        large = graphs.subset((graphs.y == c) & (graphs.sizes >= 24))
        spread.append(np.mean([d.max(axis=(1, 2)).mean() for _, d in component_distances(large)]))
    ring, torus, communities, random = range(4)
    assert triangles[ring] > 3 * max(triangles[torus], triangles[random])
    assert spread[ring] > 1.2 * spread[communities] > 1.4 * spread[torus]
    assert spread[torus] > 1.05 * spread[random]


def test_no_two_graphs_are_stored_alike():
    assert facts(graphs).identical.graphs == 0


def test_weisfeiler_lehman_sees_nothing_but_sizes():
    assert facts(graphs).look_alikes.groups == len(np.unique(graphs.sizes))


def test_seed_decides_everything():
    assert make_families().fingerprint() == graphs.fingerprint()
    assert make_families(seed=1).fingerprint() != graphs.fingerprint()


def test_set_is_the_same_on_every_machine():
    assert make_families(graphs=8).fingerprint() == "009bb6cb00ac1234715594e3ab5f27ed8c9544bc9d72f8a31fc1064bd9bb0397"


@pytest.mark.parametrize("count", [1, 4, 10])
def test_any_number_of_graphs(count):
    made = make_families(count)
    assert len(made) == count
    assert (made.degrees == 4).all()


def test_molecules_have_the_promised_size_and_classes(tmp_path):
    graphs = write_graphs(random_molecules(9000, seed=3), tmp_path / "m.gset")
    assert len(graphs) == 9000
    assert abs(graphs.num_nodes / 9000 - 25) < 0.3
    assert abs(graphs.num_edges / 9000 - 27) < 0.5
    assert 0.4 < graphs.y.mean() < 0.6
    assert graphs.notes == {}


def test_class_is_whether_nitrogen_and_oxygen_are_joined():
    graphs = next(random_molecules(300))
    for one in graphs:
        ends = one.node_labels[one.edge_index, 0]
        assert one.y == int(((ends[0] == 7) & (ends[1] == 8)).any())


def test_every_molecule_is_connected():
    found = facts(next(random_molecules(2000)))
    assert found.disconnected == 0
    assert found.identical.groups < 5


def test_the_same_seed_gives_the_same_graphs_however_many_are_asked_for():
    few, many = next(random_molecules(100, seed=1)), next(random_molecules(5000, seed=1))
    assert few.fingerprint() == many[:100].fingerprint()
    assert next(random_molecules(100, seed=2)).fingerprint() != few.fingerprint()
    chunks = list(random_molecules(10_000, seed=1))
    assert [len(chunk) for chunk in chunks] == [8192, 1808]
    assert not np.array_equal(chunks[0].col[:100], chunks[1].col[:100])
