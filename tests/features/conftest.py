import networkx as nx
import numpy as np
import pytest

from gcaps.data.graphset import GraphSet


def shapes() -> dict[str, nx.Graph]:
    """Connected graphs of very different make, large enough for a dense core, for twins and for long substitutions."""
    cactus = nx.cycle_graph(5)
    for start in range(4):
        nx.add_cycle(cactus, [start, *range(100 * start + 100, 100 * start + 100 + 3 + start)])
    blocks = nx.Graph(nx.random_regular_graph(12, 70, seed=1))
    blocks = nx.disjoint_union(blocks, nx.complete_graph(9))
    blocks.add_edges_from([(0, 70), (3, 200), (200, 201), (200, 202), (200, 203)])
    return {
        "tree": nx.random_labeled_tree(60, seed=3),
        "clique": nx.complete_graph(20),
        "cactus": cactus,
        "dense": nx.gnp_random_graph(90, 0.5, seed=2),
        "grid": nx.grid_2d_graph(9, 11),
        "blocks": blocks,
        "ring of cliques": nx.ring_of_cliques(8, 6),
        "bipartite": nx.from_edgelist(nx.complete_bipartite_graph(5, 30).edges),
        "hub": nx.barabasi_albert_graph(150, 2, seed=4),
    }


@pytest.fixture(scope="session", params=shapes())
def shape(request) -> np.ndarray:
    """The adjacency matrix of one of them."""
    return nx.to_numpy_array(shapes()[request.param])


@pytest.fixture(scope="session")
def shape_set() -> GraphSet:
    """All of them, a pair that is not connected, and no edges at all."""
    graphs = [nx.convert_node_labels_to_integers(graph) for graph in shapes().values()]
    graphs += [nx.disjoint_union(graphs[1], graphs[4]), nx.empty_graph(3)]
    return GraphSet.from_networkx(graphs, y=[i % 2 for i in range(len(graphs))])
