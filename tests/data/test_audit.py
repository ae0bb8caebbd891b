import networkx as nx
import numpy as np
import pytest

from gcaps.data import facts, from_networkx, load
from gcaps.data.hashing import stored_hashes, wl_hashes
from gcaps.testing import hostile_graphs, permute_nodes


def test_facts_of_mutag():
    found = facts(load("MUTAG"))
    assert (found.graphs, dict(found.classes)) == (188, {-1: 63, 1: 125})
    assert (found.nodes_min, found.nodes_max) == (10, 28)
    assert found.nodes_mean == pytest.approx(17.93, abs=0.005)
    assert found.edges_mean == pytest.approx(19.79, abs=0.005)
    assert (found.node_labels, found.edge_labels) == ((7,), (4,))
    assert (found.disconnected, found.edgeless, found.self_loops) == (0, 0, 0)


def test_pieces_and_bare_graphs_are_counted_like_networkx_does():
    graphs = hostile_graphs(40, seed=3)
    found = facts(graphs)
    assert found.disconnected == sum(not nx.is_connected(g) for g in graphs.to_networkx())
    assert found.edgeless == sum(g.edge_index.size == 0 for g in graphs)
    assert found.self_loops == sum(nx.number_of_selfloops(g) for g in graphs.to_networkx())


def test_unlabelled_and_empty_sets_have_facts():
    graphs = from_networkx([nx.path_graph(3)])
    assert dict(facts(graphs).classes) == {}
    assert facts(graphs[[]]).graphs == 0


def test_duplicates_and_their_conflicts_are_counted():
    triangle, path = nx.cycle_graph(3), nx.path_graph(4)
    turned = nx.empty_graph(4)
    turned.add_edges_from([(2, 0), (0, 3), (3, 1)])  # the path in another node order
    found = facts(from_networkx([triangle, path, triangle, turned, path, nx.star_graph(3)], [0, 0, 0, 1, 0, 1]))
    assert (found.identical.groups, found.identical.graphs, found.identical.conflicting_groups) == (2, 4, 0)
    assert (found.look_alikes.groups, found.look_alikes.graphs) == (2, 5)
    assert (found.look_alikes.conflicting_groups, found.look_alikes.conflicting_graphs) == (1, 3)


@pytest.mark.parametrize("weighted", [False, True])
def test_wl_hash_does_not_depend_on_node_order_and_the_stored_hash_does(weighted):
    graphs = hostile_graphs(48, seed=5, weighted=weighted)
    moved, _ = permute_nodes(graphs, 1)
    assert np.array_equal(wl_hashes(graphs), wl_hashes(moved))
    assert (stored_hashes(graphs) != stored_hashes(moved)).any()
    assert np.array_equal(stored_hashes(graphs), stored_hashes(graphs.subset(np.arange(48))))


def test_hashes_do_not_depend_on_stride_or_company(monkeypatch):
    graphs = hostile_graphs(48, seed=6, weighted=True)
    expected = wl_hashes(graphs), stored_hashes(graphs)
    monkeypatch.setattr("gcaps.data.hashing.STRIDE", 7)
    assert np.array_equal(wl_hashes(graphs), expected[0])
    assert np.array_equal(stored_hashes(graphs.subset([40, 3])), expected[1][[40, 3]])


def test_wl_groups_are_those_of_networkx():
    """Same groups as an independent implementation, on real molecules with node labels."""
    graphs = load("MUTAG")
    from dataclasses import replace

    graphs = replace(graphs, edge_labels=None)
    theirs = [nx.weisfeiler_lehman_graph_hash(g, iterations=4, node_attr="label") for g in graphs.to_networkx()]
    _, ours = np.unique(wl_hashes(graphs), return_inverse=True)
    _, expected = np.unique(theirs, return_inverse=True)
    pairs = np.unique(np.stack([ours, expected]), axis=1)
    assert len(np.unique(ours)) == len(np.unique(expected)) == pairs.shape[1]


@pytest.mark.parametrize("field", ["node_labels", "x", "edge_weight"])
def test_every_field_tells_graphs_apart(field):
    from dataclasses import replace

    graphs = hostile_graphs(16, seed=7, weighted=True)
    changed = replace(graphs, **{field: getattr(graphs, field) + 1})
    touched = graphs.arc_counts > 0 if field == "edge_weight" else np.ones(16, dtype=bool)
    assert np.array_equal(wl_hashes(graphs) != wl_hashes(changed), touched)
    assert np.array_equal(stored_hashes(graphs) != stored_hashes(changed), touched)


def test_negative_zero_is_zero():
    graphs = [nx.path_graph(2), nx.path_graph(2)]
    for zero, graph in zip((0.0, -0.0), graphs, strict=True):
        nx.set_node_attributes(graph, (zero,), "attributes")
    assert facts(from_networkx(graphs)).identical.graphs == 2


def test_imdb_binary_is_full_of_look_alikes(data_folder):
    found = facts(load(data_folder / "IMDB-BINARY.zip"))
    assert found.look_alikes.graphs > 500
    assert found.notes["duplicate_arcs"] > 0
