"""Stable colors against what color refinement is known to tell apart, and not to."""

import networkx as nx
import numpy as np

from gcaps.data.graphset import GraphSet
from gcaps.data.hashing import stable_colors
from gcaps.testing import hostile_graphs


def test_stable_colors_tell_what_refinement_tells():
    path, cycles = nx.path_graph(7), nx.disjoint_union(nx.cycle_graph(3), nx.cycle_graph(3))
    graphs = GraphSet.from_networkx([path, cycles, nx.cycle_graph(6)], [0, 1, 0])
    colors = stable_colors(graphs)
    assert [len(np.unique(colors[a:b])) for a, b in zip(graphs.ptr[:-1], graphs.ptr[1:], strict=True)] == [
        4,
        1,
        1,
    ]
    assert colors[7] == colors[13], "color refinement does not tell two triangles from a hexagon"


def test_nodes_of_one_color_have_as_many_neighbors_of_any_other():
    graphs = hostile_graphs(48, seed=2)
    colors = stable_colors(graphs)
    for g in range(len(graphs)):
        first, last = graphs.ptr[g : g + 2]
        own = colors[first:last]
        seen = {}
        for v in range(first, last):
            col = own[graphs.col[graphs.rowptr[v] : graphs.rowptr[v + 1]]]
            kinds = tuple(sorted(col.tolist()))
            assert seen.setdefault(colors[v], kinds) == kinds


def test_colors_begin_as_they_are_told():
    graphs = GraphSet.from_networkx([nx.star_graph(4), nx.cycle_graph(4)], [0, 1])
    begin = np.zeros(graphs.num_nodes, np.uint64)
    assert len(np.unique(stable_colors(graphs, begin)[5:])) == 1
    begin[5] = 1  # one node of the cycle: its neighbors and the one opposite are then told apart
    assert len(np.unique(stable_colors(graphs, begin)[5:])) == 3
