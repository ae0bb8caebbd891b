import numpy as np
import pytest
from scipy.sparse import block_diag, csr_array

from gcaps.data import FAMILIES, facts, make_families
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
