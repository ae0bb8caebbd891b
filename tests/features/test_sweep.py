"""Memory limits, threads, families of distances and the cache: every way to the same histograms."""

import os

import networkx as nx
import numpy as np
import pytest
from scipy.sparse import csr_array
from sklearn.base import clone
from sklearn.ensemble import RandomForestClassifier
from sklearn.pipeline import make_pipeline

from gcaps.config import FeatureConfig
from gcaps.data.graphset import GraphSet
from gcaps.data.prepared import PreparedSet
from gcaps.errors import ConfigError, MemoryLimitError
from gcaps.features import FGSD, GraphFGSD, NodeFeatures, harmonic_distances
from gcaps.features.binning import Piece, grid_cell, quantize
from gcaps.features.fgsd import ArrayCache
from gcaps.features.histograms import Distances
from gcaps.features.quotient import network_of, quotient
from gcaps.features.sweep import sweep
from gcaps.testing import permute_nodes
from tests.oracle import dense


def test_quantized_bits_are_those_of_rounded_mantissas():
    values = np.concatenate([np.random.default_rng(0).lognormal(0, 4, 10000), [0.0, 1.0, 2.0, 1 / 3]])
    mantissa, exponent = np.frexp(values)
    expected = np.ldexp(np.floor(mantissa * 2.0**26 + 0.6180339887498949), exponent - 26)
    assert np.array_equal(quantize(values), expected)


@pytest.mark.parametrize("memory", [1 << 18, 1 << 20])
@pytest.mark.parametrize("n_jobs", [1, 2])
def test_a_memory_limit_holds_and_changes_nothing(shape_set, memory, n_jobs):
    network = network_of(shape_set)
    q = quotient(network, shape_set.ptr)
    sizes = list(sweep(network, q, lambda piece, _: piece.R.nbytes, memory=memory, n_jobs=n_jobs))
    assert max(sizes) <= memory // 6
    whole = FGSD(scale="count", method="exact").fit(shape_set)
    limited = FGSD(scale="count", method="exact", memory=memory, n_jobs=n_jobs).fit(shape_set)
    assert np.array_equal(whole.transform(shape_set), limited.transform(shape_set))


def test_rows_of_a_large_component_equal_the_whole_matrix(shape_set):
    network = network_of(shape_set)
    q = quotient(network, shape_set.ptr)
    p = int(np.diff(q.component_ptr).argmax())
    whole = next(sweep(network, q, lambda piece, _: piece, which=np.array([p])))
    k = len(whole.rows)
    place = np.argsort(whole.rows)
    expected = whole.R.reshape(k, k)[np.ix_(place, place)]
    pieces: list[Piece] = list(sweep(network, q, lambda piece, _: piece, which=np.array([p]), memory=1 << 18))
    assert len(pieces) > 1
    found = np.concatenate([piece.R.reshape(-1, k) for piece in pieces])
    np.testing.assert_allclose(found, expected, atol=1e-10)


def test_factors_beyond_the_limit_are_refused_with_a_remedy(shape_set):
    with pytest.raises(MemoryLimitError, match="method='sketch'"):
        FGSD(method="exact", memory=1 << 10).fit(shape_set)


def test_biharmonic_and_polynomial_distances_match_the_eigenvalues(shape):
    graphs = GraphSet.from_networkx([nx.from_scipy_sparse_array(csr_array(shape))], y=[0])
    families = {"biharmonic": lambda x: x**-2, (0.5, -0.1, 0.03): lambda x: 0.5 - 0.1 * x + 0.03 * x**2}
    for f, of_value in families.items():
        S = dense.spectral_distances(shape, of_value)
        assert Distances(graphs, f).maxima()[0] == pytest.approx(S.max(), rel=1e-6)
        total = GraphFGSD(bins=5, f=f).fit_transform(graphs)
        assert total.sum() == len(shape) * (len(shape) - 1) / 2


