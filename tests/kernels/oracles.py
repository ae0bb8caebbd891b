"""Slow reference implementations of the kernels: dense matrices, strings and loops."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from functools import cache
from itertools import combinations, permutations
from typing import Any

import numpy as np
from scipy.optimize import linprog
from scipy.spatial.distance import cdist

from gcaps.data.graphset import Graph, GraphSet


def adjacency(graph: Graph) -> np.ndarray:
    A = np.zeros((graph.num_nodes, graph.num_nodes))
    A[graph.edge_index[0], graph.edge_index[1]] = 1.0 if graph.edge_weight is None else graph.edge_weight
    return A


def labels_of(graph: Graph) -> list[str]:
    return [str(row.tolist()) for row in graph.node_labels]


def gram_of(graphs: GraphSet, describe: Callable[[Graph], Counter[Any]], meet: Callable[..., float] | None = None):
    counts = [describe(graph) for graph in graphs]
    meet = meet or (lambda a, b: a * b)
    return np.array(
        [[sum(meet(a[key], b[key]) for key in a.keys() & b.keys()) for b in counts] for a in counts], dtype=float
    )


def wl_colors(graph: Graph, n_iter: int, edge_labels: bool = False, use_labels: bool = True) -> Counter[Any]:
    """Weisfeiler-Lehman colors as nested strings."""
    A = adjacency(graph) > 0
    arc = {}
    if edge_labels:
        arc = {(u, v): str(row) for (u, v), row in zip(graph.edge_index.T.tolist(), graph.edge_labels, strict=True)}
    color = labels_of(graph) if use_labels and graph.node_labels is not None else [str(d) for d in A.sum(axis=1)]
    found: Counter[Any] = Counter((0, c) for c in color)
    for i in range(n_iter):
        color = [
            f"({color[u]}:{sorted(arc.get((u, v), '') + color[v] for v in np.flatnonzero(A[u]))})"
            for u in range(graph.num_nodes)
        ]
        found.update((i + 1, c) for c in color)
    return found


def floyd_warshall(A: np.ndarray) -> np.ndarray:
    D = np.where(A > 0, A, np.inf)
    np.fill_diagonal(D, 0)
    for k in range(len(A)):
        D = np.minimum(D, D[:, k : k + 1] + D[k : k + 1])
    return D


def shortest_paths(graph: Graph, width: float = 1.0, use_labels: bool = True) -> Counter[Any]:
    """Ordered pairs of different, connected nodes."""
    D = floyd_warshall(adjacency(graph))
    label = labels_of(graph) if use_labels and graph.node_labels is not None else [""] * graph.num_nodes
    return Counter(
        (label[i], label[j], int(np.rint(D[i, j] / width)))
        for i, j in permutations(range(graph.num_nodes), 2)
        if np.isfinite(D[i, j])
    )


@cache
def _canonical(values: bytes, size: int) -> tuple[Any, ...]:
    A = np.frombuffer(values, dtype=np.int64).reshape(size, size)
    return min(tuple(A[np.ix_(p, p)].ravel().tolist()) for p in map(list, permutations(range(len(A)))))


def graphlets(graph: Graph, size: int, connected: bool = False) -> Counter[Any]:
    A = (adjacency(graph) > 0).astype(np.int64)
    found: Counter[Any] = Counter()
    for part in combinations(range(graph.num_nodes), size):
        inside = A[np.ix_(part, part)]
        if not connected or (np.linalg.matrix_power(inside + np.eye(size, dtype=int), size) > 0).all():
            found[_canonical(inside.tobytes(), size)] += 1
    return found


def _arcs(graph: Graph, label: int) -> np.ndarray:
    A = np.zeros((graph.num_nodes, graph.num_nodes))
    A[tuple(graph.edge_index[:, graph.edge_labels[:, 0] == label])] = 1.0
    return A


def random_walk(G: Graph, H: Graph, decay: float, matched: bool, edge_labels: bool = False) -> float:
    """1ᵀ (I − λ A_×)⁻¹ 1 on the product graph; with ``matched``, of node pairs with equal labels only."""
    product = np.kron(adjacency(G), adjacency(H))
    if edge_labels:
        product = sum((np.kron(_arcs(G, k), _arcs(H, k)) for k in np.unique(G.edge_labels)), np.zeros_like(product))
    if matched:
        same = np.array([a == b for a in labels_of(G) for b in labels_of(H)])
        product = product[np.ix_(same, same)]
    return float(np.linalg.inv(np.eye(len(product)) - decay * product).sum()) if len(product) else 0.0


def grakel_graphs(graphs: GraphSet) -> list[list[Any]]:
    """Convert graphs to GraKeL's input."""
    return [
        [
            adjacency(graph),
            dict(enumerate(graph.node_labels[:, 0].tolist())),
            dict.fromkeys(map(tuple, graph.edge_index.T.tolist()), 0),
        ]
        for graph in graphs
    ]


def graphlets_by_degree(graph: Graph, size: int) -> Counter[Any]:
    """Induced subgraphs, distinguished by their neighbors' degrees and spectrum, which suffices here."""
    A = (adjacency(graph) > 0).astype(int)
    return Counter(
        str(sorted((row.sum(), *sorted(inside.sum(axis=1)[row > 0])) for row in inside))
        + str((np.round(np.linalg.eigvalsh(inside), 6) + 0.0).tolist())
        for part in combinations(range(graph.num_nodes), size)
        for inside in [A[np.ix_(part, part)]]
    )


