import numpy as np
import pytest
import torch

from gcaps.batching import BatchSource, node_budget_batches, shuffled
from gcaps.testing import hostile_graphs


def test_batch_is_the_block_diagonal_stack_of_its_graphs(hostile):
    x = np.random.default_rng(0).standard_normal((hostile.num_nodes, 3)).astype(np.float32)
    chosen = np.array([5, 0, 7, 7, 2, 23])
    batch = BatchSource(hostile, x, y=hostile.y).take(chosen)
    assert batch.num_graphs == 6
    for place, number in enumerate(chosen):
        graph = hostile[number]
        first, last = int(batch.ptr[place]), int(batch.ptr[place + 1])
        assert last - first == graph.num_nodes
        assert (batch.batch[first:last] == place).all()
        assert np.array_equal(batch.x[first:last], x[hostile.ptr[number] : hostile.ptr[number + 1]])
        arcs = slice(int(batch.rowptr[first]), int(batch.rowptr[last]))
        source = torch.repeat_interleave(torch.arange(first, last), batch.rowptr.diff()[first:last])
        assert np.array_equal(torch.stack([source, batch.col[arcs]]) - first, graph.edge_index)
        if graph.edge_weight is not None:
            np.testing.assert_allclose(batch.weight[arcs], graph.edge_weight, rtol=1e-6)
        assert batch.y[place] == graph.y


def test_wrong_number_of_feature_rows_is_refused():
    with pytest.raises(ValueError, match="rows of features"):
        BatchSource(hostile_graphs(8), np.zeros((3, 2)))


def test_every_graph_once_an_epoch_in_near_equal_batches():
    rng = np.random.default_rng(0)
    batches = list(shuffled(np.arange(10, 75), 32, rng))
    assert sorted(np.concatenate(batches)) == list(range(10, 75))
    assert [len(b) for b in batches] == [22, 22, 21]
    assert not np.array_equal(np.concatenate(batches), np.concatenate(list(shuffled(np.arange(10, 75), 32, rng))))


def test_budget_is_kept_except_by_a_single_large_graph():
    sizes = np.array([3, 3, 3, 50, 1, 1, 9])
    parts = list(node_budget_batches(sizes, 10))
    assert [p.tolist() for p in parts] == [[0, 1, 2], [3], [4, 5], [6]]
    assert list(node_budget_batches(np.array([]), 10)) == []


@pytest.mark.parametrize("number", [-1, 24])
def test_a_graph_that_there_is_not_is_refused(hostile, number):
    source = BatchSource(hostile, np.zeros((hostile.num_nodes, 1), np.float32))
    with pytest.raises(IndexError):
        source.take(np.array([0, number]))
