"""Receptive fields of PATCHY-SAN against breadth-first search and brute force."""

from itertools import permutations

import networkx as nx
import numpy as np
import pytest

from gcaps.config import PSCNConfig
from gcaps.data.graphset import GraphSet
from gcaps.data.hashing import stable_colors
from gcaps.models.fields import ReceptiveFields, adjacency_bits, assemble, canonical_order, walk_counts
from gcaps.testing import hostile_graphs, permute_nodes

K = 6


def whole(graphs):
    fields = ReceptiveFields.of(graphs, K)
    first = np.repeat(graphs.ptr[:-1], graphs.sizes)
    return np.where(fields.nodes >= 0, fields.nodes + first[:, None], -1)


def test_a_field_is_the_nearest_nodes_by_distance_then_rank(hostile):
    rank = np.random.default_rng(0).integers(0, 5, hostile.num_nodes)
    fields, distances = assemble(hostile.ptr, hostile.rowptr, hostile.col, rank, K)
    for number, graph in enumerate(hostile.to_networkx()):
        base = hostile.ptr[number]
        for root in graph:
            far = nx.single_source_shortest_path_length(graph, root)
            expected = sorted(far, key=lambda v: (far[v], rank[base + v], v))[:K]
            found = fields[base + root]
            assert found[found >= 0].tolist() == expected
            assert distances[base + root][: len(expected)].tolist() == [far[v] for v in expected]
            assert (found[len(expected) :] == -1).all()


def code(A, order):
    return [tuple(A[order[p]][list(order[:p])]) for p in range(len(order))]


@pytest.mark.parametrize("seed", range(60))
def test_ties_are_broken_by_the_largest_adjacency_code(seed):
    """Against all orders of up to seven nodes that respect the groups."""
    rng = np.random.default_rng(seed)
    size = int(rng.integers(2, 8))
    A = np.triu(rng.random((size, size)) < rng.choice([0.2, 0.5, 0.8, 1.0]), 1).astype(int)
    A = A + A.T
    group = np.sort(rng.integers(0, rng.integers(1, 4), size))
    bits = (A * (1 << np.arange(size))).sum(axis=1)
    found = canonical_order(bits.astype(np.int64), group.astype(np.int64))
    orders = [order for order in permutations(range(size)) if (group[list(order)] == group).all()]
    assert tuple(found) in orders
    assert code(A, found) == max(code(A, order) for order in orders)


def test_adjacency_bits():
    graph = GraphSet.from_networkx([nx.cycle_graph(5)], [0])
    bits = adjacency_bits(0, graph.rowptr, graph.col, np.array([0, 4, 2], dtype=np.int32), 3)
    assert bits.tolist() == [0b010, 0b001, 0b000]


@pytest.mark.parametrize("name", ["petersen_graph", "icosahedral_graph", "cubical_graph", "tutte_graph"])
def test_symmetric_graphs_have_one_field_up_to_isomorphism(name):
    """Every node of a vertex-transitive graph has the same canonical field; tutte_graph, which is not, has several."""
    graph = getattr(nx, name)()
    graphs = GraphSet.from_networkx([nx.convert_node_labels_to_integers(graph)], [0])
    fields = ReceptiveFields.of(graphs, 10).nodes
    matrix = nx.to_numpy_array(graph)
    seen = {matrix[np.ix_(f[f >= 0], f[f >= 0])].tobytes() for f in fields}
    assert (len(seen) == 1) == (name != "tutte_graph")


def test_fields_hold_the_same_colors_under_any_node_order():
    graphs = hostile_graphs(64, seed=1)
    moved, order = permute_nodes(graphs, 3)
    before, after = stable_colors(graphs), stable_colors(moved)
    np.testing.assert_array_equal(after, before[order])
    colors = [np.where(f >= 0, c[f], 0) for f, c in ((whole(graphs), before), (whole(moved), after))]
    np.testing.assert_array_equal(*colors)


def test_walks_are_counted_as_powers_of_the_adjacency_matrix_do(hostile):
    found = walk_counts(hostile, 4)
    for g in range(len(hostile)):
        first, last = hostile.ptr[g : g + 2]
        A = np.zeros((last - first, last - first), dtype=object)
        for v in range(first, last):
            for w in hostile.col[hostile.rowptr[v] : hostile.rowptr[v + 1]]:
                A[v - first, w] += 1
        power = A.sum(axis=1)
        for count in found:
            power = A @ power
            assert count[first:last].tolist() == [value % 2**64 for value in power]


def test_nodes_of_a_graph_come_by_degree_label_and_walks():
    graphs = hostile_graphs(40, seed=2)
    roots = whole(graphs)[:, 0]
    walks = walk_counts(graphs, 3)
    for first, last in zip(graphs.ptr[:-1], graphs.ptr[1:], strict=True):
        order = roots[first:last]
        keys = [(-graphs.degrees[v], *graphs.node_labels[v], *(-int(count[v]) for count in walks)) for v in order]
        assert keys == sorted(keys)
        assert sorted(order) == list(range(first, last))


def test_batches_count_nodes_within_them():
    graphs = hostile_graphs(16, seed=2)
    fields = ReceptiveFields.of(graphs, K)
    chosen = np.array([9, 3])
    found = fields.take(chosen)["fields"].numpy()
    one = fields.nodes[graphs.ptr[9] : graphs.ptr[10]]
    two = fields.nodes[graphs.ptr[3] : graphs.ptr[4]]
    np.testing.assert_array_equal(found, np.concatenate([one, np.where(two >= 0, two + len(one), -1)]))


def test_first_convolution_is_a_product_with_each_field_written_out():
    import torch

    from gcaps.batching import BatchSource
    from gcaps.features import NodeFeatures
    from gcaps.models.pscn import PSCN

    graphs = hostile_graphs(24, seed=3)
    config = PSCNConfig(field=K, channels=4, features=("labels", "attributes"))
    features = NodeFeatures.fit(config, graphs)
    source = BatchSource(graphs, features.encode(graphs), torch.float64, PSCN.prepare(config, graphs))
    width = PSCN.shape_from(config, graphs)["width"]
    assert width == round(graphs.sizes.mean())
    network = PSCN(features.num_features, 2, config, width=width).double()
    torch.nn.init.normal_(network.bias)
    found = network.field_channels(source.take(np.arange(24))).detach().numpy()
    X, W = features.transform(graphs), network.first.weight.detach().numpy().reshape(-1, K, 4)
    fields = whole(graphs)
    for number in range(24):
        for i in range(width):
            y = network.bias.detach().numpy().copy()
            if i < graphs.sizes[number]:
                for j, v in enumerate(fields[graphs.ptr[number] + i]):
                    y += X[v] @ W[:, j] if v >= 0 else 0
            np.testing.assert_allclose(found[number, i], np.maximum(y, 0), atol=1e-10)
