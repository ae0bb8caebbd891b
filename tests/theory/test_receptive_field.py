"""Theorem 1 by gradients, and where it stops."""

import networkx as nx
import pytest
import torch

from gcaps.nn import CAPSULES, FILTERS, GraphCapsuleConv
from gcaps.theory import hops, input_influence, receptive_field

POLYNOMIAL_FILTERS = [name for name in FILTERS if name != "cayley"]


def path(n):
    i = torch.arange(n - 1)
    return torch.cat([torch.stack([i, i + 1]), torch.stack([i + 1, i])], dim=1)


def random_graph(n, seed):
    """A sparse random graph: several components, isolated nodes, cycles."""
    graph = nx.gnm_random_graph(n, int(1.1 * n), seed=seed)
    edges = torch.tensor(list(graph.edges)).t()
    return torch.cat([edges, edges.flip(0)], dim=1)


def network(edge_index, layers, degree, **settings):
    """x ↦ outputs of that many capsule layers, smooth, in float64."""
    convs, width = [], 2
    for _ in range(layers):
        conv = GraphCapsuleConv(width, 3, 3, degree, bound=2.0, activation="tanh", **settings).double()
        torch.nn.init.uniform_(conv.weight, -0.1, 0.1)  # where tanh saturates its derivative is 0, which hides much
        convs.append(conv)
        width = conv.width

    def outputs(x):
        for conv in convs:
            x = conv(x, edge_index)
        return x

    return outputs


@pytest.mark.parametrize("layers", [1, 2])
@pytest.mark.parametrize("degree", [1, 2, 3])
@pytest.mark.parametrize("capsule", CAPSULES)
def test_theorem1_on_paths_exactly_k_times_l_hops_are_seen(capsule, degree, layers):
    edge_index = path(17)
    function = network(edge_index, layers, degree, capsule=capsule, filter="mean")
    for node in (0, 8):
        seen = receptive_field(function, torch.randn(17, 2, dtype=torch.float64), node)
        assert torch.equal(seen, hops(edge_index, 17, node) <= degree * layers)


@pytest.mark.parametrize("layers", [1, 2])
@pytest.mark.parametrize("degree", [1, 2, 3])
@pytest.mark.parametrize("capsule", CAPSULES)
def test_theorem1_on_random_graphs_no_more_than_k_times_l_hops_are_seen(capsule, degree, layers):
    n, reach = 30, degree * layers
    edge_index = random_graph(n, seed=degree)
    function = network(edge_index, layers, degree, capsule=capsule)
    x = torch.randn(n, 2, dtype=torch.float64)
    for node in range(0, n, 6):
        seen, distance = receptive_field(function, x, node), hops(edge_index, n, node)
        assert not seen[distance > reach].any()
        assert seen[distance == reach].all()


@pytest.mark.parametrize("name", POLYNOMIAL_FILTERS)
@pytest.mark.parametrize("capsule", CAPSULES)
def test_theorem1_holds_for_every_polynomial_filter(capsule, name):
    edge_index = path(13)
    function = network(edge_index, 2, 2, capsule=capsule, filter=name)
    seen, distance = receptive_field(function, torch.randn(13, 2, dtype=torch.float64), 6), hops(edge_index, 13, 6)
    assert not seen[distance > 4].any()
    assert seen[distance == 4].all()


def test_theorem1_degree_0_sees_the_node_alone():
    edge_index = path(5)
    for capsule in CAPSULES:
        function = network(edge_index, 2, 0, capsule=capsule)
        seen = receptive_field(function, torch.randn(5, 2, dtype=torch.float64), 2)
        assert seen.tolist() == [False, False, True, False, False]


def test_theorem1_does_not_hold_for_cayley_filters_which_see_their_whole_component():
    edge_index = torch.cat([path(13), path(5) + 13], dim=1)
    function = network(edge_index, 1, 1, filter="cayley")
    influence = input_influence(function, torch.randn(18, 2, dtype=torch.float64), 0)
    assert (influence[:13] > 0).all()
    assert not influence[13:].any()
    assert influence[12] < 1e-2 * influence[0]  # and yet mostly what is near


def test_theorem1_holds_with_batch_normalisation_in_evaluation_mode_and_not_in_training():
    edge_index = path(11)
    conv = GraphCapsuleConv(2, 3, normalize=True, activation="tanh").double()
    x = torch.randn(11, 2, dtype=torch.float64)
    assert receptive_field(lambda z: conv(z, edge_index), x, 5).all()
    conv.eval()
    assert torch.equal(receptive_field(lambda z: conv(z, edge_index), x, 5), hops(edge_index, 11, 5) <= 1)


def test_theorem1_follows_arcs_the_way_information_flows():
    edge_index = torch.tensor([[0, 1, 2], [1, 2, 3]])  # 0 → 1 → 2 → 3
    assert hops(edge_index, 5, 2).tolist() == [2, 1, 0, torch.inf, torch.inf]
    function = network(edge_index, 1, 2, filter="adjacency")
    seen = receptive_field(function, torch.randn(5, 2, dtype=torch.float64), 2)
    assert seen.tolist() == [True, True, True, False, False]


def test_hops_match_networkx():
    edge_index = random_graph(25, seed=1)
    graph = nx.Graph(edge_index.t().tolist())
    for node in graph:
        expected = nx.single_source_shortest_path_length(graph, node)
        found = hops(edge_index, 25, node)
        assert {j: int(d) for j, d in enumerate(found.tolist()) if d != torch.inf} == expected


def test_influence_is_not_lost_where_components_cancel():
    function = lambda x: torch.stack([x, -x], dim=2)  # noqa: E731
    assert receptive_field(function, torch.ones(3, 1), 1).tolist() == [False, True, False]


def test_a_constant_function_depends_on_nothing():
    assert not receptive_field(lambda x: torch.ones(3, 2), torch.ones(3, 1), 1).any()
