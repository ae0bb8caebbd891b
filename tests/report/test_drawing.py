from __future__ import annotations

from dataclasses import replace

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.sparse.csgraph import shortest_path

import gcaps
from gcaps.data.graphset import GraphSet
from gcaps.data.hashing import stored_hashes, wl_hashes
from gcaps.evaluation.splits import Fold
from gcaps.report.chart import Drawing, Scale
from gcaps.report.data_set import find_leakage
from gcaps.report.graph_drawing import MAX_NODES, draw_graph, layout
from gcaps.testing import hostile_graphs


def stress(graph, p: np.ndarray) -> float:
    """Mean of (‖p_i − p_j‖ − d_ij)² / d_ij² over connected pairs."""
    A = np.zeros((graph.num_nodes, graph.num_nodes))
    A[tuple(graph.edge_index)] = 1
    d = shortest_path(A, unweighted=True)
    i, j = np.nonzero(np.isfinite(d) & (d > 0))
    return float((((np.linalg.norm(p[i] - p[j], axis=1) - d[i, j]) / d[i, j]) ** 2).mean())


def test_layout_preserves_shortest_path_distances() -> None:
    for graph in gcaps.load("MUTAG")[:10]:
        p = layout(graph)
        scattered = np.random.default_rng(0).normal(scale=p.std(), size=p.shape)
        assert stress(graph, p) < 0.06 < stress(graph, scattered)
        assert np.array_equal(p, layout(graph))


def test_nodes_of_hostile_graphs_are_drawn_apart(hostile: GraphSet) -> None:
    for graph in hostile:
        p = layout(graph)
        assert np.isfinite(p).all()
        if 1 < graph.num_nodes <= 60:
            gaps = np.linalg.norm(p[:, None] - p[None], axis=2) + 9 * np.eye(len(p))
            assert gaps.min() > 1e-3
        svg = draw_graph(graph, 'a "graph" <of> nodes', {})
        assert svg is not None
        assert "nan" not in svg
        assert "a &quot;graph&quot; &lt;of&gt; nodes" in svg


def test_a_graph_with_too_many_nodes_is_not_drawn() -> None:
    graph = hostile_graphs(1, seed=0)[0]
    assert draw_graph(graph._replace(num_nodes=MAX_NODES + 1), "", {}) is None


@settings(deadline=None)
@given(st.floats(-100, 100), st.floats(0.01, 50), st.integers(2, 8))
def test_ticks_lie_within_and_are_round(low: float, span: float, count: int) -> None:
    ticks = Scale(low, low + span, 0, 1).ticks(count)
    assert all(low - 1e-6 <= tick <= low + span + 1e-6 for tick in ticks)
    assert len(ticks) <= count + 1
    steps = np.diff(ticks)
    if len(steps):
        assert np.allclose(steps, steps[0])
        assert round(float(f"{steps[0]:.0e}".split("e")[0])) in (1, 2, 5)


@settings(deadline=None)
@given(st.floats(1e-3, 1e4), st.floats(1.1, 1e5))
def test_logarithmic_ticks_lie_within(low: float, factor: float) -> None:
    scale = Scale(low, low * factor, 0, 100, log=True)
    for tick in scale.ticks():
        assert -0.1 <= scale(tick) <= 100.1


def test_text_and_labels_are_escaped() -> None:
    picture = Drawing(10, 10, '<b>"&')
    picture.text(0, 0, "<script>")
    assert 'aria-label="&lt;b&gt;&quot;&amp;"' in picture.svg()
    assert "<script>" not in picture.svg()


def test_leakage_counts_test_graphs_with_a_duplicate_in_training() -> None:
    graphs = hostile_graphs(6, seed=3).subset([0, 1, 2, 3, 4, 5, 0, 1])
    graphs = replace(graphs, y=np.array(["a", "a", "b", "b", "a", "b", "a", "b"]))
    folds = [[0, 1], [2, 3], [6, 7]]
    found = find_leakage(graphs, [Fold(np.setdiff1d(np.arange(8), test), np.array(test)) for test in folds])
    assert (found.tested, found.identical, found.wl_equal, found.conflicting) == _slow_leakage(graphs, folds)
    assert (found.identical, found.conflicting) == (4, 2)


def _slow_leakage(graphs: GraphSet, tests: list[list[int]]) -> tuple[int, int, int, int]:
    stored, hashes, y = stored_hashes(graphs), wl_hashes(graphs), graphs.y
    assert y is not None
    counts = [0, 0, 0, 0]
    for test in tests:
        train = [g for g in range(len(graphs)) if g not in test]
        for g in test:
            equal = [t for t in train if hashes[t] == hashes[g]]
            counts[0] += 1
            counts[1] += any(stored[t] == stored[g] for t in train)
            counts[2] += bool(equal)
            counts[3] += bool(equal) and all(y[t] != y[g] for t in equal)
    return counts[0], counts[1], counts[2], counts[3]
