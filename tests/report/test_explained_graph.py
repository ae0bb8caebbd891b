"""Drawings of explained graphs: notes are within the picture, apart from each other, and clear of nodes if possible."""

from __future__ import annotations

import re
from dataclasses import replace

import numpy as np
import pytest

from gcaps.data.synthetic import make_motifs
from gcaps.estimators import make_estimator
from gcaps.explain import explain
from gcaps.report.explained_graph import NodeMark, draw_explained_graph
from gcaps.report.explanation import explanation_page
from gcaps.testing.graphs import hostile_graphs

SIZE = (340.0, 260.0)
NOTE = re.compile(r'<text class="note" x="([\d.-]+)" y="([\d.-]+)" text-anchor="middle">([^<]+)</text>')
NODE = re.compile(r'<circle class="base" cx="([\d.-]+)" cy="([\d.-]+)" r="([\d.]+)"/>')


def drawn(graph, noted):
    marks = [NodeMark(0.5, f"node {k}", "0", "+0.123" if k in noted else "") for k in range(graph.num_nodes)]
    ends = graph.edge_index.T[graph.edge_index[0] < graph.edge_index[1]]
    return str(draw_explained_graph(graph, ends, marks, [None] * len(ends), "a graph", SIZE))


def boxes(text):
    found = [(float(x), float(y), 6.8 * len(words)) for x, y, words in NOTE.findall(text)]
    return np.array([(x - w / 2, y - 11, x + w / 2, y + 3) for x, y, w in found]).reshape(-1, 4)


def test_notes_do_not_cover_each_other_or_leave_the_picture():
    for graph in make_motifs(12, 1).graphs:
        found = boxes(drawn(graph, range(6)))
        assert len(found) >= 1
        assert (found[:, :2] >= 0).all()
        assert (found[:, 2] <= SIZE[0]).all()
        assert (found[:, 3] <= SIZE[1]).all()
        for i, a in enumerate(found):
            for b in found[i + 1 :]:
                assert a[2] <= b[0] or b[2] <= a[0] or a[3] <= b[1] or b[3] <= a[1]


def test_a_note_in_a_row_of_nodes_is_above_it():
    path = make_motifs(2, 0).graphs[0]
    n = 9
    row = np.arange(n - 1)
    path = as_path(path, np.stack([np.append(row, row + 1), np.append(row + 1, row)]), n)
    text = drawn(path, [4])
    (box,) = boxes(text)
    nodes = np.array([[float(v) for v in found] for found in NODE.findall(text)])
    nearest = np.clip(nodes[:, :2], box[:2], box[2:])
    assert (np.linalg.norm(nodes[:, :2] - nearest, axis=1) >= nodes[:, 2] - 0.11).all()


def as_path(graph, edge_index, nodes):
    return graph._replace(edge_index=edge_index, num_nodes=nodes, node_labels=None)


def test_hostile_graphs_are_drawn():
    for graph in hostile_graphs(24):
        assert drawn(graph, [0]).startswith("<svg")


@pytest.mark.parametrize("certain", [True, False])
def test_a_page_says_where_the_model_is_certain_without_any_node(certain):
    graphs = make_motifs(40, 2).graphs
    found = explain(make_estimator("fgsd", {"n_estimators": 20}).fit(graphs), graphs[:3])
    model = make_estimator("fgsd", {"n_estimators": 20}).fit(graphs)
    nodes = [values * (0.0 if certain and i == 0 else 1.0) for i, values in enumerate(found.nodes)]
    text = explanation_page(model, replace(found, nodes=nodes))
    assert ("no node changes this probability" in text) == certain
