"""Merged nodes: the network computes from rows what it computes from nodes, forwards and backwards."""

from dataclasses import fields

import networkx as nx
import numpy as np
import pytest
import torch

from gcaps.batching import BatchSource, merging
from gcaps.batching.merging import merged_nodes
from gcaps.config import Config, FeatureConfig
from gcaps.data.hashing import neighbors_of_set
from gcaps.data.io.networkx import from_networkx
from gcaps.data.prepared import PreparedSet
from gcaps.features import NodeFeatures
from gcaps.models import GCAPS
from gcaps.models.registry import network_class
from gcaps.testing import hostile_graphs


def symmetric_graphs():
    """Graphs with many nodes alike, and some with none."""
    found = [nx.star_graph(9), nx.complete_graph(7), nx.from_edgelist(nx.complete_bipartite_graph(3, 5).edges), nx.cycle_graph(6)]
    found += [nx.empty_graph(4), nx.path_graph(1), nx.disjoint_union(nx.cycle_graph(3), nx.cycle_graph(4))]
    found += [nx.barbell_graph(5, 2), nx.balanced_tree(3, 3), nx.gnp_random_graph(9, 0.4, seed=1)]
    return from_networkx(found, y=[number % 2 for number in range(len(found))])


def sources(graphs, features=("degree", "fgsd"), dtype=torch.float64):
    x = NodeFeatures.fit(FeatureConfig(features=features), graphs).encode(graphs)
    return BatchSource(graphs, x, dtype, y=graphs.y), BatchSource(graphs, x, dtype, merge=True, y=graphs.y)


def test_rows_are_an_equitable_partition_of_every_graph():
    graphs = symmetric_graphs()
    x = NodeFeatures.fit(FeatureConfig(features=("degree", "fgsd")), graphs).encode(graphs)
    merged = merged_nodes(graphs, x)
    assert merged is not None
    assert len(merged.head) < graphs.num_nodes / 2
    assert np.all(np.diff(merged.head) > 0)
    sizes = np.add.reduceat(merged.multiplicity, merged.ptr[:-1])
    np.testing.assert_array_equal(sizes, graphs.sizes)
    row = np.repeat(np.arange(len(merged.head)), np.diff(merged.rowptr))
    graph = np.repeat(np.arange(len(graphs)), np.diff(merged.ptr))
    col = merged.col + merged.ptr[graph[row]]
    A = np.zeros((len(merged.head),) * 2)
    A[row, col] = merged.edge_weight
    np.testing.assert_array_equal(A.sum(axis=1), graphs.degrees[merged.head])
    np.testing.assert_array_equal(merged.multiplicity[:, None] * A, (merged.multiplicity[:, None] * A).T)
    assert A.sum() < len(neighbors_of_set(graphs))


def test_rows_do_not_depend_on_how_many_graphs_are_looked_at_at_a_time(monkeypatch):
    x = NodeFeatures.fit(FeatureConfig(features=("degree",)), symmetric_graphs()).encode(symmetric_graphs())
    whole = merged_nodes(symmetric_graphs(), x)
    monkeypatch.setattr(merging, "PIECE", 20)
    pieces = merged_nodes(symmetric_graphs(), x)
    for field in fields(whole):
        np.testing.assert_array_equal(getattr(whole, field.name), getattr(pieces, field.name))


def test_prepared_colors_are_computed_once_and_change_nothing(monkeypatch):
    graphs = symmetric_graphs()
    prepared = PreparedSet(graphs)
    x = NodeFeatures.fit(FeatureConfig(features=("degree",)), graphs).encode(graphs)
    first = BatchSource(graphs, x, merge=True, prepared=prepared).merged
    alone = merged_nodes(graphs, x)
    monkeypatch.setattr(merging, "stable_colors", None)
    again = BatchSource(graphs, x, merge=True, prepared=prepared).merged
    for field in fields(alone):
        np.testing.assert_array_equal(getattr(first, field.name), getattr(alone, field.name))
        np.testing.assert_array_equal(getattr(again, field.name), getattr(alone, field.name))


def test_features_keep_apart_what_structure_does_not():
    graphs = symmetric_graphs()
    x = NodeFeatures.fit(FeatureConfig(features=("degree", "fgsd")), graphs).encode(graphs)
    alike = merged_nodes(graphs, x)
    x.dense[1] += 1  # a leaf of the star: its hub still sees eight others that are alike
    apart = merged_nodes(graphs, x)
    assert apart is not None
    assert alike is not None
    assert len(apart.head) == len(alike.head) + 1
    assert apart.multiplicity[: apart.ptr[1]].tolist() == [1.0, 1.0, 8.0]


def test_nothing_is_merged_where_it_does_not_pay_or_edges_have_weights():
    for graphs in (hostile_graphs(20, seed=3, weighted=True), symmetric_graphs().subset(np.array([9]))):
        x = NodeFeatures.fit(FeatureConfig(features=("degree",)), graphs).encode(graphs)
        assert merged_nodes(graphs, x) is None


@pytest.mark.parametrize("name", ["laplacian", "symmetric", "random_walk", "adjacency", "kipf", "mean"])
@pytest.mark.parametrize(
    ("settings", "dropped"),
    [
        ({}, 0.0),
        ({"degree": 2, "capsule_size": 3}, 0.0),
        ({"reduce": "sum", "inputs": True, "rank": None}, 0.3),
        ({"readout": "sum"}, 0.0),
        ({"readout": "max_sort", "inputs": True}, 0.0),
    ],
)
@pytest.mark.parametrize("training", [True, False])
def test_rows_give_what_nodes_give(name, settings, dropped, training):
    graphs = symmetric_graphs()
    config = Config(
        filter=name, hidden=5, layers=3, fc=6, dropout=dropped, **({"rank": 4, "reduce": "mean"} | settings)
    )
    assert network_class(config).merges(config)
    outcomes = []
    for source in sources(graphs):
        torch.manual_seed(0)
        network = GCAPS(source.num_features, 2, config).double().train(training)
        batch = source.take(np.random.default_rng(0).permutation(len(graphs)))
        loss, logits = network.loss(batch)
        loss.backward()
        gradients = [parameter.grad.clone() for parameter in network.parameters()]
        outcomes.append([logits.detach(), *gradients, *(b.clone() for b in network.buffers())])
    assert len(batch.dense) < graphs.num_nodes / 2
    for ours, theirs in zip(*outcomes, strict=True):
        scale = max(float(theirs.abs().max()), 1.0)
        torch.testing.assert_close(ours, theirs, rtol=0, atol=1e-9 * scale)


def test_layers_that_do_not_count_rows_refuse_them():
    graphs = symmetric_graphs()
    config = Config(capsule="routing", hidden=5, layers=1, reduce="mean", dropout=0.5)
    assert not network_class(config).merges(config)
    source = sources(graphs)[1]
    network = GCAPS(source.num_features, 2, config).double()
    with pytest.raises(ValueError, match="merge=False"):
        network(source.take(np.arange(len(graphs))))
