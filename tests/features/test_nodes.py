import json

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
    from dataclasses import replace

    graphs = replace(hostile_graphs(8), node_labels=None, x=None)
    with pytest.raises(DataError, match="choose other features"):
        NodeFeatures.fit(FeatureConfig(features=(name,)), graphs)
