"""Edge features: fitted to training graphs only, saved, and unseen labels counted."""

import json
from dataclasses import replace

import numpy as np
import pytest
import torch

from gcaps.batching import BatchSource
from gcaps.config import Config, FeatureConfig
from gcaps.errors import DataError
from gcaps.features import NodeFeatures
from gcaps.features.edges import MAX_RELATIONS, EdgeFeatures, Relations
from gcaps.testing import hostile_graphs

BOTH = FeatureConfig(features=("degree",), edge_features=("labels", "attributes"))


def labelled(labels, attributes=None, seed=0):
    """Hostile graphs with these edge labels repeated over all arcs."""
    graphs = hostile_graphs(12, seed=seed)
    rows = np.resize(np.asarray(labels), (len(graphs.col), np.shape(labels)[1]))
    rng = np.random.default_rng(seed)
    attributes = rng.normal(5, 3, (len(graphs.col), 2)) if attributes is None else attributes
    return replace(graphs, edge_labels=rows.astype(np.int64), edge_attr=attributes)


def test_relations_are_the_combinations_of_labels_of_the_training_graphs():
    graphs = labelled([[7, 1], [7, 2], [2**62, 1], [7, 1]])
    fitted = Relations().fit(graphs)
    assert fitted.num_relations == 3
    found = fitted.transform(graphs)
    assert found.dtype == np.int64
    assert [fitted.rows_[r].tolist() for r in found[:4]] == [[7, 1], [7, 2], [2**62, 1], [7, 1]]
    others = labelled([[7, 1], [2**62, 2], [8, 1], [7, 3]])  # a pair that never occurred, and two labels that did not
    assert (fitted.transform(others)[:4] == [found[0], -1, -1, -1]).all()
    assert {(u.kind, u.value) for u in fitted.unseen(others)} == {("edge label", 8), ("edge label", 3)}


def test_beyond_the_limit_the_rarest_labels_share_the_last_relation_with_unseen_ones():
    graphs = hostile_graphs(48, seed=1)
    counts = np.arange(MAX_RELATIONS + 8) + 1
    rows = np.resize(np.repeat(np.arange(len(counts)), counts), len(graphs.col))[:, None]
    known = np.bincount(rows[:, 0], minlength=len(counts))
    fitted = Relations().fit(replace(graphs, edge_labels=rows))
    assert fitted.num_relations == MAX_RELATIONS
    relation = fitted.transform(replace(graphs, edge_labels=rows))
    own = [label for label in np.unique(rows) if (relation[rows[:, 0] == label] != MAX_RELATIONS - 1).all()]
    assert len(own) == MAX_RELATIONS - 1
    assert known[own].min() >= np.delete(known, own).max()
    assert (fitted.transform(replace(graphs, edge_labels=rows + 1000)) == MAX_RELATIONS - 1).all()


def test_attributes_are_standardised_on_training_graphs_and_clipped():
    graphs = labelled([[1], [2]])
    fitted = NodeFeatures.fit(BOTH, graphs, np.arange(8))
    edges = fitted.encode(graphs).edges
    first = edges.attr[: graphs.rowptr[graphs.ptr[8]]]
    np.testing.assert_allclose(first.mean(0), 0, atol=1e-6)
    np.testing.assert_allclose(first.std(0), 1, atol=1e-6)
    absurd = replace(graphs, edge_attr=np.full_like(graphs.edge_attr, 1e30))
    assert np.abs(fitted.encode(absurd).edges.attr).max() == 100
    values = graphs.edge_attr.copy()
    values[3, 1] = np.nan
    with pytest.raises(DataError, match=r"edge attributes are not all finite \(column 2 of 2\)"):
        fitted.encode(replace(graphs, edge_attr=values))


def test_saved_edge_features_encode_alike():
    graphs = labelled([[1, 4], [2, 4], [3, 5]])
    fitted = NodeFeatures.fit(BOTH, graphs, np.arange(8))
    again = NodeFeatures.from_state(json.loads(json.dumps(fitted.state())))
    assert again.edges.shape == {"num_relations": 3, "edge_dim": 2}
    for one, other in zip((fitted, again), (again, fitted), strict=True):
        assert (one.encode(graphs).edges.relation == other.encode(graphs).edges.relation).all()
        assert (one.encode(graphs).edges.attr == other.encode(graphs).edges.attr).all()
    plain = NodeFeatures.fit(FeatureConfig(features=("degree",), edge_features=()), graphs)
    assert "edges" not in plain.state(), "models without edge features are saved as before"
    assert NodeFeatures.from_state(plain.state()).encode(graphs).edges is None


def test_one_label_is_no_relation_and_missing_labels_are_named():
    graphs = labelled([[1]])
    fitted = EdgeFeatures.fit(("labels",), graphs, np.arange(12))
    assert fitted.shape == {}
    assert fitted.encode(graphs) is None
    two = NodeFeatures.fit(BOTH, labelled([[1], [2]]))
    with pytest.raises(DataError, match="has no edge labels"):
        two.encode(replace(graphs, edge_labels=None))
    with pytest.raises(DataError, match="has no edge attributes"):
        two.encode(replace(graphs, edge_attr=None))
    with pytest.raises(DataError, match="2 columns of edge labels, expected 1"):
        two.encode(labelled([[1, 2]]))


def test_graphs_without_edges_need_no_edge_features():
    fitted = NodeFeatures.fit(BOTH, labelled([[1], [2]]))
    one = hostile_graphs(12).subset([0])
    assert len(one.col) == 0
    bare = replace(one, edge_labels=None, edge_attr=None)
    batch = BatchSource(bare, fitted.encode(bare)).take([0])
    assert batch.edge_type.shape == (0,)
    assert batch.edge_attr.shape == (0, 2)
    assert fitted.unseen(bare) == []


@pytest.mark.parametrize("streams", [False, True])
def test_batches_carry_edges_in_the_order_of_their_arcs(streams):
    graphs = labelled([[1], [2], [3]])
    fitted = NodeFeatures.fit(BOTH, graphs)
    encoded = fitted.encode(graphs)
    source = BatchSource(graphs, fitted if streams else encoded, merge=True)
    assert source.shape == {"num_relations": 3, "edge_dim": 2}
    chosen, first = [5, 0, 7, 3], graphs.rowptr[graphs.ptr]
    arcs = np.concatenate([np.arange(first[g], first[g + 1]) for g in chosen])
    batch = source.take(chosen)
    assert (batch.edge_type.numpy() == encoded.edges.relation[arcs]).all()
    assert (batch.edge_attr.numpy() == encoded.edges.attr[arcs]).all()
    assert batch.multiplicity is None, "nodes of graphs with edge features are not merged"
    moved = batch.to("meta")
    assert moved.edge_type.device == moved.edge_attr.device == torch.device("meta")


def test_unseen_labels_of_nodes_and_edges_are_counted_by_graph():
    graphs = hostile_graphs(12, seed=0)
    labels = np.ones((graphs.num_nodes, 1), np.int64)
    train = replace(graphs, node_labels=labels, edge_labels=np.resize([[1], [2]], (len(graphs.col), 1)))
    fitted = NodeFeatures.fit(Config(features="labels", edge_features="labels"), train)
    assert fitted.unseen(train) == []
    labels = labels.copy()
    labels[graphs.ptr[[2, 2, 5]]] = 14
    edges = train.edge_labels.copy()
    edges[-1] = 9
    given = replace(train, node_labels=labels, edge_labels=edges, label_names={14: "Si"})
    assert [str(entry) for entry in fitted.unseen(given)] == ["node label Si in 2 graphs", "edge label 9 in 1 graph"]