def multiscale_laplacian(graphs: GraphSet, levels: int, radius: int, eta: float, gamma: float) -> np.ndarray:
    """Recursion on Gram matrices of all nodes, with dense inverses and determinants."""
    matrices = [adjacency(graph) for graph in graphs]
    distance = [floyd_warshall(A > 0) for A in matrices]
    labels = [label for graph in graphs for label in labels_of(graph)]
    K = np.array([[float(a == b) for b in labels] for a in labels])

    def features() -> np.ndarray:
        value, vector = np.linalg.eigh(K)
        keep = value > 1e-10 * value.max()
        return vector[:, keep] * np.sqrt(value[keep])

    def state(A: np.ndarray, U: np.ndarray) -> np.ndarray:
        laplacian = np.diag(A.sum(axis=1)) - A + eta * np.eye(len(A))
        return U.T @ np.linalg.inv(laplacian) @ U + gamma * np.eye(U.shape[1])

    def flg(S: list[np.ndarray]) -> np.ndarray:
        T, root = np.linalg.inv(np.array(S)), np.linalg.det(np.array(S)) ** 0.25
        return np.array([[np.linalg.det((a + b) / 2) ** -0.5 for b in T] for a in T]) / np.outer(root, root)

    for level in range(1, levels + 1):
        U = features()
        K = flg(
            [
                state(A[np.ix_(ball, ball)], U[first + ball])
                for A, D, first in zip(matrices, distance, graphs.ptr, strict=False)
                for v in range(len(A))
                for ball in [np.flatnonzero(D[v] <= radius * level)]
            ]
        )
    U = features()
    return flg([state(A, U[first : first + len(A)]) for A, first in zip(matrices, graphs.ptr, strict=False)])


def transport(cost: np.ndarray) -> float:
    """The transport problem between uniform masses as a dense linear program."""
    n, m = cost.shape
    rows, columns = np.kron(np.eye(n), np.ones(m)), np.kron(np.ones(n), np.eye(m))
    mass = np.concatenate([np.full(n, 1 / n), np.full(m, 1 / m)])
    return float(linprog(cost.ravel(), A_eq=np.vstack([rows, columns]), b_eq=mass, method="highs").fun)


def wasserstein_wl(graphs: GraphSet, n_iter: int, use_labels: bool = True) -> np.ndarray:
    """Linear programs with the Hamming distance between the nodes' colors of all refinements."""
    found = []
    for graph in graphs:
        A = adjacency(graph) > 0
        color = labels_of(graph) if use_labels and graph.node_labels is not None else [str(d) for d in A.sum(axis=1)]
        levels = [color]
        for _ in range(n_iter):
            color = [f"({color[u]}:{sorted(color[v] for v in np.flatnonzero(A[u]))})" for u in range(graph.num_nodes)]
            levels.append(color)
        found.append(np.array(levels).T)
    return np.array([[transport((a[:, None] != b).mean(axis=2)) for b in found] for a in found])


def continuous_wasserstein(graphs: GraphSet, train: GraphSet, n_iter: int) -> np.ndarray:
    """Linear programs with Euclidean distances between propagated attributes, standardised over ``train``."""
    mean, deviation = train.x.mean(axis=0), train.x.std(axis=0)

    def vectors(graph: Graph) -> np.ndarray:
        A, levels = adjacency(graph), [(graph.x - mean) / deviation]
        share = A / np.maximum(A.sum(axis=1), 1e-300)[:, None]
        for _ in range(n_iter):
            levels.append((levels[-1] + share @ levels[-1]) / 2)
        return np.concatenate(levels, axis=1)

    return np.array(
        [[transport(cdist(vectors(G), vectors(H))) for H in train] for G in graphs],
    )


def return_probabilities(graph: Graph, steps: int, loops: bool) -> np.ndarray:
    """Diagonals of the powers of the dense transition matrix."""
    A = adjacency(graph) + loops * np.eye(graph.num_nodes)
    degree = A.sum(axis=1, keepdims=True)
    P = np.divide(A, degree, out=np.zeros_like(A), where=degree > 0)
    power, found = np.eye(len(P)), []
    for _ in range(steps):
        power = power @ P
        found.append(power.diagonal())
    return np.array(found).T


def mean_discrepancy(
    graphs: GraphSet, train: GraphSet, gamma: float, attribute_gamma: float, base: str, labels: bool, steps: int
) -> np.ndarray:
    """MMD of the nodes of every two graphs, attributes standardised over ``train``."""
    mean, deviation = train.x.mean(axis=0), train.x.std(axis=0)

    def inner(G: Graph, H: Graph) -> float:
        walk = gamma * cdist(*(return_probabilities(graph, steps, True) for graph in (G, H)))
        rest = attribute_gamma * cdist(*((graph.x - mean) / deviation for graph in (G, H)))
        K = np.exp(-walk - rest) if base == "laplacian" else np.exp(-(walk**2 + rest**2) / 2)
        same = np.array([[a == b for b in labels_of(H)] for a in labels_of(G)]) if labels else 1.0
        return float((K * same).mean())

    own = [inner(graph, graph) for graph in graphs]
    square = [[own[i] + own[j] - 2 * inner(G, H) for j, H in enumerate(graphs)] for i, G in enumerate(graphs)]
    return np.sqrt(np.maximum(square, 0))