@pytest.mark.parametrize("f", ["heat", (), (np.nan,), ((1.0,),)])
def test_an_unknown_family_is_one_clear_line(f, hostile):
    with pytest.raises(ConfigError, match=r"must be harmonic|finite numbers"):
        FGSD(f=f).fit(hostile)


def test_other_families_beyond_the_memory_are_refused(shape_set):
    with pytest.raises(MemoryLimitError, match="use harmonic distances"):
        FGSD(f="biharmonic", memory=1 << 16).fit(shape_set)


@pytest.mark.parametrize("options", [{"soft": True}, {"spacing": "quantile"}, {"spacing": "quantile", "soft": True}])
def test_every_kind_of_bins_is_invariant_bit_for_bit(shape_set, options):
    moved, order = permute_nodes(shape_set, 1)
    fgsd = FGSD(bins=9, scale="count", **options).fit(shape_set)
    again = FGSD(bins=9, scale="count", **options).fit(moved)
    assert fgsd.range_ == again.range_
    assert np.array_equal(fgsd.edges_, again.edges_)
    counts = fgsd.transform(shape_set)
    assert np.array_equal(counts[order], again.transform(moved))
    others = np.repeat(shape_set.sizes, shape_set.sizes) - 1
    np.testing.assert_allclose(counts.sum(axis=1), others, rtol=1e-5)
    restored = FGSD.from_state(fgsd.state())
    assert np.array_equal(restored.transform(shape_set), counts)


def test_soft_counts_are_split_between_the_nearest_centres():
    path = GraphSet.from_networkx([nx.path_graph(5)], y=[0])
    counts = FGSD(bins=4, scale="count", soft=True).fit_transform(path)  # centres 0.5, 1.5, 2.5, 3.5
    np.testing.assert_allclose(counts[0], [0.5, 1, 1, 1.5, 0, 0], atol=1e-5)


def test_quantile_bins_hold_equal_shares(shape_set):
    dense_one = shape_set.subset([3])
    counts = GraphFGSD(bins=8, spacing="quantile").fit_transform(dense_one)
    np.testing.assert_allclose(counts[0, :8] / counts.sum(), 1 / 8, atol=0.02)
    assert counts[0, 8:].sum() == 0
    assert (np.diff(grid_cell(quantize(harmonic_distances(dense.adjacency(dense_one[0]))))) != 0).any()


def test_graph_vectors_are_half_the_sum_of_their_nodes(hostile):
    nodes = FGSD(bins=6, scale="count").fit_transform(hostile)
    graphs = GraphFGSD(bins=6).fit_transform(hostile)
    assert np.array_equal(graphs, np.add.reduceat(nodes.astype(np.float64), hostile.ptr[:-1]) / 2)
    shares = GraphFGSD(bins=6, scale="share").fit_transform(hostile)
    assert set(np.round(shares.sum(axis=1), 12)) <= {0.0, 1.0}


def test_graph_vectors_feed_a_random_forest():
    cycles = [nx.cycle_graph(n) for n in range(5, 25)]
    trees = [nx.random_labeled_tree(n, seed=n) for n in range(5, 25)]
    families = GraphSet.from_networkx(cycles + trees, y=[0] * 20 + [1] * 20)
    model = clone(make_pipeline(GraphFGSD(bins=50), RandomForestClassifier(50, random_state=0)))
    assert model.fit(families, families.y).score(families, families.y) > 0.9


def test_folds_of_a_prepared_set_compute_no_distance_again(shape_set, monkeypatch):
    prepared = PreparedSet(shape_set)
    whole = FGSD().fit(prepared)
    alone = FGSD().fit(shape_set.subset([1, 4]))
    monkeypatch.setattr("gcaps.features.histograms.sweep", None)
    fold = FGSD().fit(prepared, indices=[1, 4])
    assert fold.range_ == alone.range_ == FGSD().fit(prepared, indices=np.array([1, 4])).range_
    assert 0 < fold.range_ < whole.range_


