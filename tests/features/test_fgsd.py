import numpy as np
import pytest

import gcaps
from gcaps.errors import ModelError
from gcaps.features import FGSD
from gcaps.testing import hostile_graphs, permute_nodes
from tests.oracle import dense


def changed_graphs(graphs, seed=0) -> int:
    """How many graphs' features another node order changes by a single bit."""
    moved, order = permute_nodes(graphs, seed)
    fgsd = FGSD(scale="count").fit(graphs)
    differs = (fgsd.transform(graphs)[order] != fgsd.transform(moved)).any(axis=1)
    refitted = FGSD(scale="count").fit(moved)
    assert refitted.range_ == fgsd.range_, "the bins are the same bits too"
    return len(np.unique(np.repeat(np.arange(len(graphs)), graphs.sizes)[differs]))


def test_histogram_counts_every_other_node_once(hostile):
    counts = FGSD(bins=7, scale="count").fit_transform(hostile)
    assert counts.shape == (hostile.num_nodes, 9)
    assert np.array_equal(counts.sum(axis=1), np.repeat(hostile.sizes, hostile.sizes) - 1)
    assert counts.min() == 0
    assert counts[:, 7].max() == 0, "nothing overflows where everything was fitted"


def test_histogram_matches_dense_oracle(hostile):
    fgsd = FGSD(bins=5, scale="count").fit(hostile)
    found = fgsd.transform(hostile)
    for number in range(len(hostile)):
        S = dense.harmonic_distances(dense.adjacency(hostile[number]))
        for x in range(len(S)):
            others = np.delete(S[x], x)
            reached = others[np.isfinite(others)]
            edges = np.linspace(0, fgsd.range_ * (1 + 1e-6), 6)
            row = found[hostile.ptr[number] + x]
            # a distance on the edge of a bin may lie on either side for the oracle, whose noise is not rounded
            slack = sum((np.abs(reached - edge) < 1e-6 * fgsd.range_).sum() for edge in edges[1:])
            assert np.abs(row[:5] - np.histogram(reached, edges)[0]).sum() <= 2 * slack
            assert row[6] == np.isinf(others).sum()


def test_bins_come_from_the_training_graphs_alone():
    train, test = hostile_graphs(16, seed=0, largest=6), hostile_graphs(16, seed=1, largest=40)
    fgsd = FGSD(scale="count").fit(train)
    before = fgsd.range_
    counts = fgsd.transform(test)
    assert fgsd.range_ == before
    assert counts[:, -2].sum() > 0, "distances beyond the training range go to the overflow bin"


def test_isolated_nodes_do_not_look_like_a_single_one():
    graphs = hostile_graphs(8)
    fgsd = FGSD(scale="count").fit(graphs)
    alone, edgeless = graphs.subset([0]), graphs.subset([1])
    assert fgsd.transform(alone).sum() == 0
    assert fgsd.transform(edgeless)[:, -1].tolist() == [edgeless.num_nodes - 1] * edgeless.num_nodes


@pytest.mark.parametrize("seed", range(3))
def test_relabelling_nodes_changes_no_bit_of_hostile_graphs(hostile, seed):
    assert changed_graphs(hostile, seed) == 0


def test_relabelling_nodes_changes_no_bit_of_mutag():
    assert changed_graphs(gcaps.load("MUTAG")) == 0


@pytest.mark.parametrize("name", ["NCI1", "IMDB-BINARY", "PTC", "ENZYMES"])
def test_relabelling_nodes_changes_no_bit_of(name, data_folder):
    assert changed_graphs(gcaps.load(name, root=data_folder)) == 0


def test_state_brings_the_fitted_transformer_back(hostile):
    fgsd = FGSD(bins=9).fit(hostile)
    again = FGSD.from_state(fgsd.state())
    assert np.array_equal(again.transform(hostile), fgsd.transform(hostile))
    with pytest.raises(ModelError, match="random_state: is missing"):
        FGSD.from_state({key: value for key, value in fgsd.state().items() if key != "random_state"})
