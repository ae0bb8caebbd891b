"""Random models that generated graphs are compared with: Erdős–Rényi and the degree-preserving configuration model."""

from __future__ import annotations

import numpy as np
import torch

from gcaps.data.graphset import GraphSet
from gcaps.tasks.dense_graphs import Alphabet, DenseGraphs

SWAPS = 20
"""Number of attempted swaps for each edge."""


def erdos_renyi(graphs: GraphSet, count: int, seed: int = 0) -> GraphSet:
    """Graphs with the numbers of nodes and edges and the labels of random training graphs, and random edges."""
    dense, alphabet, rng = _drawn(graphs, count, seed)
    edges = np.zeros_like(dense.edges.numpy())
    for g in range(count):
        n = int(dense.mask[g].sum())
        codes = dense.edges[g].numpy()
        codes = codes[np.triu(codes, 1) > 0]
        i, j = np.triu_indices(n, 1)
        places = rng.choice(len(i), len(codes), replace=False)
        edges[g, i[places], j[places]] = edges[g, j[places], i[places]] = rng.permutation(codes)
    return alphabet.decode(DenseGraphs(dense.nodes, torch.from_numpy(edges), dense.mask), "Erdős–Rényi")


def configuration_model(graphs: GraphSet, count: int, seed: int = 0) -> GraphSet:
    """Random training graphs after many double edge swaps, which keep the degree and label of every node."""
    dense, alphabet, rng = _drawn(graphs, count, seed)
    edges = dense.edges.numpy().copy()
    for A in edges:
        ends = np.argwhere(np.triu(A, 1))
        for _ in range(SWAPS * len(ends) if len(ends) > 1 else 0):
            first, second = rng.choice(len(ends), 2, replace=False)
            (a, b), (c, d) = ends[first], ends[second]
            if rng.random() < 0.5:
                c, d = d, c
            if len({a, b, c, d}) < 4 or A[a, d] or A[c, b]:
                continue
            one, other = A[a, b], A[c, d]
            A[a, b] = A[b, a] = A[c, d] = A[d, c] = 0
            A[a, d] = A[d, a] = one
            A[c, b] = A[b, c] = other
            ends[first], ends[second] = (a, d), (c, b)
    return alphabet.decode(DenseGraphs(dense.nodes, torch.from_numpy(edges), dense.mask), "configuration model")


def _drawn(graphs: GraphSet, count: int, seed: int) -> tuple[DenseGraphs, Alphabet, np.random.Generator]:
    rng = np.random.default_rng(seed)
    alphabet = Alphabet.of(graphs)
    chosen = torch.from_numpy(rng.integers(0, len(graphs), count))
    return alphabet.encode(graphs, int(graphs.sizes.max())).take(chosen), alphabet, rng


def communities(count: int, seed: int = 0) -> GraphSet:
    """Connected graphs of two communities of 6 to 8 nodes: edges within with probability 0.7, one or two between."""
    rng = np.random.default_rng(seed)
    sizes = rng.integers(6, 9, (count, 2))
    N = int(sizes.sum(axis=1).max())
    edges = np.zeros((count, N, N), dtype=np.int64)
    for A, (a, b) in zip(edges, sizes, strict=True):
        n = a + b
        within = (np.arange(n) < a)[:, None] == (np.arange(n) < a)
        while True:
            A[:n, :n] = np.triu(within & (rng.random((n, n)) < 0.7), 1)
            bridges = rng.integers(1, 3)
            A[rng.integers(0, a, bridges), a + rng.integers(0, b, bridges)] = 1
            A += A.T
            if _reaches_all(A[:n, :n]):
                break
            A[:] = 0
    mask = torch.arange(N) < torch.from_numpy(sizes.sum(axis=1)).unsqueeze(1)
    dense = DenseGraphs(torch.zeros(count, N, dtype=torch.long), torch.from_numpy(edges), mask)
    return Alphabet(None, None).decode(dense, "communities")


def _reaches_all(A: np.ndarray) -> bool:
    reach = np.linalg.matrix_power((A + np.eye(len(A))).clip(max=1), len(A) - 1)
    return bool((reach > 0).all())