@pytest.mark.parametrize("options", [{}, {"spacing": "quantile"}, {"method": "sketch", "partners": 20}])
def test_a_prepared_set_changes_no_bit(shape_set, options):
    prepared, train = PreparedSet(shape_set), np.array([0, 3, 5, 9])
    for kind in (FGSD, GraphFGSD):
        alone = kind(bins=9, **options).fit(shape_set.subset(train))
        fold = kind(bins=9, **options).fit(prepared, indices=train)
        mask = np.isin(np.arange(len(shape_set)), train)
        assert fold.range_ == alone.range_ == kind(bins=9, **options).fit(shape_set, indices=mask).range_
        assert np.array_equal(fold.edges_, alone.edges_)
        assert np.array_equal(fold.transform(prepared), alone.transform(shape_set))


def test_node_features_of_a_prepared_set_are_those_of_the_set(shape_set):
    config, train = FeatureConfig(features=("degree", "fgsd"), fgsd_bins=8), np.array([0, 3, 5, 9])
    prepared = PreparedSet(shape_set)
    for _ in range(2):
        fold = NodeFeatures.fit(config, prepared, train)
        alone = NodeFeatures.fit(config, shape_set, train)
        assert fold.state() == alone.state()
        assert np.array_equal(fold.transform(prepared), alone.transform(shape_set))


def test_progress_counts_every_node(shape_set):
    network = network_of(shape_set)
    told: list[int] = []
    list(sweep(network, quotient(network, shape_set.ptr), lambda *_: None, memory=1 << 18, progress=told.append))
    assert sum(told) == shape_set.num_nodes


def test_a_bar_appears_only_when_asked_for(shape_set, capsys):
    FGSD(cache=False).fit_transform(shape_set)
    assert capsys.readouterr() == ("", "")
    FGSD(cache=False, verbose=True).fit_transform(shape_set)
    assert capsys.readouterr().out == ""


def test_histograms_come_back_from_disk(shape_set, tmp_path, monkeypatch):
    fgsd = FGSD(bins=5, cache=tmp_path).fit(shape_set)
    expected = FGSD(bins=5, cache=False).fit(shape_set).transform(shape_set)
    assert np.array_equal(fgsd.transform(shape_set), expected)
    (file,) = tmp_path.iterdir()
    monkeypatch.setattr(Distances, "of_nodes", None)
    assert np.array_equal(fgsd.transform(shape_set), expected)
    monkeypatch.undo()
    assert not np.array_equal(FGSD(bins=5, cache=tmp_path, soft=True).fit(shape_set).transform(shape_set), expected)
    assert len(list(tmp_path.iterdir())) == 2
    damaged = bytearray(file.read_bytes())
    damaged[len(damaged) // 2] ^= 1
    for content in (bytes(damaged), b"", b"foreign"):
        file.write_bytes(content)
        assert np.array_equal(fgsd.transform(shape_set), expected)
        assert len(file.read_bytes()) == len(damaged), "it was written anew"


def test_a_cached_file_under_another_name_is_not_taken(tmp_path):
    cache = ArrayCache(tmp_path)
    a, b = (cache.key(np.arange(3), {"bins": bins}) for bins in (1, 2))
    cache.store(a, [np.ones(3), np.zeros(2)])
    assert [array.tolist() for array in cache.load(a)] == [[1, 1, 1], [0, 0]]
    (tmp_path / f"{a}.fgsd").rename(tmp_path / f"{b}.fgsd")
    assert cache.load(b) is None
    assert cache.load(a) is None


def test_the_cache_keeps_to_its_limit_and_drops_the_oldest(tmp_path):
    cache = ArrayCache(tmp_path, limit=3600)
    for number in range(4):
        cache.store(f"{number}" * 64, [np.zeros(100)])
        os.utime(tmp_path / ("0" * 64 + ".fgsd"), ns=(10**18 * 9, 10**18 * 9))
        if number:
            os.utime(tmp_path / (f"{number}" * 64 + ".fgsd"), ns=(number, number))
    assert sorted(file.name[0] for file in tmp_path.iterdir()) == ["0", "2", "3"]
    cache.store("9" * 64, [np.zeros(1000)])
    assert cache.load("9" * 64) is None, "what alone is too large is not written"
