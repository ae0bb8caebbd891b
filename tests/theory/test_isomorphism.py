"""The Sub-Graph Isomorphism Feature Test: Propositions 1 and 2."""

import pytest
import torch

from gcaps.nn import CAPSULES, GraphCapsuleConv, MaxSortPool, MeanCovariance, flatten_capsules
from gcaps.theory import example_pair, proposition1, proposition2, random_pair, readings, subgraph_feature_test


def is_induced(pair):
    """Whether G_1 is the sub-graph of G_2 that the embedding names."""
    inside = torch.isin(pair.edge_index2, pair.embedding).all(dim=0)
    expected = {tuple(arc) for arc in pair.edge_index2[:, inside].t().tolist()}
    return {tuple(arc) for arc in pair.embedding[pair.edge_index1].t().tolist()} == expected


def test_the_examples_are_sub_graph_isomers():
    for pair in (example_pair(), *(random_pair(6, 3, 2, seed) for seed in range(20))):
        assert is_induced(pair)
        torch.testing.assert_close(pair.z1, pair.z2[pair.embedding])


def test_proposition1_max_sort_fails_after_one_node_of_higher_rank():
    result = proposition1()
    assert not result.passed
    assert not any(result.comparable)
    nodes = [[sorted(reading.nodes) for reading in half[::2]] for half in (result.first, result.second)]
    assert nodes == [[[0], [1], [2]], [[3], [0], [1]]]
    assert "6 of 6 positions change their meaning" in result.explanation
    assert "position 0 reads column 0 of node 0 in G_1, and column 0 of node 3 in G_2" in result.explanation
    assert "node 3 is not in G_1" in result.explanation


def test_proposition1_max_sort_fails_just_where_an_extra_node_ranks_among_the_first_k():
    verdicts = []
    for seed in range(40):
        pair = random_pair(8, 2, 3, seed)
        first = torch.topk(pair.z2[:, -1], 3).indices
        verdicts.append(proposition1(pair, k=3).passed)
        assert verdicts[-1] == bool(torch.isin(first, pair.embedding).all())
    assert 10 < sum(verdicts) < 30  # 7·6 / 10·9 of them pass


def test_proposition1_max_sort_positions_above_the_extra_node_keep_their_meaning():
    pair = example_pair()
    low = pair._replace(z2=pair.z2.index_fill(0, torch.tensor([3]), -9.0))
    assert proposition1(low).passed  # a guarantee needs every pair, not this one
    assert not proposition1(low, k=4).passed  # a place that was padding in G_1 holds a node in G_2


def test_proposition2_covariance_passes_on_the_pair_where_max_sort_fails():
    result = proposition2()
    assert result.passed
    assert [sorted(reading.columns) for reading in result.first] == [[0], [1], [0], [0, 1], [1]]
    assert all(reading.everywhere for reading in (*result.first, *result.second))
    assert "each of the 5 positions reads the same columns" in result.explanation


@pytest.mark.parametrize("extra", [0, 1, 5])
@pytest.mark.parametrize("nodes", [2, 3, 8])
def test_proposition2_covariance_passes_on_every_random_pair(nodes, extra):
    for seed in range(10):
        assert proposition2(random_pair(nodes, extra, 3, seed)).passed


def test_proposition2_position_ab_reads_columns_a_and_b_of_all_nodes_in_any_graph():
    a, b = torch.triu_indices(4, 4)
    expected = [{c} for c in range(4)] + [{i, j} for i, j in zip(a.tolist(), b.tolist(), strict=True)]
    for n in (2, 5, 9):
        found = readings(MeanCovariance(4), torch.randn(n, 4, dtype=torch.float64))
        assert [set(reading.columns) for reading in found] == expected
        assert all(reading.everywhere for reading in found)


def test_proposition2_a_node_at_the_mean_is_still_read():
    z = torch.tensor([[-1.0], [0.0], [1.0]], dtype=torch.float64)  # the derivative of C by the middle one is 0
    assert all(reading.everywhere for reading in readings(MeanCovariance(1), z))


@pytest.mark.parametrize("capsule", CAPSULES)
def test_propositions_hold_for_the_outputs_of_a_capsule_layer(capsule):
    pair = random_pair(8, 3, 2, seed=4)
    conv = GraphCapsuleConv(2, 2, 2, capsule=capsule, activation="tanh").double()
    with torch.no_grad():
        z1 = flatten_capsules(conv(pair.z1, pair.edge_index1))
        z2 = flatten_capsules(conv(pair.z2, pair.edge_index2))
    assert not subgraph_feature_test(MaxSortPool(4), z1, z2, pair.embedding).passed
    assert subgraph_feature_test(MeanCovariance(conv.width), z1, z2, pair.embedding).passed


def test_mean_and_sum_pass_and_maximum_fails():
    pair = example_pair()
    verdicts = {
        readout: subgraph_feature_test(lambda z, of=readout: getattr(z, of)(dim=0), pair.z1, pair.z2).passed
        for readout in ("mean", "sum", "amax")
    }
    assert verdicts == {"mean": True, "sum": True, "amax": False}


def test_node_count_beside_the_covariance_reads_no_feature_and_passes():
    pair = example_pair()
    result = subgraph_feature_test(MeanCovariance(2, count=True, root=True, reduce="sum"), pair.z1, pair.z2)
    assert result.passed
    assert str(result.first[-1]) == "nothing"


def test_the_order_of_the_larger_graphs_nodes_changes_nothing():
    pair = random_pair(6, 2, 2, seed=1)
    order = torch.randperm(8)
    moved = pair._replace(z2=pair.z2[order], embedding=torch.argsort(order)[pair.embedding])
    assert proposition1(moved).comparable == proposition1(pair).comparable
    assert proposition2(moved).passed


@pytest.mark.parametrize(
    ("readout", "n1", "n2", "embedding", "words"),
    [
        (MeanCovariance(2), 1, 3, None, "at least two nodes"),
        (MeanCovariance(2), 3, 4, [0, 0, 1], "3 different nodes of the 4"),
        (MeanCovariance(2), 4, 3, None, "4 different nodes of the 3"),
        (torch.nn.Identity(), 2, 3, None, "differ in length: 4 and 6"),
    ],
)
def test_what_is_no_pair_is_refused(readout, n1, n2, embedding, words):
    image = None if embedding is None else torch.tensor(embedding)
    with pytest.raises(ValueError, match=words):
        subgraph_feature_test(readout, torch.randn(n1, 2), torch.randn(n2, 2), image)
