"""The solver and the sketch against dense linear algebra, with fixed seeds."""

import networkx as nx
import numpy as np
import pytest
from scipy.sparse import csr_array

from gcaps.data.graphset import GraphSet
from gcaps.errors import GcapsError
from gcaps.features import FGSD, GraphFGSD, harmonic_distances
from gcaps.features.sketch import LaplacianSolver, sketch


def grid(side: int) -> csr_array:
    return csr_array(nx.to_scipy_sparse_array(nx.grid_2d_graph(side, side), dtype=float))


@pytest.mark.parametrize("few", [0, 60], ids=["factors", "iterations"])
@pytest.mark.parametrize("weighted", [False, True])
def test_the_solver_inverts_laplacians(shape, weighted, few, monkeypatch):
    monkeypatch.setattr("gcaps.features.sketch._FEW_ITERATIONS", few)
    rng = np.random.default_rng(0)
    A = shape
    if weighted:
        noise = 10.0 ** rng.uniform(-2, 2, A.shape)
        A = A * (noise + noise.T)
    b = rng.standard_normal((len(A), 11))
    b -= b.mean(axis=0)
    x = LaplacianSolver(csr_array(A)).solve(b, 1e-10, n_jobs=2)
    expected = np.linalg.lstsq(np.diag(A.sum(axis=1)) - A, b, rcond=None)[0]
    np.testing.assert_allclose(x, expected - expected.mean(axis=0), atol=1e-6 * np.abs(expected).max())


def test_a_system_that_is_not_solved_is_an_error_and_no_result():
    solver = LaplacianSolver(grid(8))
    with pytest.raises(GcapsError, match="relative residual"):
        solver.solve(np.ones((64, 1)), 1e-30)  # its columns do not sum to 0


def test_graphs_are_factorised_only_if_they_have_small_separators(monkeypatch):
    def refuse(*_, **__):
        raise AssertionError("factorised")

    monkeypatch.setattr("gcaps.features.sketch.splu", refuse)
    b = np.random.default_rng(0).standard_normal((1600, 3))
    b -= b.mean(axis=0)
    power_law = csr_array(nx.to_scipy_sparse_array(nx.barabasi_albert_graph(1600, 4, seed=1), dtype=float))
    assert np.abs(LaplacianSolver(power_law).solve(b, 1e-6)).max() < 100
    with pytest.raises(AssertionError, match="factorised"):
        LaplacianSolver(grid(40)).solve(b, 1e-6)
    monkeypatch.setattr("gcaps.features.sketch._PLANAR", 0.0)
    assert np.abs(LaplacianSolver(grid(40)).solve(b, 1e-6)).max() < 100, "more iterations do it too"


@pytest.mark.parametrize("seed", range(3))
def test_sketched_distances_keep_their_stated_error_on_a_grid(seed):
    W = grid(30)
    R = harmonic_distances(W)
    partners = np.sort(np.random.default_rng(seed).choice(900, 32, replace=False))
    found = sketch(W, partners, 32, seed)
    error = found.distances(slice(None)) - R[:, partners]
    assert np.abs(error[partners]).max() < 2e-3, "between partners only the solver errs"
    ratio = error.mean(axis=1)[found.error > 0] / found.error[found.error > 0]
    assert 0.7 < np.sqrt((ratio**2).mean()) < 1.5, "the standard error is what it says"
    assert found.error.mean() < 0.06 * R.mean()


def test_sketched_histograms_are_near_the_exact_ones():
    graphs = GraphSet.from_networkx([nx.convert_node_labels_to_integers(nx.grid_2d_graph(30, 30))], y=[0])
    exact = FGSD(bins=8, scale="count", method="exact").fit(graphs)
    rough = FGSD.from_state(exact.state() | {"method": "sketch", "partners": 400, "projections": 128})
    truth, found = exact.transform(graphs), rough.transform(graphs)
    assert rough.methods_ == {"exact": 0, "sketch": 1}
    np.testing.assert_allclose(found.sum(axis=1), 899, rtol=1e-5)
    assert np.abs(found - truth).sum(axis=1).mean() / 899 < 0.2
    whole = GraphFGSD(bins=8, method="sketch", partners=400, scale="share").fit(graphs)
    whole.range_ = exact.range_
    share = truth.sum(axis=0) / truth.sum()
    assert np.abs(whole.transform(graphs)[0] - share).sum() < 0.1


def test_auto_sketches_only_what_exceeds_the_memory(shape_set):
    fgsd = FGSD(memory=10**6, partners=40)
    counts = fgsd.fit_transform(shape_set)
    assert fgsd.methods_ == {"exact": 10, "sketch": 1}
    exact = FGSD().fit(shape_set)
    assert exact.methods_ == {"exact": 11, "sketch": 0}
    again = FGSD.from_state(exact.state()).transform(shape_set)
    assert again.shape == counts.shape
    quantile = FGSD(memory=10**6, partners=40, spacing="quantile").fit(shape_set)
    assert (np.diff(quantile.edges_) >= 0).all()


@pytest.mark.parametrize("options", [{"method": "best"}, {"partners": 0}, {"projections": 0}, {"spacing": "log"}])
def test_unknown_options_are_refused(hostile, options):
    with pytest.raises(ValueError, match="given"):
        FGSD(**options).fit(hostile)
