import json
from dataclasses import replace

import numpy as np
import pytest

from gcaps.config import FeatureConfig
from gcaps.errors import DataError
from gcaps.features import NodeFeatures
from gcaps.features.structural import MAX_DEGREE, AttributeFeatures, DegreeFeatures, LabelFeatures
from gcaps.testing import hostile_graphs


def test_labels_are_one_hot_and_unseen_ones_are_zero():
    graphs = hostile_graphs(16)
    graphs.node_labels[:] = np.where(graphs.node_labels == 3, 7, graphs.node_labels)
    graphs.node_labels[-1] = 99
    part = LabelFeatures().fit(graphs.subset(np.arange(15)))
    x = part.transform(graphs)
    assert x.shape == (graphs.num_nodes, 4)
    assert np.array_equal(x.argmax(axis=1)[:20], np.searchsorted([0, 1, 2, 7], graphs.node_labels[:20, 0]))
    assert x[-1].sum() == 0
    assert (x[:-1].sum(axis=1) == 1).all()


def rare_oracle(train, graphs, rare):
    """One row for each node: labels one after the other, then one column for those of few graphs and unseen ones."""
    columns = []
    for c in range(train.node_labels.shape[1]):
        having = {}
        for g in range(len(train)):
            for label in set(train.node_labels[train.ptr[g] : train.ptr[g + 1], c].tolist()):
                having[label] = having.get(label, 0) + 1
        frequent = sorted(label for label, count in having.items() if count >= rare)
        few = len(frequent) < len(having)
        columns += [[value == label for value in graphs.node_labels[:, c]] for label in frequent]
        if few:
            columns.append([value not in frequent for value in graphs.node_labels[:, c]])
    return np.array(columns, dtype=np.float32).T


@pytest.mark.parametrize("rare", [0, 1, 2, 3, 5, 100])
def test_rare_and_unseen_labels_share_a_column(rare):
    rng = np.random.default_rng(0)
    graphs = hostile_graphs(40, seed=3)
    labels = np.stack([rng.geometric(0.3, graphs.num_nodes), rng.integers(0, 2, graphs.num_nodes)], axis=1)
    graphs = replace(graphs, node_labels=labels)
    labels[graphs.ptr[30] :, 0] += 5
    train = graphs.subset(np.arange(24))
    part = LabelFeatures(rare).fit(train)
    expected = rare_oracle(train, graphs, rare)
    assert part.num_features == expected.shape[1]
    assert (part.transform(graphs) == expected).all()
    again = LabelFeatures.from_state(json.loads(json.dumps(part.state())))
    assert (again.transform(graphs) == expected).all()
    pieces = LabelFeatures(rare).fit_pieces(train.chunks(nodes=30))
    assert pieces.state() == part.state()
    plain = LabelFeatures().fit(train)
    assert part.unseen(graphs) == plain.unseen(graphs) != []
    assert ("rare" in part.state()) == (rare > 1), "every label is in one training graph at least"
    if rare <= 1:
        assert (part.transform(graphs) == plain.transform(graphs)).all()
        assert part.state() == plain.state()


def test_attributes_are_scaled_by_the_training_graphs_and_binary_columns_left_alone():
    graphs = hostile_graphs(16)
    graphs.x[:, 2] = graphs.x[:, 2] > 0
    train = graphs.subset(np.arange(8))
    part = AttributeFeatures().fit(train)
    x = part.transform(train)
    np.testing.assert_allclose(x[:, :2].mean(axis=0), 0, atol=1e-6)
    np.testing.assert_allclose(x[:, :2].std(axis=0), 1, atol=1e-5)
    assert np.array_equal(x[:, 2], train.x[:, 2])


def test_degrees_beyond_the_training_graphs_share_the_last_column():
    graphs = hostile_graphs(16, largest=100)
    part = DegreeFeatures().fit(graphs)
    assert part.largest_ == MAX_DEGREE
    x = part.transform(graphs)
    assert x.shape[1] == MAX_DEGREE + 1
    assert x[graphs.degrees > MAX_DEGREE][:, -1].all()


def test_every_part_survives_json(hostile):
    config = FeatureConfig(features=("labels", "attributes", "degree", "constant", "fgsd"), fgsd_bins=4)
    features = NodeFeatures.fit(config, hostile)
    again = NodeFeatures.from_state(json.loads(json.dumps(features.state())))
    x = features.transform(hostile)
    assert x.dtype == np.float32
    assert np.array_equal(again.transform(hostile), x)


def test_test_graphs_move_nothing():
    """Features fitted on the training graphs are the same whatever the other graphs look like."""
    train = hostile_graphs(16, seed=0)
    config = FeatureConfig(features=("labels", "attributes", "degree", "fgsd"))
    state = NodeFeatures.fit(config, train).state()
    features = NodeFeatures.fit(config, train)
    features.transform(hostile_graphs(16, seed=5, largest=80))
    assert features.state() == state


@pytest.mark.parametrize("name", ["labels", "attributes"])
def test_missing_features_are_an_error_with_a_remedy(name):
    graphs = replace(hostile_graphs(8), node_labels=None, x=None)
    with pytest.raises(DataError, match="choose other features"):
        NodeFeatures.fit(FeatureConfig(features=(name,)), graphs)
